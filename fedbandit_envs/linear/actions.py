"""Action formats of the linear bandit: forms in which a learning agent can choose an arm."""

from collections.abc import Mapping

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.actions import require_finite
from fedbandit_envs.linear.expectation import expected_rewards


def arm_by_parameter(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arm with the largest <x, estimate>, of equal ones the first, int64 ``(replicas, agents)``.

    Args:
        choice: Estimates of theta*, ``(replicas, agents, dim)``; only their direction matters.
        observation: The agents' observations.

    Raises:
        ValueError: An entry of an estimate is not finite.
    """
    require_finite("parameter", choice)
    return expected_rewards(observation["contexts"], choice).argmax(axis=-1)


def arm_by_values(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arm with the largest estimate, of equal ones the first, int64 ``(replicas, agents)``.

    Args:
        choice: Estimates of the offered arms' mean rewards, ``(replicas, agents, arms)``; only their order matters.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is not finite.
    """
    require_finite("value", choice)
    arm: Array = choice.argmax(axis=-1)
    return arm
