"""The Gymnasium view of a federation: one episode at a time."""

from typing import Any

import gymnasium

from fedbandit_envs.core.claim import Claim
from fedbandit_envs.randomness.streams import EpisodeSeeds
from fedbandit_envs.views.control import make_control
from fedbandit_envs.views.rows import Observation


class FederationEnv(gymnasium.Env[Observation, Any]):
    """One learning agent among peers, or one controller of all agents, as a ``gymnasium.Env``.

    Observation, reward and info are those of the federation's ``agent_0``; with ``joint=True`` observation and info
    gain a leading agents' axis and the reward is the sum.

    The horizon is ``max_cycles``: there the episode is truncated, and policies and wrappers plan for it. Gymnasium's
    ``max_episode_steps`` only ends episodes earlier; the federation and its privacy claims do not depend on it.

    Example:
        >>> import gymnasium
        >>> env = gymnasium.make("fedbandit_envs:FedArms-v0", num_agents=3, num_arms=4)
        >>> observation, info = env.reset(seed=7)
        >>> observation, reward, terminated, truncated, info = env.step(2)
        >>> observation["total_pulls"], sorted(info)
        (array([0, 0, 1, 0]), ['regret', 'wasted'])
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 - Gymnasium's own form

    def __init__(self, federation: str, **settings: Any) -> None:
        """Builds the federation and its wrappers.

        Args:
            federation: Entry point ``"module:Class"`` of the federation.
            **settings: ``joint``, ``peers``, ``action_format``, ``features``, ``peers_send``, ``max_cycles``, ``stack``
                and ``preset_stack``, see :func:`~fedbandit_envs.views.control.make_control`, and arguments of the
                federation.

        Raises:
            TypeError: The stack is malformed, or a parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._control = make_control(batched=False, federation=federation, **settings)
        self._episode_seeds = EpisodeSeeds()
        self.render_mode = self._control.federation.render_mode
        self.observation_space = self._control.observation_space
        self.action_space = self._control.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; see ``gymnasium.Env.reset``. There are no options."""
        episode = self._episode_seeds.next(seed)
        super().reset(seed=None if seed is None else episode)
        return self._control.reset([episode])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one round; see ``gymnasium.Env.step`` and :meth:`Control.step` for errors."""
        observation, reward, truncated, info = self._control.step(action)
        return observation, float(reward[0]), False, truncated, info

    def privacy(self) -> Claim:
        """Returns the privacy guarantee of this episode's releases; see :meth:`FederatedEnv.privacy`."""
        return self._control.federation.privacy()

    def render(self) -> Any:
        """Renders the federation."""
        return self._control.federation.render()
