"""Views of a federation for other libraries: Gymnasium, PettingZoo and Stable-Baselines3."""

from typing import TYPE_CHECKING

from fedbandit_envs.basics.tables import optional_library

if TYPE_CHECKING:
    from fedbandit_envs.core.federated_env import FederatedEnv
    from fedbandit_envs.views.sb3 import FederationVecEnv


def to_sb3(
    env: "FederatedEnv", action_format: str | None = None, replicas: int = 4, features: bool = True
) -> "FederationVecEnv":
    """Returns a Stable-Baselines3 ``VecEnv`` of a federation, in which every agent of every replica is a row.

    One model acts for all agents and learns from all of them (parameter sharing); each row has the observations,
    rewards and messages of its own agent only. Needs the ``[sb3]`` extra.

    Args:
        env: The federation, with its wrappers. The ``VecEnv`` takes it over.
        action_format: One of the federation's ``action_formats``; None for the first of them, the environment's own
            actions.
        replicas: Number of replicas that are played in parallel.
        features: Whether observations are one flat float32 ``Box`` of features, which ``"MlpPolicy"`` takes; else they
            are the federation's ``Dict``, for ``"MultiInputPolicy"``.

    Returns:
        A ``VecEnv`` of ``replicas * agents`` rows, agents of the first replica first.

    Raises:
        ImportError: Stable-Baselines3 is not installed.
        TypeError: ``env`` is no federation, or an argument has the wrong type.
        ValueError: The action format is unknown or one that SB3 does not take, there are no features, or ``replicas``
            is below 1.
    """
    optional_library("stable_baselines3.common.vec_env", "sb3")
    from fedbandit_envs.views.sb3 import FederationVecEnv

    return FederationVecEnv(env, action_format, replicas, features)
