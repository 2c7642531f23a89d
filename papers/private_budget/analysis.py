"""Tables, ratios and curves of the page that compares ways to spend one privacy budget."""

from collections.abc import Mapping
from operator import itemgetter

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, final_regret, over, ratio
from fedbandit_envs.leaderboard.reproduction.experiment import PanelRuns
from fedbandit_envs.leaderboard.reproduction.page import Table
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.private_budget.experiments import PROBLEMS


def by_candidate(runs: PanelRuns) -> dict[str, RunResult]:
    """Returns the results of all candidates, by name; a candidate is a way to spend the privacy budget."""
    return {name: runs[name] for name in PROBLEMS[runs.panel].candidates}


def near(results: Mapping[str, RunResult], best: str) -> dict[str, Ratio]:
    """Returns the candidates that may be as good as the best one, with the ratios of their regret to its regret.

    A candidate is left out if the whole interval of its ratio is above 1.

    Args:
        results: Results of the candidates, by name.
        best: Name of the best candidate.
    """
    ratios = over({name: result for name, result in results.items() if name != best}, results[best])
    return {name: value for name, value in ratios.items() if not value.low > 1}


def noise_and_regret(runs: PanelRuns) -> Table:
    """Yields a table with a line for each candidate (way to spend the privacy budget): its noise and its regret.

    Regret is compared with that of tuned agents who do not communicate.
    """
    heads = ("how shared out", "number", "sd of the first", "sd of their sum", "epsilon spent")
    cells: dict[str, tuple[str | int, ...]] = {TUNED: ("-", 0, "-", "-", "-")}
    for name, candidate in PROBLEMS[runs.panel].candidates.items():
        rounds, claims = int(runs[name].rounds[-1]), runs[name].claims
        spent = {
            claim.composition: claim.epsilon for claim in claims if claim.adjacency == claims[0].adjacency
        }
        noise = (f"{deviation:.2f}" for deviation in candidate.deviations(rounds))
        cells[name] = (str(candidate), candidate.releases(rounds), *noise, f"{spent['exact']:.4f}")
    for name, own in cells.items():
        yield {
            "releases": name,
            **dict(zip(heads, own, strict=True)),
            "regret (± 95 %)": final_regret(runs[name]),
            f"/ {TUNED}": 1 if name == TUNED else ratio(runs[name], runs[TUNED]),
        }


def curves(runs: PanelRuns) -> dict[str, list[tuple[int, Mean]]]:
    """Returns curves over the number of releases, by the way in which they share the privacy budget.

    A point is a candidate's regret divided by that of tuned agents who do not communicate.
    """
    curves: dict[str, list[tuple[int, Mean]]] = {}
    for name, value in over(by_candidate(runs), runs[TUNED]).items():
        candidate = PROBLEMS[runs.panel].candidates[name]
        releases = candidate.releases(int(runs[name].rounds[-1]))
        curves.setdefault(str(candidate), []).append((releases, Mean(value.value, value.low, value.high)))
    # Sorted by number of releases alone: candidates with the same number keep their order.
    return {how: sorted(points, key=itemgetter(0)) for how, points in curves.items()}
