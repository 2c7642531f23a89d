"""Features of exposure fairness for neural networks; see :class:`fedbandit_envs.core.policy_spec.Features`."""

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import Merits, shares_of
from fedbandit_envs.linear.features import LinearFeatures


class ExposureFeatures(LinearFeatures):
    """Features of each offered arm: the linear bandit's estimates of its mean, and the share that the arm deserves.

    To the features of :class:`~fedbandit_envs.linear.features.LinearFeatures` these are added:

    | of each arm | meaning |
    |---|---|
    | `deserved` | 2 share - 1, with the share of pulls that the arm deserves if `estimate` is right |
    | `pooled_deserved` | as `deserved`, computed from `pooled_estimate`; only where agents receive messages |
    """

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the features' names, sizes and bounds, and takes the agents' merit functions from ``spec.public``."""
        super().__init__(spec)
        self._merits: Merits = spec.public["merits"]
        self._estimates = [place for place, name in enumerate(self.each) if name.endswith("estimate")]
        of_messages = ("pooled_deserved",) if self._inbox.exists else ()
        self.each = (*self.each, "deserved", *of_messages)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        super()._write(observation, each, shared)
        first = len(self.each) - len(self._estimates)
        for place, estimate in enumerate(self._estimates):
            means = each[..., estimate].astype(np.float64)
            shares = shares_of(self._merits.logarithm(means, observation.get("merit")))
            each[..., first + place] = 2.0 * shares - 1.0
