"""The SAMBA paper's experiments (Ciucanu et al. 2022, Figure 8), and one that compares encryption with noise.

K is the number of arms (each has a data owner), N the number of rounds. A run "in the open" is one without encryption.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from operator import attrgetter
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import linregress

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import LINEAR, Experiment, Measurement, PanelRuns, Plan, Scale, Section
from fedbandit_envs.papers.stats import Curves, Row, compare, each, mean_of
from fedbandit_envs.samba.messages import require_extra
from fedbandit_envs.samba.owners import Algorithm, run_vertical
from fedbandit_envs.samba.runs import SambaSettings, run_samba

ALGORITHMS = {
    "epsilon-greedy": "fixed epsilon",
    "epsilon-decreasing": "decreasing epsilon",
    "ucb": "UCB",
    "thompson": "Thompson",
    "softmax": "Softmax",
    "pursuit": "Pursuit",
}
_GREEDY = {"epsilon": 0.1}
PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "movielens": {"epsilon-greedy": _GREEDY, "softmax": {"temperature": 0.06}, "pursuit": {"rate": 0.1}},
    "jester": {"epsilon-greedy": _GREEDY, "softmax": {"temperature": 0.02}, "pursuit": {"rate": 0.2}},
}
PANELS = {"movielens": "MovieLens", "jester": "Jester"}
PAPER_ROUNDS, MOST_ARMS = 100_000, 100

TIMED = 20
"""Number of runs of which CPU time is measured, for each setting."""

AGENTS, DELTA = 10, 1e-5
SILENT, SHARED, PRIVATE, PLACEBO = "UCB1", "Fed-UCB1", "Priv-UCB1", "Priv-UCB1-placebo"
OPEN, ENCRYPTED = "owners in the open", "SAMBA"
RANDOM = "uniform-arms"

_ENCRYPTION = 50
"""Roughly the time of an encrypted round divided by the time of a round without encryption."""


def select(seeds: range, noted: Sequence[int] = (), **settings: Any) -> dict[str, Any]:
    """Plays one algorithm on a vertical federation, one seed after the other.

    Args:
        seeds: One seed for each run.
        noted: Rounds after which the cumulative reward is returned as well; only for runs without encryption.
        **settings: Fields of :class:`~fedbandit_envs.samba.runs.SambaSettings`, except the seed.

    Returns:
        ``reward``: cumulative reward, int64 ``(seeds,)``; ``bytes``: bytes sent between the roles, int64 ``(seeds,)``,
        0 without encryption; ``roles``: names of the roles, only ``plain`` without encryption; ``seconds``: CPU seconds
        of each role, ``(seeds, roles)``; ``spent``: CPU seconds of all roles together, ``(seeds,)``; ``claim``: privacy
        claim of the run, None without encryption; ``means``: means of the owners' arms; ``noted``: as given. Without
        encryption also ``rewards``: cumulative rewards after the rounds ``noted``, ``(seeds, rounds)``; ``pulls``:
        number of pulls of each owner, int64 ``(seeds, owners)``; ``regret``: cumulative regret, computed from the means
        of the arms that were pulled, ``(seeds,)``.
    """
    chosen = SambaSettings(**settings)
    means = arm_means(chosen.ratings, chosen.arms)
    algorithm = Algorithm(chosen.algorithm, chosen.parameters)
    # A short run loads the compiled kernels, so that loading does not count as CPU time of the first run.
    run_vertical(means, algorithm, chosen.arms + 2, 0)
    roles, claim, rows = ["plain"], None, []
    for seed in seeds:
        if chosen.plain:
            before = process_time()
            result = run_vertical(means, algorithm, chosen.budget, seed, noted)
            row = {"reward": result.reward, "bytes": 0, "seconds": [process_time() - before]}
            rows.append({**row, "rewards": result.noted, "pulls": result.pulls})
        else:
            run = run_samba(replace(chosen, seed=seed))
            roles, claim = list(run["cpu_seconds"]), run["claim"]
            row = {"reward": run["cumulative_reward"], "bytes": run["bytes"]}
            rows.append({**row, "seconds": list(run["cpu_seconds"].values())})
    arrays = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    if chosen.plain:
        arrays["regret"] = arrays["pulls"] @ (means.max() - means)
    arrays["spent"] = arrays["seconds"].sum(axis=1)
    return {**arrays, "noted": list(noted), "roles": roles, "claim": claim, "means": means.tolist()}


def _run(
    plan: Plan, algorithm: str, arms: int, budget: int, *,
    plain: bool,
    seeds: int = TIMED,
    line: str = "",
    **others: Any,
) -> Measurement:  # fmt: skip
    """Returns the runs of an algorithm on a vertical federation.

    Args:
        plan: The panel's settings; the panel's name is the data set of ratings from which the arms are made.
        algorithm: Name of the algorithm.
        arms: Number of arms K, each with an owner.
        budget: Number of rounds N.
        plain: Whether the run is without encryption.
        seeds: Number of runs; the scale's number of trials if that is smaller.
        line: Name of the runs on the page; the algorithm's name if empty.
        **others: Other arguments of :func:`select`.

    Raises:
        ImportError: The runs are encrypted, and the ``[secure]`` extra is not installed.
        ValueError: There are fewer rounds than arms.
    """
    require_integer("rounds", budget, arms)
    if not plain:
        require_extra()
    settings = {
        "algorithm": algorithm, "ratings": plan.panel, "arms": arms, "budget": budget, "plain": plain,
        "parameters": PARAMETERS[plan.panel].get(algorithm, {}), **others,
    }  # fmt: skip
    return Measurement(
        select,
        settings,
        range(min(seeds, plan.scale.trials)),
        5 if plain else 1,  # seeds in a shard
        arms * budget * (1 if plain else _ENCRYPTION),
        {"line": line or algorithm, "arms": arms, "budget": budget, "plain": plain},
    )


def _sizes(scale: Scale) -> list[tuple[int, int]]:
    """Returns the pairs of number of arms K and number of rounds N that are compared.

    Raises:
        ValueError: The smallest N is smaller than K, though each owner's arm has to be pulled once.
    """
    if "arms" in scale.sweeps:
        return [(int(arms), scale.rounds) for arms in scale.sweeps["arms"]]
    shares = scale.sweeps["share"]
    require_integer("rounds", scale.rounds, round(MOST_ARMS / shares[0]))
    return [(MOST_ARMS, round(share * scale.rounds)) for share in shares]


def _times(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figures 8 (a) and (b): CPU time against N or K, with encryption and without."""
    runs = product(ALGORITHMS, _sizes(plan.scale), (False, True))
    return [_run(plan, algorithm, *size, plain=plain) for algorithm, size, plain in runs]


def _rewards(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figure 8 (c): cumulative reward for K = 100 arms against the number of rounds N.

    One run of each algorithm gives the rewards for all N: no algorithm depends on N, so the reward after the first N
    rounds of a longer run is that of a run with N rounds.
    """
    noted = [budget for _, budget in _sizes(plan.scale)]
    return [
        _run(plan, algorithm, MOST_ARMS, noted[-1], plain=True, seeds=plan.scale.trials, noted=noted)
        for algorithm in ALGORITHMS
    ]


def _shares(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figure 8 (d): shares of the CPU time by participant; each owner is a role of its own."""
    runs = product(ALGORITHMS, _sizes(plan.scale))
    return [_run(plan, algorithm, *size, plain=False, owners_per_role=1) for algorithm, size in runs]


def _privacy(plan: Plan) -> list[RunSpec | Measurement]:
    """Returns the runs that compare noise with encryption on the same arms.

    Agents with UCB1 do not communicate, share true data, or share noisy data. Data owners with UCB are played with
    encryption and without.
    """
    arms = int(plan.scale.sweeps["arms"][0])
    env = {"means": plan.panel, "num_arms": arms, "num_agents": AGENTS}
    run = partial(plan.run, env_id="FedArms-v0", env=env, delta=DELTA)
    noisy, pulls = product(plan.scale.sweeps["epsilon"], (PRIVATE, PLACEBO)), AGENTS * plan.scale.rounds
    return [
        *map(run, (RANDOM, SILENT, SHARED)),
        *(
            run(name, wrappers={"privatizer": {"epsilon": at, "delta": DELTA}}, labels={"epsilon": at})
            for at, name in noisy
        ),
        _run(plan, "ucb", arms, pulls, plain=True, seeds=plan.scale.trials, line=OPEN),
        _run(plan, "ucb", arms, pulls, plain=False, line=ENCRYPTED),
    ]


ORDER_OF_MAGNITUDE = 10.0
SLOWEST, FASTEST, TWICE = "thompson", "epsilon-greedy", "pursuit"

PUBLISHED = {
    "epsilon-greedy": (48_172, 1_471),
    "epsilon-decreasing": (49_450, 1_918),
    "ucb": (47_952, 75),
    "thompson": (52_572, 194),
    "softmax": (47_737, 1_009),
    "pursuit": (45_119, 9_821),
}
"""Mean and standard deviation of the cumulative reward in the authors' 150 published runs, by algorithm.

The runs are on MovieLens with K = 100 arms and N = 1e5 rounds.
"""

_IN_THE_OPEN = ", in the open"
NODES = {"Comp": "comp", "Controller": "controller", "data customer": "customer", "all owners": "all owners"}
"""The roles of :func:`shares_of` whose shares a table has, by the heads of its columns."""


def _titled(curves: Curves, end: str = "") -> Curves:
    return {ALGORITHMS[name] + end: own for name, own in curves.items()}


def _listed(names: Iterable[str]) -> str:
    return ", ".join(ALGORITHMS[name] for name in names)


def _report_times(page: Section, runs: PanelRuns) -> None:
    by_rounds = len(runs.values("budget")) > 1
    letter, column, papers = ("N", "budget", PAPER_ROUNDS) if by_rounds else ("K", "arms", MOST_ARMS)
    most = max(runs.values(column))
    at_most = f"at {letter} = {most:,}"
    results = [runs.where(plain=plain).lines(column) for plain in (False, True)]
    encrypted, plain = (each(own, attrgetter("spent")) for own in results)
    overheads = each(encrypted, compare, plain)
    lines = {
        title: linregress(list(own), [spent.mean() for spent in own.values()])
        for title, own in _titled(encrypted).items()
    }
    seconds = each(encrypted, lambda own, open_: f"{mean_of(own, ',.2f')} / {open_.mean():.3f}", plain)
    head = "CPU seconds, encrypted / not encrypted"
    page.table("seconds", stats.by_line(_titled(seconds), head, f"{letter} = {{:,}}"))
    columns = {
        f"ms for each of {letter}": {title: f"{1e3 * line.slope:.3f}" for title, line in lines.items()},
        "at 0, s": {title: f"{line.intercept:.2f}" for title, line in lines.items()},
        "R^2": {title: f"{line.rvalue**2:.4f}" for title, line in lines.items()},
        f"overhead factor {at_most}": {title: own[most] for title, own in _titled(overheads).items()},
    }
    page.table("lines", stats.by_x(columns, "fitted line", "{}"))
    beside = {title + _IN_THE_OPEN: title for title in ALGORITHMS.values()}
    page.draw({**_titled(each(encrypted, mean_of)), **_titled(each(plain, mean_of), _IN_THE_OPEN)}, beside)
    page.record(overheads, "{}, encrypted / open")
    # Pursuit has two iterations a round, all others one.
    last = {name: own[most] for name, own in encrypted.items()}
    order = sorted(last.keys() - {TWICE}, key=lambda name: (last[name].mean(), list(last).index(name)))
    double = compare(last[TWICE], np.mean([last[name] for name in last if name != TWICE], axis=0))
    slowest = [compare(last[SLOWEST], last[other]) for other in order if other != SLOWEST]
    fastest = [compare(last[FASTEST], last[other]) for other in order if other != FASTEST]
    ratios = [value for own in overheads.values() for value in own.values()]
    same = each(results[0], lambda own, open_: own.reward == open_.reward, results[1])
    equal = np.array([list(own.values()) for own in same.values()])
    within = stats.all_within(ratios, high=ORDER_OF_MAGNITUDE)
    ahead = ", ".join(f"{title} {line.slope * papers + line.intercept:,.0f}" for title, line in lines.items())
    page.verdicts([
        (f"linear in {letter}: least R^2", f"{min(line.rvalue**2 for line in lines.values()):.4f}", "no measure named"),
        (f"time encrypted / not encrypted at most {ORDER_OF_MAGNITUDE:g}", stats.spread(ratios, ",.0f"), within),
        (f"time of Pursuit / mean time of the others is 2, {at_most}", double, stats.lies_within(2, double)),
        ("Thompson is the slowest", _listed(order), stats.all_within(slowest, 1, np.inf)),
        ("fixed epsilon is the fastest", _listed(order), stats.all_within(fastest)),
        (f"CPU seconds on the fitted lines at {letter} = {papers:,}; the paper has 900", ahead, "another machine"),
        ("encrypted runs with the reward of runs without encryption", f"{equal.sum()} of {equal.size}", "-"),
    ])  # fmt: skip


def _mean_sd(values: Array) -> str:
    return f"{values.mean():,.0f} ({values.std(ddof=1):,.0f})"


def published(rewards: Curves) -> Iterator[Row]:
    """Yields a table with a line for each algorithm: reward in the authors' published runs and in ours.

    They agree if the 95 % interval of their difference contains 0.
    """
    for name, (mean, sd) in PUBLISHED.items():
        ours = rewards[name][PAPER_ROUNDS]
        away = ours.mean() - mean
        half = 1.96 * np.sqrt(ours.var(ddof=1) / ours.size + sd**2 / 150)
        yield {
            "reward, mean (sd)": ALGORITHMS[name],
            "theirs": f"{mean:,} ({sd:,})",
            "ours": _mean_sd(ours),
            "ours less theirs (± 95 %)": f"{away:+,.0f} ± {half:,.0f}",
            "agrees?": "agrees" if abs(away) <= half else f"**differs**, by {away / mean:+.1%}",
        }


def _report_rewards(page: Section, runs: PanelRuns) -> None:
    rewards = {name: dict(zip(run.noted, run.rewards.T, strict=True)) for name, run in runs.by().items()}
    best, ucb = rewards["thompson"], runs["ucb"]
    last = ucb.noted[-1]
    over = each(rewards, lambda own, thompson: compare(thompson, own), dict.fromkeys(rewards, best))
    rivals = [own for name, own in over.items() if name != "thompson"]
    lines = stats.by_line(_titled(each(rewards, _mean_sd)), "reward, mean (sd)", "N = {:,}")
    ratios = ["1" if name == "thompson" else own[last] for name, own in over.items()]
    head = "Thompson / this algorithm, last N"
    page.table("rewards", [row | {head: value} for row, value in zip(lines, ratios, strict=True)])
    page.draw(_titled(each(rewards, mean_of)))
    page.record(over, "thompson / {}")
    order = sorted(rewards, key=lambda name: -float(rewards[name][last].mean()))
    best_arm, random = (choose(ucb.means) * last for choose in (np.max, np.mean))
    every, at_last = [value for own in rivals for value in own.values()], [own[last] for own in rivals]
    page.verdicts([
        ("Thompson has the most reward at each N", "-", stats.all_within(every, 1, np.inf)),
        ("Thompson has the most reward at the last N", _listed(order), stats.all_within(at_last, 1, np.inf)),
        ("expected reward of the best arm; of random arms", f"{best_arm:,.0f}; {random:,.0f}", "-"),
    ])  # fmt: skip
    if runs.plan.panel == "movielens" and last == PAPER_ROUNDS:
        page.table("published", published(rewards))
        # What cumulative reward would have if rewards were independent given the pulls.
        means, ours = np.array(ucb.means), rewards["ucb"][last].std(ddof=1)
        independent = np.sqrt((ucb.pulls @ (means * (1 - means))).mean())
        deviations = {"if independent": f"{independent:,.0f}", "ours": f"{ours:,.0f}"}
        page.table("deviations", [{"UCB's sd": f"{PUBLISHED['ucb'][1]}"} | deviations])


def shares_of(run: Any) -> dict[str, Array]:
    """Returns each role's share of the CPU time, ``(seeds,)``.

    The roles are ``comp``, ``controller`` and ``customer``; and for the owners, each of whom is a role, ``owner`` (the
    mean of their shares), ``all owners`` (the sum), and ``largest`` and ``smallest`` (the share of the owner with the
    largest and with the smallest mean over seeds).
    """
    roles: dict[str, Array] = dict(zip(run.roles, run.seconds.T / run.spent, strict=True))
    owners = np.array([roles.pop(role) for role in run.roles if role.startswith("owner-")])
    means = owners.mean(axis=1)
    return roles | {
        "owner": owners.mean(axis=0),
        "all owners": owners.sum(axis=0),
        "largest": owners[means.argmax()],
        "smallest": owners[means.argmin()],
    }


def _report_shares(page: Section, runs: PanelRuns) -> None:
    found = {f"{ALGORITHMS[own['line']]}, K = {own['arms']}": shares_of(run) for own, run in runs.rows}
    means = {title: {role: share.mean() for role, share in own.items()} for title, own in found.items()}
    uneven = [own["largest"] / own["smallest"] for own in means.values()]
    controller = [own["controller"] / own["owner"] for own in means.values()]
    page.table("shares", [
        {
            "algorithm": title,
            "CPU seconds": mean_of(result.spent, ",.2f"),
            **{head: f"{own[role]:.1%}" for head, role in NODES.items()},
            "an owner": f"{own['owner']:.2%}",
            "largest owner / smallest": f"{own['largest'] / own['smallest']:.2f}",
        }
        for (title, own), (_, result) in zip(means.items(), runs.rows, strict=True)
    ])  # fmt: skip
    comp = each(runs.lines("arms"), lambda run: shares_of(run)["comp"])
    page.record(each(comp, lambda share: compare(share, np.ones(share.size))), "{}, Comp / all")
    drawn = [("one owner", "owner"), *list(NODES.items())[:-1]]
    page.draw({title: {x: mean_of(100 * own[role]) for x, role in drawn} for title, own in found.items()})
    rivals = ("controller", "customer", "largest")
    larger = [compare(own["comp"], own[role]) for own in found.values() for role in rivals]
    most, least = (choose(runs.values("arms")) for choose in (max, min))
    changes = [compare(own[most], own[least]) for own in comp.values()]
    is_1 = [change.contains(1) for change in changes]
    around_one = f"1 lies within {is_1.count('holds')} of {len(is_1)} intervals"
    if "exploratory" in is_1:
        around_one = "whether it is 1: exploratory"
    customer = max(own["customer"] for own in means.values())
    page.verdicts([
        ("Comp takes more than any other node", "-", stats.all_within(larger, 1, np.inf)),
        (f"Comp's share at K = {most} over that at K = {least}", stats.spread(changes, ".2f"), around_one),
        ("largest owner / smallest, at most", f"{max(uneven):.2f}", "no measure named"),
        ("Controller / an owner", stats.spread(controller, ".2f"), "no measure named"),
        ("the data customer's share, at most", f"{customer:.2%}", "no measure named"),
    ])  # fmt: skip


def _report_privacy(page: Section, runs: PanelRuns) -> None:
    # A run of data owners has as many rounds as all agents together have pulls, one pull in each.
    pulls, encrypted, open_ = AGENTS * runs.plan.scale.rounds, runs[ENCRYPTED], runs[OPEN]

    def regret_a_pull(result: Any) -> Array:
        # Encrypted owners pull the same arms as those in the open.
        total: Array = result.regret[-1].sum(axis=1) if isinstance(result, RunResult) else open_.regret
        return total / pulls

    found, best = each(runs.lines("epsilon"), regret_a_pull), max(open_.means)
    lines = []
    for labels, result in runs.rows:
        line, regret = labels["line"], regret_a_pull(result)
        sent, spent, trust, epsilon = _facts(result)
        lines.append({
            "run": f"{line} {labels['epsilon']:g}" if "epsilon" in labels else line,
            "regret a pull [95 %]": mean_of(regret, ",.4f"),
            "reward a pull": f"{best - regret.mean():.4f}",
            "cumulative reward": f"{pulls * (best - regret.mean()):,.0f}",
            "/ silent regret": "1" if line == SILENT else compare(regret, regret_a_pull(runs[SILENT])),
            "bytes a pull": f"{sent / pulls:,.2f}",
            "CPU µs a pull": f"{spent / pulls:,.2f}",
            "trust": trust,
            "epsilon claimed": epsilon,
        })  # fmt: skip
    page.table("protections", lines)
    regrets = each(found, mean_of)
    page.draw({line: regrets[line] for line in (PRIVATE, PLACEBO, SILENT, SHARED, ENCRYPTED)})
    same = encrypted.reward.size
    times = compare(encrypted.spent, open_.spent[:same]).value
    earned = "" if encrypted.reward.tolist() == open_.reward[:same].tolist() else "**not** "
    costs = f"{encrypted.bytes.mean() / pulls:,.0f} bytes a pull, {times:,.0f} times the CPU time"
    verdicts = [("encryption", costs, f"{earned}earned the same as without encryption")]
    for epsilon, private in found[PRIVATE].items():
        ratios = [compare(private, found[line][epsilon]) for line in (SHARED, PLACEBO, SILENT)]
        what = f"epsilon {epsilon:g}: / true data; / noise alone; / silence"
        verdicts.append((what, stats.joined(ratios), ratios[-1].at_most()))
    page.verdicts(verdicts)


def _facts(result: Any) -> tuple[float, float, str, str]:
    """Returns four facts about a run: bytes sent, CPU microseconds, whom one must trust, and the epsilon claimed.

    Bytes and microseconds are means over seeds. The epsilon is a text with the smallest epsilon that is claimed under
    each adjacency.
    """
    if not isinstance(result, RunResult):
        trust, claimed = "whoever selects", "none"
        if result.claim is not None:
            trust, claimed = result.claim["trust"], "infinite: the total is exact"
        return result.bytes.mean(), 1e6 * result.spent.mean(), trust, claimed
    sent = result.traffic["bytes"].sum(axis=1).mean() if result.traffic else 0.0
    spent = 1e6 * result.cpu_seconds / result.regret.shape[1]
    if not result.claims:
        return sent, spent, *(("everybody", "none") if result.traffic else ("nobody", "nothing is told"))
    known = [claim for claim in result.claims if claim.epsilon is not None]
    texts = []
    for adjacency in dict.fromkeys(claim.adjacency for claim in known):
        least = min((one for one in known if one.adjacency == adjacency), key=attrgetter("epsilon"))
        texts.append(f"{least.epsilon:.3g} ({adjacency}, delta {least.delta:.0e})")
    return sent, spent, str(result.claims[0].trust), "; ".join(texts) or "none"


_SHARES = {"share": (0.25, 0.5, 0.75, 1.0)}
_TENTHS = Scale(PAPER_ROUNDS, 50, {"share": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)})
_BY_ARMS = Scale(PAPER_ROUNDS, 50, {"arms": (10, 20, 40, 60, 80, 100)})
_ENDS = {"arms": (10, 100)}
_TIME = {"y": "CPU seconds", "xscale": "linear"}


EXPERIMENTS = {
    "samba-fig8a": Experiment(
        "SAMBA, Figure 8 (a): execution time against N, K = 100",
        "Whether time is linear in rounds, and what encryption costs; hours",
        {"x": "N", **_TIME}, {"small": Scale(2_000, 20, _SHARES), "paper": _TENTHS}, _times, _report_times, PANELS,
    ),
    "samba-fig8b": Experiment(
        "SAMBA, Figure 8 (b): execution time against K", "Whether time is linear in arms; hours",
        {"x": "K", **_TIME}, {"small": Scale(1_000, 20, {"arms": (10, 40, 70, 100)}), "paper": _BY_ARMS},
        _times, _report_times, PANELS,
    ),
    "samba-fig8c": Experiment(
        "SAMBA, Figure 8 (c): cumulative reward against N, K = 100", "Which algorithm earns most; a minute",
        {"x": "N", "y": "cumulative reward", **LINEAR}, {"small": Scale(20_000, 20, _SHARES), "paper": _TENTHS},
        _rewards, _report_rewards, PANELS,
    ),
    "samba-fig8d": Experiment(
        "SAMBA, Figure 8 (d): shares of the CPU time by participant", "Who computes how much; an hour",
        {"x": "participant", "y": "% of the CPU time", **LINEAR},
        {"small": Scale(500, 20, _ENDS), "paper": Scale(PAPER_ROUNDS, 50, _ENDS)}, _shares, _report_shares, PANELS,
    ),
    "samba-privacy": Experiment(
        "Noise beside encryption: differential privacy and SAMBA on the same arms",
        "What each protection costs a pull; an hour", {"x": "epsilon", "y": "regret a pull", "yscale": "linear"},
        {
            "small": Scale(2_000, 20, {"arms": (10,), "epsilon": (0.5, 2.0, 8.0)}),
            "paper": Scale(10_000, 50, {"arms": (100,), "epsilon": (0.1, 0.5, 1.0, 2.0, 8.0)}),
        },
        _privacy, _report_privacy, PANELS,
    ),
}  # fmt: skip
