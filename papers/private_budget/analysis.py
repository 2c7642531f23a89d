"""Tables, ratios and curves of the page on what one privacy budget buys."""

from operator import itemgetter
from typing import Any

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, over, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.page import final_regret
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.private_budget.experiments import PROBLEMS


class CandidateComparison:
    """Candidates of one problem beside tuned silence.

    Attributes:
        rounds: The horizon.
        silence: The result of tuned silence.
        candidates: The candidates by name.
        results: Their results by name.
        best: Name of the candidate with the least mean regret.
        near: Ratios to the best one of candidates that are not shown to have more regret: their intervals reach 1.
    """

    def __init__(self, runs: PanelRuns) -> None:
        """Takes the results of the problem's panel."""
        self.candidates = PROBLEMS[runs.panel].candidates
        self.silence: RunResult = runs[TUNED]
        self.rounds = int(self.silence.rounds[-1])
        self.results: dict[str, RunResult] = {name: runs[name] for name in self.candidates}
        self.best = min(self.results, key=lambda name: regret_by_seed(self.results[name]).mean())
        others = {name: result for name, result in self.results.items() if name != self.best}
        ratios = over(others, self.results[self.best])
        self.near = {name: value for name, value in ratios.items() if not value.low > 1}

    def table(self) -> list[dict[str, Any]]:
        """Returns the table of the noise and the regret of each candidate, beside tuned silence."""
        rows: list[tuple[Any, ...]] = [(TUNED, "-", 0, "-", "-", "-", final_regret(self.silence), 1)]
        for name, candidate in self.candidates.items():
            result, claims = self.results[name], self.results[name].claims
            (spent,) = (
                claim.epsilon
                for claim in claims
                if (claim.adjacency, claim.composition) == (claims[0].adjacency, "exact")
            )
            number = candidate.releases(self.rounds)
            noise = (f"{deviation:.2f}" for deviation in candidate.deviations(self.rounds))
            regret, over_silence = final_regret(result), ratio(result, self.silence)
            rows.append((name, str(candidate), number, *noise, f"{spent:.4f}", regret, over_silence))
        heads = ["releases", "how shared out", "number", "sd of the first", "sd of their sum"]
        heads += ["epsilon spent", "regret (± 95 %)", f"/ {TUNED}"]
        return [dict(zip(heads, row, strict=True)) for row in rows]

    def curves(self) -> dict[str, list[tuple[int, Mean]]]:
        """Returns ratios to tuned silence over the number of releases, by how the budget is divided over them."""
        curves: dict[str, list[tuple[int, Mean]]] = {}
        for name, value in over(self.results, self.silence).items():
            candidate = self.candidates[name]
            point = (candidate.releases(self.rounds), Mean(value.value, value.low, value.high))
            curves.setdefault(str(candidate), []).append(point)
        # Candidates of one number stay in their order.
        return {how: sorted(points, key=itemgetter(0)) for how, points in curves.items()}
