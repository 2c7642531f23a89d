"""What the pages of the FedUCB paper's experiments say."""

from collections.abc import Mapping
from math import log

from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, ordered, ratio, regret_by_seed
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.feducb import (
    GRAPHS,
    PLACEBO,
    PRIVATE,
    SHARED,
    SILENT,
    TRIGGERED,
    noise_sd,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, regret_text

FIFTH, FIVE_TIMES, LITTLE_MORE = 1 / 5, 5.0, 1.2


def _table(section: Section, results: Results) -> None:
    """Writes regret at T of every run, over the silent agents'."""
    row = section.table("algorithm", "what it does", "regret at T (± 95 %)", "/ silent", "messages an agent")
    meanings = {
        **SILENT,
        **PRIVATE,
        **TRIGGERED,
        SHARED: "true data",
        PLACEBO: "FedUCB-min on noise alone",
        **{graph: f"Algorithm 3, gamma = {diameter}" for graph, (_, diameter) in GRAPHS.items()},
    }
    for name, result in results.items():
        value = ratio(result, results["LinUCB"])
        messages = result.traffic.get("messages")
        row(
            name, meanings.get(name.split(",")[0].split(" ")[0], "-"), regret_text(result),
            "1" if name == "LinUCB" else value,
            "-" if messages is None else f"{messages.mean():.0f}",
        )  # fmt: skip
        section.add(f"{name} / silent", "", value)


def _sweep(results: Results, suffixes: Mapping[float, str], name: str, silent: str) -> dict[float, Ratio]:
    """Returns a run's ratios to the silent agents' regret over a sweep, x to ratio."""
    return {
        x: ratio(results[name + suffix], results[silent.format(suffix)]) for x, suffix in suffixes.items()
    }


def _numbers(results: Results, name: str) -> dict[float, str]:
    """Returns what a run's names end with, by its number."""
    suffixes = [key.removeprefix(name) for key in results if key.startswith(f"{name} ")]
    return {float(suffix): suffix for suffix in suffixes}


def fig1a(section: Section, results: Results) -> None:
    """Regret against epsilon or the number of agents, and what equal privacy costs in both forms."""
    by_epsilon = section.panel == "epsilon"
    suffixes = _numbers(results, "FedUCB")
    silent = "LinUCB" if by_epsilon else "LinUCB{}"
    for name in (*SILENT, SHARED, *PRIVATE, PLACEBO):
        swept = _numbers(results, name)
        points = (
            _sweep(results, suffixes, name, silent)
            if swept
            else {x: ratio(results[name], results["LinUCB"]) for x in suffixes}
        )
        if name != "LinUCB":
            section.draw_ratios(name, points)
    at_one = suffixes[1.0] if by_epsilon else suffixes[10.0]
    chosen = {
        name: results[name if name in results else name + at_one]
        for name in (*SILENT, SHARED, *PRIVATE, PLACEBO)
    }
    section.text += ["", "At epsilon = 1 with 10 agents:"]
    _table(section, chosen)
    _statements(section, chosen)
    if by_epsilon:
        _equal_privacy(section, chosen)
    row = section.table("epsilon" if by_epsilon else "agents", *PRIVATE, SHARED)
    for x, suffix in suffixes.items():
        shared = results[SHARED if by_epsilon else SHARED + suffix]
        row(f"{x:g}", *(regret_text(results[name + suffix]) for name in PRIVATE), regret_text(shared))


def _equal_privacy(section: Section, results: Results) -> None:
    """Sets the printed form's noise and what it has spent beside ours; both promise (1, 0.1)."""
    section.text += [
        "",
        "Both forms promise epsilon = 1 at delta = 0.1 for one observation replaced. What the agent that spent most "
        "has really spent says how much more noise the printed sigma adds than its promise needs:",
    ]
    row = section.table("form", "largest noise sd on a sum", "composition", "epsilon", "delta", "remark")
    for name in ("FedUCB-printed", "FedUCB"):
        sd = noise_sd(name, int(results[name].rounds[-1]))
        for claim in results[name].claims:
            if claim["adjacency"] == "one-observation":
                epsilon = "-" if claim["epsilon"] is None else f"{claim['epsilon']:.3f}"
                row(name, f"{sd:.2f}", claim["composition"], epsilon, claim["delta"], claim["reason"])


def _statements(section: Section, results: Results) -> None:
    """Says what ours gains over the printed form, sharing over silence, and what the minimum risks."""
    gained = ratio(results["FedUCB"], results["FedUCB-printed"])
    shared = ratio(results["LinUCB"], results[SHARED])
    least = ratio(results["FedUCB-min"], results["LinUCB"])
    random = ratio(results["FedUCB-printed"], results["random-arm"])
    placebo = ratio(results[PLACEBO], results["LinUCB"])
    tuned = ratio(results["LinUCB-0.5"], results["LinUCB"])
    section.text += [
        "",
        f"* Ours has at most a fifth of the printed form's regret: {gained.at_most(FIFTH)} ({gained}).",
        f"* Silence has over five times the regret of sharing true data: {shared.at_least(FIVE_TIMES)} ({shared}).",
        f"* The minimum of both bounds has at most 1.2 times silent regret: {least.at_most(LITTLE_MORE)} ({least}).",
        f"* The printed form over random arms: {random}. For how long: `feducb-horizon`.",
        f"* The placebo, noise alone, over silence: {placebo}; silence with half the radius over silence: {tuned}.",
    ]


def fig1b(section: Section, results: Results) -> None:
    """Regret over rounds for three budgets of communication."""
    _table(section, results)
    for name, result in results.items():
        section.draw_regret(name, result)
    algorithms = dict.fromkeys(name.split(",")[0] for name in results if "," in name)
    section.text += ["", 'The paper sees "a tradeoff" between communication and regret at a given epsilon:']
    for name in algorithms:
        runs = [results[f"{name}, {budget}"] for budget in ("T", "log T", "sqrt M")]
        statement, links = ordered(runs)
        section.text += [
            "",
            f"* {name}: more communication, less regret (T < log T < sqrt M): {statement} "
            f"({'; '.join(str(link) for link in links)}).",
        ]


def fig1c(section: Section, results: Results) -> None:
    """Regret at T against the dimension."""
    suffixes = _numbers(results, "FedUCB")
    row = section.table("d", *SILENT, SHARED, *PRIVATE)
    for dim, suffix in suffixes.items():
        row(f"{dim:g}", *(regret_text(results[name + suffix]) for name in (*SILENT, SHARED, *PRIVATE)))
    for name in (*SILENT, SHARED, *PRIVATE):
        section.draw_points(name, {dim: results[name + suffix] for dim, suffix in suffixes.items()})
    first, last = min(suffixes), max(suffixes)
    section.text += [
        "",
        'The paper sees "essentially a quadratic dependence". Growth from the least to the largest d:',
    ]
    row = section.table("algorithm", "exponent of d")
    for name in (*SILENT, SHARED, *PRIVATE):
        below, above = (regret_by_seed(results[name + suffixes[dim]]).mean() for dim in (first, last))
        row(name, f"{log(above / below) / log(last / first):.2f}")


def fig2(section: Section, results: Results) -> None:
    """Regret at T against the gap."""
    names = list(dict.fromkeys(key.rsplit(" ", 1)[0] for key in results))
    suffixes = _numbers(results, "LinUCB")
    for name in names:
        section.draw_points(name, {gap: results[name + suffix] for gap, suffix in suffixes.items()})
    columns = [f"gap {gap:g}" for gap in suffixes]
    row = section.table("regret at T (± 95 %)", *columns)
    for name in names:
        row(name, *(regret_text(results[name + suffix]) for suffix in suffixes.values()))
    row = section.table("over random arms'", *columns)
    for name in names[1:]:
        points = {
            gap: ratio(results[name + suffix], results["random-arm" + suffix])
            for gap, suffix in suffixes.items()
        }
        for gap, value in points.items():
            section.add(f"{name} / random-arm", gap, value)
        row(name, *points.values())
    section.text += [
        "",
        'The paper says that "the overall regret decreases as the gap increases, and the algorithm becomes less '
        'sensitive to privacy budget altogether". Here a wrong pull costs at least the gap, so that regret is to be '
        "seen beside random arms', and the larger the best mean, the shorter its context is across theta*:",
    ]
    falling = {
        name: ordered([results[name + suffixes[gap]] for gap in sorted(suffixes, reverse=True)])[0]
        for name in names
    }
    row = section.table("algorithm", "regret falls with the gap")
    for name, statement in falling.items():
        row(name, statement)
    epsilons = sorted({name.split("epsilon ")[1] for name in names if "epsilon" in name}, key=float)
    row = section.table(f"regret at epsilon {epsilons[0]} over that at {epsilons[-1]}", *columns)
    for name in dict.fromkeys(name.split(", ")[0] for name in names if "epsilon" in name):
        least, most = (f"{name}, epsilon {epsilon}" for epsilon in (epsilons[0], epsilons[-1]))
        row(name, *(ratio(results[least + suffix], results[most + suffix]) for suffix in suffixes.values()))


def horizon(section: Section, results: Results) -> None:
    """Regret over rounds up to the paper's horizon, ten arms a round."""
    _table(section, results)
    for name, result in results.items():
        section.draw_regret(name, result)
    rounds = results["FedUCB-printed"].rounds
    section.text += [
        "",
        "Ten arms a round here. What the printed form has of random arms' regret, decade by decade; it learns once "
        "this falls:",
    ]
    row = section.table(
        "round", "FedUCB-printed / random-arm", "FedUCB / random-arm", "FedUCB-min / random-arm"
    )
    for exponent in range(2, len(str(int(rounds[-1])))):
        place = int(abs(rounds - 10**exponent).argmin())
        row(
            f"{rounds[place]:,}",
            *(
                ratio(results[name], results["random-arm"], place)
                for name in ("FedUCB-printed", "FedUCB", "FedUCB-min")
            ),
        )


def graphs(section: Section, results: Results) -> None:
    """Regret of Algorithm 3 over graphs."""
    _table(section, results)
    for name, result in results.items():
        section.draw_regret(name, result)
    statement, links = ordered([results[graph] for graph in GRAPHS])
    section.text += [
        "",
        f"Regret orders {' < '.join(GRAPHS)}: {statement} ({'; '.join(str(link) for link in links)}). With gamma the "
        "diameter the power graph is one clique, so everybody hears everybody in the end: graphs cost delay, and that "
        "as many estimators as the diameter have to learn, each from its share of the rounds.",
    ]
