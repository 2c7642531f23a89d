"""Schedules that leave sending to the agents, with the ``send`` entry of their actions.

An agent asks together with the action of the round, so before that round's outcomes are known. What is sent
includes them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbandit_envs.arrays import Array


@dataclass(frozen=True)
class OnRequest:
    """Who asks, sends."""

    fixed_in_advance: ClassVar[bool] = False
    needs_all_connected: ClassVar[bool] = False

    def senders(self, t: int, asked: Array) -> Array:
        """Says that those send who ask."""
        return asked

    def count(self, horizon: int) -> int:
        """Returns the number of rounds: agents may ask in each."""
        return int(horizon)


@dataclass(frozen=True)
class Synchronise:
    """If one agent of a replica asks, all of them send (FedUCB; Dubey and Pentland 2020, Algorithm 1).

    The request itself reaches everybody at once and without fail, and counts as no traffic; delay and loss are
    those of the messages it calls for. So every agent must be able to reach every other.
    """

    fixed_in_advance: ClassVar[bool] = False
    needs_all_connected: ClassVar[bool] = True

    def senders(self, t: int, asked: Array) -> Array:
        """Says that all agents send in replicas where one asks."""
        return np.repeat(asked.any(axis=1, keepdims=True), asked.shape[1], axis=1)

    def count(self, horizon: int) -> int:
        """Returns the number of rounds: somebody may ask in each."""
        return int(horizon)
