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
from typing import Any

from fedbandit_envs.baselines import comparison_lines
from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.leaderboard.reproduction.experiment import LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.leaderboard.runs.statistics import Middle
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
        start: Rounds before the first release at event level, where releases follow in doubling rounds.
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


@cache
def _tuned() -> Mapping[str, Mapping[str, Mapping[str, tuple[float, int]]]]:
    """Returns tuned clips and numbers of releases: by problem, by line and epsilon, and by the number of agents.

    :mod:`.tuning` writes them. For other numbers of agents those of the next smaller one are used.
    """
    return dict(json.loads(files(__package__).joinpath("tuned.json").read_text()))


def _constants(name: str, line: str, epsilon: float, agents: int) -> tuple[float, int]:
    # The noise of a secure sum, and of the placebo, is that of a trusted server, so they share its constants.
    line = line if line in (LOCAL, SHUFFLER) else SERVER
    by_agents = _tuned()[name][f"{line}, epsilon {epsilon:g}"]
    most = [int(number) for number in by_agents if int(number) <= agents]
    clip, releases = by_agents[str(max(most, default=min(map(int, by_agents))))]
    return clip, releases


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
    problem: TrustProblem,
    level: str,
    line: str,
    epsilon: float,
    agents: int,
    rounds: int,
    constants: tuple[float, int],
) -> tuple[list[Any], dict[str, Any]]:
    """Returns the wrappers inside of the transport, and the arguments of the transport, for a line with noise.

    A line is an algorithm on the page.

    Args:
        problem: The problem.
        level: ``"event"`` or ``"agent"``: what the claim protects.
        line: Name of the line.
        epsilon: Epsilon of the claim.
        agents: Number of agents.
        rounds: Horizon.
        constants: Used at the agent's level only: the clip, divided by the typical norm of what an agent's statistic
            grows by between two releases; and the number of releases.
    """
    clip, releases = constants
    channel: dict[str, Any] = {}
    if line != LOCAL:
        # The placebo is played with the least noise of all lines.
        name = {HALF: "aggregator", MOST: "aggregator", PLACEBO: SERVER}.get(line, line)
        channel["stage"] = {"name": name}
        if name == "aggregator":
            channel["stage"]["honest"] = max(1, agents // 2) if line == HALF else agents - 1
    budget: dict[str, Any] = {"composition": "exact", "delta": DELTA}
    if level == EVENT:
        channel["schedule"] = {"name": "doubling", "start": problem.start}
        kwargs = {"epsilon": epsilon, "delta": DELTA, "releases": channel["schedule"], "budget": budget}
        noise = ["ContinualPrivatizer", kwargs]
    else:
        gap = rounds // (releases + 1) + 1
        channel["schedule"] = {"name": "fixed_gap", "gap": gap}
        kwargs = {
            "noise_multiplier": _noise_multiplier(line, epsilon, agents, releases),
            "delta": DELTA / releases,
            "releases": releases,
            "clip": clip * gap * problem.unit,
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
        **changes: ``constants``, in place of the tuned ones, and further arguments of :class:`.RunSpec`.
    """
    problem = PROBLEMS[name]
    stack: list[Any] = []
    channel: dict[str, Any] = {}
    if epsilon:
        constants = changes.pop("constants", None) or _constants(name, line, epsilon, agents)
        stack, channel = stack_of(problem, level, line, epsilon, agents, rounds, constants)
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
    numbers = [int(agents) for agents in scale.sweeps["agents"]]
    if name in ("linear", "exposure"):
        numbers = numbers[: int(scale.sweeps.get("fewer", (len(numbers),))[0])]
    return [
        run(name, level, line, rounds, scale.trials, agents, epsilon)
        for agents in numbers
        for line, epsilon in [(TUNED, 0.0), (TRUE, 0.0)]
        + [(line, epsilon) for epsilon in scale.sweeps["epsilon"] for line in noisy]
    ]


SCALES = {
    "tiny": Scale(400, 2, {"agents": (4.0,), "epsilon": (10.0,)}),
    "small": Scale(10_000, 20, {"agents": (10.0, 30.0, 100.0), "epsilon": (0.1, 1.0, 10.0), "fewer": (2.0,)}),
    "paper": Scale(10_000, 40, {"agents": (10.0, 30.0, 100.0, 300.0), "epsilon": (0.1, 1.0, 10.0)}),
}

EXPERIMENTS = {
    "trust": Experiment(
        "Trust: what each step from local noise to a trusted server buys",
        {"x": "agents", "y": "regret / tuned silence's", **LOG_LOG},
        SCALES,
        runs,
        {
            f"{name}-{level}": f"{problem.title}, {what}"
            for name, problem in PROBLEMS.items()
            for level, what in ((EVENT, "one event protected"), (AGENT, "all data of an agent protected"))
        },
    )
}
