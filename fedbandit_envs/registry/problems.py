"""The records in which a problem's folder declares presets, tuning and leaderboard tasks in ``registered.py``."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fedbandit_envs.core.wrapper import Stack


class Preset(NamedTuple):
    """The settings of one registered id.

    Attributes:
        kwargs: Arguments of the environment, all of them writable as JSON.
        stack: Wrappers that belong to the id; every view of the id is built with them.
        small: Arguments that make a small instance, for tests; None for the problem's.

    Example:
        >>> Preset({"num_agents": 15}, [["Participation", {"law": "in_turn"}]]).kwargs
        {'num_agents': 15}
    """

    kwargs: Mapping[str, Any] = {}
    stack: Stack = ()
    small: Mapping[str, Any] | None = None


class SuiteSpec(NamedTuple):
    """The leaderboard's suites for a problem: a full one, and a quick one with fewer rounds and seeds.

    Both are frozen: a change of either requires a higher ``version``.

    Attributes:
        tasks: Gymnasium id and changes to its preset, by the task's name.
        reference: Name of the baseline that acts at random, for comparison.
        adjacency: Name of the neighbouring histories that entries of private tracks must protect.
        full: Numbers of rounds and of seeds of each task in the full suite.
        quick: Numbers of rounds and of seeds of each task in the quick suite.
        version: Version of both suites.
    """

    tasks: Mapping[str, tuple[str, Mapping[str, Any]]]
    reference: str
    adjacency: str = "one-observation"
    full: tuple[int, int] = (30_000, 20)
    quick: tuple[int, int] = (1_000, 10)
    version: int = 1


class TuningSpec(NamedTuple):
    """How a problem's baselines are tuned: on the tasks of its suite, over its full horizon, by expected regret.

    A grid is the product of lists of values. An end of a list at 0 is natural: a bonus, a radius or a margin cannot be
    smaller. Elsewhere a chosen value lies inside of its list; lists are extended until it does.

    Attributes:
        grids: Values by argument of the policy (or of the server policy that plans for agents), by the name of the
            tuned baseline. Values are non-negative numbers, or others (texts, truth values), which have no ends.
        seeds: Number of seeds on each task.
        natural: Further values by argument that are natural ends.
        names: Names of tuned forms by the name of the baseline; by default the latter and ``-tuned``.
        tasks: The tasks of a problem that has no suite.

    Example:
        >>> TuningSpec({"UCB1": {"scale": (0.02, 0.1, 0.5)}}, seeds=200).tuned_name("UCB1")
        'UCB1-tuned'
    """

    grids: Mapping[str, Mapping[str, Sequence[Any]]]
    seeds: int
    natural: Mapping[str, Sequence[Any]] = {}
    names: Mapping[str, str] = {}
    tasks: SuiteSpec | None = None

    def tuned_name(self, baseline: str) -> str:
        """Returns the name of the tuned form of a baseline."""
        return self.names.get(baseline, f"{baseline}-tuned")


class Panel(NamedTuple):
    """A bar chart of per-arm shares that the lab draws after a run.

    Each series is one of the environment's ``totals``, an array ``(replicas, agents, arms)``, divided by the number of
    rounds and averaged over replicas and agents. Arms are ranked, for each replica and agent, by the first series.

    Attributes:
        title: Title of the chart.
        arms: Label of the axis of ranked arms.
        series: The name of a total by the label of its bars.
    """

    title: str
    arms: str
    series: Mapping[str, str]


class RegisteredProblem(NamedTuple):
    """A registered problem: its environment, default policies, presets, and data for tests, leaderboard and lab.

    Attributes:
        federation: Entry point of the federated environment's class.
        peers: Entry point of the policy that plays a learner's peers by default. Problems of this package leave it out:
            their folder in `baselines/` has that policy as ``PEERS``.
        small: Arguments that make a small instance, for tests.
        presets: Settings by Gymnasium id.
        tuning: How the problem's baselines are tuned; None if they are not.
        suite: The leaderboard's suites for the problem; None if it has none.
        more_suites: Further suites for the same problem, by name.
        lab_choices: Switches that the lab offers, by label: the environment's arguments that each of them sets.
        lab_panels: Charts that the lab draws after a run, beside regret, privacy and traffic.
    """

    federation: str
    peers: str = ""
    small: Mapping[str, Any] = {}
    presets: Mapping[str, Preset] = {}
    tuning: TuningSpec | None = None
    suite: SuiteSpec | None = None
    more_suites: Mapping[str, SuiteSpec] = {}
    lab_choices: Mapping[str, Mapping[str, Any]] = {}
    lab_panels: Sequence[Panel] = ()


class Registered(NamedTuple):
    """A registered id with the problem it belongs to.

    Attributes:
        problem: The problem.
        env_id: Gymnasium's id.
        kwargs: The preset: arguments of the federated environment.
        stack: Wrappers that belong to the id.
    """

    problem: RegisteredProblem
    env_id: str
    kwargs: dict[str, Any]
    stack: Stack

    @property
    def small(self) -> Mapping[str, Any]:
        """Arguments that make a small instance, for tests."""
        preset = self.problem.presets.get(self.env_id, Preset())
        return self.problem.small if preset.small is None else preset.small

    @property
    def federation(self) -> str:
        """Entry point of the federated environment's class."""
        return self.problem.federation

    @property
    def pettingzoo(self) -> str:
        """The id in PettingZoo's registry: ``FedLinearBall-v0`` is ``fedbandit/linear_ball_v0``."""
        name, _, version = self.env_id.removeprefix("Fed").partition("-")
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return f"fedbandit/{words.removeprefix('_')}_{version}"
