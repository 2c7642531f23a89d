"""Procurement policies that start from a uniform prior over each quality: a posterior's index, and its draws."""

import numpy as np

from fedbandit_envs.baselines.arms.draws import beta, fresh_states
from fedbandit_envs.checks import require_number
from fedbandit_envs.compiled import kernel
from fedbandit_envs.federation import Array, Arrays, Spaces
from fedbandit_envs.procurement.oracle import procure


def _procure_as_if(quality: Array, observation: Arrays) -> Array:
    problem = (observation[name] for name in ("cost", "capacity", "quality_threshold", "unit_revenue"))
    return procure(quality, *problem, exact=False)


class LaplaceIndex:
    """Laplace's estimate and a bonus that ignores the round, then Greedy SSA.

    Producer i of which W_i units were seen, Y_i of them good, has the index
    ``min(1, (Y_i + 1) / (W_i + 2) + width / sqrt(W_i + 1))``.
    """

    def __init__(self, width: float = 0.8) -> None:
        """Sets the bonus.

        Args:
            width: >= 0; 0 is greedy.

        Raises:
            TypeError: It is no number.
            ValueError: It is out of its range.
        """
        require_number("width", width, 0, np.inf)
        self._width = float(width)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Has nothing to forget; see :meth:`Policy.reset`."""

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        units, good = observation["total_delivered"], observation["total_good"]
        index = (good + 1.0) / (units + 2.0) + self._width / np.sqrt(units + 1.0)
        return _procure_as_if(np.minimum(index, 1.0), observation)


@kernel
def _posterior_draws(units, good, states, quality):
    for r in range(units.shape[0]):
        for j in range(units.shape[1]):
            for i in range(units.shape[2]):
                quality[r, j, i] = beta(
                    good[r, j, i] + 1.0, units[r, j, i] - good[r, j, i] + 1.0, states[r, j, i]
                )


class ThompsonProcurement:
    """Greedy SSA on draws from the qualities' posteriors, Beta(1 + good, 1 + defective) (Thompson 1933)."""

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Seeds a state for each producer of each row; see :meth:`Policy.reset`."""
        producers = (spaces.observation["capacity"].shape or (0,))[0]
        states = np.stack([fresh_states(int(seed), producers) for seed in seeds.flat])
        self._states = states.reshape(*seeds.shape, producers, 4)
        self._quality = np.empty(self._states.shape[:3])

    def act(self, observation: Arrays) -> Array:
        """Returns quantities, int32 ``(replicas, agents, producers)``; see :meth:`Policy.act`."""
        _posterior_draws(
            observation["total_delivered"], observation["total_good"], self._states, self._quality
        )
        return _procure_as_if(self._quality, observation)
