"""Whether private federation pays: ours and the papers' forms against silence, tuned and not, in all four problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import OURS, OURS_TUNED, PAPER, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.leaderboard.runs.statistics import Middle
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

NEVER_ABOVE = 1.02
"""Ours is shown to have more regret than silence with the same constants where the interval lies above it."""


@dataclass(frozen=True)
class Case:
    """A setting at which bounds on ratios of regret were set in advance.

    Attributes:
        title: What it is called.
        env_id: The environment.
        epsilon: Of the privatizers as registered.
        asked: The most that ours may be of the regret of another line, by that line; None where no bound was set.
        noise_sd: Standard deviation of a reward's noise, which policies know; None for the policies' default.
    """

    title: str
    env_id: str
    epsilon: float
    asked: Mapping[str, float | None]
    noise_sd: float | None = None


@dataclass(frozen=True)
class ComparedProblem:
    """The settings and sizes of the comparison in one problem.

    Attributes:
        title: Title of its panel.
        cases: Settings with bounds; sweeps are in the first.
        delta: Of the claim, with the privatizers as registered.
        middle: By what regrets of seeds are summed up, ``mean`` or ``median``.
        rounds: Horizon, as a share of the scale's.
        trials: Seeds, as a multiple of the scale's.
        swept: Seeds of sweeps, likewise.
        shared: Whether the privatizer shares epsilon out over its releases, so that a claim has to be worked out.
    """

    title: str
    cases: Sequence[Case]
    delta: float
    middle: Middle = "mean"
    rounds: float = 1.0
    trials: int = 1
    swept: int = 1
    shared: bool = False


PROBLEMS = {
    "procurement": ComparedProblem(
        "Procurement",
        [
            Case(f"{law}, epsilon 1 as P-FCB shares it out", env_id, 1.0, {TUNED: 0.8, PAPER: 0.25})
            for law, env_id in (
                ("uniform law", "FedProcurement-v0"),
                ("normal law", "FedProcurementNormal-v0"),
            )
        ],
        delta=0.01,
        middle="median",
        trials=10,
        swept=2,
        shared=True,
    ),
    "linear": ComparedProblem(
        "Linear contextual bandits",
        [Case("epsilon 1", "FedLinear-v0", 1.0, {TUNED: 0.65, PAPER: 0.35})],
        delta=0.1,
        rounds=0.3,
    ),
    "exposure": ComparedProblem(
        "Exposure fairness",
        [
            Case("epsilon 8", "FedExposure-v0", 8.0, {TUNED: 0.8, PAPER: 1 / 3}),
            Case("epsilon 2, reward noise 0.5", "FedExposureNoisy-v0", 2.0, {TUNED: 0.8}, noise_sd=0.5),
        ],
        delta=0.1,
    ),
    "arms": ComparedProblem(
        "Bernoulli arms",
        [Case("epsilon 1", "FedArms-v0", 1.0, {TUNED: None, PAPER: None})],
        delta=1e-5,
        trials=10,
        swept=10,
    ),
}
"""By the name of the problem, which is that of the panel."""


def _run(plan: Plan, name: str, line: str, where: Case, **labels: Any) -> RunSpec:
    """Returns one run.

    Args:
        plan: The panel's settings; its scale has the sizes.
        name: Name of the problem.
        line: One of :data:`~fedbandit_envs.baselines.comparison_lines.LINES`.
        where: Where it is played; its epsilon is the privatizer's, if none is claimed.
        **labels: What tells the run from others of its line, and sets it apart: with ``case`` it has the full horizon,
            not the sweeps'; ``agents`` is the size of the federation; ``epsilon`` and ``delta`` are claimed for all
            releases together, exactly composed.
    """
    problem = PROBLEMS[name]
    (part,), trials = plan.scale.sweeps["part"], problem.swept
    if "case" in labels:
        part, trials = 1.0, problem.trials
    rounds = max(1, round(plan.scale.rounds * problem.rounds * part))
    policy: dict[str, Any] = {}
    if where.noise_sd is not None:
        policy["noise_sd"] = where.noise_sd
        if line in (OURS, OURS_TUNED, PLACEBO, TRUE):
            policy["pool"] = {"name": "precision", "reward_variance": where.noise_sd**2}
    delta = labels.get("delta", problem.delta)
    privatizer: dict[str, Any] = {"epsilon": where.epsilon}
    if "epsilon" in labels and problem.shared:
        # Under "one-quantity" good and defective units grow by the capacity together.
        releases = max(1, make_schedule("doubling").count(rounds))
        privatizer = {**equal_shares(labels["epsilon"], delta, releases), "pair": "good_and_defective"}
    elif "epsilon" in labels:
        privatizer = {"epsilon": labels["epsilon"], "delta": delta}
    # The sweep over agents shares its runs of the default size, 10, with the other sweeps.
    agents = labels.get("agents", 10)
    return RunSpec(
        comparison_lines.BASELINE_OF[name][line], where.env_id, rounds, plan.scale.trials * trials,
        env_kwargs={} if agents == 10 else {"num_agents": int(agents)}, policy_kwargs=policy,
        wrapper_kwargs={} if line in (SILENT, TUNED, TRUE) else {"privatizer": privatizer},
        delta=delta, labels={"line": line, **labels},
    )  # fmt: skip


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: bounds' cases, lines of the sweeps' horizon, and the sweeps."""
    sweeps, name = plan.scale.sweeps, plan.panel
    if name == "agents":
        return [
            _run(plan, name, line, problem.cases[0], problem=name, agents=float(agents))
            for name, problem in PROBLEMS.items()
            for agents in sweeps["agents"]
            for line in (TUNED, PAPER, OURS)
        ]
    cases = PROBLEMS[name].cases
    # The paper's form is swept at the last delta alone.
    claims = [(OURS, delta) for delta in sweeps["delta"]] + [(PAPER, sweeps["delta"][-1])]
    return [
        *(
            _run(plan, name, line, case, case=case.title)
            for case in cases
            for line in (*case.asked, OURS, OURS_TUNED)
        ),
        *(_run(plan, name, line, cases[0]) for line in comparison_lines.LINES),
        *(
            _run(plan, name, line, cases[0], delta=delta, epsilon=epsilon)
            for line, delta in claims
            for epsilon in sweeps["epsilon"]
        ),
    ]


def _scale(rounds: int, trials: int, part: float, **sweeps: tuple[float, ...]) -> Scale:
    """Returns a scale at which sweeps have this part of the rounds."""
    return Scale(rounds, trials, {"part": (part,), **sweeps})


SCALES = {
    "tiny": _scale(600, 2, 0.5, delta=(0.1,), epsilon=(0.1, 10.0), agents=(2, 4)),
    "small": _scale(
        100_000, 4, 0.2, delta=(0.1, 1e-5), epsilon=(0.01, 0.1, 1.0, 10.0), agents=(2, 5, 10, 30, 100)
    ),
    "paper": _scale(
        100_000,
        20,
        1.0,
        delta=(0.1, 1e-5),
        epsilon=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        agents=(2, 5, 10, 20, 50, 100),
    ),
}

EXPERIMENTS = {
    "private-federation": Experiment(
        "Private federation: whether it pays against tuned silence",
        {"x": "epsilon", "y": "regret / tuned silence's", **LOG_LOG},
        SCALES,
        {
            **{name: problem.title for name, problem in PROBLEMS.items()},
            "agents": "Against the number of agents",
        },
        runs,
        "panel.md.j2",
        panel_axes={"agents": {"x": "agents"}},
    )
}
