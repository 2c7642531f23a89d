"""The functional twin: environments, federation and policies as pure JAX functions, on CPU or GPU (extra ``[jax]``).

It has the instances and random numbers of the package's batch API, and is tested against it under equal seeds. The
batch API stays the reference; the twin is for training agents, and for very many replicas.

Example:
    >>> from fedbandit_envs.functional import PureUCB1, make, rollout
    >>> env = make("FedArms-v0", [["Channel", {"schedule": "every_round"}]], num_agents=5, max_cycles=100)
    >>> rollout(env, PureUCB1(), seeds=range(4)).regret.shape[1:]
    (4, 5)
"""

from typing import Any

import jax.numpy as jnp

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import Stack, build
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.functional.arms import Arms, PureThompson, PureUCB1
from fedbandit_envs.functional.environment import Environment
from fedbandit_envs.functional.episodes import trajectories, write_trajectories
from fedbandit_envs.functional.exposure import Exposure, PureFairX
from fedbandit_envs.functional.federation import lacks
from fedbandit_envs.functional.gaussian import GaussianArms, PureGaussianUCB
from fedbandit_envs.functional.linear import LinearArms, PureLinUCB
from fedbandit_envs.functional.policies import PurePolicy, PureRandom
from fedbandit_envs.functional.procurement import Procurement, PureLaplaceIndex, PureSSUCB
from fedbandit_envs.functional.rollouts import rollout
from fedbandit_envs.gaussian.env import GaussianEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.registry.registration import find_registered

__all__ = [
    "Environment",
    "PureFairX",
    "PureGaussianUCB",
    "PureLaplaceIndex",
    "PureLinUCB",
    "PurePolicy",
    "PureRandom",
    "PureSSUCB",
    "PureThompson",
    "PureUCB1",
    "make",
    "rollout",
    "trajectories",
    "write_trajectories",
]

_TWINS: dict[type[Problem], Any] = {
    ArmsEnv: Arms,
    ExposureEnv: Exposure,
    GaussianEnv: GaussianArms,
    LinearEnv: LinearArms,
    ProcurementEnv: Procurement,
}


def make(env_id: str, stack: Stack = (), dtype: Any = None, **kwargs: Any) -> Environment:
    """Returns the twin of a registered environment.

    Args:
        env_id: The environment's id, such as ``"FedArms-v0"``.
        stack: Wrappers around it, from the inside out, as in the package: pairs of a name and arguments, such as
            ``["ContinualPrivatizer", {"epsilon": 1.0, "delta": 1e-5}]`` and ``["Channel", {"schedule": "doubling"}]``.
        dtype: ``float32`` or ``float64``; None for JAX's own default, which is float32 unless it says otherwise.
        **kwargs: Arguments of the environment, which replace those of the id.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or the twin lacks what it asks for.
    """
    entry = find_registered(env_id)
    host = build(entry.federation, (*entry.stack, *stack), **{**entry.kwargs, **kwargs})
    problem = type(host.unwrapped)
    if problem not in _TWINS:
        raise lacks(f"{problem.__name__}", f"one of {[twin.__name__ for twin in _TWINS]}")
    settings = {"env_id": env_id, "stack": stack, **kwargs}
    return Environment(host, _TWINS[problem], jnp.result_type(float) if dtype is None else dtype, settings)
