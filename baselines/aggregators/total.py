"""The plain sum of what was received (compiled)."""

from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.protocol import Aggregate, InboxSpec, flat
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import kernel


@kernel
def _add_up(arrived, received, weight, total):
    """Adds the numbers that have arrived, times the weight, sender by sender; see :meth:`Aggregate.add`."""
    whole = arrived.shape[3] == 1
    for r in range(received.shape[0]):
        for j in range(received.shape[1]):
            for s in range(received.shape[2]):
                if whole:
                    if arrived[r, j, s, 0]:
                        for i in range(received.shape[3]):
                            total[r, j, i] += weight * received[r, j, s, i]
                else:
                    for i in range(received.shape[3]):
                        if arrived[r, j, s, i]:
                            total[r, j, i] += weight * received[r, j, s, i]


@dataclass(frozen=True)
class Sum:
    """Adds up what is received: exact where all senders are honest, and not robust against a single one that is not.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import InboxSpec, Sum
        >>> aggregate = Sum().start(InboxSpec(rows=(1, 1), senders=3, shapes={"pulls": (2,)}))
        >>> mask, pulls = np.array([[[True, True, False]]]), np.ones((1, 1, 3, 2))
        >>> aggregate.add({"inbox_mask": mask, "inbox_pulls": pulls})
        >>> aggregate.totals["pulls"]
        array([[[2., 2.]]])
    """

    def start(self, inbox: InboxSpec) -> Aggregate:
        """Returns sums of 0; see :meth:`Aggregator.start`."""
        return _Sums(inbox)


class _Sums:
    """Sums of what was received; see :class:`Aggregate`."""

    def __init__(self, inbox: InboxSpec) -> None:
        self.totals = {name: np.zeros((*inbox.rows, *shape)) for name, shape in inbox.shapes.items()}

    def add(
        self,
        observation: Arrays,
        arrived: Array | None = None,
        exact: Arrays | None = None,
        weight: float = 1.0,
    ) -> None:
        arrived = observation["inbox_mask"][..., np.newaxis] if arrived is None else arrived
        for name, total in self.totals.items():
            _add_up(arrived, flat(observation[f"inbox_{name}"], 3), weight, flat(total, 2))
