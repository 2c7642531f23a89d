"""What the page on private federation says."""

from collections.abc import Iterable, Mapping

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, lies_within, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text
from fedbandit_envs.leaderboard.reproduction.private_federation import (
    LINES,
    NEVER_ABOVE,
    OURS,
    OURS_TUNED,
    PAPER,
    PAPER_TUNED,
    PLACEBO,
    PROBLEMS,
    SILENT,
    TRUE,
    TUNED,
    Problem,
)
from fedbandit_envs.leaderboard.sweep.runs import Result


def report(section: Section, results: Results) -> None:
    """Writes a panel: bounds, what tuning buys, and the sweeps."""
    if section.panel == "agents":
        _agents(section, results)
        return
    problem = PROBLEMS[section.panel]
    _bounds(section, problem, results)
    _lines(section, problem, results)
    _epsilons(section, results)


def _middle(result: Result) -> str:
    return f"{np.median(regret_by_seed(result)):.0f}"


def _at_most(value: Ratio, bound: float | None) -> str:
    if bound is None:
        return "as found"
    met = "met" if value.value <= bound else "**missed**"
    return f"at most {bound:.3g}: {met}; by the interval: {value.at_most(bound)}"


def _bounds(section: Section, problem: Problem, results: Results) -> None:
    """Writes what was to be shown, at the full horizon."""
    section.text += [
        "",
        f"At the full horizon, behind the privatizers as registered (ratios of {problem.middle}s over instances):",
    ]
    row = section.table(
        "setting: run", "baseline", "regret at T (± 95 %)", "median", f"{OURS} over it", f"asked of {OURS}",
        f"{OURS_TUNED} over it", f"asked of {OURS_TUNED}",
    )  # fmt: skip
    for case in problem.cases:
        found = {line: results[f"{case.title}: {line}"] for line in case.lines}
        asked = {TUNED: case.over_silence, PAPER: case.over_paper}
        for line, result in found.items():
            verdicts: list[Ratio | str] = []
            for mine in (OURS, OURS_TUNED):
                if line not in asked:
                    verdicts += ["", ""]
                    continue
                over = ratio(found[mine], result, middle=problem.middle)
                verdicts += [over, _at_most(over, asked[line])]
            row(f"{case.title}: {line}", problem.names[line], regret_text(result), _middle(result), *verdicts)
    claims = results[f"{problem.cases[0].title}: {OURS}"].claims
    section.text += ["", "What its agent that spent most has spent in the first setting:"]
    first = claims[0]["adjacency"]
    section.claims(
        claim for claim in claims if claim["adjacency"] == first and claim["composition"] != "zcdp"
    )


def _lines(section: Section, problem: Problem, results: Results) -> None:
    """Writes what all lines have at the sweeps' horizon."""
    case = problem.cases[0]
    section.text += ["", f"All lines at the sweeps' horizon ({case.title}):"]
    row = section.table("run", "baseline", "regret (± 95 %)", "median", f"/ {SILENT}", f"/ {TUNED}")
    for line in LINES:
        against = [ratio(results[line], results[base]) for base in (SILENT, TUNED)]
        texts = ["1" if line == base else each for base, each in zip((SILENT, TUNED), against, strict=True)]
        row(line, problem.names[line], regret_text(results[line]), _middle(results[line]), *texts)

    def over(above: str, below: str) -> str:
        return section.say(f"{above} / {below}", ratio(results[above], results[below]))

    placebo = ratio(results[PLACEBO], results[TUNED])
    section.text += [
        "",
        f"* What tuning alone buys, without a message: {over(TUNED, SILENT)} of untuned silence's "
        f"regret; for the paper's form {over(PAPER_TUNED, PAPER)} of its own.",
        f"* The paper's form against untuned silence, as papers compare: {over(PAPER, SILENT)}; tuned "
        f"against tuned: {over(PAPER_TUNED, TUNED)}.",
        f"* Ours against tuned silence: {over(OURS, TUNED)}, with constants of its own "
        f"{over(OURS_TUNED, TUNED)}. On true data, in the same rounds: {over(TRUE, TUNED)}.",
        f"* A placebo is silence: {lies_within(1, placebo)} ({over(PLACEBO, TUNED)}).",
    ]


def _swept(results: Results, line: str) -> dict[str, dict[float, Result]]:
    """Returns a line's runs by delta, then by epsilon."""
    found: dict[str, dict[float, Result]] = {}
    for run, result in results.items():
        name, comma, rest = run.partition(", delta ")
        if comma and name == line:
            delta, epsilon = rest.split()
            found.setdefault(delta, {})[float(epsilon)] = result
    return found


def pays_from(points: Mapping[float, Ratio]) -> str:
    """Says from where on a line has less than silence: the least x from which on every interval is below 1."""
    paying: list[float] = []
    for x, value in sorted(points.items(), reverse=True):
        if value.at_most(1) != "holds":
            break
        paying.append(x)
    if not paying:
        return "nowhere here"
    return f"from {paying[-1]:g}" + (" on, the least tried" if len(paying) == len(points) else " on")


def _epsilons(section: Section, results: Results) -> None:
    """Writes regret against epsilon, as claimed for all releases together."""
    ours, paper = _swept(results, OURS), _swept(results, PAPER)
    section.text += [
        "",
        "Against epsilon, at which all releases of an agent are claimed together, composed exactly:",
    ]
    row = section.table(
        "claim", f"{OURS} (± 95 %)", f"/ {TUNED}", f"shown above {NEVER_ABOVE:g}?",
        "half-width", f"{PAPER} / {TUNED}", f"{OURS} / {PAPER}",
    )  # fmt: skip
    curves: dict[str, dict[float, Ratio]] = {}
    for delta, points in ours.items():
        for epsilon, result in points.items():
            value = ratio(result, results[TUNED])
            curves.setdefault(f"{OURS}, delta {delta}", {})[epsilon] = value
            beside = paper.get(delta, {}).get(epsilon)
            texts: list[Ratio | str] = ["-", "-"]
            if beside is not None:
                other = ratio(beside, results[TUNED])
                curves.setdefault(f"{PAPER}, delta {delta}", {})[epsilon] = other
                texts = [other, ratio(result, beside)]
            above = "**yes**" if value.low > NEVER_ABOVE else "no"
            row(
                f"epsilon {epsilon:g}, delta {delta}", regret_text(result), value, above,
                f"{(value.high - value.low) / 2:.3f}", *texts,
            )  # fmt: skip
    for name, values in curves.items():
        section.draw_ratios(name, values)
    epsilons = list(next(iter(ours.values())))
    for line in (SILENT, PLACEBO, TRUE):
        flat = ratio(results[line], results[TUNED]).value
        section.draw(line, epsilons, [flat] * len(epsilons), np.zeros(len(epsilons)))
    section.text += ["", *_breaks("epsilon", curves.items())]


def _breaks(what: str, curves: Iterable[tuple[str, Mapping[float, Ratio]]]) -> list[str]:
    return [
        f"* {name} has less regret than tuned silence (interval below 1), in {what}: {pays_from(points)}."
        for name, points in curves
    ]


def _agents(section: Section, results: Results) -> None:
    """Writes regret against the number of agents, of all problems."""
    row = section.table("federation", f"{TUNED} (± 95 %)", f"{OURS} / {TUNED}", f"{PAPER} / {TUNED}")
    curves: dict[str, dict[float, Ratio]] = {}
    for run, silence in results.items():
        name, _, rest = run.partition(", ")
        line, _, agents = rest.rpartition(" ")
        if line != TUNED:
            continue
        values = [ratio(results[f"{name}, {other} {agents}"], silence) for other in (OURS, PAPER)]
        for other, value in zip((OURS, PAPER), values, strict=True):
            curves.setdefault(f"{other}, {name}", {})[float(agents)] = value
        row(f"{name}, {agents} agents", regret_text(silence), *values)
    for name, points in curves.items():
        section.draw_ratios(name, points)
    section.text += ["", *_breaks("agents", curves.items())]
