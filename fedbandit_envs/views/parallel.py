"""PettingZoo's faces of a federation for learning agents: in parallel, and one agent after another (AEC)."""

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from fedbandit_envs.claim import Claim
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.stacking import ByAgent, stacked
from fedbandit_envs.streams import EpisodeSeeds
from fedbandit_envs.views.rows import Observation, Rows


class ParallelView(ParallelEnv[str, Any, Any]):
    """A federation whose agents are shown features, or say what they do in an action format of their choice.

    The federation's own keyed face in all else: dicts by agent, one episode at a time.

    Attributes:
        federation: The environment, with its wrappers.
    """

    def __init__(
        self, federation: FederatedEnv, action_format: str | None = None, features: bool = False
    ) -> None:
        """Chooses what agents are shown and how they say what they do.

        Args:
            federation: The environment, with its wrappers.
            action_format: See :class:`~fedbandit_envs.views.rows.Rows`.
            features: See there.

        Raises:
            TypeError: ``features`` is no bool.
            ValueError: ``action_format`` is unknown, or the problem has no features.
        """
        self._rows = Rows(federation, action_format=action_format, features=features)
        self._episode_seeds = EpisodeSeeds()
        self._by_agent = ByAgent()
        self.federation = federation
        self.metadata = federation.metadata
        self.render_mode = federation.render_mode
        self.possible_agents = self._rows.agents

    def observation_space(self, agent: str) -> Any:
        """Returns the observation space of ``agent``, the same object at each call."""
        return self._rows.observation_space

    def action_space(self, agent: str) -> Any:
        """Returns the action space of ``agent``, the same object at each call."""
        return self._rows.action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts an episode; see :meth:`FederatedEnv.reset`."""
        observation, info = self._rows.reset([self._episode_seeds.next(seed)])
        self.agents = list(self.possible_agents)
        return self._observations(observation), ByAgent.infos(info, self.possible_agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays one round; see :meth:`FederatedEnv.step` and :meth:`Rows.step` for errors."""
        if not hasattr(self, "agents"):
            raise ResetNeeded("step() was called before reset()")
        if not self.agents:
            return {}, {}, {}, {}, {}
        names = self.possible_agents
        observation, reward, truncated, info = self._rows.step(
            stacked(actions, self._rows.action_space, names)
        )
        if truncated.all():
            self.agents = []
        return (
            self._observations(observation),
            dict(zip(names, reward[0].tolist(), strict=True)),
            dict.fromkeys(names, False),
            dict(zip(names, truncated[0].tolist(), strict=True)),
            ByAgent.infos(info, names),
        )

    def _observations(self, observation: Observation) -> dict[str, Any]:
        names = self.possible_agents
        if isinstance(observation, dict):
            return self._by_agent.observations(observation, names)
        return dict(zip(names, map(np.ndarray.copy, observation[0]), strict=True))

    def privacy(self) -> Claim:
        """Claims what privacy the releases of this episode had; see :meth:`FederatedEnv.privacy`."""
        return self.federation.privacy()

    def render(self) -> Any:
        """Draws the federation."""
        return self.federation.render()


def parallel(federation: FederatedEnv, action_format: str | None = None, features: bool = False) -> Any:
    """Returns the federation's own keyed face, or a :class:`ParallelView` where something else is asked for."""
    if action_format is None and features is False:
        return federation
    return ParallelView(federation, action_format, features)


def in_turn(federation: "ParallelEnv[str, Any, Any]") -> "AECEnv[str, Any, Any]":
    """Lets agents act one after another; the round is played after all, and the order of calls watched over."""
    return OrderEnforcingWrapper(parallel_to_aec_wrapper(federation))


class Faces:
    """PettingZoo's three ways to make a federation of one kind."""

    def __init__(self, federation: type[FederatedEnv]) -> None:
        """Takes the federation's class."""
        self._federation = federation

    def parallel_env(self, action_format: str | None = None, features: bool = False, **kwargs: Any) -> Any:
        """Makes the federation; with an action format or features a :class:`ParallelView` of it.

        Args:
            action_format: One of the federation's ``action_formats``; None for the environment's own actions.
            features: Show features, a flat box in [-1, 1], in place of raw observations.
            **kwargs: Of the federation's class.

        Raises:
            TypeError: A parameter is unknown or has the wrong type.
            ValueError: A parameter is out of its range.
        """
        return parallel(self._federation(**kwargs), action_format, features)

    def raw_env(self, **kwargs: Any) -> "AECEnv[str, Any, Any]":
        """Makes what :meth:`parallel_env` makes; agents act one after another, and the round is played after all."""
        return parallel_to_aec_wrapper(self.parallel_env(**kwargs))

    def env(self, **kwargs: Any) -> "AECEnv[str, Any, Any]":
        """Makes what :meth:`raw_env` makes, and watches over the order of calls."""
        return in_turn(self.parallel_env(**kwargs))
