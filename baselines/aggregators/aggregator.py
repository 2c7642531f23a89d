"""The base class of aggregators, the description of the arrays that they combine, and the plain sum."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec


class InboxSpec(NamedTuple):
    """Names and shapes of the arrays in the messages that agents receive.

    Attributes:
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        senders: Number of senders whose messages arrive separately; 1 for a server.
        shapes: Shape of each array in one message, by name.
        echoed: Whether agents receive their own messages.
        independent: Whether the noises of a sender's messages are independent; if not, a variance is known only of the
            sum of all messages of a sender so far.
        weigh: Takes the variance of a reward, and returns the aggregator that replaces noisy arrays by those of equally
            informative exact observations; None where no such aggregator exists.

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
        """Returns the description of some of the arrays that agents of an environment receive.

        Args:
            spec: Public description of the environment, whose agents must receive messages.
            rows: Numbers of replicas and agents, ``(replicas, agents)``.
            *names: Names of the arrays, as senders release them (without the prefix ``inbox_``).

        Raises:
            UnfitError: Agents receive other arrays, as where they write messages.
        """
        if missing := [name for name in names if f"inbox_{name}" not in spec.observation.spaces]:
            raise UnfitError(f"messages contain {sorted(spec.release)}; {missing} is required among them")
        boxes = {name: spec.observation[f"inbox_{name}"].shape or (0,) for name in names}
        shapes = {name: tuple(shape[1:]) for name, shape in boxes.items()}
        return cls(rows, boxes[names[0]][0], shapes, "sent" in spec.observation.spaces)


@dataclass
class Aggregator(ABC):
    """The base class of rules that combine all messages which an agent has received into one array for each name.

    The object that a user makes holds settings only; :meth:`start` returns a copy that aggregates one episode. The
    totals of row (r, j) depend only on the messages that agent j of replica r has received.
    """

    def start(self, inbox: InboxSpec) -> "Aggregator":
        """Returns an aggregator with the same settings for an episode in which nothing has been received yet.

        Args:
            inbox: Names and shapes of the arrays that agents will receive.

        Raises:
            UnfitError: The aggregator cannot combine arrays of this kind.
        """
        started = copy(self)
        started._begin(inbox)
        return started

    @property
    def totals(self) -> dict[str, Array]:
        """The combined arrays by name, float64 ``(replicas, agents, *shape)``; :meth:`add` updates them in place."""
        return self._totals

    def add(
        self,
        observation: Arrays,
        arrived: Array | None = None,
        exact: Arrays | None = None,
        weight: float = 1.0,
    ) -> None:
        """Adds the messages of one round to the totals.

        Args:
            observation: Holds the array ``x`` of each message as ``inbox_x``, ``(replicas, agents, senders, *shape)``;
                with ``inbox_mask``, which tells the messages that have arrived, and, where agents receive their own
                messages, ``inbox_own``, which tells those, both bool ``(replicas, agents, senders)``.
            arrived: Which numbers of the messages are used, bool ``(replicas, agents, senders, numbers)``, or
                ``(..., 1)`` for whole messages; None for all messages that have arrived.
            exact: The agent's own exact arrays by name, ``(replicas, agents, *shape)``; needed only by aggregators for
                which the weight of a message depends on what the agent knows already.
            weight: Factor by which the received arrays are multiplied.
        """
        if arrived is None:
            arrived = observation["inbox_mask"][..., np.newaxis]
        self._add(observation, arrived, exact or {}, weight)

    def _begin(self, inbox: InboxSpec) -> None:
        """Prepares the copy that :meth:`start` has made for an episode; by default sets all totals to 0."""
        self._totals = {name: np.zeros((*inbox.rows, *shape)) for name, shape in inbox.shapes.items()}

    @abstractmethod
    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        """Adds the messages of one round to the totals; arguments as in :meth:`add`, but never None."""


@kernel
def _add_up(arrived, received, weight, total):
    """Adds the received numbers of all senders, times the weight, to the totals; see :meth:`Aggregator.add`."""
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
    """The sum of all received messages: exact if all senders are honest, and not robust against one that is not.

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
