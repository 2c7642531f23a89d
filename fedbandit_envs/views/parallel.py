"""PettingZoo views of a federation for learning agents: all agents act at once (parallel), or in turn (AEC)."""

from collections.abc import Callable, Sequence
from typing import Any

from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils.conversions import parallel_to_aec_wrapper
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv, PettingZooApi
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.views.control import Observation, Rows


class ParallelView(PettingZooApi):
    """A PettingZoo environment in which agents get features, or act in another action format than the federation's own.

    Otherwise it behaves as the federation itself: dicts keyed by agent, one replica.

    Attributes:
        federation: The environment, with its wrappers.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> env = arms_v0.parallel_env(action_format="values", features=True, num_agents=2, num_arms=3)
        >>> observations, infos = env.reset(seed=7)
        >>> observations["agent_0"].shape, env.action_space("agent_0").shape
        ((7,), (3,))
    """

    def __init__(
        self, federation: FederatedEnv, action_format: str | None = None, features: bool = False
    ) -> None:
        """Chooses the agents' observations and action format.

        Args:
            federation: The environment, with its wrappers.
            action_format: One of the federation's ``action_formats``; None for the environment's own actions.
            features: Whether agents get features, a flat box in [-1, 1], instead of raw observations.

        Raises:
            TypeError: ``features`` is no bool.
            ValueError: ``action_format`` is unknown, or the problem has no features.
        """
        super().__init__()
        self._learners = Rows(federation, action_format=action_format, features=features)
        self.single_observation_space = self._learners.observation_space
        self.single_action_space = self._learners.action_space
        self.federation = federation
        self.metadata, self.render_mode = federation.metadata, federation.render_mode
        self.possible_agents = self._learners.agents

    def reset_batch(self, seeds: Sequence[int]) -> tuple[Observation, Arrays]:
        """Starts one episode for each seed; see :meth:`.Rows.reset`."""
        return self._learners.reset(seeds)

    def step_batch(self, action: Any) -> tuple[Observation, Array, Array, Arrays]:
        """Plays one round; see :meth:`.Rows.step`."""
        return self._learners.step(action)

    def privacy(self) -> Claim:
        """Returns the privacy guarantee of this episode's releases; see :meth:`FederatedEnv.privacy`."""
        return self.federation.privacy()

    def render(self) -> Any:
        """Renders the federation."""
        return self.federation.render()


def parallel(federation: FederatedEnv, action_format: str | None = None, features: bool = False) -> Any:
    """Returns a :class:`ParallelView` of a federation, or the federation itself if both arguments are the defaults."""
    if action_format is None and features is False:
        return federation
    return ParallelView(federation, action_format, features)


def in_turn(federation: "ParallelEnv[str, Any, Any]") -> AECEnv:
    """Returns an ``AECEnv`` in which agents act one after another; the round is played after the last of them."""
    return OrderEnforcingWrapper(parallel_to_aec_wrapper(federation))


def pettingzoo_functions(federation: type[FederatedEnv]) -> tuple[Callable[..., Any], ...]:
    """Returns the functions ``parallel_env``, ``raw_env`` and ``env`` of a PettingZoo module, for one federation."""

    def parallel_env(action_format: str | None = None, features: bool = False, **kwargs: Any) -> Any:
        """Returns a new federation; with an action format or features a :class:`ParallelView` of it.

        Args:
            action_format: One of the federation's ``action_formats``; None for the environment's own actions.
            features: Whether agents get features, a flat box in [-1, 1], instead of raw observations.
            **kwargs: Arguments of FEDERATION, which that class documents.

        Raises:
            TypeError: A parameter is unknown or has the wrong type.
            ValueError: A parameter is out of its range.
        """
        return parallel(federation(**kwargs), action_format, features)

    def raw_env(**kwargs: Any) -> AECEnv:
        """Returns the result of ``parallel_env`` as an ``AECEnv``; the round is played after the last agent."""
        return parallel_to_aec_wrapper(parallel_env(**kwargs))

    def env(**kwargs: Any) -> AECEnv:
        """Returns the result of ``raw_env`` in a wrapper that checks the order of calls."""
        return in_turn(parallel_env(**kwargs))

    parallel_env.__doc__ = str(parallel_env.__doc__).replace("FEDERATION", federation.__name__)
    return parallel_env, raw_env, env
