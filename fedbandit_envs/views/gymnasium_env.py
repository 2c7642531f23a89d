"""The Gymnasium views of a federation: one episode at a time, or many that are stepped at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.randomness.streams import EpisodeSeeds, next_episodes
from fedbandit_envs.views.control import Control, Observation, row_of


def _require_no_options(options: Mapping[str, Any]) -> None:
    """Raises a ValueError if ``reset`` was given an option: nothing would happen."""
    if options:
        raise ValueError(f"options is {options!r}; None is required, since environments have no options")


class FederationEnv(gymnasium.Env[Observation, Any]):
    """One learning agent among peers, or one controller of all agents, as a ``gymnasium.Env``.

    Observation, reward and info are those of the federation's ``agent_0``. With ``joint=True`` observation and info
    have a leading agents' axis, and the reward is the sum over all agents.

    The horizon is ``max_cycles``: the episode is truncated there, and policies and wrappers (such as schedules of
    privacy budgets) are set up for it. Gymnasium's ``max_episode_steps`` only ends episodes earlier; the federation and
    its privacy claims do not depend on it.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("fedbandit_envs:FedArms-v0", num_agents=3, num_arms=4)
        >>> observation, info = env.reset(seed=7)
        >>> observation, reward, terminated, truncated, info = env.step(2)
        >>> observation["total_pulls"], sorted(info)
        (array([0, 0, 1, 0]), ['regret', 'wasted'])
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's own form
    _spec: EnvSpec | None = None

    def __init__(self, federation: str, **settings: Any) -> None:
        """Builds the federation and its wrappers.

        Args:
            federation: Entry point ``"module:Class"`` of the federation.
            **settings: ``joint``, ``peers``, ``action_format``, ``features``, ``peers_send``, ``max_cycles``, ``stack``
                and ``preset_stack``, see :class:`~fedbandit_envs.views.control.Control`, and arguments of the
                federation.

        Raises:
            TypeError: The stack is malformed, or a parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._control = Control(False, federation, **settings)
        self._episode_seeds = EpisodeSeeds()
        self.render_mode = self._control.federation.render_mode
        self.observation_space = self._control.observation_space
        self.action_space = self._control.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see ``gymnasium.Env.reset``. There are no options; one raises a ``ValueError``."""
        _require_no_options(options or {})
        episode = self._episode_seeds.next(seed)
        super().reset(seed=None if seed is None else episode)
        return self._control.reset([episode])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one round; see ``gymnasium.Env.step`` and :meth:`Control.step` for errors."""
        observation, reward, truncated, info = self._control.step(action)
        return observation, float(reward[0]), False, truncated, info

    @property
    def spec(self) -> EnvSpec | None:
        """The specification that ``gymnasium.make`` used; its ``max_episode_steps`` is the horizon."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        # gymnasium.make leaves the number out here; its own limit of steps is in the specification of TimeLimit.
        self._spec = spec and replace(spec, max_episode_steps=self._control.federation.max_cycles)

    def privacy(self) -> Claim:
        """Returns the privacy guarantee of this episode's releases; see :meth:`FederatedEnv.privacy`."""
        return self._control.federation.privacy()

    def render(self) -> Any:
        """Renders the federation."""
        return self._control.federation.render()


class FederationVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Array]):
    """Independent copies of :class:`~fedbandit_envs.views.gymnasium_env.FederationEnv`, stepped together.

    Trajectories equal those of a ``SyncVectorEnv`` of single environments under the same seeds. All copies have the
    same horizon, so that they truncate together and must be reset together: in ``options={"reset_mask": mask}`` the
    mask must be true everywhere, as the mask of finished episodes always is. All of Gymnasium's autoreset modes are
    supported.

    Attributes:
        autoreset_mode: What happens at the end of an episode.

    Example:
        >>> import gymnasium
        >>> envs = gymnasium.make_vec(
        ...     "fedbandit_envs:FedArms-v0", num_envs=5, vectorization_mode="vector_entry_point", num_arms=4
        ... )
        >>> observations, infos = envs.reset(seed=7)
        >>> observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> observations["total_pulls"].shape, rewards.shape
        ((5, 4), (5,))
    """

    def __init__(
        self,
        num_envs: int,
        federation: str,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **single: Any,
    ) -> None:
        """Builds the federation and its wrappers.

        Args:
            num_envs: Number of copies.
            federation: Entry point ``"module:Class"`` of the federation.
            max_episode_steps: Number of rounds after which episodes end even before the horizon, as with Gymnasium's
                ``TimeLimit``; None for no such limit.
            autoreset_mode: ``NEXT_STEP``, ``SAME_STEP`` or ``DISABLED``, or their values as strings.
            **single: Arguments of a single environment, see :class:`~fedbandit_envs.views.gymnasium_env.FederationEnv`:
                ``joint``, ``peers``, ``action_format``, ``features``, ``stack`` and the federation's.

        Raises:
            ValueError: ``num_envs`` is below 1, the mode is unknown, or a parameter is out of its range.
            TypeError: The stack is malformed, or a parameter has the wrong type.
        """
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.num_envs = require_integer("num_envs", num_envs, 1)
        if max_episode_steps is not None:
            require_integer("max_episode_steps", max_episode_steps, 1)
        self._control = Control(True, federation, **single)
        self._episode_seeds = [EpisodeSeeds() for _ in range(num_envs)]
        self._most_steps = max_episode_steps
        self._steps = 0
        self._over = False
        self._nobody = np.zeros(num_envs, np.bool_)
        self.metadata = {**FederationEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = self._control.federation.render_mode
        self.single_observation_space = self._control.observation_space
        self.single_action_space = self._control.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts all episodes; see ``gymnasium.vector.VectorEnv.reset``.

        Args:
            seed: None; an integer s, which gives copy i the seed s + i; or a sequence with one seed for each copy.
            options: Only ``reset_mask`` is allowed, bool ``(num_envs,)``, true everywhere.

        Raises:
            TypeError: A seed is no integer.
            ValueError: There are more or fewer seeds than ``num_envs``, the mask leaves copies out, or another option
                is given.
        """
        _require_no_options({name: value for name, value in (options or {}).items() if name != "reset_mask"})
        mask = (options or {}).get("reset_mask", True)
        if not np.all(mask):
            raise ValueError(
                f"options['reset_mask'] is {mask}; True everywhere is required, since all copies share the horizon and "
                "are reset together; or vectorization_mode='sync'"
            )
        if isinstance(seed, Sequence | np.ndarray):
            seeds = list(seed)
        elif seed is None:
            seeds = [None] * self.num_envs
        else:
            require_integer("seed", seed, 0)
            super().reset(seed=int(seed))
            seeds = list(range(int(seed), int(seed) + self.num_envs))
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed has length {len(seeds)}; num_envs = {self.num_envs} is required")
        return self._restart(seeds)

    def _restart(self, seeds: Sequence[int | None]) -> tuple[Any, dict[str, Any]]:
        observation, info = self._control.reset(next_episodes(self._episode_seeds, seeds))
        self._over = False
        self._steps = 0
        return observation, self._masked(info)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Plays one round in all copies; see ``gymnasium.vector.VectorEnv.step``.

        Raises:
            gymnasium.error.ResetNeeded: ``reset`` has not been called, or the episodes are over and the autoreset mode
                is ``DISABLED``.
        """
        nobody = self._nobody
        if self._over and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded("the episodes are over and autoreset_mode is DISABLED; call reset first")
        if self._over:
            observation, infos = self._restart([None] * self.num_envs)
            return observation, np.zeros(self.num_envs), nobody.copy(), nobody.copy(), infos
        observation, reward, over, info = self._control.step(actions)
        infos = self._masked(info)
        self._steps += 1
        self._over = over = over or self._steps == self._most_steps
        if over and self.autoreset_mode is AutoresetMode.SAME_STEP:
            final_obs = np.empty(self.num_envs, object)
            for i in range(self.num_envs):
                final_obs[i] = row_of(observation, i)
            final = {"final_obs": final_obs, "final_info": infos}
            observation, infos = self._restart([None] * self.num_envs)
            infos |= final | {f"_{name}": ~nobody for name in final}
        return observation, reward.copy(), nobody.copy(), nobody | over, infos

    def _masked(self, info: Arrays) -> dict[str, Any]:
        """Returns infos with Gymnasium's masks ``_{name}``, which are true for copies that have the entry: here all."""
        return info | {f"_{name}": ~self._nobody for name in info}

    def privacy(self) -> Claim:
        """Returns the privacy guarantee of the running episodes' releases, for the agent with the largest loss."""
        return self._control.federation.privacy()

    def render(self) -> Any:
        """Renders every copy's federation."""
        if self.render_mode is None:
            return None
        return tuple(self._control.federation.render(copy) for copy in range(self.num_envs))
