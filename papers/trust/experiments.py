"""Runs of the same federation behind every stage of its transport, at the same epsilon, against tuned silence.

All lines share one policy, which weighs what it receives by the variance of its noise. They differ in who adds the
noise, and so in how much of it a claim of (epsilon, :data:`DELTA`) against a fellow agent needs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any, NamedTuple

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.statistics import Middle
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier
from fedbandit_envs.wrappers.privacy.accounting.shuffling import largest_loss

DELTA = 1e-5
LOCAL, SHUFFLER, SERVER = "local", "shuffler", "server"
HALF, MOST = "aggregator, half honest", "aggregator, all honest"
LADDER = (LOCAL, SHUFFLER, HALF, MOST, SERVER, TRUE)
"""The lines of a panel, from the one that trusts nobody to the one that trusts everybody."""
EVENT, AGENT = "event", "agent"


@dataclass(frozen=True)
class TrustProblem:
    """The setting of one problem.

    Attributes:
        title: Its name on the page.
        env_id: Id of the environment.
        rounds: Horizon, as a share of the scale's horizon.
        unit: About the Euclidean norm of what an agent's statistic grows by in one round; clips are multiples of it.
        start: First round of release at event level, where releases follow in doubling rounds.
        middle: Average over instances of which ratios are taken.
    """

    title: str
    env_id: str
    unit: float
    start: int
    rounds: float = 1.0
    middle: Middle = "mean"


PROBLEMS = {
    "procurement": TrustProblem("Procurement", "FedProcurement-v0", 125.0, 200, middle="median"),
    "linear": TrustProblem("Linear contextual bandits", "FedLinear-v0", 1.0, 1),
    "exposure": TrustProblem("Exposure fairness", "FedExposure-v0", 0.7, 64, rounds=0.2),
    "arms": TrustProblem("Bernoulli arms", "FedArms-v0", 1.2, 1),
}


class Releases(NamedTuple):
    """How agents release where all data of an agent are protected.

    Attributes:
        clip: Bound on the norm of a release, divided by the typical norm at the first one.
        first: Round of the first release.
        number: Number of releases; each follows in the doubled round of the one before.
    """

    clip: float
    first: int
    number: int


@cache
def _tuned() -> Mapping[str, Mapping[str, Mapping[str, tuple[float, int, int]]]]:
    """Returns the tuned :class:`Releases`: by problem, by line and epsilon, and by the number of agents.

    :mod:`.tuning` writes them. For other numbers of agents those of the next smaller one are used.
    """
    return dict(json.loads(files(__package__).joinpath("tuned.json").read_text()))


def numbers_tuned(name: str) -> list[int]:
    """Returns the numbers of agents with which the releases in a problem are tuned."""
    return sorted({int(agents) for by_agents in _tuned()[name].values() for agents in by_agents})


def tuned_releases(name: str, line: str, epsilon: float, agents: int) -> Releases:
    """Returns how agents release where all data of an agent are protected.

    Args:
        name: Name of the problem.
        line: Name of the line. A shuffler is behind the releases of the local line. A secure sum, and the placebo, have
            those of a trusted server, since their noise is as large.
        epsilon: Epsilon of the claim.
        agents: Number of agents.
    """
    line = LOCAL if line in (LOCAL, SHUFFLER) else SERVER
    tuned = max(
        (number for number in numbers_tuned(name) if number <= agents), default=numbers_tuned(name)[0]
    )
    return Releases(*_tuned()[name][f"{line}, epsilon {epsilon:g}"][str(tuned)])


@cache
def _noise_multiplier(line: str, epsilon: float, agents: int, releases: int) -> float:
    """Returns the noise of one clipped release, in units of the clip, for a claim about all data of an agent.

    A change of all data moves each release by 2 clips at most, so that all releases together have mu = 2 sqrt(releases)
    / multiplier; a shuffled batch shows a fellow agent the messages of all others.
    """
    if line == SHUFFLER:
        return 2 / largest_loss(epsilon, DELTA, [agents - 1] * releases)
    return 2 * sqrt(releases) * analytic_noise_multiplier(epsilon, DELTA)


def stack_of(
    problem: TrustProblem, line: str, epsilon: float, agents: int, releases: Releases | None
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the wrappers inside of the transport, and the arguments of the transport, for a line with noise.

    A line is an algorithm on the page.

    Args:
        problem: The problem.
        line: Name of the line.
        epsilon: Epsilon of the claim.
        agents: Number of agents.
        releases: How agents release if all data of an agent are protected; None if one event is protected.
    """
    channel: dict[str, Any] = {}
    if line != LOCAL:
        # The placebo is played with the least noise of all lines.
        name = {HALF: "aggregator", MOST: "aggregator", PLACEBO: SERVER}.get(line, line)
        channel["stage"] = {"name": name}
        if name == "aggregator":
            channel["stage"]["honest"] = max(1, agents // 2) if line == HALF else agents - 1
    budget: dict[str, Any] = {"composition": "exact", "delta": DELTA}
    if releases is None:
        channel["schedule"] = {"name": "doubling", "start": problem.start}
        kwargs = {"epsilon": epsilon, "delta": DELTA, "releases": channel["schedule"], "budget": budget}
        noise = ["ContinualPrivatizer", kwargs]
    else:
        last = releases.first * 2 ** (releases.number - 1)
        channel["schedule"] = {"name": "doubling", "start": releases.first, "stop": last}
        kwargs = {
            "noise_multiplier": _noise_multiplier(line, epsilon, agents, releases.number),
            "delta": DELTA / releases.number,
            "releases": releases.number,
            "clip": releases.clip * releases.first * problem.unit,
            "budget": {**budget, "adjacency": "agent"},
        }
        noise = ["GaussianPrivatizer", kwargs]
    return [["Placebo", {}], noise] if line == PLACEBO else [noise], channel


def run(
    name: str,
    level: str,
    line: str,
    rounds: int,
    seeds: int,
    agents: int,
    epsilon: float = 0.0,
    **changes: Any,
) -> RunSpec:
    """Returns the run of one line.

    Args:
        name: Name of the problem.
        level: ``"event"`` or ``"agent"``.
        line: One of :data:`LADDER`, tuned silence, or the placebo.
        rounds: Horizon.
        seeds: Number of instances.
        agents: Number of agents.
        epsilon: Epsilon of the claim; 0 for lines without noise.
        **changes: ``releases``, in place of the tuned :class:`Releases`, and further arguments of :class:`.RunSpec`.
    """
    problem = PROBLEMS[name]
    stack: list[Any] = []
    channel: dict[str, Any] = {}
    if epsilon:
        releases = changes.pop("releases", None) or tuned_releases(name, line, epsilon, agents)
        stack, channel = stack_of(problem, line, epsilon, agents, releases if level == AGENT else None)
    elif line == TRUE:
        channel = {"schedule": {"name": "doubling", "start": problem.start}}
    labels = {"line": line, "agents": float(agents)} | ({"epsilon": epsilon} if epsilon else {})
    return RunSpec(
        comparison_lines.BASELINE_OF[name][TUNED if line == TUNED else TRUE], problem.env_id, rounds, seeds,
        env_kwargs={"num_agents": agents}, wrapper_kwargs={"channel": channel} if channel else {}, stack=stack,
        delta=DELTA, labels=changes.pop("labels", labels), **changes,
    )  # fmt: skip


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: for each number of agents lines without noise, and all others at each epsilon."""
    name, _, level = plan.panel.partition("-")
    scale = plan.scale
    rounds = max(2, round(scale.rounds * PROBLEMS[name].rounds))
    noisy = [line for line in (*LADDER, PLACEBO) if line != TRUE and (line, level) != (SHUFFLER, EVENT)]
    return [
        run(name, level, line, rounds, scale.trials, agents, epsilon)
        for agents in map(int, scale.sweeps[f"agents, {name}"])
        for line, epsilon in [(TUNED, 0.0), (TRUE, 0.0)]
        + [(line, epsilon) for epsilon in scale.sweeps["epsilon"] for line in noisy]
    ]


EPSILONS = (0.1, 1.0, 10.0)


def _scale(rounds: int, trials: int, epsilons: tuple[float, ...], **agents: tuple[float, ...]) -> Scale:
    """Returns a scale whose sweep ``"agents, NAME"`` has the numbers of agents of the problem of that name."""
    numbers = {f"agents, {name}": agents.get(name, agents["others"]) for name in PROBLEMS}
    return Scale(rounds, trials, {"epsilon": epsilons, **numbers})


_TO_300 = (10.0, 30.0, 100.0, 300.0)
SCALES = {
    "tiny": _scale(400, 2, (10.0,), others=(4.0,)),
    "small": _scale(10_000, 20, EPSILONS, others=_TO_300[:3], arms=_TO_300, linear=_TO_300),
    "paper": _scale(10_000, 40, EPSILONS, others=_TO_300[:3], arms=_TO_300, linear=_TO_300),
}

EXPERIMENTS = {
    "trust": Experiment(
        "Trust: what each step from local noise to a trusted server buys",
        {"x": "agents", "y": "regret / tuned silence's"},
        SCALES,
        runs,
        {
            f"{name}-{level}": f"{problem.title}, {what}"
            for name, problem in PROBLEMS.items()
            for level, what in ((EVENT, "one event protected"), (AGENT, "all data of an agent protected"))
        },
    )
}
