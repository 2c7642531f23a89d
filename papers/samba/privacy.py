"""Tables and curves of the page that sets noise beside encryption."""

from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, compare
from fedbandit_envs.leaderboard.reproduction.page import over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.samba.experiments import ENCRYPTED, OPEN, PLACEBO, PRIVATE, RANDOM, SHARED, SILENT
from fedbandit_envs.papers.samba.runs import Selected

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


def table(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of regret, bytes and CPU time a pull, of who sees what, and of what is claimed."""
    opened: Selected = runs.one(OPEN)
    pulls, best = opened.budget, float(opened.means.max())
    rows = []
    for line, result in ((row.labels, row.result) for row in runs.rows):
        regret = _regret_a_pull(runs, result)
        trust, epsilon = _claimed(result)
        rows.append(
            {
                "run": f"{line['line']} {line['epsilon']:g}" if "epsilon" in line else line["line"],
                "regret a pull (± 95 %)": over_seeds(regret, ",.4f"),
                "reward a pull": f"{best - regret.mean():.4f}",
                "cumulative reward": f"{pulls * (best - regret.mean()):,.0f}",
                "/ silent regret": "1" if line["line"] == SILENT else _over(runs, regret, SILENT),
                "bytes a pull": f"{_bytes(result) / pulls:,.2f}",
                "CPU µs a pull": f"{_microseconds(result) / pulls:,.2f}",
                "who sees what": _SEES[line["line"]],
                "trust": trust,
                "epsilon claimed": epsilon,
            }
        )
    return rows


def _regret_a_pull(runs: PanelRuns, result: RunResult | Selected) -> Array:
    """Returns the whole federation's regret by the means of what was pulled, for each pull, ``(seeds,)``."""
    opened: Selected = runs.one(OPEN)
    # An encrypted run pulls what the run in the open does.
    total: Array = opened.regret if isinstance(result, Selected) else result.regret[-1].sum(axis=1)
    return total / opened.budget


def _over(runs: PanelRuns, regret: Array, line: str, **labels: Any) -> Ratio:
    return compare(regret, _regret_a_pull(runs, runs.one(line, **labels)))


def _bytes(result: RunResult | Selected) -> float:
    if isinstance(result, Selected):
        return float(result.bytes.mean())
    return float(result.traffic["bytes"].sum(axis=1).mean()) if result.traffic else 0.0


def _microseconds(result: RunResult | Selected) -> float:
    """Returns CPU time of a run."""
    if isinstance(result, Selected):
        return 1e6 * float(result.spent.mean())
    return 1e6 * result.cpu_seconds / result.regret.shape[1]


def _claimed(result: RunResult | Selected) -> tuple[str, str]:
    """Returns whom one must trust, and the best epsilon that is claimed, under the adjacency it is claimed for."""
    if isinstance(result, Selected):
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


def curves(runs: PanelRuns) -> dict[str, dict[float, Any]]:
    """Returns regret a pull over epsilon, level where a run has none."""
    swept = {
        line: {x: over_seeds(_regret_a_pull(runs, run)) for x, run in runs.by("epsilon", line=line).items()}
        for line in (PRIVATE, PLACEBO)
    }
    level = {line: over_seeds(_regret_a_pull(runs, runs.one(line))) for line in (SILENT, SHARED, ENCRYPTED)}
    return swept | {line: dict.fromkeys(swept[PRIVATE], mean) for line, mean in level.items()}


def earn_the_same(runs: PanelRuns) -> bool:
    """Returns whether encrypted runs earn exactly what the open runs of their seeds do."""
    encrypted, opened = runs.one(ENCRYPTED), runs.one(OPEN)
    return bool(np.array_equal(encrypted.reward, opened.reward[: encrypted.reward.size]))


def bytes_a_pull(runs: PanelRuns) -> float:
    """Returns the bytes that an encrypted run sends for each pull."""
    return _bytes(runs.one(ENCRYPTED)) / runs.one(ENCRYPTED).budget


def slowdown(runs: PanelRuns) -> float:
    """Returns the CPU time of an encrypted run over that of the open run of its seed."""
    encrypted, opened = runs.one(ENCRYPTED), runs.one(OPEN)
    return compare(encrypted.spent, opened.spent[: encrypted.spent.size]).value


def noise(runs: PanelRuns) -> dict[float, tuple[Ratio, Ratio, Ratio]]:
    """Returns private regret over that of true data, of noise alone and of silence, by epsilon."""
    found = {}
    for epsilon, result in runs.by("epsilon", line=PRIVATE).items():
        regret = _regret_a_pull(runs, result)
        placebo = _over(runs, regret, PLACEBO, epsilon=epsilon)
        found[epsilon] = (_over(runs, regret, SHARED), placebo, _over(runs, regret, SILENT))
    return found
