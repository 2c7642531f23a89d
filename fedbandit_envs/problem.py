"""What every bandit problem does alike: episodes, rounds, checks, the statistic that is released, pictures.

A problem says how an instance is drawn, how a round is played, what is released, how neighbours show in it, and what is
hidden from the agents.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.action_check import ActionCheck
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.checks import require_choice, require_integer, require_seeds
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.door import Door
from fedbandit_envs.draws import MOST_ROUNDS
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.luck import Luck
from fedbandit_envs.neighbours import Neighbours
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.spaces import ActionFormat, Features

MOST = 2**53
"""Bound of spaces of counts: up to here float64 has every integer."""

Viewer = Callable[[Arrays], Any]
"""Draws a scene: one replica's observation, information and what is hidden; arrays lead with the agents' axis."""


class Problem(FederatedEnv):
    """A bandit problem that a federation faces.

    Subclasses name themselves (``class ArmsEnv(Problem, name="arms_v0")``), build their spaces, hand them to
    ``super().__init__`` and implement :meth:`_begin`, :meth:`_play`, :meth:`_sensitivity` and :meth:`_hidden`.

    Observations are what the space says, plus ``round``, int64 ``(1,)``, the rounds played so far. For each statistic
    that is released they hold ``total_{name}``, its sum over all rounds so far; what leaves is what that has grown by.

    The buffers that subclasses fill, all with the leading axes ``(replicas, agents)``: ``_seen``, the observation by
    name; ``_reward``; ``_info`` by name, ``regret`` among it. They start at zero. ``_acting``, bool ``(replicas,
    agents)``, says who acts in the round at hand; what is the others' is to be 0, but for what they know and hold.

    Attributes:
        statistics: Names of what is released.
        information: Dtypes of the information besides ``regret``, by name.
        open_above: Whether quantities above the action space's are let through, to be dealt with and counted.
        viewers: What draws a scene, by render mode.
        features: What a network is shown of an agent's history; None where nobody has said.
        instance_seed: None draws an instance anew each episode, from its seed; an integer fixes it; of several, an
            episode takes the one at its own seed modulo their number.
    """

    statistics: ClassVar[tuple[str, ...]]
    information: ClassVar[Mapping[str, npt.DTypeLike]] = {}
    open_above: ClassVar[bool] = False
    viewers: ClassVar[Mapping[str, Viewer]] = {}
    features: ClassVar[type[Features] | None] = None

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
        observation: Mapping[str, spaces.Space[Any]],
        action: spaces.Space[Any],
        hidden: Mapping[str, spaces.Space[Any]],
        action_formats: Mapping[str, ActionFormat],
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; instances are drawn at reset.

        Args:
            num_agents: Number of agents.
            max_cycles: The horizon: rounds until truncation.
            observation: What an agent sees besides ``round``, by name.
            action: One agent's actions: ``Discrete``, ``MultiDiscrete`` or ``Box``.
            hidden: What agents do not know, by name.
            action_formats: Ways to say actions, by name, the environment's own first.
            instance_seed: See :class:`Problem`.
            render_mode: None or one of :attr:`viewers`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__()
        require_integer("num_agents", num_agents, 1)
        require_integer("max_cycles", max_cycles, 1, MOST_ROUNDS)
        require_seeds("instance_seed", instance_seed)
        require_choice("render_mode", render_mode, (None, *self.viewers))
        self.possible_agents = [f"agent_{j}" for j in range(num_agents)]
        self.max_cycles = max_cycles
        self.instance_seed = instance_seed
        self.render_mode = render_mode
        self.action_formats = action_formats
        self.single_action_space = action
        self.single_observation_space = spaces.Dict(
            {"round": spaces.Box(0, MOST, (1,), np.int64), **observation}
        )
        self.single_release_space = spaces.Dict(
            {name: self.single_observation_space[f"total_{name}"] for name in self.statistics}
        )
        self._hidden_space = spaces.Dict(dict(hidden))
        self._check = ActionCheck(action, self.possible_agents, self.open_above)
        self._door = Door()
        self._round: int | None = None
        self._summoned: Array | None = None

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Draws the instances and starts one episode a seed; see :meth:`FederatedEnv.reset_batch`."""
        seeds = [int(seed) for seed in seeds]
        if not seeds or min(seeds) < 0:
            raise ValueError(f"seeds is {seeds}; integers >= 0, one a replica, are required")
        rows = (len(seeds), self.max_num_agents)
        self._seen: Arrays = {
            name: np.zeros((*rows, *(space.shape or ())), space.dtype)
            for name, space in self.single_observation_space.items()
        }
        self._info: Arrays = {
            name: np.zeros(rows, dtype) for name, dtype in {"regret": np.float64, **self.information}.items()
        }
        self._reward = np.zeros(rows)
        self._released = {name: self._seen[f"total_{name}"].copy() for name in self.statistics}
        self._luck = Luck(seeds, rows[1], own=self._summoned is not None)
        self._acting = np.ones(rows, np.bool_)
        self._begin(self._luck, [self._instance(seed) for seed in seeds])
        self._next_round()
        # What others get to see of all this.
        self._observation, self._information = Buffers(self._seen), Buffers(self._info)
        self._result = Buffers(
            {"reward": self._reward, "going_on": np.zeros(rows, np.bool_), "over": np.ones(rows, np.bool_)}
        )
        self._round = 0
        self._door.begin(rows, next(iter(self.sensitivity().changes)))
        return BatchReset(dict(self._observation.views), dict(self._information.views))

    def _instance(self, seed: int) -> int:
        if self.instance_seed is None:
            return seed
        if isinstance(self.instance_seed, Sequence):
            return int(self.instance_seed[seed % len(self.instance_seed)])
        return int(self.instance_seed)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        if self._round is None or self._round >= self.max_cycles:
            raise ResetNeeded(f"no episode is running (max_cycles is {self.max_cycles}); call reset first")
        self._play(self._check(action, len(self._reward)))
        self._luck.advance(self._acting)
        self._round += 1
        self._seen["round"].fill(self._round)
        self._next_round()
        result = self._result.views
        return BatchStep(
            dict(self._observation.views),
            result["reward"],
            result["over" if self._round >= self.max_cycles else "going_on"],
            dict(self._information.views),
        )

    def summon(self, acting: Array) -> None:
        """Says who acts in the coming round; see :meth:`FederatedEnv.summon`."""
        self._summoned = np.array(acting, np.bool_)

    def _next_round(self) -> None:
        if self._summoned is not None:
            self._acting[...], self._summoned = self._summoned, None
        self._meet()

    def _release(self, sends: Array) -> Arrays:
        everyone = bool(sends.all())
        grown = {}
        for name, released in self._released.items():
            total = self._seen[f"total_{name}"]
            grown[name] = total - released
            if everyone:
                released[...] = total
            else:
                who = sends.reshape(sends.shape + (1,) * (total.ndim - 2))
                grown[name] = np.where(who, grown[name], total.dtype.type(0))
                np.copyto(released, total, where=who)
        return grown

    def sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`."""
        if self._round is None:
            raise ResetNeeded("sensitivity() was called before reset()")
        return self._sensitivity()

    def hidden(self) -> Arrays:
        """Returns what the agents do not know; see :meth:`FederatedEnv.hidden`."""
        if self._round is None:
            raise ResetNeeded("hidden() was called before reset()")
        return self._hidden()

    def largest_reward(self) -> Array | None:
        """Says how large rewards can be; see :meth:`FederatedEnv.largest_reward`."""
        if self._round is None:
            raise ResetNeeded("largest_reward() was called before reset()")
        return self._largest_reward()

    @property
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""
        return self._hidden_space

    @classmethod
    def neighbours(cls, adjacency: Adjacency) -> list[Neighbours]:
        """Returns the worst neighbouring histories to tell apart, for audits; none where none are known.

        Args:
            adjacency: What they differ in.
        """
        return []

    def render(self, replica: int = 0) -> Any:
        """Draws a replica in the mode chosen at construction; nothing without a mode.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called.
        """
        if self.render_mode is None:
            return None
        if self._round is None:
            raise ResetNeeded("render() was called before reset()")
        arrays = {**self._seen, **self._info, **self._scenery()}
        return self.viewers[self.render_mode]({name: array[replica] for name, array in arrays.items()})

    def _scenery(self) -> Arrays:
        """Returns what viewers are shown besides observation and information."""
        return self.hidden()

    @abstractmethod
    def _begin(self, luck: Luck, instance_seeds: Sequence[int]) -> None:
        """Draws instances and fills what is seen from the first.

        Args:
            luck: Of what happens in the episode.
            instance_seeds: One a replica, of the instance that is played.
        """

    def _meet(self) -> None:
        """Draws what those who act meet in the round to come; nothing, where they meet the same in all rounds."""

    @abstractmethod
    def _play(self, action: Array) -> None:
        """Plays one round: fills ``_seen`` (all but ``round``), ``_reward`` and ``_info``.

        Args:
            action: One action an agent, checked: int32, int64 or float64, contiguous.
        """

    def _largest_reward(self) -> Array | None:
        """Says how large rewards can be; None where a problem does not say. See :meth:`FederatedEnv.largest_reward`."""
        return None

    @abstractmethod
    def _sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`."""

    @abstractmethod
    def _hidden(self) -> Arrays:
        """Returns what the agents do not know, by name, arrays that are nobody's buffers."""
