"""The base class of aggregators, the arrays that an inbox declares, and the plain sum of what was received."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec


class InboxSpec(NamedTuple):
    """Names and shapes of the arrays that agents receive.

    Attributes:
        rows: ``(replicas, agents)``.
        senders: Number of senders that inboxes tell apart.
        shapes: Shape of each array in one message, by name.
        echoed: Whether agents receive their own messages.
        independent: Whether the noise of each message is independent; else only a sender's sums have a known variance.
        weigh: Makes the aggregator that counts noisy arrays for what they are worth, given the variance of a reward;
            None where no such aggregator exists.

    Example:
        >>> inbox = InboxSpec(rows=(1, 4), senders=4, shapes={"pulls": (10,), "sum": (10,)})
        >>> sorted(inbox.shapes), inbox.echoed
        (['pulls', 'sum'], False)
    """

    rows: tuple[int, ...]
    senders: int
    shapes: Mapping[str, tuple[int, ...]]
    echoed: bool = False
    independent: bool = True
    weigh: "Callable[[float], Aggregator] | None" = None

    @classmethod
    def of(cls, spec: PolicySpec, rows: tuple[int, ...], *names: str) -> "InboxSpec":
        """Returns the specification of some arrays of an environment's inbox.

        Args:
            spec: The environment's; it has an inbox.
            rows: ``(replicas, agents)``.
            *names: Names of the arrays in releases.
        """
        boxes = {name: spec.observation[f"inbox_{name}"].shape or (0,) for name in names}
        shapes = {name: tuple(shape[1:]) for name, shape in boxes.items()}
        return cls(rows, boxes[names[0]][0], shapes, "sent" in spec.observation.spaces)


@dataclass
class Aggregator(ABC):
    """The base class of what is used in place of the sum of all messages that each row has received.

    The object that a user makes holds settings only; :meth:`start` returns a copy that aggregates one episode. The
    totals of row (r, j) depend on what agent j of replica r has received, and on nothing else.
    """

    def start(self, inbox: InboxSpec) -> "Aggregator":
        """Returns an aggregator with the same settings for an episode in which nothing has been received yet.

        Args:
            inbox: Names and shapes of what will be received.

        Raises:
            UnfitError: The aggregator cannot be used with such an inbox.
        """
        started = copy(self)
        started._begin(inbox)
        return started

    @property
    def totals(self) -> dict[str, Array]:
        """The aggregates by name, float64 ``(replicas, agents, *shape)``: always the same arrays, kept up to date."""
        return self._totals

    def add(
        self,
        observation: Arrays,
        arrived: Array | None = None,
        exact: Arrays | None = None,
        weight: float = 1.0,
    ) -> None:
        """Takes in the messages of one round.

        Args:
            observation: Holds the array ``x`` of each message as ``inbox_x``, ``(replicas, agents, senders, *shape)``;
                with ``inbox_mask``, which messages have arrived, and, where a transport echoes, ``inbox_own``, which of
                them the agent sent itself, both bool ``(replicas, agents, senders)``.
            arrived: Which numbers are taken in, bool ``(replicas, agents, senders, numbers)`` or ``(..., 1)`` for whole
                messages; None for all that arrived.
            exact: The agent's own exact arrays by name, ``(replicas, agents, *shape)``, where how much a message is
                worth depends on what is known already.
            weight: Multiplies what is received.
        """
        if arrived is None:
            arrived = observation["inbox_mask"][..., np.newaxis]
        self._add(observation, arrived, exact or {}, weight)

    def _begin(self, inbox: InboxSpec) -> None:
        """Prepares a copy for an episode: by default, totals of 0."""
        self._totals = {name: np.zeros((*inbox.rows, *shape)) for name, shape in inbox.shapes.items()}

    @abstractmethod
    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        """Updates the totals by the messages of one round; see :meth:`add`."""


@kernel
def _add_up(arrived, received, weight, total):
    """Adds the numbers that have arrived, times the weight, sender by sender; see :meth:`Aggregator.add`."""
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


class Sum(Aggregator):
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

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        for name, total in self.totals.items():
            messages = observation[f"inbox_{name}"]
            messages = messages.reshape(*messages.shape[:3], -1)
            _add_up(arrived, messages, weight, total.reshape(*total.shape[:2], -1))
