"""Whether private federation pays: ours and the papers' forms against silence, tuned and not, in all four problems."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fedbandit_envs.baselines.comparison_lines import (
    BASELINE_OF,
    LINES,
    OURS,
    OURS_TUNED,
    PAPER,
    PLACEBO,
    SILENT,
    TRUE,
    TUNED,
)
from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.leaderboard.runs.statistics import Middle
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

NEVER_ABOVE = 1.02
"""Ours is shown to have more regret than silence with the same constants where the interval lies above it."""

BOUNDS = (TUNED, PAPER, OURS, OURS_TUNED)


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
class ComparedProblem:
    """The baselines, settings and sizes of the comparison in one problem.

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


# The default number of agents; the sweep over agents shares its runs of this size with the other sweeps.
_USUAL = 10
# 0.5^2, the variance of a reward's noise.
_NOISIER = {"pool": {"name": "precision", "reward_variance": 0.25}}

PROBLEMS = {
    "procurement": ComparedProblem(
        BASELINE_OF["procurement"],
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
    "linear": ComparedProblem(
        BASELINE_OF["linear"],
        (Case("epsilon 1", "FedLinear-v0", 1.0, 0.65, 0.35),),
        0.1,
        rounds=0.3,
    ),
    "exposure": ComparedProblem(
        BASELINE_OF["exposure"],
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
    "arms": ComparedProblem(
        BASELINE_OF["arms"],
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


def _run(
    compared: ComparedProblem,
    line: str,
    plan: Plan,
    where: Case,
    *,
    claim: tuple[float, float] | None = None,
    agents: int | None = None,
    swept: bool = True,
    **labels: Any,
) -> RunSpec:
    """Returns one run.

    Args:
        compared: What is played.
        line: One of :data:`LINES`.
        plan: The panel's settings; its scale has the sizes.
        where: Where it is played; its epsilon is the privatizer's, if no claim is given.
        claim: Epsilon and delta of all releases, exactly composed.
        agents: Size of the federation, if not the environment's.
        swept: Whether it is part of a sweep, which may be shorter.
        **labels: What tells the run from others of its line.
    """
    part = plan.scale.sweeps["part"][0] if swept else 1.0
    rounds = max(1, round(plan.scale.rounds * compared.rounds * part))
    trials = plan.scale.trials * (compared.swept if swept else compared.trials)
    weighing = line in (OURS, OURS_TUNED, PLACEBO, TRUE)
    policy = {**where.policy, **(where.weighing if weighing else {})}
    epsilon, delta = claim or (where.epsilon, compared.delta)
    privatizer: dict[str, Any] = {"epsilon": epsilon}
    if claim is not None and compared.shared:
        # Under "one-quantity" good and defective units grow by the capacity together.
        releases = max(1, make_schedule("doubling").count(rounds))
        privatizer = {**equal_shares(epsilon, delta, releases), "pair": "good_and_defective"}
    elif claim is not None:
        privatizer["delta"] = delta
    return RunSpec(
        baseline=compared.names[line], env_id=where.env_id, rounds=rounds, seeds=trials,
        env_kwargs={} if agents in (None, _USUAL) else {"num_agents": agents}, policy_kwargs=policy,
        wrapper_kwargs={} if line in (SILENT, TUNED, TRUE) else {"privatizer": privatizer},
        delta=delta, labels={"line": line, **labels},
    )  # fmt: skip


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: bounds' cases, lines of the sweeps' horizon, and the sweeps."""
    sweeps = plan.scale.sweeps
    if plan.panel == "agents":
        return [
            _run(problem, line, plan, problem.cases[0], agents=agents, problem=name, size=float(agents))
            for name, problem in PROBLEMS.items()
            for agents in map(int, sweeps["agents"])
            for line in (TUNED, PAPER, OURS)
        ]
    problem = PROBLEMS[plan.panel]
    first = problem.cases[0]
    return [
        *(
            _run(problem, line, plan, case, swept=False, case=case.title)
            for case in problem.cases
            for line in case.lines
        ),
        *(_run(problem, line, plan, first) for line in LINES),
        *(
            _run(problem, line, plan, first, claim=(epsilon, delta), delta=delta, epsilon=epsilon)
            for delta in sweeps["delta"]
            for epsilon in sweeps["epsilon"]
            for line in ((OURS, PAPER) if delta == sweeps["delta"][-1] else (OURS,))
        ),
    ]


EXPERIMENTS = {
    "private-federation": Experiment(
        "Private federation: whether it pays against tuned silence",
        {"x": "epsilon", "y": "regret / tuned silence's", **LOG_LOG},
        SCALES,
        PANELS,
        runs,
        "panel.md.j2",
        panel_axes={"agents": {"x": "agents"}},
    )
}
