"""Tables and curves of the page that sets noise beside encryption."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, compare
from fedbandit_envs.leaderboard.reproduction.page import Row, over_seeds
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


class Protections:
    """Noise and encryption on the same arms: what each costs and protects.

    Attributes:
        pulls: Number of pulls of a run, all agents or owners together.
        encrypted: Result of the encrypted runs, see :func:`.runs.select`.
        earn_the_same: Whether encrypted runs earn exactly what the open runs of their seeds do.
        slowdown: CPU time of encrypted runs over that of the open runs of their seeds.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Sets encrypted runs beside those in the open."""
        self._runs = runs
        self._open, self.encrypted = runs[OPEN], runs[ENCRYPTED]
        self.pulls = AGENTS * runs.plan.scale.rounds
        same = slice(self.encrypted.reward.size)
        self.earn_the_same = np.array_equal(self.encrypted.reward, self._open.reward[same])
        self.slowdown = compare(self.encrypted.spent, self._open.spent[same]).value

    def table(self) -> Iterator[Row]:
        """Returns the table of regret, bytes and CPU time a pull, of who sees what, and of what is claimed."""
        best = max(self._open.means)
        for labels, result in self._runs.rows:
            line, regret = labels["line"], self._regret(result)
            trust, epsilon = _claimed(result)
            yield {
                "run": f"{line} {labels['epsilon']:g}" if "epsilon" in labels else line,
                "regret a pull (± 95 %)": over_seeds(regret, ",.4f"),
                "reward a pull": f"{best - regret.mean():.4f}",
                "cumulative reward": f"{self.pulls * (best - regret.mean()):,.0f}",
                "/ silent regret": "1" if line == SILENT else self._over(result, SILENT),
                "bytes a pull": f"{self.bytes(result):,.2f}",
                "CPU µs a pull": f"{_microseconds(result) / self.pulls:,.2f}",
                "who sees what": _SEES[line],
                "trust": trust,
                "epsilon claimed": epsilon,
            }

    def _regret(self, result: Any) -> Array:
        """Returns the whole federation's regret by the means of what was pulled, for each pull, ``(seeds,)``."""
        # An encrypted run pulls what the run in the open does.
        total: Array = result.regret[-1].sum(axis=1) if isinstance(result, RunResult) else self._open.regret
        return total / self.pulls

    def _over(self, result: Any, line: str, **labels: Any) -> Ratio:
        return compare(self._regret(result), self._regret(self._runs.one(line, **labels)))

    def bytes(self, result: Any) -> float:
        """Returns the bytes that a run sends for each pull."""
        if isinstance(result, RunResult):
            return float(result.traffic["bytes"].sum(axis=1).mean()) / self.pulls if result.traffic else 0.0
        return float(result.bytes.mean()) / self.pulls

    def curves(self) -> dict[str, dict[float, Any]]:
        """Returns regret a pull over epsilon, level where a run has none."""
        swept = {
            line: {x: over_seeds(self._regret(run)) for x, run in self._runs.by("epsilon", line=line).items()}
            for line in (PRIVATE, PLACEBO)
        }
        level = {line: over_seeds(self._regret(self._runs.one(line))) for line in (SILENT, SHARED, ENCRYPTED)}
        return swept | {line: dict.fromkeys(swept[PRIVATE], mean) for line, mean in level.items()}

    def noise(self) -> dict[float, tuple[Ratio, Ratio, Ratio]]:
        """Returns private regret over that of true data, of noise alone and of silence, by epsilon."""
        return {
            epsilon: (
                self._over(result, SHARED),
                self._over(result, PLACEBO, epsilon=epsilon),
                self._over(result, SILENT),
            )
            for epsilon, result in self._runs.by("epsilon", line=PRIVATE).items()
        }


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
