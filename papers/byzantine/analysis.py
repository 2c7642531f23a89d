"""Tables and curves of the page on liars."""

from collections.abc import Iterator

from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, over, ratio
from fedbandit_envs.leaderboard.reproduction.page import Row, final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.byzantine.experiments import BY_NUMBER, MEANINGS, SILENT

SHARE, BOUND = 0.2, 1.3


class Liars:
    """Regret of a panel's honest agents.

    Attributes:
        honest: Results of honest agents by baseline and share of liars.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of honest agents out of those of all."""
        self.honest = {
            line: {share: result.of("honest") for share, result in runs.by("liars", line=line).items()}
            for line in runs.values("line")
        }

    def regrets(self) -> Iterator[Row]:
        """Returns the table of regret by baseline and share of liars."""
        for line, own in self.curves().items():
            heads = {"honest agents' regret at T (± 95 %)": line, "what it does": MEANINGS[line]}
            yield heads | {f"{share:.0%} liars": mean for share, mean in own.items()}

    def curves(self) -> dict[str, dict[float, Mean]]:
        """Returns the curve of each baseline's regret over the share of liars."""
        return {
            line: {share: final_regret(result) for share, result in own.items()}
            for line, own in self.honest.items()
        }

    def ratios(self) -> dict[str, dict[float, Ratio]]:
        """Returns each baseline's regret over its own without liars and over silence, by the share of liars."""
        found = {}
        for line, own in self.honest.items():
            found[f"{line} / without liars"] = over(own, own[0.0])
            found[f"{line} / silent"] = over(own, self.honest[SILENT])
        return found

    def bounds(self) -> Iterator[Row]:
        """Returns the table of what a fifth of liars does to the regret of each federated baseline."""
        for line, own in self.honest.items():
            if line != SILENT:
                grown = ratio(own[SHARE], own[0.0])
                yield {
                    "algorithm": line,
                    "holds?": grown.at_most(BOUND),
                    "over its own without liars": grown,
                    "over silence": ratio(own[SHARE], self.honest[SILENT][SHARE]),
                }

    def is_biased(self) -> bool:
        """Returns whether trimming each number by itself costs more than the bound."""
        return any(row["algorithm"] == BY_NUMBER and row["holds?"] != "holds" for row in self.bounds())
