"""The aggregator protocol: declared arrays of an inbox, and what stands for the sum of what was received."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec


class Aggregate(Protocol):
    """An aggregate of all that each row has received in an episode, used in place of the sum.

    The totals of row (r, j) depend on what agent j of replica r has received, and on nothing else.

    Attributes:
        totals: The aggregates by name, float64 ``(replicas, agents, *shape)``: always the same arrays, kept up to date.
    """

    @property
    def totals(self) -> Mapping[str, Array]:
        """The totals by name."""

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


class InboxSpec(NamedTuple):
    """Names and shapes of the arrays that agents receive.

    Attributes:
        rows: ``(replicas, agents)``.
        senders: Number of senders that inboxes tell apart.
        shapes: Shape of each array in one message, by name.
        echoed: Whether agents receive their own messages.
        independent: Whether the noise of each message is independent; else only a sender's sums have a known variance.
        weigh: Makes the aggregate that counts noisy arrays for what they are worth, given this and the variance of a
            reward; None where nobody has said what they are worth.

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
    weigh: "Callable[[InboxSpec, float], Aggregate] | None" = None

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


@runtime_checkable
class Aggregator(Protocol):
    """Decides what stands for the sum of what agents receive."""

    def start(self, inbox: InboxSpec) -> Aggregate:
        """Returns the aggregate of an episode in which nothing has been received yet.

        Args:
            inbox: Names and shapes of what will be received.

        Raises:
            UnfitError: The aggregator cannot be used with such an inbox.
        """


def flat(array: Array, axes: int) -> Array:
    """Returns an array whose axes after the first ``axes`` are made one."""
    return array if array.ndim == axes + 1 else array.reshape(*array.shape[:axes], -1)
