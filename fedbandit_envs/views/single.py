"""The Gymnasium view of a federation: one episode at a time."""

from typing import Any

import gymnasium

from fedbandit_envs.core.claim import Claim
from fedbandit_envs.core.stack import Stack, build, checked
from fedbandit_envs.randomness.streams import EpisodeSeeds
from fedbandit_envs.views.control import Control
from fedbandit_envs.views.peers import Peer
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

    def __init__(
        self,
        federation: str,
        joint: bool = False,
        peers: str | Peer | None = None,
        action_format: str | None = None,
        features: bool = False,
        peers_send: Any = None,
        max_cycles: int = 1000,
        stack: Stack = (),
        preset_stack: Stack = (),
        **federation_kwargs: Any,
    ) -> None:
        """Builds the federation and its wrappers.

        Args:
            federation: Entry point ``"module:Class"`` of the federation.
            joint: Control all agents if true, else ``agent_0`` among peers.
            peers: The other agents' policy, or its entry point; registered ids bring their own. Unused when joint.
            action_format: Name of an action format, see the federation's page; None for the environment's own actions.
            features: Show a flat box of features in [-1, 1], see the problem's class of
                :class:`~fedbandit_envs.core.features.Features`, in place of the raw observation.
            peers_send: When peers ask to send whose policy does not choose: a schedule fixed in advance, by name or
                mapping; None for :data:`~fedbandit_envs.views.peers.PEERS_SEND`. Only where agents choose when to send;
                unused when joint.
            max_cycles: The horizon: rounds until truncation.
            stack: Wrappers around the federation from the inside out, pairs of an entry point and keyword arguments:
                who sends to whom, when, and with how much noise.
            preset_stack: Wrappers inside of those, which belong to a registered id.
            **federation_kwargs: Passed to the federation.

        Raises:
            TypeError: The stack is malformed, or a parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        env = build(federation, (*preset_stack, *checked(stack)), max_cycles=max_cycles, **federation_kwargs)
        self._control = Control(
            env,
            batched=False,
            joint=joint,
            peers=peers,
            action_format=action_format,
            features=features,
            peers_send=peers_send,
        )
        self._episode_seeds = EpisodeSeeds()
        self.render_mode = env.render_mode
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
