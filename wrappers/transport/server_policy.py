"""Server policies: what a server computes from agents' uploads and answers to agents, and what it asks them.

Wherever a server policy is an argument, four forms are accepted: an object with the methods of :class:`ServerPolicy`,
which is copied; its specification in JSON, which is a name (one of :mod:`fedbandit_envs.baselines.servers`, or
``"module:Class"``) or a mapping of ``name`` and the constructor's arguments; or a function of ``uploads`` and ``mask``,
for policies without memory that answer the same to all agents.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from math import ceil, prod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import HANDED_DOWN, make
from fedbandit_envs.core.buffers import Buffers, zeros
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.randomness.streams import row_seeds

MOST_EXCHANGES = 10_000
"""The most questions that a server may ask in one round; more are taken for an endless conversation."""

Downloads = Mapping[str, spaces.Box | Mapping[str, Any]]
"""Declared arrays by name: a ``Box``, or a mapping of ``shape`` and ``dtype``, such as ``{"shape": [3], "dtype":
"float64"}``."""


class Ask(NamedTuple):
    """A question of the server to agents, returned by :meth:`ServerPolicy.answer` in place of an answer.

    Attributes:
        question: Arrays by name with leading axes ``(replicas, agents)``, or ``(replicas, 1)`` for the same question to
            all agents of a replica.
        who: Which agents are asked, bool ``(replicas, agents)``; None for those whose uploads or reports the server has
            just been given (``mask`` in :meth:`ServerPolicy.answer`).
    """

    question: Mapping[str, Array]
    who: Array | None = None


@runtime_checkable
class ServerPolicy(Protocol):
    """The interface of server policies, which act for the servers of all replicas of a federation at once.

    Each replica has a server of its own. What the policy answers to a replica depends on this replica's uploads since
    ``reset`` and on its seed alone; :func:`fedbandit_envs.testing.check_server_policy` checks that.
    """

    @property
    def downloads(self) -> Any:
        """The arrays in an answer by name (:data:`Downloads`), which agents observe as ``server_{name}``.

        Or a function that returns them, given the :class:`PolicySpec` of the environment inside of the server. With an
        array ``active``, a single bool, the server decides which agents take part, see
        :class:`~fedbandit_envs.wrappers.Server`. A policy with an attribute ``needs_every_message`` that is true is
        refused where messages may be lost: the data of a lost upload are added to the next one, which is wrong for
        totals and for numbers of vectors. One with ``needs_single_uploads`` is refused where a stage adds uploads up or
        takes their names away.
        """

    def reset(self, spec: PolicySpec, seeds: Array) -> Mapping[str, Array] | None:
        """Forgets everything and prepares for an episode.

        Args:
            spec: Public description of the environment inside of the server; ``spec.release`` is the space of uploads.
            seeds: One seed for each replica, uint64 ``(replicas,)``.

        Returns:
            A first answer, in the form of :meth:`answer`, which agents have before the first round. It costs no
            message, since agents know the policy and can compute it themselves. None if there is no first answer.
        """

    def answer(self, uploads: Arrays, mask: Array) -> Mapping[str, Array] | Ask:
        """Computes an answer from the uploads that arrive in a round; called if there are any in some replica.

        Args:
            uploads: What has arrived in this round, or has been reported in reply to a question, by name, float64
                ``(replicas, agents, ...)``; 0 for other agents. Read-only.
            mask: Whose uploads or reports these are, bool ``(replicas, agents)``. In a replica without any the answer
                stays as it was, whatever is returned for it, and the server must not change.

        Returns:
            The answer by name, with the declared dtypes and shapes ``(...)``: ``(replicas, ...)`` for all agents of a
            replica, or ``(replicas, agents, ...)`` for each of them. Or a question (:class:`Ask`): the policy is called
            again with the reports, in the same round, until no replica has a question left. Only then are answers taken
            from it, for all replicas, also for those that had no question. If agents of a replica were asked and its
            rows of ``mask`` are all false, all of their reports have been lost.
        """


class ServerFunction:
    """The server policy of a function of ``uploads`` and ``mask``, without memory, which answers the same to all.

    Example:
        >>> policy = ServerFunction(lambda uploads, mask: {"largest": uploads["pulls"].max(axis=(1, 2))})
        >>> policy.answer({"pulls": np.array([[[1.0, 4.0], [2.0, 0.0]]])}, np.ones((1, 2), bool))
        {'largest': array([4.])}
    """

    def __init__(self, function: Callable[[Arrays, Array], Mapping[str, Array]]) -> None:
        """Takes the function, which returns arrays ``(replicas, ...)`` by name."""
        self.answer = function

    def downloads(self, spec: PolicySpec) -> Downloads:
        """Returns shapes and dtypes of what the function returns for a replica in which all uploads are zeros."""
        rows = 1, spec.agents
        answer = self.answer(zeros(spec.release, rows, np.float64), np.ones(rows, np.bool_))
        arrays = {name: np.asarray(array) for name, array in answer.items()}
        return {name: {"shape": array.shape[1:], "dtype": array.dtype} for name, array in arrays.items()}

    def reset(self, spec: PolicySpec, seeds: Array) -> Mapping[str, Array] | None:
        """Does nothing: there is no memory."""
        return None


def make_server_policy(spec: Any) -> ServerPolicy:
    """Returns the server policy that a specification describes; see :mod:`fedbandit_envs.wrappers.transport`.

    Raises:
        TypeError: The specification has none of the accepted forms, or has arguments that the constructor refuses.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if callable(spec) and not isinstance(spec, type | ServerPolicy):
        return ServerFunction(spec)
    policy: ServerPolicy = make("policy", spec, HANDED_DOWN["server_policies"](), ServerPolicy)
    return policy


def declared_spaces(declared: Downloads) -> dict[str, spaces.Box]:
    """Returns the space of each declared array by name.

    Raises:
        TypeError: A declaration is neither a ``Box`` nor a mapping of ``shape`` and ``dtype``.
        ValueError: A ``Box`` does not contain 0, which agents see before the first answer.
    """
    found = {}
    for name, one in declared.items():
        if isinstance(one, Mapping) and one.keys() == {"shape", "dtype"}:
            dtype: Any = np.dtype(one["dtype"])
            limits: Any = (0, 1) if dtype == np.bool_ else (-np.inf, np.inf)
            if np.issubdtype(dtype, np.integer):
                limits = np.iinfo(dtype).min, np.iinfo(dtype).max
            box: Any = spaces.Box
            one = box(*limits, tuple(one["shape"]), dtype)
        if not isinstance(one, spaces.Box):
            raise TypeError(f"downloads[{name!r}] is {one!r}; a Box, or 'shape' and 'dtype', is required")
        if not one.contains(np.zeros(one.shape, one.dtype)):
            raise ValueError(f"downloads[{name!r}] is {one!r}; a space that contains 0 is required")
        found[name] = one
    return found


def packed_bytes(arrays: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]) -> int:
    """Returns how many bytes arrays of given shapes and dtypes take together, rounded up; a bool takes one bit."""
    bits = (
        prod(shape) * (1 if np.dtype(of) == np.bool_ else 8 * np.dtype(of).itemsize)
        for shape, of in arrays.values()
    )
    return ceil(sum(bits) / 8)


Converse = Callable[[Arrays, Array, int], tuple[Arrays, Array]]
"""A function that carries a question to agents and their reports back.

Its arguments are the question, arrays ``(replicas, agents, ...)`` by name; who is asked, bool ``(replicas, agents)``;
and the number of the exchange within the round, from 1. It returns reports and mask as :meth:`ServerPolicy.answer` gets
them."""


class ServerComputation:
    """A server's policy with its latest answers, and the answers that each agent has received.

    Attributes:
        spaces: Space of each array in an answer, by name.
        num_bytes: Bytes of the arrays in one answer, without a header.
        admits: Whether the policy decides which agents take part.
        needs_every_message: Whether no message may be lost.
        needs_single_uploads: Whether the policy must know which agent has uploaded what.
        received: The last answer that each agent has received, as ``server_{name}``; before the first what the policy's
            ``reset`` has returned, or 0.
    """

    def __init__(self, policy: Any, spec: PolicySpec) -> None:
        """Makes the policy from its specification, for the environment that ``spec`` describes.

        Raises:
            TypeError: The specification has none of the accepted forms, or an answer's declaration is malformed.
            ValueError: A name is unknown, or a declared space does not contain 0.
        """
        self._policy = deepcopy(make_server_policy(policy))
        # Policies say so whose uploads are no sums: a lost one would be added to the next.
        self.needs_every_message = bool(getattr(self._policy, "needs_every_message", False))
        self.needs_single_uploads = bool(getattr(self._policy, "needs_single_uploads", False))
        declared = self._policy.downloads
        self.spaces = declared_spaces(declared(spec) if callable(declared) else declared)
        self.num_bytes = packed_bytes({name: (box.shape, box.dtype) for name, box in self.spaces.items()})
        self.admits = "active" in self.spaces
        active = self.spaces.get("active")
        if active is not None and (active.shape != () or active.dtype != np.bool_):
            raise TypeError(f"downloads['active'] is {self.spaces['active']}; a single bool is required")

    def reset(self, spec: PolicySpec, seeds: Sequence[int]) -> None:
        """Starts an episode for each seed.

        Raises:
            TypeError: The policy returns an array of a wrong dtype.
            ValueError: The policy's first answer does not fit, or it decides which agents take part and has none.
        """
        rows = len(seeds), spec.agents
        # The server has the seed that an additional agent would have, so that it shares none with an agent.
        first = self._policy.reset(spec, row_seeds(seeds, spec.agents + 1)[:, -1])
        if first is None and self.admits:
            raise ValueError("policy has no first answer; one that says which agents take part is required")
        self._latest = zeros(self.spaces, rows)
        for name, array in ({} if first is None else self._checked_answer(first, rows)).items():
            self._latest[name][...] = array
        self.received = Buffers({f"server_{name}": array.copy() for name, array in self._latest.items()})

    def compute(self, uploads: Arrays, mask: Array, converse: Converse) -> None:
        """Has the policy compute new answers for replicas with uploads, after any questions it asks.

        Raises:
            TypeError: The policy returns an array of a wrong dtype.
            ValueError: Arrays have wrong names or shapes, or are not finite.
            RuntimeError: The policy keeps asking.
        """
        fresh = mask.any(axis=1)
        for exchange in range(1, MOST_EXCHANGES + 2):
            for array in (*uploads.values(), mask):
                array.flags.writeable = False
            reply = self._policy.answer(uploads, mask)
            if not isinstance(reply, Ask):
                break
            uploads, mask = converse(*_checked_question(reply, mask), exchange)
        else:
            raise RuntimeError(
                f"policy asked {MOST_EXCHANGES} questions in one round and still has no answer"
            )
        for name, array in self._checked_answer(reply, mask.shape).items():
            np.copyto(self._latest[name], array, where=fresh.reshape(-1, *(1,) * (array.ndim - 1)))

    def latest(self, who: Array) -> Arrays:
        """Returns the latest answers to some agents.

        Args:
            who: The agents, bool ``(replicas, agents)``.

        Returns:
            New arrays by name, ``(number of these agents in all replicas, ...)``, replica by replica.
        """
        return {name: array[who] for name, array in self._latest.items()}

    def deliver(self, who: Array, answers: Arrays) -> None:
        """Shows some agents answers that :meth:`latest` has returned for the same agents; those who act stay active."""
        for name, array in answers.items():
            seen = self.received.arrays[f"server_{name}"]
            seen[who] = array | seen[who] if name == "active" else array

    @property
    def latest_active(self) -> Array:
        """Which agents take part by the latest answer, bool ``(replicas, agents)``."""
        return self._latest["active"] | self.received.arrays["server_active"]

    def _checked_answer(self, answer: Any, rows: tuple[int, ...]) -> Arrays:
        """Returns an answer with the axes ``(replicas, agents or 1, ...)`` after checking it."""
        if not isinstance(answer, Mapping) or answer.keys() != self.spaces.keys():
            found = sorted(answer) if isinstance(answer, Mapping) else answer
            raise ValueError(
                f"policy answers {found!r}; arrays {sorted(self.spaces)}, as declared, are required"
            )
        checked = {}
        for name, box in self.spaces.items():
            array = np.asarray(answer[name])
            if not np.can_cast(array.dtype, box.dtype, "same_kind"):
                raise TypeError(
                    f"policy answers {name!r} as {array.dtype}; {box.dtype}, as declared, is required"
                )
            to_all = array.shape == (rows[0], *box.shape)
            if not to_all and array.shape != (*rows, *box.shape):
                raise ValueError(
                    f"policy answers {name!r} of shape {array.shape}; {(rows[0], *box.shape)} for all, or "
                    f"{(*rows, *box.shape)} for each of the agents, is required"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"policy answers {name!r} that is not finite; finite numbers are required")
            checked[name] = array[:, np.newaxis] if to_all else array
        return checked


def _checked_question(asked: Ask, mask: Array) -> tuple[Arrays, Array]:
    """Returns a question with the axes ``(replicas, agents, ...)`` and who is asked, both read-only, after checks."""
    who = mask if asked.who is None else np.asarray(asked.who)
    if who.shape != mask.shape or who.dtype != np.bool_:
        raise ValueError(f"policy asks who is {who.dtype} {who.shape}; bool {mask.shape} is required")
    if not who.any():
        raise ValueError("policy asks nobody; an answer, or a question to at least one agent, is required")
    question = {}
    for name, given in asked.question.items():
        array = np.asarray(given)
        if array.ndim < 2 or array.shape[0] != mask.shape[0] or array.shape[1] not in (1, mask.shape[1]):
            raise ValueError(
                f"policy asks {name!r} of shape {array.shape}; leading axes {mask.shape} or {(len(mask), 1)} are "
                "required"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"policy asks {name!r} that is not finite; finite numbers are required")
        question[name] = np.broadcast_to(array, (*mask.shape, *array.shape[2:]))
    return question, who
