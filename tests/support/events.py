"""Events of releases: Gaussian ones of P-FCB's market, and pure ones."""

import math

import numpy as np

from fedbandit_envs.core.privacy import Change
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier
from fedbandit_envs.wrappers.privacy.accounting.event import Event

ALL = np.ones((1, 1), np.bool_)
ONE_VALUE = (("one-quantity", Change(1, 1.0)),)
PAIR_OF_30 = (("one-quantity", Change(2, math.sqrt(2))), ("one-round", Change(60, math.sqrt(60))))


def gaussian(
    epsilon: float, delta: float = 0.01, changes=PAIR_OF_30, multiplier=classic_noise_multiplier
) -> Event:
    return Event("gaussian", 1 / multiplier(epsilon, delta), epsilon, delta, changes)


def pure(kind: str, epsilon: float, changes=ONE_VALUE) -> Event:
    return Event(kind, epsilon, epsilon, 0.0, changes)
