"""Tables, ratios and curves of the page that compares ways to spend one privacy budget."""

from operator import itemgetter

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.papers.private_budget.experiments import PROBLEMS
from fedbandit_envs.papers.reproduction.comparison import Mean, claim_of, final_regret, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table


def noise_and_regret(runs: PanelRuns) -> Table:
    """Yields a table with a line for each candidate (way to spend the privacy budget): its noise and its regret.

    Regret is compared with that of tuned agents who do not communicate.
    """
    heads = ("how shared out", "number", "sd of the first", "sd of their sum", "epsilon spent")
    cells: dict[str, tuple[str | int, ...]] = {TUNED: ("-", 0, "-", "-", "-")}
    for name, candidate in PROBLEMS[runs.panel].candidates.items():
        rounds, spent = int(runs[name].rounds[-1]), claim_of(runs[name], "exact").epsilon
        noise = (f"{deviation:.2f}" for deviation in candidate.deviations(rounds))
        cells[name] = (str(candidate), candidate.releases(rounds), *noise, f"{spent:.4f}")
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
    for name, candidate in PROBLEMS[runs.panel].candidates.items():
        value, releases = ratio(runs[name], runs[TUNED]), candidate.releases(int(runs[name].rounds[-1]))
        curves.setdefault(str(candidate), []).append(
            (releases, Mean(value.value, value.low, value.high, value.instances))
        )
    # Sorted by number of releases alone: candidates with the same number keep their order.
    return {how: sorted(points, key=itemgetter(0)) for how, points in curves.items()}
