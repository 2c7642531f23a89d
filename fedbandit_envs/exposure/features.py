"""Features of the exposure problem; see :class:`fedbandit_envs.core.features.Features`."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import Merits, shares_of
from fedbandit_envs.linear.features import LinearFeatures


class ExposureFeatures(LinearFeatures):
    """Features of each offered arm: those of the linear bandit and the share that the arm deserves.

    They are those of :class:`~fedbandit_envs.linear.features.LinearFeatures`, and

    | of each arm | meaning |
    |---|---|
    | `deserved` | 2 share - 1, the share of pulls that the arm deserves if `estimate` is right |
    | `pooled_deserved` | as `deserved`, by `pooled_estimate`; where agents receive messages |
    """

    def __init__(self, spec: PolicySpec) -> None:
        """Reads sizes, bounds and merits; see :class:`~fedbandit_envs.core.features.Features`."""
        super().__init__(spec)
        self._merits: Merits = spec.public["merits"]
        self._estimates = [place for place, name in enumerate(self.each) if name.endswith("estimate")]
        of_messages = ("pooled_deserved",) if self._inbox.exists else ()
        self.each = (*self.each, "deserved", *of_messages)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        super()._write(observation, each, shared)
        first = len(self.each) - len(self._estimates)
        for place, estimate in enumerate(self._estimates):
            means = each[..., estimate].astype(np.float64) * self._longest
            shares = shares_of(self._merits.logarithm(means, observation.get("merit")))
            each[..., first + place] = 2.0 * shares - 1.0
