"""Ways to spend one privacy budget: the number of releases, their times and their shares."""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.comparison_lines import TUNED
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Runs, Scale, Section
from fedbandit_envs.papers.private_federation import TITLES
from fedbandit_envs.papers.stats import Mean, claim_of, final_regret, least, over, ratio
from fedbandit_envs.wrappers.privacy.accounting import calibration
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule

EPSILON, DELTA = 1.0, 1e-5
GOOD, GIVEN = "good_and_defective", "as_given"
HEADS = (
    "releases", "how shared out", "number", "sd of the first", "sd of their sum", "epsilon spent", "regret [95 %]",
    f"/ {TUNED}",
)  # fmt: skip
"""Heads of the columns of a problem's table."""

# The classic calibration of Gaussian noise is proven for epsilon below 1 only. With a large delta for each released
# value, the epsilon of each release is below 1 for the same noise.
_LARGE_DELTA = 0.5


Schedule = Callable[[int], dict[str, Any]]


class Candidate(NamedTuple):
    """One way to spend the privacy budget: when agents release, and how the budget is shared by the releases.

    Attributes:
        schedule: Function that returns the specification of the schedule of releases for a number of rounds.
        how: If counts are released, how they share the budget: ``equal``; ``decreasing``, as in P-FCB; or ``growing``,
            P-FCB's shares in reverse. Else the name of the mechanism of continual release.
        pair: If counts are released, the two arrays to which noise is added: ``as_given`` (units and good units) or
            ``good_and_defective``; empty for continual release.
    """

    schedule: Schedule
    how: str
    pair: str = ""

    def releases(self, rounds: int) -> int:
        """Returns the number of releases of an agent in an episode of ``rounds`` rounds."""
        return make_schedule(self.schedule(rounds)).count(rounds)

    def privatizer(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of the privatizer, for an episode of ``rounds`` rounds."""
        if not self.pair:
            releases = self.schedule(rounds)
            return {"epsilon": EPSILON, "delta": DELTA, "mechanism": self.how, "releases": releases}
        # The L2 distance of neighbours under "one-quantity", in units of the capacity. One altered quantity changes the
        # number of units and the number of good units by up to the capacity each, hence sqrt(2); the numbers of good
        # and of defective units change by the capacity in total, hence 1.
        norm, number = (1.0 if self.pair == GOOD else sqrt(2)), self.releases(rounds)
        if self.how == "equal":
            return {**calibration.equal_shares(EPSILON, DELTA, number, norm), "pair": self.pair}
        # P-FCB's shares decrease towards 1/(2 log2 T); releases beyond the last share that is computed get that share,
        # too.
        shares = decreasing(1.0, rounds)
        shares = shares[np.minimum(np.arange(number), shares.size - 1)]
        if self.how == "growing":
            shares = shares[::-1]
        spent = shares / shares.sum() / calibration.classic_noise_multiplier(1.0, _LARGE_DELTA)
        mu = norm * float(np.sqrt(np.square(spent).sum()))
        largest = (1 - 1e-9) / (calibration.analytic_noise_multiplier(EPSILON, DELTA) * mu)
        each = (largest * np.divide(shares, sum(shares.tolist()))).tolist()
        return {"epsilon_per_release": each, "delta": _LARGE_DELTA, "pair": self.pair}

    def deviations(self, rounds: int) -> tuple[float, float]:
        """Returns the standard deviations of the noise in an agent's first release, and in the sum of all its releases.

        They are for the count of good outcomes or, where a matrix is released, for an entry of its diagonal. The unit
        is the capacity in procurement, and the largest size of one observation elsewhere.

        Args:
            rounds: Number of rounds of the episode.
        """
        releases, given = self.releases(rounds), self.privatizer(rounds)
        if not self.pair:
            noise = NOISES[given["mechanism"]](releases)
            multiplier = calibration.analytic_noise_multiplier(EPSILON, DELTA) * np.sqrt(
                noise.column_square(releases)
            )
            first, total = (float(np.sqrt(noise.variance(count))) for count in (1, releases))
            return multiplier * first, multiplier * total
        if self.how == "equal":
            return given["noise_multiplier"], given["noise_multiplier"] * sqrt(releases)
        each = given["epsilon_per_release"]
        sizes = [calibration.classic_noise_multiplier(share, given["delta"]) for share in each]
        return sizes[0], float(np.linalg.norm(sizes))


Ways = tuple[dict[str, Candidate], list[tuple[str, str, str, str]]]
"""Ways to spend a budget, by name, and those that are compared: what two differ in, what the one is compared with, and
the names of both."""


def _powers(start: int, stop: int | None = None) -> Schedule:
    # In a short episode the first release comes at the last power of two, so that there is one at all.
    return lambda rounds: {
        "name": "doubling", "start": min(start, 1 << (rounds.bit_length() - 1)), "stop": stop,
    }  # fmt: skip


def _progression(count: int) -> Schedule:
    return lambda rounds: {"name": "geometric", "count": count, "horizon": rounds}


def _gaps(share: float) -> Schedule:
    return lambda rounds: {"name": "fixed_gap", "gap": max(1, round(share * rounds))}


def _few(*starts: int) -> dict[str, Schedule]:
    """Returns schedules with few releases by name: powers of two from ``starts`` on, and geometric progressions."""
    few = {f"powers of two from {start}": _powers(start) for start in starts}
    return few | {f"{count} in geometric progression": _progression(count) for count in (1, 3)}


def _continual(latest: int) -> Ways:
    """Returns candidates of continual release; the first release comes in round 1, 64 or ``latest``."""
    first, last, hundred = "powers of two from 1", f"powers of two from {latest}", "a hundred, equal gaps"
    found = {name: Candidate(when, "sqrt_toeplitz") for name, when in _few(1, 64, latest).items()}
    found[hundred] = Candidate(_gaps(0.01), "blt")
    found["one a round"] = Candidate(lambda rounds: {"name": "every_round"}, "blt")
    found |= {f"{first}, {name}": Candidate(_powers(1), name) for name in ("tree", "honaker")}
    return found, [
        (first, last, first, last),
        ("noise of the square root", "noise of the tree", first, f"{first}, tree"),
        (first, hundred, first, hundred),
        (first, "a release in every round", first, "one a round"),
    ]


_PAPERS = _powers(200, 40_000)
_EQUAL, _PAIR = "P-FCB's rounds, equal shares", "P-FCB's rounds, equal shares, pair"
_FROM_32, _FROM_1024 = "powers of two from 32", "powers of two from 1024"
_DECREASING, _GROWING = "P-FCB's rounds and shares", "P-FCB's rounds, growing shares, pair"

PROBLEMS: dict[str, Ways] = {
    "procurement": (
        {
            _DECREASING: Candidate(_PAPERS, "decreasing", GIVEN),
            _EQUAL: Candidate(_PAPERS, "equal", GIVEN),
            _PAIR: Candidate(_PAPERS, "equal", GOOD),
            _GROWING: Candidate(_PAPERS, "growing", GOOD),
            **{name: Candidate(when, "equal", GOOD) for name, when in _few(32, 1024, 8192).items()},
            "ten, equal gaps": Candidate(_gaps(0.1), "equal", GOOD),
        },
        [
            ("equal shares", "decreasing shares", _EQUAL, _DECREASING),
            ("noise on good and defective units", "noise on units and good units", _PAIR, _EQUAL),
            ("growing shares", "equal shares", _GROWING, _PAIR),
            ("a first release in round 32", "a first release in round 1024", _FROM_32, _FROM_1024),
        ],
    ),
    "linear": _continual(512),
    "exposure": _continual(1024),
    "arms": _continual(1024),
}
"""The ways that are compared in each problem.

Each is played in the first task of the problem's suite.
"""
PLAYED = {
    "procurement": ("SS-UCB-tuned", "P-FCB-weighted"),
    "linear": ("LinUCB-tuned", "FedUCB-weighted"),
    "exposure": ("FairX-tuned", "Priv-FairX-weighted"),
    "arms": ("MOSS-tuned", "MOSS-weighted"),
}
"""The baselines of each problem: silent, and with messages that are weighed."""
SHARES = {"procurement": 0.3, "linear": 0.1, "exposure": 0.2, "arms": 0.2}
"""Horizon, as a share of the scale's horizon."""


def _runs(plan: Plan) -> Runs:
    """Returns a panel's runs: tuned agents who do not communicate, and each way to spend the privacy budget."""
    (silent, weighted), env_id = PLAYED[plan.panel], SUITES[plan.panel].tasks[0].env_id
    rounds = max(1, round(plan.scale.rounds * SHARES[plan.panel]))
    run = partial(plan.run, env_id=env_id, rounds=rounds, delta=DELTA)
    runs = [run(TUNED, baseline=silent)]
    for name, candidate in PROBLEMS[plan.panel][0].items():
        channel = {"schedule": candidate.schedule(rounds)}
        wrappers = {"privatizer": candidate.privatizer(rounds), "channel": channel}
        runs.append(run(name, baseline=weighted, wrappers=wrappers))
    return runs


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports noise and regret of each candidate, the recommended one, and curves over the number of releases.

    A point of a curve is a candidate's regret divided by that of tuned agents who do not communicate.
    """
    (candidates, choices), found = PROBLEMS[runs.plan.panel], runs.by()
    silence = found.pop(TUNED)
    beside, best = over(found, silence), least(found)
    verdicts = [(best, TUNED, beside[best], "recommended")]
    for name, value in over(found, found[best]).items():
        if name != best and not value.low > 1:
            verdicts.append((name, best, value, "not told apart"))
    for what, other, one, another in choices:
        verdicts.append((what, other, ratio(found[one], found[another]), ""))
    heads = ("regret of", "/ regret of", "here", "verdict")
    section.table("verdicts", [dict(zip(heads, line, strict=True)) for line in verdicts])
    rows: list[tuple[Any, ...]] = [(TUNED, "-", 0, "-", "-", "-", final_regret(silence), 1)]
    curves: dict[str, list[tuple[int, Mean]]] = {}
    for name, result in found.items():
        candidate, rounds, value = candidates[name], int(result.rounds[-1]), beside[name]
        releases, how = candidate.releases(rounds), candidate.how
        if candidate.pair:
            how += f", {candidate.pair.replace('_', ' ')}"
        noise = [f"{deviation:.2f}" for deviation in candidate.deviations(rounds)]
        spent = f"{claim_of(result, 'exact').epsilon:.4f}"
        rows.append((name, how, releases, *noise, spent, final_regret(result), value))
        point = Mean(value.value, value.low, value.high, value.instances)
        curves.setdefault(how, []).append((releases, point))
    section.table("regret", [dict(zip(HEADS, cells, strict=True)) for cells in rows])
    # Sorted by number of releases alone: candidates with the same number keep their order.
    section.draw({how: sorted(points, key=lambda point: point[0]) for how, points in curves.items()})


EXPERIMENTS = {
    "private-budget": Experiment(
        "Private federation: what one budget buys",
        "Which number, times and shares of releases make the most of one epsilon; 5 minutes.",
        {"x": "releases", "y": "regret / tuned silence's", "yscale": "linear"},
        {"tiny": Scale(600, 2), "small": Scale(100_000, 20), "paper": Scale(100_000, 20)},
        _runs, _report,
        TITLES,
    )
}  # fmt: skip
