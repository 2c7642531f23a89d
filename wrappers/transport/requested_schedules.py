"""Schedules by which agents ask to send, with the ``send`` entry of their actions.

An agent asks together with its action, before the round's outcomes are known. The message includes these outcomes.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedbandit_envs.basics.arrays import Array


@dataclass(frozen=True)
class OnRequest:
    """The schedule by which an agent sends when it asks to."""

    fixed_in_advance: ClassVar[bool] = False
    needs_all_connected: ClassVar[bool] = False

    def senders(self, t: int, asked: Array) -> Array:
        """Returns the agents that ask."""
        return asked

    def count(self, horizon: int) -> int:
        """Returns the number of rounds: an agent may ask in each."""
        return int(horizon)


@dataclass(frozen=True)
class Synchronise:
    """The schedule by which all agents send when one asks (FedUCB; Dubey and Pentland 2020, Algorithm 1).

    The request itself reaches all agents at once and surely, and is not counted as traffic; delay and loss apply to the
    messages that follow. Every agent must be able to reach every other.
    """

    fixed_in_advance: ClassVar[bool] = False
    needs_all_connected: ClassVar[bool] = True

    def senders(self, t: int, asked: Array) -> Array:
        """Returns all agents in replicas where one asks."""
        return np.repeat(asked.any(axis=1, keepdims=True), asked.shape[1], axis=1)

    def count(self, horizon: int) -> int:
        """Returns the number of rounds: some agent may ask in each."""
        return int(horizon)
