"""Whether private federation pays: ours and the papers' forms against silence, tuned and not, in all four problems."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedbandit_envs.baselines.tuned import constants
from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.statistics import Middle
from fedbandit_envs.leaderboard.sweep.runs import Run
from fedbandit_envs.wrappers.privacy.accounting.claimed import equal_shares
from fedbandit_envs.wrappers.transport.fixed_schedules import Doubling

NEVER_ABOVE = 1.02
"""Ours is shown to have more regret than silence with the same constants where the interval lies above it."""

SILENT, TUNED, PAPER, PAPER_TUNED = "untuned silence", "tuned silence", "paper's form", "paper's form, tuned"
OURS, OURS_TUNED, TRUE, PLACEBO = "weighted", "weighted, tuned", "true data", "placebo"
BOUNDS = (TUNED, PAPER, OURS, OURS_TUNED)
LINES = (SILENT, TUNED, PAPER, PAPER_TUNED, OURS, OURS_TUNED, PLACEBO, TRUE)


@dataclass(frozen=True)
class Case:
    """A setting at which a bound was set in advance.

    Attributes:
        title: What it is called.
        env_id: The environment.
        epsilon: Of the privatizers as registered.
        over_silence: The most that ours may be of tuned silence's regret; None for as found.
        over_paper: The most that it may be of the paper's form's; None likewise.
        policy: Changes to all policies.
        weighing: Changes to ours, besides.
        lines: What is compared; the paper's form where a bound is set against it.
    """

    title: str
    env_id: str
    epsilon: float
    over_silence: float | None = None
    over_paper: float | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    weighing: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = BOUNDS


@dataclass(frozen=True)
class Problem:
    """What is compared in one problem.

    Attributes:
        names: The baselines of the lines.
        cases: Settings with bounds; sweeps are in the first.
        delta: Of the claim, with the privatizers as registered.
        middle: By what regrets of seeds are summed up, ``mean`` or ``median``.
        rounds: Horizon, as a share of the scale's.
        trials: Seeds, as a multiple of the scale's.
        swept: Seeds of sweeps, likewise.
        shared: Whether the privatizer shares epsilon out over its releases, so that a claim has to be worked out.
    """

    names: Mapping[str, str]
    cases: tuple[Case, ...]
    delta: float
    middle: Middle = "mean"
    rounds: float = 1.0
    trials: int = 1
    swept: int = 1
    shared: bool = False


def _names(silent: str, tuned: str, paper: str, paper_tuned: str, ours: str) -> dict[str, str]:
    own = f"{ours}-tuned"
    if constants(own) == constants(tuned):
        # The same run, which need not be played twice.
        own = ours
    names = (silent, tuned, paper, paper_tuned, ours, own, f"{ours}-placebo", f"{ours}-true")
    return dict(zip(LINES, names, strict=True))


# Agents there are if nothing is said: runs with as many are those of the other sweeps.
_USUAL = 10
# 0.5^2, of a reward's noise.
_NOISIER = {"pool": {"name": "precision", "reward_variance": 0.25}}

PROBLEMS = {
    "procurement": Problem(
        _names("SS-UCB", "SS-UCB-tuned", "P-FCB", "P-FCB-tuned", "P-FCB-weighted"),
        (
            Case("uniform law, epsilon 1 as P-FCB shares it out", "FedProcurement-v0", 1.0, 0.8, 0.25),
            Case("normal law, epsilon 1 as P-FCB shares it out", "FedProcurementNormal-v0", 1.0, 0.8, 0.25),
        ),
        0.01,
        "median",
        trials=10,
        swept=2,
        shared=True,
    ),
    "linear": Problem(
        _names("LinUCB", "LinUCB-tuned", "FedUCB-min", "FedUCB-min-tuned", "FedUCB-weighted"),
        (Case("epsilon 1", "FedLinear-v0", 1.0, 0.65, 0.35),),
        0.1,
        rounds=0.3,
    ),
    "exposure": Problem(
        _names("FairX-LinUCB", "FairX-tuned", "Priv-FairX-LinUCB", "Priv-FairX-tuned", "Priv-FairX-weighted"),
        (
            Case("epsilon 8", "FedExposure-v0", 8.0, 0.8, 1 / 3),
            Case(
                title="epsilon 2, reward noise 0.5",
                env_id="FedExposureNoisy-v0",
                epsilon=2.0,
                over_silence=0.8,
                over_paper=None,
                policy={"noise_sd": 0.5},
                weighing=_NOISIER,
                lines=(TUNED, OURS, OURS_TUNED),
            ),
        ),
        0.1,
    ),
    "arms": Problem(
        _names("UCB1", "UCB1-tuned", "Priv-UCB1", "Priv-UCB1-tuned", "UCB1-weighted"),
        (Case("epsilon 1", "FedArms-v0", 1.0),),
        1e-5,
        trials=10,
        swept=10,
    ),
}
"""By the name of the problem, which is that of the panel."""

PANELS = {
    "procurement": "Procurement",
    "linear": "Linear contextual bandits",
    "exposure": "Exposure fairness",
    "arms": "Bernoulli arms",
    "agents": "Against the number of agents",
}

SCALES = {
    "tiny": Scale(600, 2, {"epsilon": (0.1, 10.0), "delta": (0.1,), "agents": (2, 4), "part": (0.5,)}),
    "small": Scale(
        100_000,
        4,
        {
            "epsilon": (0.01, 0.1, 1.0, 10.0),
            "delta": (0.1, 1e-5),
            "agents": (2, 5, 10, 30, 100),
            "part": (0.2,),
        },
    ),
    "paper": Scale(
        100_000,
        20,
        {
            "epsilon": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
            "delta": (0.1, 1e-5),
            "agents": (2, 5, 10, 20, 50, 100),
            "part": (1.0,),
        },
    ),
}


def describe(scale: Scale, mode: str) -> str:
    """Describes what all panels have in common."""
    horizons = ", ".join(f"{name} {round(p.rounds * scale.rounds):,}" for name, p in PROBLEMS.items())
    seeds = ", ".join(
        f"{name} {p.trials * scale.trials} ({p.swept * scale.trials})" for name, p in PROBLEMS.items()
    )
    return (
        f"T = {scale.rounds:,}, {scale.trials} trials: horizons {horizons}; instances {seeds}, each drawn by a seed of "
        f"its own from 0 on, in brackets those of sweeps, whose horizons are {scale.sweeps['part'][0]:g} of these. 10 "
        "agents unless they vary. Silence and the papers' forms are tuned on other seeds, from 1,000,000 on, over one "
        "grid and one budget a problem (`fedbandit tune`); ours plays with tuned silence's constants, so that it is "
        "silence but for what it hears, and nothing in it was tuned on what it is measured on. True data and the "
        "placebo are the same policy in the same rounds without noise and on noise alone. All lines meet the same "
        "instances under the same luck. Bounds are ours, set before these runs; where the papers' forms release "
        "continually, their noise is calibrated for all releases together, by the mechanism that makes least of it. "
        f"{about_intervals(scale.trials, 'instances')} That is for the fewest here. A tuned "
        "radius gives no confidence, in silence or in company. Messages announce the variance of their noise, which "
        "depends on no data (in procurement on capacities, which claims take to be public); who announces less than "
        "there is counts for more than he should: this pool withstands no liars. Claims "
        "cover no agent whose later choices change with what was altered."
    )


def _cell(
    problem: Problem,
    line: str,
    plan: Plan,
    case: Case,
    *,
    claim: tuple[float, float] | None = None,
    agents: int | None = None,
    swept: bool = True,
) -> Run:
    """Returns one run.

    Args:
        problem: What is played.
        line: One of :data:`LINES`.
        plan: Its scale says how much.
        case: Where it is played; its epsilon is the privatizer's, if no claim is given.
        claim: Epsilon and delta of all releases, exactly composed.
        agents: Size of the federation, if not the environment's.
        swept: Whether it is part of a sweep, which may be shorter.
    """
    part = plan.scale.sweeps["part"][0] if swept else 1.0
    rounds = max(1, round(plan.scale.rounds * problem.rounds * part))
    trials = plan.scale.trials * (problem.swept if swept else problem.trials)
    weighing = line in (OURS, OURS_TUNED, PLACEBO, TRUE)
    policy = {**case.policy, **(case.weighing if weighing else {})}
    epsilon, delta = claim or (case.epsilon, problem.delta)
    privatizer: dict[str, Any] = {"epsilon": epsilon}
    if claim is not None and problem.shared:
        # Under "one-quantity" good and defective units grow by the capacity together.
        releases = max(1, Doubling().count(rounds))
        privatizer = {**equal_shares(epsilon, delta, releases), "pair": "good_and_defective"}
    elif claim is not None:
        privatizer["delta"] = delta
    settings = Settings(
        baseline=problem.names[line], env_id=case.env_id, rounds=rounds, seeds=trials,
        env_kwargs={} if agents in (None, _USUAL) else {"num_agents": agents}, policy_kwargs=policy,
        wrapper_kwargs={} if line in (SILENT, TUNED, TRUE) else {"privatizer": privatizer},
    )  # fmt: skip
    return Run(settings, delta=delta)


def cells(plan: Plan) -> dict[str, Run]:
    """Returns a panel's runs: bounds' cases, lines of the sweeps' horizon, and the sweeps."""
    sweeps = plan.scale.sweeps
    if plan.panel == "agents":
        return {
            f"{name}, {line} {agents}": _cell(problem, line, plan, problem.cases[0], agents=agents)
            for name, problem in PROBLEMS.items()
            for agents in map(int, sweeps["agents"])
            for line in (TUNED, PAPER, OURS)
        }
    problem = PROBLEMS[plan.panel]
    first = problem.cases[0]
    runs = {
        f"{case.title}: {line}": _cell(problem, line, plan, case, swept=False)
        for case in problem.cases
        for line in case.lines
    }
    runs |= {line: _cell(problem, line, plan, first) for line in LINES}
    for delta in sweeps["delta"]:
        for epsilon in sweeps["epsilon"]:
            for line in (OURS, PAPER) if delta == sweeps["delta"][-1] else (OURS,):
                runs[f"{line}, delta {delta:g} {epsilon:g}"] = _cell(
                    problem, line, plan, first, claim=(epsilon, delta)
                )
    return runs
