"""The reporter of agents that tell the server every observation: context, its number in the pool, and reward."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.baseline import WrapperSpec
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.wrappers import Messages, Server


def observations(env: FederatedEnv) -> Mapping[str, Mapping[str, object]]:
    """Returns the argument ``arrays`` of :class:`~fedbandit_envs.wrappers.Messages` with an observation each."""
    dim = (env.single_observation_space["contexts"].shape or (0, 0))[1]
    index = {"shape": [], "dtype": "int32"}
    return {"arrays": {"context": {"shape": [dim]}, "index": index, "reward": {"shape": []}}}


def told_everything(policy: str) -> dict[str, WrapperSpec]:
    """Returns the wrappers in which agents tell a server policy every observation, and it answers in every round."""
    reporter = {"reporter": "fedbandit_envs.baselines.linear:TellingReporter"}
    every_round = {"schedule": "every_round", "answers": "every_round", "policy": policy}
    return {
        "messages": WrapperSpec(Messages, reporter, observations),
        "server": WrapperSpec(Server, every_round),
    }


def require_pool(spec: PolicySpec) -> None:
    """Raises :class:`UnfitError` unless contexts come from a pool."""
    if "pool_index" not in spec.observation.spaces:
        raise UnfitError(
            "contexts are drawn anew in every round; contexts from a pool, or fixed ones, are required"
        )


class TellingReporter:
    """Reports the last observation of each agent, for servers that compute with all of them.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Messages
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> env = Messages(env, **observations(env), reporter=TellingReporter())
        >>> reset = env.reset_batch([0])
        >>> env.release(np.ones((1, 3), bool))["context"].shape
        (1, 3, 2)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks the environment; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        require_pool(spec)
        self._pulls = np.zeros((*seeds.shape, *(spec.observation["pool_pulls"].shape or ())), np.int64)

    def observe(self, observation: Arrays) -> None:
        """Keeps the last observation; see :meth:`.Reporter.observe`."""
        self._told = {
            "context": observation["pulled_context"],
            "index": (observation["pool_pulls"] - self._pulls).argmax(axis=-1),
            "reward": observation["last_reward"][..., 0],
        }
        self._pulls[...] = observation["pool_pulls"]

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns the last observation; see :meth:`.Reporter.report`."""
        return self._told
