"""Inboxes: the entries of an observation that hold received messages, by sender."""

from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel


def inbox_spaces(released: spaces.Dict, senders: int, echo: bool) -> dict[str, spaces.Space[Any]]:
    """Returns the spaces of one agent's inboxes and of the entries that describe them, by name.

    Inboxes are unbounded, since noise is.

    Args:
        released: Space of what one agent releases.
        senders: Number of senders that an inbox distinguishes.
        echo: Whether agents receive their own messages as well, with ``inbox_own`` and ``sent``.
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
    """Adds messages to the inboxes in which they arrive.

    Args:
        statistic: The messages, float64 ``(replicas, senders, numbers)``.
        arrives: Whether a sender's message arrives at an agent, bool ``(replicas, agents, senders)``.
        inbox: The inboxes that are added to, float64 ``(replicas, agents, senders, numbers)``.
    """
    replicas, agents, senders, numbers = inbox.shape
    for r in range(replicas):
        for i in range(agents):
            for j in range(senders):
                if arrives[r, i, j]:
                    for k in range(numbers):
                        inbox[r, i, j, k] += statistic[r, j, k]
