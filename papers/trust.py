"""The same federation behind every stage of its transport, at the same epsilon, against tuned silence.

All lines share one policy, which weighs what it receives by the variance of its noise. They differ in who adds the
noise, and so in how much of it a claim of (epsilon, :data:`DELTA`) against a fellow agent needs.
"""

from collections.abc import Mapping
from functools import cache
from itertools import product
from math import sqrt
from typing import Any, NamedTuple

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section
from fedbandit_envs.papers.private_budget import PLAYED
from fedbandit_envs.papers.private_federation import TITLES
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier
from fedbandit_envs.wrappers.privacy.stage_claims import largest_loss

DELTA = 1e-5
EPSILONS = (0.1, 1.0, 10.0)
NEAR = 1.1
"""A secure sum counts as close to true data where its regret is at most this multiple of it."""
LOCAL, SHUFFLER, SERVER = "local", "shuffler", "server"
HALF, MOST = "aggregator, half honest", "aggregator, all honest"
LADDER = (LOCAL, SHUFFLER, HALF, MOST, SERVER, TRUE)
"""The lines of a panel, from the one that trusts nobody to the one that trusts everybody."""
EVENT, AGENT = "event", "agent"


UNITS = {"procurement": 125.0, "linear": 1.0, "exposure": 0.7, "arms": 1.2}
"""About the Euclidean norm of what an agent's statistic grows by in one round, by problem; clips are multiples of it.

Baselines and environments of the problems are those of ``private_budget``.
"""
STARTS = {"procurement": 200, "linear": 1, "exposure": 64, "arms": 1}
"""First round of release at event level, where releases follow in doubling rounds."""
SHARES = {"procurement": 1.0, "linear": 1.0, "exposure": 0.2, "arms": 1.0}
"""Horizon, as a share of the scale's horizon."""


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

    @property
    def rounds(self) -> list[int]:
        """Rounds of the releases."""
        return [self.first * 2**number for number in range(self.number)]

    def settings(
        self, line: str, epsilon: float, delta: float, agents: int, unit: float = 1.0
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the privatizer, as an entry of a stack, and the schedule of the transport.

        Args:
            line: One of :data:`LADDER`, or the placebo.
            epsilon: Epsilon of the claim about all data of an agent.
            delta: Delta of the claim.
            agents: Number of agents.
            unit: Norm of what a statistic grows by in one round.
        """
        arguments = {
            "noise_multiplier": _noise_multiplier(line, epsilon, delta, agents, self.number),
            "delta": delta / self.number, "releases": self.number,
            "clip": self.clip * self.first * unit,
            "budget": {"composition": "exact", "delta": delta, "adjacency": "agent"},
        }  # fmt: skip
        schedule = {"name": "doubling", "start": self.first, "stop": self.rounds[-1]}
        return ["GaussianPrivatizer", arguments], schedule


RELEASES: Mapping[tuple[str, str, float], Mapping[int, tuple[float, int, int]]] = {
    **{("procurement", line, epsilon): {10: (0.03, 8, 1)} for line, epsilon in product((LOCAL, SERVER), EPSILONS)},
    ("procurement", SERVER, 10): {10: (0.03, 8, 1), 30: (0.3, 32, 1), 100: (0.3, 8, 3)},
    ("linear", LOCAL, 0.1): {10: (0.03, 128, 3), 30: (0.3, 128, 3)},
    ("linear", LOCAL, 1): {10: (1, 128, 3), 30: (0.3, 8, 3)},
    ("linear", LOCAL, 10): {10: (1, 128, 3), 30: (1, 8, 3)},
    ("linear", SERVER, 0.1): {10: (0.03, 32, 3), 30: (0.03, 8, 3)},
    ("linear", SERVER, 1): {10: (0.3, 32, 3), 30: (0.3, 8, 3)},
    ("linear", SERVER, 10): {10: (0.03, 32, 3), 30: (1, 8, 3)},
    ("exposure", LOCAL, 0.1): {10: (0.03, 8, 3), 30: (1, 32, 3), 100: (1, 32, 3)},
    ("exposure", LOCAL, 1): {10: (0.03, 8, 3), 30: (0.03, 32, 3), 100: (1, 8, 3)},
    ("exposure", LOCAL, 10): {10: (0.03, 8, 3), 30: (0.03, 32, 3), 100: (1, 32, 3)},
    ("exposure", SERVER, 0.1): {10: (0.03, 32, 1), 30: (0.3, 32, 1), 100: (0.03, 32, 1)},
    ("exposure", SERVER, 1): {10: (1, 32, 1), 30: (0.03, 8, 1), 100: (0.3, 32, 1)},
    ("exposure", SERVER, 10): {10: (1, 32, 1), 30: (0.3, 8, 1), 100: (0.3, 8, 1)},
    **{("arms", LOCAL, epsilon): {10: (0.03, 8, 1), 300: (0.3, 8, 3)} for epsilon in (0.1, 1)},
    ("arms", LOCAL, 10): {10: (0.03, 32, 1), 30: (0.3, 128, 3), 100: (0.03, 8, 1), 300: (1, 8, 3)},
    ("arms", SERVER, 0.1): {10: (0.03, 8, 1)},
    ("arms", SERVER, 1): {10: (0.03, 8, 1), 100: (0.3, 8, 1)},
    ("arms", SERVER, 10): {10: (1, 32, 3), 30: (0.3, 8, 1), 100: (0.3, 8, 3), 300: (0.3, 8, 3)},
}  # fmt: skip
"""The tuned :class:`Releases` by problem, line and epsilon, and by the number of agents.

They had the least mean regret of the grid of clips 0.03, 0.3, 1, first rounds 8, 32, 128, and 1 or 3 releases, over
10,000 rounds on 4 seeds that no experiment plays. 10 and 30 agents were tuned, outside of linear bandits also 100, and
on Bernoulli arms 300. A number of agents is left out where the next smaller one has the same releases.
"""


def tuned(name: str, line: str, epsilon: float, agents: int) -> Releases:
    """Returns how agents release where all data of an agent are protected.

    A shuffler is behind the releases of the local line. A secure sum, and the placebo, have those of a trusted server,
    since their noise is as large. Other numbers of agents than those tuned have the releases of the next smaller one.

    Args:
        name: Name of the problem.
        line: Name of the row.
        epsilon: Its epsilon.
        agents: Number of agents.
    """
    found = RELEASES[name, LOCAL if line in (LOCAL, SHUFFLER) else SERVER, epsilon]
    return Releases(*found[max((number for number in found if number <= agents), default=min(found))])


@cache
def _noise_multiplier(line: str, epsilon: float, delta: float, agents: int, releases: int) -> float:
    """Returns the noise of one clipped release, in units of the clip, for a claim about all data of an agent.

    A change of all data moves each release by 2 clips at most, so that all releases together have mu = 2 sqrt(releases)
    / multiplier; a shuffled batch shows a fellow agent the messages of all others.
    """
    if line == SHUFFLER:
        return 2 / largest_loss(epsilon, delta, [agents - 1] * releases)
    return 2 * sqrt(releases) * analytic_noise_multiplier(epsilon, delta)


def run(name: str, level: str, line: str, scale: Scale, agents: int, epsilon: float = 0.0) -> RunSpec:
    """Returns the run of one line.

    Args:
        name: Name of the problem.
        level: :data:`EVENT` or :data:`AGENT`.
        line: One of :data:`LADDER`, tuned silence, or the placebo.
        scale: The number of rounds and of instances.
        agents: Number of agents.
        epsilon: Epsilon of the claim; 0 for lines without noise.
    """
    stack: list[Any] = []
    channel: dict[str, Any] = {"schedule": {"name": "doubling", "start": STARTS[name]}}
    if epsilon and level == EVENT:
        budget = {"composition": "exact", "delta": DELTA}
        noise = {"epsilon": epsilon, "delta": DELTA, "releases": channel["schedule"], "budget": budget}
        stack = [["ContinualPrivatizer", noise]]
    elif epsilon:
        how = tuned(name, line, epsilon, agents)
        privatizer, channel["schedule"] = how.settings(line, epsilon, DELTA, agents, UNITS[name])
        stack = [privatizer]
    if line in (HALF, MOST):
        honest = agents // 2 if line == HALF else agents - 1
        channel["stage"] = {"name": "aggregator", "honest": max(1, honest)}
    elif epsilon and line != LOCAL:
        # The placebo is played with the least noise of all lines.
        channel["stage"] = {"name": SERVER if line == PLACEBO else line}
    if line == PLACEBO:
        stack = [["Placebo", {}], *stack]
    silent, weighted = PLAYED[name]
    return Plan("", scale).run(
        line, SUITES[name].tasks[0].env_id, silent if line == TUNED else f"{weighted}-true",
        env={"num_agents": agents}, wrappers={} if line == TUNED else {"channel": channel}, stack=stack,
        delta=DELTA,
        labels={"agents": float(agents)} | ({"epsilon": epsilon} if epsilon else {}),
    )  # fmt: skip


def _runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: for each number of agents lines without noise, and all others at each epsilon."""
    name, _, level = plan.panel.partition("-")
    scale = plan.scale._replace(rounds=max(2, round(plan.scale.rounds * SHARES[name])))
    noisy = [line for line in (*LADDER, PLACEBO) if line != TRUE and (line, level) != (SHUFFLER, EVENT)]
    return [
        run(name, level, line, scale, agents, epsilon)
        for agents in map(int, scale.sweeps[f"agents, {name}"])
        for line, epsilon in [(TUNED, 0.0), (TRUE, 0.0), *product(noisy, scale.sweeps["epsilon"])]
    ]


def against_fellow(result: RunResult) -> str:
    """Returns the exact claim of a run against a fellow agent, as the text of a table's cell."""
    exact = [claim for claim in result.claims if claim.composition == "exact"]
    fellow = [claim for claim in exact if claim.observer == "fellow" and claim.epsilon is not None]
    return _claimed((fellow or exact or [result.privacy])[0])


def _claimed(claim: Claim) -> str:
    return f"none: {claim.reason}" if claim.epsilon is None else f"{claim.epsilon:.3g}, trust: {claim.trust}"


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports for each number of agents what each step of trust buys, and whether sums come near true data."""
    name, _, level = runs.plan.panel.partition("-")
    epsilons, steps = runs.values("epsilon"), [line for line in LADDER if line in runs.values("line")]
    before = dict(zip(steps[1:], steps, strict=False))
    found = {agents: own.lines("epsilon") for agents, own in runs.groups("agents").items()}
    near: dict[str, dict[float, str]] = {}
    for (agents, lines), line, epsilon in product(found.items(), (HALF, MOST, SERVER), epsilons):
        value = stats.ratio(lines[line][epsilon], lines[TRUE][epsilon])
        near.setdefault(f"{line}, epsilon {epsilon:g}", {})[agents] = f"{value}: {value.at_most(NEAR)}"
    section.table("near", stats.by_line(near, "line", "{:g} agents"))
    for agents, lines in found.items():
        rows = []
        for epsilon, line in product(epsilons, (TUNED, PLACEBO, *steps)):
            result, rival = lines[line][epsilon], before.get(line)
            row: stats.Row = {
                "epsilon: line": f"{epsilon:g}: {line}",
                "regret per agent [95 %]": stats.final_regret(result),
                f"/ {TUNED}": stats.ratio(result, lines[TUNED][epsilon]),
                "/ the step before": stats.ratio(result, lines[rival][epsilon]) if rival else "-",
                "claim against a fellow agent": _claimed(result.privacy),
            }
            if level == AGENT:
                how = tuned(name, line, epsilon, int(agents))
                clip = how.clip * how.first * UNITS[name]
                released = f"{', '.join(map(str, how.rounds))}; {clip:.3g}"
                row["releases in rounds; clip"] = "-" if line in (TUNED, TRUE) else released
            rows.append(row)
        section.table(f"agents{agents:g}", rows)
    middle = epsilons[len(epsilons) // 2]
    section.draw({
        line: {agents: stats.ratio(own[line][middle], own[TUNED][middle]) for agents, own in found.items()}
        for line in (PLACEBO, *steps)
    })  # fmt: skip


_TINY = {"epsilon": (10.0,), **{f"agents, {name}": (4.0,) for name in UNITS}}
_FULL = {
    "epsilon": EPSILONS,
    **{f"agents, {name}": (10.0, 30.0, 100.0) for name in ("procurement", "exposure")},
    **{f"agents, {name}": (10.0, 30.0, 100.0, 300.0) for name in ("arms", "linear")},
}
EXPERIMENTS = {
    "trust": Experiment(
        "Trust: what each step from local noise to a trusted server buys",
        "What it buys to trust a shuffler, a secure sum or a server; 4 hours.",
        {"x": "agents", "y": "regret / tuned silence's"},
        {"tiny": Scale(400, 2, _TINY), "small": Scale(10_000, 20, _FULL), "paper": Scale(10_000, 40, _FULL)},
        _runs, _report,
        {
            f"{name}-{level}": f"{TITLES[name]}, {what}"
            for name in UNITS
            for level, what in ((EVENT, "one event protected"), (AGENT, "all data of an agent protected"))
        },
    )
}  # fmt: skip
"""The sweep ``"agents, NAME"`` has the numbers of agents of the problem of that name."""
