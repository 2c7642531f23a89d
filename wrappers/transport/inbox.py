"""Inboxes: where what is released arrives, by sender."""

from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel


def inbox_spaces(released: spaces.Dict, senders: int, echo: bool) -> dict[str, spaces.Space[Any]]:
    """Returns the spaces of one agent's inboxes and of what goes with them.

    Inboxes are unbounded, since noise is.

    Args:
        released: What one agent releases.
        senders: Number of agents.
        echo: Whether agents hear themselves, and are told when and which message that is.
    """
    inboxes: dict[str, spaces.Space[Any]] = {
        f"inbox_{name}": spaces.Box(-np.inf, np.inf, (senders, *(space.shape or ())), np.float64)
        for name, space in released.items()
    }
    inboxes["inbox_mask"] = spaces.Box(0, 1, (senders,), np.bool_)
    if echo:
        inboxes["inbox_own"] = spaces.Box(0, 1, (senders,), np.bool_)
        inboxes["sent"] = spaces.Box(0, 1, (1,), np.bool_)
    return inboxes


@kernel
def add_arrivals(statistic: Array, arrives: Array, inbox: Array) -> None:
    """Adds what arrives of a statistic to inboxes.

    Args:
        statistic: float64 ``(replicas, senders, numbers)``.
        arrives: bool ``(replicas, agents, senders)``.
        inbox: float64 ``(replicas, agents, senders, numbers)``.
    """
    replicas, agents, senders, numbers = inbox.shape
    for r in range(replicas):
        for i in range(agents):
            for j in range(senders):
                if arrives[r, i, j]:
                    for k in range(numbers):
                        inbox[r, i, j, k] += statistic[r, j, k]
