"""Runs that show whether private federation pays in each of the four problems.

This project's baselines and the papers' are compared with agents who do not communicate ("silence"), whose constants
are tuned or not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import OURS, OURS_TUNED, PAPER, PLACEBO, SILENT, TRUE, TUNED
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.statistics import Middle
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.transport.schedule import make_schedule

NEVER_ABOVE = 1.02
"""Bound on the ratio of our regret to that of tuned silence; the page reports intervals that lie above it."""


@dataclass(frozen=True)
class Case:
    """A setting in which bounds on ratios of regret were set before the runs were played.

    Attributes:
        title: Name of the setting on the page.
        env_id: Id of the environment.
        epsilon: Epsilon of the baselines' privatizers, which otherwise are as registered.
        asked: Largest allowed ratio of our baseline's regret to that of another algorithm, by the name of that
            algorithm; None if no bound was set.
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
        cases: Settings with bounds; sweeps over epsilon and agents are played in the first setting.
        delta: Delta of the privacy claim, unless a run sets another.
        middle: Average over seeds, ``mean`` or ``median``, of which ratios are taken.
        rounds: Horizon, as a share of the scale's horizon.
        trials: Number of seeds, as a multiple of the scale's trials; sweeps have the scale's.
        shared: Whether the privatizer divides epsilon over its releases. Then its arguments have to be computed from
            the epsilon that is claimed for all releases together.
    """

    title: str
    cases: Sequence[Case]
    delta: float
    middle: Middle = "mean"
    rounds: float = 1.0
    trials: int = 1
    shared: bool = False


PROBLEMS = {
    "procurement": ComparedProblem(
        "Procurement",
        [
            Case(f"{qualities}, P-FCB's epsilon of 1", env_id, 1.0, {TUNED: 0.8, PAPER: 0.25})
            for qualities, env_id in (
                ("uniform qualities", "FedProcurement-v0"),
                ("normal qualities", "FedProcurementNormal-v0"),
            )
        ],
        delta=0.01,
        middle="median",
        trials=2,
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
        trials=2,
    ),
}
"""The comparison in each problem, by the name of the problem, which is also the name of its panel."""


def _run(plan: Plan, name: str, line: str, where: Case, **labels: Any) -> RunSpec:
    """Returns the run of one algorithm in one problem.

    Args:
        plan: The panel's settings; its scale has the sizes.
        name: Name of the problem.
        line: Name of the algorithm, one of :data:`~fedbandit_envs.baselines.comparison_lines.LINES`.
        where: The setting; the privatizer has its epsilon, unless ``labels`` has one.
        **labels: Labels of the run besides ``line``, some of which change it. With ``case`` it has the full horizon and
            number of seeds, else those of sweeps. ``agents`` is the number of agents. ``epsilon`` and ``delta`` are
            claimed for all releases together, by exact composition.
    """
    problem = PROBLEMS[name]
    (part,), trials = plan.scale.sweeps["part"], 1
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
        # With this pair of counts the sensitivity is 1 capacity under "one-quantity": altering one quantity changes the
        # numbers of good and of defective units by at most the capacity in total.
        releases = max(1, make_schedule("doubling").count(rounds))
        privatizer = {**equal_shares(labels["epsilon"], delta, releases), "pair": "good_and_defective"}
    elif "epsilon" in labels:
        privatizer = {"epsilon": labels["epsilon"], "delta": delta}
    # With 10 agents, the default, the argument is left out, so that the run is the same as one of the other sweeps and
    # is played only once.
    agents = labels.get("agents", 10)
    return RunSpec(
        comparison_lines.BASELINE_OF[name][line], where.env_id, rounds, plan.scale.trials * trials,
        env_kwargs={} if agents == 10 else {"num_agents": int(agents)}, policy_kwargs=policy,
        wrapper_kwargs={} if line in (SILENT, TUNED, TRUE) else {"privatizer": privatizer},
        delta=delta, labels={"line": line, **labels},
    )  # fmt: skip


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs.

    Panel ``agents`` has a sweep over the number of agents in all problems. The other panels have the settings with
    bounds at the full horizon, all algorithms at the horizon of sweeps, and a sweep over epsilon and delta.
    """
    sweeps, name = plan.scale.sweeps, plan.panel
    if name == "agents":
        return [
            _run(plan, name, line, problem.cases[0], problem=name, agents=float(agents))
            for name, problem in PROBLEMS.items()
            for agents in sweeps["agents"]
            for line in (TUNED, OURS, PAPER)
        ]
    cases = PROBLEMS[name].cases
    # The paper's form of private federation is played with the last delta only.
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


_TINY = {"part": (0.5,), "delta": (0.1,), "epsilon": (0.1, 10.0), "agents": (2, 4)}
_SMALL = {
    "part": (0.2,),
    "delta": (0.1, 1e-5),
    "epsilon": (0.01, 0.1, 1.0, 10.0),
    "agents": (2, 5, 10, 30, 100),
}
_EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_PAPER = {**_SMALL, "part": (1.0,), "epsilon": _EPSILONS, "agents": (2, 5, 10, 20, 50, 100)}
SCALES = {
    "tiny": Scale(600, 2, _TINY),
    "small": Scale(100_000, 20, _SMALL),
    "paper": Scale(100_000, 20, _PAPER),
}
"""Sizes of the experiment: full horizon, number of seeds (which problems multiply), and the values of the sweeps.

``part`` is the share of the full horizon that runs of the sweeps have.
"""

EXPERIMENTS = {
    "private-federation": Experiment(
        "Private federation: whether it pays against tuned silence",
        {"x": "epsilon", "y": "regret / tuned silence's"},
        SCALES,
        runs,
        {name: problem.title for name, problem in PROBLEMS.items()}
        | {"agents": "Against the number of agents"},
        panel_axes={"agents": {"x": "agents"}},
    )
}
