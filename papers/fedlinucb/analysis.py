"""Tables, ratios and curves of the page on FedLinUCB."""

from collections.abc import Iterator

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, compare, ratio
from fedbandit_envs.leaderboard.reproduction.page import Row, means, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.fedlinucb.experiments import MEANINGS

_DIM = 15


class Federations:
    """Federations of a panel, of which the paper's algorithm and its rival come first.

    Attributes:
        ours: Name of the paper's algorithm.
        rival: Name of the one with which it is compared.
        regret: Its regret over the rival's.
        messages: Its messages at T over the rival's.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Compares the first two lines."""
        self._runs = runs
        self.ours, self.rival, *_ = runs.values("line")
        self.regret = self.over(self.rival)
        sent = [runs[line].messages[-1].sum(axis=1) for line in (self.ours, self.rival)]
        self.messages = compare(*sent)

    def over(self, line: str) -> Ratio:
        """Returns the regret of the paper's algorithm over that of another line."""
        return ratio(self._runs[self.ours], self._runs[line])

    def table(self) -> Iterator[Row]:
        """Returns the table of what all agents together have at T: regret and messages."""
        for name, result in self._runs.by("line").items():
            sent = "-" if result.messages is None else over_seeds(result.messages[-1].sum(axis=1), ",.0f")
            yield {
                "algorithm": name,
                "what it does": MEANINGS[name],
                "regret at T (± 95 %)": over_seeds(result.regret[-1].sum(axis=1), ",.0f"),
                f"/ {self.rival}": "1" if name == self.rival else ratio(result, self._runs[self.rival]),
                "messages at T (± 95 %)": sent,
            }

    def curves(self) -> dict[str, dict[int, Mean]]:
        """Returns all agents' regret or messages over rounds, whichever the panel is about."""
        about = "messages" if self._runs.panel.startswith("messages") else "regret"
        return {
            name: means(result.rounds, getattr(result, about).sum(axis=2))
            for name, result in self._runs.by("line").items()
            if getattr(result, about) is not None
        }

    def communication(self) -> dict[str, float]:
        """Returns d M^2, the paper's bound on messages, the messages at T over it, and over those at T / 10."""
        result = self._runs[self.ours]
        bound = _DIM * result.regret.shape[2] ** 2
        early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
        total = result.messages.sum(axis=2).mean(axis=1)
        return {"bound": bound, "share": total[-1] / bound, "growth": total[-1] / max(total[early], 1)}
