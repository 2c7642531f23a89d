"""Features of the exposure problem; see :mod:`fedbandit_envs.features`."""

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.exposure.merit import Merits, shares_of
from fedbandit_envs.linear.features import LinearFeatures
from fedbandit_envs.spaces import Spaces


class ExposureFeatures(LinearFeatures):
    """What an agent knows of each arm that it is offered, and which share it would deserve.

    Those of :class:`~fedbandit_envs.linear.features.LinearFeatures`, and

    | of each arm | meaning |
    |---|---|
    | `deserved` | 2 share - 1, the share of pulls that the arm deserves if `estimate` is right |
    | `pooled_deserved` | as `deserved`, by `pooled_estimate`; where agents hear of each other |
    """

    def __init__(self, spaces: Spaces) -> None:
        """Reads sizes, bounds and merits; see :class:`~fedbandit_envs.spaces.Features`."""
        super().__init__(spaces)
        self._merits: Merits = spaces.public["merits"]
        self._estimates = [place for place, name in enumerate(self.each) if name.endswith("estimate")]
        told = ("pooled_deserved",) if self._heard.some else ()
        self.each = (*self.each, "deserved", *told)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        super()._write(observation, each, shared)
        first = len(self.each) - len(self._estimates)
        for place, estimate in enumerate(self._estimates):
            means = each[..., estimate].astype(np.float64) * self._longest
            shares = shares_of(self._merits.logarithm(means, observation.get("merit")))
            each[..., first + place] = 2.0 * shares - 1.0
