"""Action formats of exposure fairness: forms in which a learning agent can choose a distribution over arms."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.actions import require_finite
from fedbandit_envs.exposure.merit import Merits, shares_of
from fedbandit_envs.linear.expectation import expected_rewards

_STEEPNESS = 10.0
"""Factor of the logits before the softmax: with logits in [-1, 1], shares can then differ by a factor of up to e^20."""


def shares_by_logits(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the distribution over arms that is the softmax of ten times the logits.

    Args:
        choice: Logits, ``(replicas, agents, arms)``.
        observation: The agents' observations.

    Raises:
        ValueError: A logit is not finite.
    """
    require_finite("logits", choice)
    return shares_of(_STEEPNESS * np.asarray(choice, np.float64))


def shares_by_parameter(merits: Merits, choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the shares that arms would deserve if an estimate of theta* were right.

    These are in proportion to f(<x, estimate>), where f is the agent's merit function and x an arm's context.

    Args:
        merits: The agents' merit functions.
        choice: Estimates of theta*, ``(replicas, agents, dim)``.
        observation: The agents' observations.

    Raises:
        ValueError: An entry of an estimate is not finite.
    """
    require_finite("parameter", choice)
    means = expected_rewards(observation["contexts"], choice)
    return shares_of(merits.logarithm(means, observation.get("merit")))
