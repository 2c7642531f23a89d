"""The base class of bandit problems: seeds, rounds, checks of actions, releases of statistics, rendering.

Subclasses define how an instance is drawn, how a round is played, the sensitivity of a release and the parameters that
agents do not know.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.basics.arrays import Array, Arrays, Buffers, spread, zeros
from fedbandit_envs.basics.checks import require_choice, require_integer, require_seeds
from fedbandit_envs.core.actions import ActionCheck
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.core.policy_spec import ActionFormat, Features
from fedbandit_envs.core.privacy import Adjacency, Neighbours, Sensitivity
from fedbandit_envs.core.rendering import Viewer
from fedbandit_envs.randomness.draws import MOST_ROUNDS, EpisodeRandomness

MOST = 2**53
"""Upper bound of spaces of counts: float64 represents every integer up to it."""


class Problem(FederatedEnv):
    """The base class of environments in which each agent of a federation faces a bandit problem.

    Subclasses name themselves (``class ArmsEnv(Problem, name="arms_v0")``), build their spaces, hand them to
    ``super().__init__`` and implement :meth:`_start`, :meth:`_play_round`, :meth:`_sensitivity` and :meth:`_hidden`.

    Observations consist of the arrays of the space given to the constructor and of ``round``, int64 ``(1,)``, the
    rounds played so far. For each statistic that is released they contain ``total_{name}``, its sum over all rounds so
    far; a release contains the growth of that sum since the agent's last release.

    Subclasses fill buffers with the leading axes ``(replicas, agents)``: ``_observation``, by name; ``_reward``;
    ``_info`` by name, which includes ``regret``. They start at zero. ``_active``, bool ``(replicas, agents)``, is true
    for agents that act in the current round; the rewards, info and outcomes of others must be 0.

    Attributes:
        statistics: Names of the statistics that are released.
        learned: Names of the other entries of an observation that follow from outcomes, as of the last round.
        information: Dtypes of the entries of the info besides ``regret``, by name.
        open_above: Whether actions above the action space's bounds are accepted, because the problem handles them.
        viewers: Functions that render, by render mode.
        features: Class that computes features of an agent's history for neural networks; None without one.
        interacting: Whether what an agent does changes what others experience; if not, agents learn of each other by
            releases alone. If so, no privacy is claimed, whatever is released.
        stateful: Whether what an agent does changes its later rounds, as where arms wear out. If so, one event may
            change all later releases, and claims are those under the adjacency ``agent``.
        added_arguments: Arguments of the constructor that were added after the problem was first published, with the
            values at which it is as it was before. With these values they do not make a leaderboard's task another one.
        approximate_oracle: Whether regret is measured against an oracle that actions may beat, and may be negative.
        instance_seed: None draws a new instance in each episode, from the episode's seed; an integer fixes it; from a
            sequence of n integers, an episode with seed s takes entry s mod n.
    """

    statistics: ClassVar[tuple[str, ...]]
    learned: ClassVar[tuple[str, ...]] = ()
    information: ClassVar[Mapping[str, npt.DTypeLike]] = {}
    open_above: ClassVar[bool] = False
    viewers: ClassVar[Mapping[str, Viewer]] = {}
    features: ClassVar[type[Features] | None] = None
    interacting: ClassVar[bool] = False
    stateful: ClassVar[bool] = False
    added_arguments: ClassVar[Mapping[str, Any]] = {}
    approximate_oracle: bool = False
    hidden_space: spaces.Dict = spaces.Dict()

    metadata: dict[str, Any] = {"name": "problem"}  # noqa: RUF012 - PettingZoo's own form
    _height = 0

    def __init_subclass__(cls, *, name: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.metadata = {
            "name": name or cls.metadata["name"],
            "render_modes": list(cls.viewers),
            "render_fps": 4,
            "is_parallelizable": True,
        }

    def __init__(
        self,
        *,
        num_agents: int,
        max_cycles: int,
        observation: Mapping[str, spaces.Space],
        hidden: Mapping[str, spaces.Space],
        action_formats: Mapping[str, ActionFormat],
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; instances are drawn at reset.

        Args:
            num_agents: Number of agents.
            max_cycles: The horizon: rounds until truncation.
            observation: Spaces of the entries of one agent's observation besides ``round``, by name.
            hidden: Spaces of one agent's unknown parameters, by name.
            action_formats: Action formats by name, the environment's own first: its space, a ``Discrete``,
                ``MultiDiscrete`` or ``Box``, is that of one agent's actions.
            instance_seed: Seed of the instance, see the attribute of :class:`Problem`.
            render_mode: None or one of :attr:`viewers`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__()
        require_integer("num_agents", num_agents, 1)
        self.max_cycles = require_integer("max_cycles", max_cycles, 1, MOST_ROUNDS)
        require_seeds("instance_seed", instance_seed)
        require_choice("render_mode", render_mode, (None, *self.viewers))
        self.possible_agents = [f"agent_{j}" for j in range(num_agents)]
        self.instance_seed = instance_seed
        self.render_mode = render_mode
        self.action_formats = action_formats
        self.single_action_space = next(iter(action_formats.values())).space
        self.single_observation_space = spaces.Dict(
            {"round": spaces.Box(0, MOST, (1,), np.int64), **observation}
        )
        self.single_release_space = spaces.Dict(
            {name: self.single_observation_space[f"total_{name}"] for name in self.statistics}
        )
        self.hidden_space = spaces.Dict(dict(hidden))
        self._check = ActionCheck(self.single_action_space, self.possible_agents, self.open_above)
        self._ledger = ReleaseLedger()
        self._round: int | None = None
        self._next_active: Array | None = None

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Draws the instances and starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        given, seeds = [*seeds], [int(seed) for seed in seeds]
        if not seeds or min(seeds) < 0 or seeds != given:
            raise ValueError(f"seeds is {given}; integers >= 0, one a replica, are required")
        rows = (len(seeds), self.max_num_agents)
        self._observation = self._blank(rows)
        kinds = {"regret": np.float64, **self.information}
        self._info: Arrays = {name: np.zeros(rows, kind) for name, kind in kinds.items()}
        self._reward = np.zeros(rows)
        self._released = {name: self._observation[f"total_{name}"].copy() for name in self.statistics}
        self._randomness = EpisodeRandomness(seeds, rows[1], own=self._next_active is not None)
        self._active = np.ones(rows, np.bool_)
        self._start(self._randomness, [self._instance(seed) for seed in seeds])
        self._next_round()
        # Callers get read-only views, so that they cannot change the environment's state.
        self._observation_views, self._info_views = Buffers(self._observation), Buffers(self._info)
        self._result = Buffers(
            {"reward": self._reward, "going_on": np.zeros(rows, np.bool_), "over": np.ones(rows, np.bool_)}
        )
        self._round = 0
        self._ledger.interacting |= self.interacting
        self._ledger.begin(rows, next(iter(self.sensitivity().changes)))
        return BatchReset(dict(self._observation_views.views), dict(self._info_views.views))

    def alone(self) -> Arrays:
        """Starts one agent's part of an episode whose outcomes come from outside, as at a silo.

        After this, :meth:`show` and :meth:`take_in` play the agent's rounds, and :meth:`sensitivity` is that of its
        releases, which a ``_release`` returns as in a simulation; nothing is drawn.

        Returns:
            The agent's observation: read-only arrays by name, ``(1, 1, ...)``, which show later rounds as well.

        Raises:
            NotImplementedError: The problem cannot be played without its simulation.
        """
        if type(self)._learn is Problem._learn:
            raise NotImplementedError(
                f"{self.metadata['name']} has no rule for outcomes from outside (_learn)"
            )
        self._observation, self._active, self._round = self._blank((1, 1)), np.ones((1, 1), np.bool_), 0
        self._released = {name: self._observation[f"total_{name}"].copy() for name in self.statistics}
        self._ledger.begin((1, 1), next(iter(self.sensitivity().changes)))
        self._alone = ActionCheck(self.single_action_space, ["this agent"], self.open_above)
        return dict(Buffers(self._observation).views)

    def show(self, given: Mapping[str, Any]) -> None:
        """Shows the agent what it is given before it acts, such as contexts; after :meth:`alone`.

        Args:
            given: Values by name, for all entries of the observation that do not follow from outcomes.

        Raises:
            ValueError: Names are missing or unknown; or a value has the wrong shape, or is not finite or out of the
                bounds of the observation space, on which claims of privacy rest. The state does not change.
        """
        learned = ("round", *self.learned, *(f"total_{name}" for name in self.statistics))
        names = [name for name in self.single_observation_space if name not in learned]
        if sorted(given) != sorted(names):
            raise ValueError(f"observation has {sorted(given)}; {sorted(names)} are required")
        shown = {}
        for name in names:
            array, space = np.asarray(given[name]), self.single_observation_space[name]
            # Booleans and integers that are written as other numbers must stay what they are.
            fits = array.dtype.kind in "biuf" and np.isfinite(array).all()
            if not (fits and space.contains(own := array.astype(space.dtype)) and np.array_equal(array, own)):
                raise ValueError(f"observation {name!r} is {array!r}; {space}, finite, is required")
            shown[name] = array
        self._require_shown(shown)
        for name, array in shown.items():
            self._observation[name][0, 0] = array

    def take_in(self, action: Any, outcome: Any) -> None:
        """Adds one observation of the agent to its statistics, and counts the round; after :meth:`alone`.

        Args:
            action: The action that was taken, an element of the action space.
            outcome: What came of it; the problem's ``_learn`` says in which form.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument has the wrong shape, or is not possible. The state does not change.
        """
        self._learn(self._alone(np.asarray(action)[np.newaxis, np.newaxis], 1), outcome)
        self._observation["round"] += 1

    def _blank(self, rows: tuple[int, int]) -> Arrays:
        """Returns the arrays of an observation, all zero."""
        return zeros(self.single_observation_space, rows)

    def _require_shown(self, shown: Arrays) -> None:
        """Raises a ``ValueError`` if :meth:`show` is given what the sensitivity does not allow for."""

    def _learn(self, action: Array, outcome: Any) -> None:
        """Writes the outcome of one agent's action to ``_observation``, but for ``round``; see :meth:`take_in`.

        Args:
            action: The checked action, ``(1, 1, ...)``.
            outcome: What came of it. It is checked before anything changes.
        """
        raise NotImplementedError

    def _instance(self, seed: int) -> int:
        if isinstance(self.instance_seed, Sequence):
            return int(self.instance_seed[seed % len(self.instance_seed)])
        return seed if self.instance_seed is None else int(self.instance_seed)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        if self._round is None or self._round >= self.max_cycles:
            raise ResetNeeded(f"no episode is running (max_cycles is {self.max_cycles}); call reset first")
        self._play_round(self._check(action, len(self._reward)))
        self._randomness.advance(self._active)
        self._round += 1
        self._observation["round"].fill(self._round)
        self._next_round()
        result = self._result.views
        return BatchStep(
            dict(self._observation_views.views),
            result["reward"],
            result["over" if self._round >= self.max_cycles else "going_on"],
            dict(self._info_views.views),
        )

    def set_active(self, active: Array) -> None:
        """Sets which agents act in the next round; see :meth:`FederatedEnv.set_active`."""
        active = np.array(active, np.bool_)
        if active.shape[-1:] != (self.max_num_agents,):
            raise ValueError(
                f"active has shape {active.shape}; (replicas, agents) with {self.max_num_agents} agents is required"
            )
        self._next_active = active

    def admit(self, agents: Array) -> None:
        """Lets further agents act from the coming round on; see :meth:`FederatedEnv.admit`."""
        self._require_episode("admit")
        before = self._active.copy()
        # Only what the new agents see of the coming round is drawn, such as contexts.
        self._active[...] = agents & ~before
        self._draw_round()
        self._active |= before

    def _next_round(self) -> None:
        if self._next_active is not None:
            self._active[...], self._next_active = self._next_active, None
        self._draw_round()

    def _release(self, sends: Array) -> Arrays:
        everyone = np.count_nonzero(sends) == sends.size
        grown = {}
        for name, released in self._released.items():
            total = self._observation[f"total_{name}"]
            grown[name] = total - released
            if everyone:
                released[...] = total
            else:
                who = spread(sends, total)
                grown[name] = np.where(who, grown[name], total.dtype.type(0))
                np.copyto(released, total, where=who)
        return grown

    def sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of a release; see :meth:`FederatedEnv.sensitivity`."""
        self._require_episode("sensitivity")
        return self._sensitivity()

    def hidden(self) -> Arrays:
        """Returns the parameters that agents do not know; see :meth:`FederatedEnv.hidden`."""
        self._require_episode("hidden")
        return self._hidden()

    def largest_reward(self) -> Array | None:
        """Returns the largest absolute value of a reward; see :meth:`FederatedEnv.largest_reward`."""
        self._require_episode("largest_reward")
        return self._largest_reward()

    def _require_episode(self, method: str) -> None:
        if self._round is None:
            raise ResetNeeded(f"{method}() was called before reset()")

    @staticmethod
    def neighbours(adjacency: Adjacency) -> list[Neighbours]:
        """Returns the pairs of neighbouring histories that differ most, for audits; none where none are known.

        Args:
            adjacency: How the two histories of a pair differ.
        """
        return []

    def clairvoyant(self, observation: Arrays) -> Array | None:
        """Returns actions without regret, chosen with what agents do not know; None where none are known.

        Args:
            observation: What agents see now.
        """
        return None

    def render(self, replica: int = 0) -> Any:
        """Renders a replica in the render mode chosen at construction; returns None without one.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if self.render_mode is None:
            return None
        self._require_episode("render")
        arrays = {**self._observation, **self._info, **self._scenery()}
        return self.viewers[self.render_mode]({name: array[replica] for name, array in arrays.items()})

    def _scenery(self) -> Arrays:
        """Returns the arrays by name that viewers get besides observation and info: here the hidden parameters."""
        return self.hidden()

    @abstractmethod
    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        """Draws instances and fills the parts of the observation that are known from the start.

        Args:
            randomness: Random numbers of the episode's rounds.
            instance_seeds: Seed of each replica's instance.
        """

    def _draw_round(self) -> None:
        """Draws the next round's part of the instance, such as contexts; does nothing where all rounds are the same."""

    @abstractmethod
    def _play_round(self, action: Array) -> None:
        """Plays one round: fills ``_observation`` (all but ``round``), ``_reward`` and ``_info``.

        Args:
            action: One action an agent, checked: int32, int64 or float64, contiguous.
        """

    def _largest_reward(self) -> Array | None:
        """Returns the largest absolute value of a reward, or None; see :meth:`FederatedEnv.largest_reward`."""
        return None

    @abstractmethod
    def _sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of a release; see :meth:`FederatedEnv.sensitivity`."""

    @abstractmethod
    def _hidden(self) -> Arrays:
        """Returns new arrays of the parameters that agents do not know, by name."""
