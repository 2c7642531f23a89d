"""What the pages of SAMBA's Figure 8 say."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.figures import BESIDE
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Statement,
    all_hold,
    compare,
    lies_within,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds
from fedbandit_envs.leaderboard.reproduction.samba import ALGORITHMS, MOST_ARMS, PAPER_ROUNDS
from fedbandit_envs.leaderboard.reproduction.samba_runs import Selected

Results = Mapping[str, Selected]

ORDER_OF_MAGNITUDE = 10.0
_SLOWEST, _FASTEST, _TWICE = "thompson", "epsilon-greedy", "pursuit"
_PAPER_SECONDS = 15 * 60

PUBLISHED = {
    "epsilon-greedy": (48_172, 1_471),
    "epsilon-decreasing": (49_450, 1_918),
    "ucb": (47_952, 75),
    "thompson": (52_572, 194),
    "softmax": (47_737, 1_009),
    "pursuit": (45_119, 9_821),
}
"""Mean and standard deviation of the authors' 150 published runs: MovieLens, K = 100, N = 1e5."""
_PUBLISHED_RUNS = 150


def straight(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """Returns slope, intercept and R^2 of the straight line through points."""
    slope, intercept = np.polyfit(sizes, values, 1)
    left = np.sum((np.asarray(values) - np.polyval([slope, intercept], sizes)) ** 2)
    spread = np.sum((np.asarray(values) - np.mean(values)) ** 2)
    return float(slope), float(intercept), float(1 - left / spread)


def fig8a(section: Section, results: Results) -> None:
    """Execution time against N."""
    _times(section, results, "N", lambda result: result.budget)


def fig8b(section: Section, results: Results) -> None:
    """Execution time against K."""
    _times(section, results, "K", lambda result: result.arms)


def _times(section: Section, results: Results, letter: str, size_of: Callable[[Selected], int]) -> None:
    """Writes CPU seconds against N or K, lines through them, and what the paper says of both."""
    sizes = sorted({size_of(result) for result in results.values()})
    found = {(r.algorithm, size_of(r), r.encrypted): r for r in results.values()}
    row = section.table("CPU seconds, encrypted / in the open", *(f"{letter} = {size:,}" for size in sizes))
    for name, title in ALGORITHMS.items():
        pairs = [(found[name, size, True].spent, found[name, size, False].spent) for size in sizes]
        row(title, *(f"{over_seeds(a, ',.2f')} / {b.mean():.3f}" for a, b in pairs))
    fits, overheads = {}, {}
    row = section.table(
        "line through them", f"ms for each of {letter}", "at 0, s", "R^2",
        f"encrypted / open at {letter} = {sizes[-1]:,}"
    )  # fmt: skip
    for name, title in ALGORITHMS.items():
        fits[name] = straight(sizes, [float(found[name, size, True].spent.mean()) for size in sizes])
        overheads[name] = {
            size: compare(found[name, size, True].spent, found[name, size, False].spent) for size in sizes
        }
        slope, start, share = fits[name]
        row(title, f"{1e3 * slope:.3f}", f"{start:.2f}", f"{share:.4f}", overheads[name][sizes[-1]])
    for encrypted, end in ((True, ""), (False, BESIDE)):
        for name, title in ALGORITHMS.items():
            section.draw_means(
                title + end, {size: over_seeds(found[name, size, encrypted].spent) for size in sizes}
            )
    for name, ratios in overheads.items():
        for size, ratio in ratios.items():
            section.add(f"{name}, encrypted / open", size, ratio)
    least = min(fits, key=lambda name: fits[name][2])
    every = [ratio for ratios in overheads.values() for ratio in ratios.values()]
    away = max(
        abs(float(found[name, size, True].spent.mean()) / (slope * size + start) - 1)
        for name, (slope, start, _) in fits.items()
        for size in sizes
    )
    section.text += [
        "",
        f'* "the execution time is linear in N and K": no measure is named. In {letter} the straight lines have an R^2 '
        f"of at least {fits[least][2]:.4f} ({ALGORITHMS[least]}), and no mean is further than {away:.0%} from its "
        "line.",
        '* "The overhead between the standard algorithms (shown in dotted lines) and their Samba instantiation is of '
        f'at most an order of magnitude": {all_hold(ratio.at_most(ORDER_OF_MAGNITUDE) for ratio in every)} '
        f"({min(r.value for r in every):,.0f} to {max(r.value for r in every):,.0f} times). Ours in the open are "
        "compiled; the paper's are Python, so that this says as much of the open runs as of the encrypted ones.",
        *_hierarchy({name: found[name, sizes[-1], True].spent for name in ALGORITHMS}, letter, sizes[-1]),
        _minutes(found[_FASTEST, sizes[-1], True], fits, letter),
        _same(results),
    ]


def _hierarchy(spent: Mapping[str, Array], letter: str, size: int) -> list[str]:
    """Says which algorithm takes longest, and whether Pursuit takes twice as long as the others."""
    single = {name: values for name, values in spent.items() if name != _TWICE}
    double = compare(spent[_TWICE], np.mean(list(single.values()), axis=0))
    order = sorted(single, key=lambda name: float(single[name].mean()))
    slow = all_hold(
        compare(single[_SLOWEST], rest).at_least(1) for name, rest in single.items() if name != _SLOWEST
    )
    fast = all_hold(
        compare(single[_FASTEST], rest).at_most(1) for name, rest in single.items() if name != _FASTEST
    )
    return [
        f'* Pursuit\'s "execution time is double": at {letter} = {size:,} it is {double} times the mean of the others; '
        f"{lies_within(2, double)}.",
        f'* Of those with one iteration "Thompson Sampling is the slowest": {slow}; epsilon-greedy with fixed epsilon '
        f'"is the fastest": {fast} (fastest first: {", ".join(ALGORITHMS[name] for name in order)}).',
    ]


def _minutes(last: Selected, fits: Mapping[str, tuple[float, float, float]], letter: str) -> str:
    """Sets the paper's quarter of an hour beside our CPU seconds for N = 1e5 and K = 100."""
    said = '* "for the maximal considered input [...] the majority of the Samba algorithms take around 15 minutes" '
    beside = f"({_PAPER_SECONDS} seconds, of the authors' machine)"
    if letter == "K" and last.budget != PAPER_ROUNDS:
        return f"{said}{beside}: not run here, where N is {last.budget:,}."
    size = PAPER_ROUNDS if letter == "N" else MOST_ARMS
    seconds = {name: slope * size + start for name, (slope, start, _) in fits.items()}
    reached = (last.budget if letter == "N" else last.arms) >= size
    how = "by the lines" if reached else "by the lines, far beyond what was run"
    several = ", ".join(f"{ALGORITHMS[name]} {value:,.0f}" for name, value in seconds.items())
    return f"{said}{beside}: {how}, ours take CPU seconds of {several}."


def _same(results: Results) -> str:
    """Says whether encrypted runs have earned what runs in the open have."""
    opened = {(r.algorithm, r.arms, r.budget): r.reward for r in results.values() if not r.encrypted}
    pairs = [(r.reward, opened[r.algorithm, r.arms, r.budget]) for r in results.values() if r.encrypted]
    same = sum(int(np.sum(first == second)) for first, second in pairs)
    total = sum(first.size for first, _ in pairs)
    return f"* Encrypted runs that have earned exactly what the one of their seed in the open has: {same} of {total}."


def fig8c(section: Section, results: Results) -> None:
    """Cumulative reward against N."""
    budgets = list(results["ucb"].noted)
    row = section.table(
        "reward, mean (sd)", *(f"N = {budget:,}" for budget in budgets), "Thompson / it at the last N"
    )
    best = results["thompson"].noted
    links = {}
    for name, title in ALGORITHMS.items():
        noted = results[name].noted
        links[name] = {budget: compare(best[budget], noted[budget]) for budget in budgets}
        row(
            title, *(_mean_sd(noted[budget]) for budget in budgets),
            "1" if name == "thompson" else links[name][budgets[-1]],
        )  # fmt: skip
        section.draw_means(title, {budget: over_seeds(noted[budget]) for budget in budgets})
        for budget, link in links[name].items():
            section.add(f"thompson / {name}", budget, link)
    rivals = [name for name in ALGORITHMS if name != "thompson"]
    order = sorted(ALGORITHMS, key=lambda name: -float(results[name].noted[budgets[-1]].mean()))
    beside = "" if budgets[-1] == PAPER_ROUNDS else ", which are not the paper's"
    section.text += [
        "",
        "Runs are paired by seed; rewards at different N are of the same runs.",
        "",
        f'* Thompson Sampling "always produces the best rewards", against each rival at each N{beside}: '
        f"{all_hold(links[name][budget].at_least(1) for name in rivals for budget in budgets)}; at N = "
        f"{budgets[-1]:,}: {all_hold(links[name][budgets[-1]].at_least(1) for name in rivals)}.",
        f"* Most reward first at N = {budgets[-1]:,}: {', '.join(ALGORITHMS[name] for name in order)}. (The paper: "
        '"The two different datasets (MovieLens and Jester) yield [...] different rankings in their performance".)',
        f"* Always the best arm would earn {results['ucb'].means.max() * budgets[-1]:,.0f} at the last N on average, "
        f"arms at random {results['ucb'].means.mean() * budgets[-1]:,.0f}.",
    ]
    if section.panel == "movielens":
        _published(section, results, budgets[-1])


def _mean_sd(values: Array) -> str:
    return f"{values.mean():,.0f} ({values.std(ddof=1):,.0f})"


def _published(section: Section, results: Results, budget: int) -> None:
    """Sets the authors' published runs beside ours."""
    if budget != PAPER_ROUNDS:
        section.text += [
            "",
            f"The authors' published runs have N = {PAPER_ROUNDS:,} and stand beside ours on the page of that scale.",
        ]
        return
    section.text += [
        "",
        f"The authors' {_PUBLISHED_RUNS} published runs of MovieLens, K = {MOST_ARMS}, N = {budget:,}; the interval "
        "is that of the difference of means, by both standard deviations as if all runs were independent, which theirs "
        "are not (see below), so that it is too narrow:",
    ]
    row = section.table("reward, mean (sd)", "theirs", "ours", "ours less theirs (± 95 %)", "agrees?")
    for name, (mean, sd) in PUBLISHED.items():
        ours = results[name].noted[budget]
        away = ours.mean() - mean
        half = 1.96 * np.sqrt(ours.var(ddof=1) / ours.size + sd**2 / _PUBLISHED_RUNS)
        verdict = "agrees" if abs(away) <= half else f"**differs**, by {away / mean:+.1%}"
        row(ALGORITHMS[name], f"{mean:,} ({sd:,})", _mean_sd(ours), f"{away:+,.0f} ± {half:,.0f}", verdict)
    ucb, sd = results["ucb"], PUBLISHED["ucb"][1]
    luck = np.sqrt((ucb.pulls @ (ucb.means * (1 - ucb.means))).mean())
    section.text += [
        "",
        f"The authors' draws are correlated by a seeding fault, so that their UCB's sd, {sd}, is "
        f"{'below' if sd < luck else '**not** below'} what independent rewards allow, about {luck:,.0f} for the arms "
        f"that our UCB pulls; ours are independent, with {ucb.noted[budget].std(ddof=1):,.0f}.",
    ]


def fig8d(section: Section, results: Results) -> None:
    """Shares of the CPU time by participant."""
    row = section.table(
        "algorithm", "CPU seconds", "Comp", "Controller", "data customer", "all owners", "an owner",
        "largest owner / smallest",
    )  # fmt: skip
    most: list[Statement] = []
    unequal: list[float] = []
    controllers: list[float] = []
    customers: list[float] = []
    comps: dict[tuple[str, int], Array] = {}
    for result in results.values():
        roles = {name: values / result.spent for name, values in result.seconds.items()}
        owners = np.array([values for name, values in roles.items() if name.startswith("owner-")])
        one, by_owner = owners.mean(axis=0), owners.mean(axis=1)
        uneven = float(by_owner.max() / by_owner.min())
        title = ALGORITHMS[result.algorithm]
        row(
            f"{title}, K = {result.arms}", over_seeds(result.spent, ",.2f"),
            *(f"{roles[name].mean():.1%}" for name in ("comp", "controller", "customer")),
            f"{owners.sum(axis=0).mean():.1%}", f"{one.mean():.2%}", f"{uneven:.2f}",
        )  # fmt: skip
        comps[result.algorithm, result.arms] = roles["comp"]
        most += [
            compare(roles["comp"], other).at_least(1)
            for other in (roles["controller"], roles["customer"], owners[by_owner.argmax()])
        ]
        unequal.append(uneven)
        controllers.append(float(np.mean(roles["controller"]) / np.mean(one)))
        customers.append(float(roles["customer"].mean()))
        section.add(f"{result.algorithm}, Comp / all", result.arms, compare(roles["comp"], np.ones(one.size)))
        bars = [one, roles["controller"], roles["customer"], roles["comp"]]
        section.draw_means(
            f"{title}, K = {result.arms}",
            {place: over_seeds(100 * bar) for place, bar in enumerate(bars, start=1)},
        )
    few, many = min(arms for _, arms in comps), max(arms for _, arms in comps)
    kept = {name: compare(comps[name, many], comps[name, few]) for name in ALGORITHMS}
    section.text += [
        "",
        "Each owner is a role of its own. Each run pays for keys, and for an encryption of 2048 bits an owner, "
        f"whatever N: here N = {next(iter(results.values())).budget:,}. Over all algorithms and K:",
        "",
        f'* "Comp is the most time-consuming node", more than any other single one: {all_hold(most)}.',
        '* "for the same N, the share of Comp stays the same, even for different orders of magnitude of K": at '
        f"K = {many} it is {min(v.value for v in kept.values()):.2f} to {max(v.value for v in kept.values()):.2f} "
        f"times that at K = {few}; 1 lies within {sum(v.low <= 1 <= v.high for v in kept.values())} of "
        f"{sum(v.low <= v.high for v in kept.values())} intervals.",
        f'* "Each DO_i has an equal share": the largest is at most {max(unequal):.2f} times the smallest.',
        '* "The share of Controller is roughly equivalent to that of an DO_i": it is '
        f"{min(controllers):.2f} to {max(controllers):.2f} times an owner's.",
        f'* "the share of DC is negligible": it is {max(customers):.2%} at most.',
        "",
        "But for the first, these sentences name no measure.",
    ]
