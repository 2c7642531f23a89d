"""What the pages of the FedUCB paper's appendix say, and of questions of our own about it."""

from fedbandit_envs.leaderboard.reproduction.comparison import (
    Ratio,
    Statement,
    all_hold,
    ordered,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.feducb import GRAPHS
from fedbandit_envs.leaderboard.reproduction.feducb_reports import found, numbers, table
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text


def fig2(section: Section, results: Results) -> None:
    """Regret at T against the gap."""
    names = list(dict.fromkeys(key.rsplit(" ", 1)[0] for key in results))
    suffixes = numbers(results, "LinUCB")
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
    falling = {
        name: ordered([results[name + suffixes[gap]] for gap in sorted(suffixes, reverse=True)])[0]
        for name in names
    }
    found(
        section,
        results,
        "As expected, the overall regret decreases as the gap increases",
        "Here a wrong pull costs at least the gap, so that regret is to be seen beside random arms', and the larger "
        "the best mean, the shorter its context is across theta*.",
        falling,
        agents=10,
    )
    epsilons = sorted({name.split("epsilon ")[1] for name in names if "epsilon" in name}, key=float)
    row = section.table(f"regret at epsilon {epsilons[0]} over that at {epsilons[-1]}", *columns)
    sensitive: dict[str, list[Ratio]] = {}
    for name in dict.fromkeys(name.split(", ")[0] for name in names if "epsilon" in name):
        least, most = (f"{name}, epsilon {epsilon}" for epsilon in (epsilons[0], epsilons[-1]))
        sensitive[name] = [
            ratio(results[least + suffix], results[most + suffix]) for suffix in suffixes.values()
        ]
        row(name, *sensitive[name])
    found(
        section,
        results,
        "and the algorithm becomes less sensitive to privacy budget altogether.",
        "How much more regret the least epsilon has than the largest, falls from the least gap to the largest.",
        {name: f"{_apart(values)} ({values[0]}; {values[-1]})" for name, values in sensitive.items()},
        agents=10,
    )


def _apart(values: list[Ratio]) -> Statement:
    """Says whether the last ratio is nearer to 1 than the first, by intervals of how many times it is off."""
    (first_low, first_high), (last_low, last_high) = (_off(values[place]) for place in (0, -1))
    if last_high < first_low:
        return "holds"
    return "does **not** hold" if last_low > first_high else "undecided"


def _off(value: Ratio) -> tuple[float, float]:
    """Returns the interval of the ratio or of its inverse, whichever is above 1; from 1 on where both may be."""
    ends = sorted(max(end, 1 / end) for end in (value.low, value.high))
    return (1.0 if value.low <= 1 <= value.high else ends[0]), ends[1]


def horizon(section: Section, results: Results) -> None:
    """Regret over rounds up to the paper's horizon, ten arms a round."""
    table(section, results)
    for name, result in results.items():
        section.draw_regret(name, result)
    rounds = results["FedUCB-printed"].rounds
    section.text += [
        "",
        "What of random arms' regret the federations have, decade by decade; who learns has ever less:",
    ]
    names = ("FedUCB-printed", "FedUCB", "FedUCB-min")
    places = [int(abs(rounds - 10**exponent).argmin()) for exponent in range(2, len(str(int(rounds[-1]))))]
    row = section.table("round", *(f"{name} / random-arm" for name in names))
    for place in places:
        row(
            f"{rounds[place]:,}",
            *(ratio(results[name], results["random-arm"], place) for name in names),
        )
    if len(places) < 2:
        return
    last, before = places[-1], places[-2]
    grown = {name: [regret_by_seed(results[name], place) for place in (last, before)] for name in names}
    found(
        section,
        results,
        "FedUCB with the Privatizer subroutine in Alg. 2, obtains O~(d^{3/4} sqrt(MT/epsilon)) centralized regret",
        "(Corollary 1.) At such a rate ten times the rounds have sqrt(10) = 3.2 times the regret; ten times is what "
        f"learns nothing. From round {rounds[before]:,} to {rounds[last]:,}; a bound on a rate in the limit is not "
        "refuted by any horizon.",
        {
            name: f"{section.say(f'{name}, last decade', over_seeds(now / then, '.2f'))} times"
            for name, (now, then) in grown.items()
        },
    )


def graphs(section: Section, results: Results) -> None:
    """Regret of Algorithm 3 over graphs."""
    table(section, results)
    for name, result in results.items():
        section.draw_regret(name, result)
    statement, links = ordered([results[graph] for graph in GRAPHS])
    section.text += [
        "",
        f"Regret orders {' < '.join(GRAPHS)}: {statement} ({'; '.join(str(link) for link in links)}). With gamma the "
        "diameter the power graph is one clique, so everybody hears everybody in the end: graphs cost delay, and that "
        "as many estimators as the diameter have to learn, each from its share of the rounds.",
    ]
    silent = ratio(results["line"], results["LinUCB"])
    alike = all_hold([silent.at_least(1), silent.at_most(1)])
    if silent.low <= 1 <= silent.high:
        alike = "holds"
    found(
        section,
        results,
        "if G is a line graph, then chi(G_gamma) = M / gamma, giving an additional factor of M (i.e., it is as good "
        "as each agent acting individually).",
        "(Remark 2, whose gamma is less than the diameter.) A line has silence's regret.",
        {"line / LinUCB is 1": f"{alike} ({silent})"},
    )
