"""What one budget of privacy buys: how many releases, when, and how the budget is shared out over them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run
from fedbandit_envs.wrappers.privacy.accounting.claimed import decreasing_shares, equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

EPSILON, DELTA = 1.0, 1e-5
SILENCE = "tuned silence"

Rounds = Mapping[str, Any]


def doubling(start: int, stop: int | None = None) -> Rounds:
    """Returns the schedule that sends in rounds that are powers of two."""
    return {"name": "doubling", "start": start, "stop": stop}


@dataclass(frozen=True)
class Candidate:
    """One way to spend the budget.

    Attributes:
        when: In which rounds agents release; a specification of a schedule, but for the horizon.
        how: Of shared budgets ``equal`` or ``decreasing`` shares, of continual release the mechanism.
        pair: What gets the noise, where counts are released.
    """

    when: Rounds
    how: str
    pair: str = ""


@dataclass(frozen=True)
class Problem:
    """Where candidates are compared.

    Attributes:
        env_id: The environment.
        silent: Tuned silence.
        weighted: The baseline that hears.
        rounds: Horizon, as a share of the scale's.
        trials: Seeds, as a multiple of the scale's.
        candidates: By what they are called.
    """

    env_id: str
    silent: str
    weighted: str
    rounds: float
    trials: int
    candidates: Mapping[str, Candidate]


def _continual(*starts: int) -> dict[str, Candidate]:
    found = {f"powers of two from {start}": Candidate(doubling(start), "sqrt_toeplitz") for start in starts}
    found |= {
        f"{count} in geometric progression": Candidate({"name": "geometric", "count": count}, "sqrt_toeplitz")
        for count in (1, 3)
    }
    found["a hundred, equal gaps"] = Candidate({"name": "fixed_gap", "gap": 0.01}, "blt")
    found["one a round"] = Candidate({"name": "every_round"}, "blt")
    found |= {
        f"powers of two from {starts[0]}, {name}": Candidate(doubling(starts[0]), name)
        for name in ("tree", "honaker")
    }
    return found


_GOOD, _GIVEN = "good_and_defective", "as_given"

PROBLEMS = {
    "procurement": Problem(
        "FedProcurement-v0",
        "SS-UCB-tuned",
        "P-FCB-weighted",
        0.3,
        2,
        {
            "P-FCB's rounds and shares": Candidate(doubling(200, 40_000), "decreasing", _GIVEN),
            "P-FCB's rounds, equal shares": Candidate(doubling(200, 40_000), "equal", _GIVEN),
            "P-FCB's rounds, equal shares, pair": Candidate(doubling(200, 40_000), "equal", _GOOD),
            "powers of two from 32": Candidate(doubling(32), "equal", _GOOD),
            "powers of two from 1024": Candidate(doubling(1024), "equal", _GOOD),
            "powers of two from 8192": Candidate(doubling(8192), "equal", _GOOD),
            "1 in geometric progression": Candidate({"name": "geometric", "count": 1}, "equal", _GOOD),
            "3 in geometric progression": Candidate({"name": "geometric", "count": 3}, "equal", _GOOD),
            "ten, equal gaps": Candidate({"name": "fixed_gap", "gap": 0.1}, "equal", _GOOD),
        },
    ),
    "linear": Problem("FedLinear-v0", "LinUCB-tuned", "FedUCB-weighted", 0.1, 1, _continual(1, 64, 512)),
    "exposure": Problem(
        "FedExposure-v0", "FairX-tuned", "Priv-FairX-weighted", 0.2, 1, _continual(1, 64, 1024)
    ),
    "arms": Problem("FedArms-v0", "UCB1-tuned", "UCB1-weighted", 0.2, 10, _continual(1, 64, 1024)),
}

PANELS = {
    "procurement": "Procurement",
    "linear": "Linear contextual bandits",
    "exposure": "Exposure fairness",
    "arms": "Bernoulli arms",
}
SCALES = {"tiny": Scale(600, 2), "small": Scale(100_000, 4), "paper": Scale(100_000, 20)}


def describe(scale: Scale, mode: str) -> str:
    """Describes what all panels have in common."""
    horizons = ", ".join(f"{name} {round(p.rounds * scale.rounds):,}" for name, p in PROBLEMS.items())
    seeds = ", ".join(f"{name} {p.trials * scale.trials}" for name, p in PROBLEMS.items())
    return (
        f"T = {scale.rounds:,}, {scale.trials} trials: horizons {horizons}; instances {seeds}, each drawn by a seed of "
        f"its own from 0 on; 10 agents. Whatever is released, all releases of an agent together are ({EPSILON:g}, "
        f"{DELTA:g}) private, composed exactly, under `one-quantity` in procurement, `one-observation` elsewhere. "
        "Messages are weighed by their known noise, with tuned silence's constants. Which calibration a release has is "
        "no matter here: classic and exact only name the same noise by another epsilon. "
        f"{about_intervals(scale.trials, 'instances')} That is for the fewest here. What is recommended is the best on "
        "these very instances, so that its ratio is a little too good."
    )


def schedule_of(candidate: Candidate, rounds: int) -> dict[str, Any]:
    """Returns the specification of a candidate's schedule for a horizon."""
    spec = dict(candidate.when)
    if spec["name"] == "geometric":
        spec["horizon"] = rounds
    if spec["name"] == "fixed_gap":
        spec["gap"] = max(1, round(spec["gap"] * rounds))
    if spec["name"] == "doubling":
        # In an episode that is too short for a candidate it still releases once.
        spec["start"] = min(spec["start"], 1 << (rounds.bit_length() - 1))
    return spec


def arguments(candidate: Candidate, rounds: int) -> dict[str, dict[str, Any]]:
    """Returns the wrappers' arguments for a candidate, for a horizon."""
    spec = schedule_of(candidate, rounds)
    if not candidate.pair:
        at = {"epsilon": EPSILON, "delta": DELTA, "mechanism": candidate.how, "releases": spec}
        return {"privatizer": at, "channel": {"schedule": spec}}
    releases = make_schedule(spec).count(rounds)
    # Under "one-quantity" units and good ones change by the capacity each; good and defective ones by it together.
    norm = 1.0 if candidate.pair == _GOOD else sqrt(2)
    share = (
        decreasing_shares(EPSILON, DELTA, rounds, releases, norm)
        if candidate.how == "decreasing"
        else equal_shares(EPSILON, DELTA, releases, norm)
    )
    return {"privatizer": {**share, "pair": candidate.pair}, "channel": {"schedule": spec}}


def settings_of(problem: Problem, candidate: Candidate | None, scale: Scale) -> Settings:
    """Returns what is played; silence without a candidate."""
    rounds = max(1, round(scale.rounds * problem.rounds))
    return Settings(
        problem.weighted if candidate else problem.silent,
        problem.env_id,
        rounds,
        scale.trials * problem.trials,
        0,
        wrapper_kwargs=arguments(candidate, rounds) if candidate else {},
    )


def cells(plan: Plan) -> dict[str, Run]:
    """Returns a panel's runs: silence and the candidates."""
    problem = PROBLEMS[plan.panel]
    runs = {SILENCE: Run(settings_of(problem, None, plan.scale))}
    return runs | {
        name: Run(settings_of(problem, candidate, plan.scale), delta=DELTA)
        for name, candidate in problem.candidates.items()
    }
