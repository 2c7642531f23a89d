"""The Stable-Baselines3 view: a ``VecEnv`` whose rows are the agents of many replicas."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.actions import is_learnable
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.wrapper import layers
from fedbandit_envs.randomness.streams import EpisodeSeeds, next_episodes
from fedbandit_envs.views.control import Observation, Rows, flat, row_of


class FederationVecEnv(VecEnv):
    """A Stable-Baselines3 ``VecEnv`` whose rows are the agents of all replicas; see :func:`.views.to_sb3`.

    Agent j of replica r has the row r * agents + j. All rows reach the horizon together: infos then contain
    ``TimeLimit.truncated`` and ``terminal_observation``, and the next episodes start. ``seed(s)`` gives replica r the
    seed s + r at the next reset; seeds of later episodes are derived from it. Where the action format has masks,
    ``env_method("action_masks")`` returns them for sb3-contrib.

    All rows share one federation: ``get_attr`` and ``env_method`` return its attributes and the results of its methods.

    Attributes:
        federation: The federation, with its wrappers.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.views import to_sb3
        >>> envs = to_sb3(make_federation("FedArms-v0", num_agents=3, num_arms=4), replicas=2)
        >>> envs.num_envs, envs.reset().shape
        (6, (6, 9))
    """

    def __init__(
        self, federation: FederatedEnv, action_format: str | None, replicas: int, features: bool
    ) -> None:
        """Takes a federation in which all agents learn; :func:`fedbandit_envs.views.to_sb3` has the arguments."""
        if not isinstance(federation, FederatedEnv):
            raise TypeError(
                f"env is a {type(federation).__name__}; a FederatedEnv is required, such as make_federation(id)"
            )
        self._replicas = require_integer("replicas", replicas, 1)
        self._learners = Rows(federation, action_format=action_format, features=features)
        if not is_learnable(self._learners.action_space):
            taken = [name for name, other in federation.action_formats.items() if is_learnable(other.space)]
            raise ValueError(
                f"action_format is {action_format!r}, with the space {self._learners.action_space}; one of {taken}, "
                "whose spaces SB3 takes, is required"
            )
        self.federation = federation
        self._agents = federation.max_num_agents
        self._episode_seeds = [EpisodeSeeds() for _ in range(replicas)]
        rows = self._replicas * self._agents
        super().__init__(rows, self._learners.observation_space, self._learners.action_space)

    def reset(self) -> Any:
        """Starts an episode in all replicas.

        Returns:
            The observations, leading axis ``rows``.
        """
        given = self._seeds[:: self._agents]
        self._reset_seeds()
        self._reset_options()
        return self._restart(given)

    def _restart(self, seeds: Sequence[int | None]) -> Any:
        observation, info = self._learners.reset(next_episodes(self._episode_seeds, seeds))
        self.reset_infos = _by_row(info)
        return _copied(observation)

    def step_async(self, actions: Array) -> None:
        """Stores the rows' actions for the next round.

        Args:
            actions: Elements of the action space, leading axis ``rows``.

        Raises:
            ValueError: They have the wrong shape.
        """
        shape = (self.num_envs, *(self.action_space.shape or ()))
        actions = np.asarray(actions)
        if actions.shape != shape:
            raise ValueError(f"actions has shape {actions.shape}; (rows, ...) = {shape} is required")
        self._choice = actions.reshape(self._replicas, self._agents, *shape[1:])

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Plays a round.

        Returns:
            Observations; rewards, float32 ``(rows,)``; whether the episode is over, bool ``(rows,)``; infos, one dict
            for each row. If the episode is over, observations are the first of the next episode.
        """
        shown, rewards, truncated, info = self._learners.step(self._choice)
        observation = _copied(shown)
        reward, done = flat(rewards).astype(np.float32), flat(truncated).copy()
        infos = _by_row({**info, "TimeLimit.truncated": truncated})
        if done[0]:
            for row, info in enumerate(infos):
                info["terminal_observation"] = row_of(observation, row)
            observation = self._restart([None] * self._replicas)
        return observation, reward, done, infos

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seeds of the next reset, ``seed + r`` for replica r; see ``VecEnv.seed``.

        Returns:
            For each row the seed of its replica.
        """
        seeds = list(super().seed(seed))
        self._seeds = [seeds[row // self._agents] for row in range(self.num_envs)]
        return self._seeds

    def action_masks(self) -> Array:
        """Returns which choices are allowed now, bool ``(rows, entries)``.

        Raises:
            AttributeError: The action format has no masks.
        """
        return flat(self._learners.allowed())

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Returns an attribute of the federation, as a list with one entry for each of the given rows."""
        value = getattr(self.federation, attr_name)
        return [value for _ in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Returns whether rows have an attribute; they have ``action_masks`` if the action format has masks."""
        return self._learners.masked if attr_name == "action_masks" else super().has_attr(attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Sets an attribute of the federation.

        Raises:
            ValueError: Only some rows are named.
        """
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ValueError(f"indices is {indices!r}; None is required, since all rows share one federation")
        setattr(self.federation, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method of the federation once and returns its result, in a list with one entry for each given row.

        For ``action_masks`` each row gets its own masks.

        Args:
            method_name: Name of the method.
            *method_args: Positional arguments.
            indices: The rows; None for all.
            **method_kwargs: Keyword arguments.
        """
        rows = list(self._get_indices(indices))
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[row] for row in rows]
        answer = getattr(self.federation, method_name)(*method_args, **method_kwargs)
        return [answer for _ in rows]

    def env_is_wrapped(self, wrapper_class: type, indices: VecEnvIndices = None) -> list[bool]:
        """Returns whether one of the federation's wrappers is a ``wrapper_class``, the same for each of the rows."""
        wrapped = any(isinstance(layer, wrapper_class) for layer in layers(self.federation))
        return [wrapped for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[Array | None]:
        """Renders the first replica."""
        return [self.federation.render()]

    def close(self) -> None:
        """Closes the federation."""
        self.federation.close()


def _copied(observation: Observation) -> Any:
    """Returns copies of observations with the leading axis ``rows``; the federation overwrites the originals."""
    if isinstance(observation, dict):
        shown = {**observation, **concealed(observation)}
        return {name: array.copy() for name, array in flat(shown).items()}
    return flat(observation)


def _by_row(info: Arrays) -> list[dict[str, Any]]:
    columns = [flat(array).tolist() for array in info.values()]
    return [dict(zip(info, values, strict=True)) for values in zip(*columns, strict=True)]
