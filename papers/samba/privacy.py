"""Tables and curves of the page that sets noise beside encryption."""

from collections.abc import Iterator
from typing import Any

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, compare
from fedbandit_envs.leaderboard.reproduction.page import Curves, Row, each, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.samba.experiments import (
    AGENTS,
    ENCRYPTED,
    OPEN,
    PLACEBO,
    PRIVATE,
    RANDOM,
    SHARED,
    SILENT,
)

_SEES = {
    RANDOM: "nobody tells anything, or learns",
    SILENT: "nobody tells anything",
    SHARED: "every agent sees every other's true pulls and successes of each arm, in doubling rounds",
    PRIVATE: "the same under noise that each agent adds itself",
    PLACEBO: "noise alone: what messages are worth without data",
    OPEN: "the selector sees every owner's score in every round, and whom it picks",
    ENCRYPTED: "the customer sees the total, exactly; Comp masked and permuted scores; owners their own pulls "
    "and rewards; Controller and the wire ciphertexts",
}


def regrets(runs: PanelRuns) -> dict[str, dict[float, Array]]:
    """Returns regret by the means of what was pulled, for each pull, ``(seeds,)``, by line and epsilon.

    A run without epsilon stands at all of them. An encrypted run has the regret of that in the open, as it pulls the
    same owners.
    """

    def regret(result: Any) -> Array:
        total: Array = result.regret[-1].sum(axis=1) if isinstance(result, RunResult) else runs[OPEN].regret
        return total / pulls(runs)

    return each(runs.lines("epsilon"), regret)


def pulls(runs: PanelRuns) -> int:
    """Returns the number of pulls of a run, all agents or owners together."""
    return AGENTS * runs.plan.scale.rounds


def table(runs: PanelRuns) -> Iterator[Row]:
    """Returns the table of regret, bytes and CPU time a pull, of who sees what, and of what is claimed."""
    found, best = regrets(runs), max(runs[OPEN].means)
    for labels, result in runs.rows:
        line, at = labels["line"], labels.get("epsilon", runs.values("epsilon")[0])
        regret = found[line][at]
        trust, epsilon = _claimed(result)
        yield {
            "run": f"{line} {at:g}" if "epsilon" in labels else line,
            "regret a pull (± 95 %)": over_seeds(regret, ",.4f"),
            "reward a pull": f"{best - regret.mean():.4f}",
            "cumulative reward": f"{pulls(runs) * (best - regret.mean()):,.0f}",
            "/ silent regret": "1" if line == SILENT else compare(regret, found[SILENT][at]),
            "bytes a pull": f"{sent(result) / pulls(runs):,.2f}",
            "CPU µs a pull": f"{_microseconds(result) / pulls(runs):,.2f}",
            "who sees what": _SEES[line],
            "trust": trust,
            "epsilon claimed": epsilon,
        }


def curves(runs: PanelRuns) -> Curves:
    """Returns regret a pull over epsilon, level where a run has none."""
    found = each(regrets(runs), over_seeds)
    return {line: found[line] for line in (PRIVATE, PLACEBO, SILENT, SHARED, ENCRYPTED)}


def noise(runs: PanelRuns) -> dict[float, list[Ratio]]:
    """Returns private regret over that of true data, of noise alone and of silence, by epsilon."""
    found = regrets(runs)
    return {
        epsilon: [compare(private, found[line][epsilon]) for line in (SHARED, PLACEBO, SILENT)]
        for epsilon, private in found[PRIVATE].items()
    }


def sent(result: Any) -> float:
    """Returns the mean number of bytes that a run sends."""
    if isinstance(result, RunResult):
        return float(result.traffic["bytes"].sum(axis=1).mean()) if result.traffic else 0.0
    return float(result.bytes.mean())


def _microseconds(result: Any) -> float:
    """Returns the CPU time of a run."""
    if isinstance(result, RunResult):
        return 1e6 * result.cpu_seconds / result.regret.shape[1]
    return 1e6 * float(result.spent.mean())


def _claimed(result: Any) -> tuple[str, str]:
    """Returns whom one must trust, and the best epsilon that is claimed, under the adjacency it is claimed for."""
    if not isinstance(result, RunResult):
        if result.claim is None:
            return "whoever selects", "none"
        return str(result.claim["trust"]), "infinite: the total is exact"
    if not result.claims:
        return ("everybody", "none") if result.traffic else ("nobody", "nothing is told")
    known = [claim for claim in result.claims if claim.epsilon is not None]
    texts = []
    for adjacency in dict.fromkeys(claim.adjacency for claim in known):
        least = min((c for c in known if c.adjacency == adjacency), key=lambda c: c.epsilon or 0.0)
        texts.append(f"{least.epsilon:.3g} ({adjacency}, delta {least.delta:.0e})")
    return str(result.claims[0].trust), "; ".join(texts) or "none"
