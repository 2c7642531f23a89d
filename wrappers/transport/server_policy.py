"""Server policies: what a server computes from agents' uploads and answers to agents, and what it asks them.

Wherever a server policy is an argument, three forms are accepted: an object with the methods of :class:`ServerPolicy`,
which is copied; its specification in JSON, which is a name (one of :mod:`fedbandit_envs.baselines.servers`, or
``"module:Class"``) or a mapping of ``name`` and the constructor's arguments; or a function of ``uploads`` and ``mask``,
for policies without memory that answer the same to all agents.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, zeros
from fedbandit_envs.basics.entry_points import Thing, handed_down, make
from fedbandit_envs.core.policy_spec import PolicySpec

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


def make_server_policy(spec: Any) -> ServerPolicy:
    """Returns the server policy that a specification describes, as a copy.

    Raises:
        TypeError: The specification has none of the accepted forms, or has arguments that the constructor refuses.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if callable(spec) and not isinstance(spec, type | ServerPolicy):
        spec = SimpleNamespace(downloads=partial(_answered, spec), reset=_forget, answer=spec)
    policy: ServerPolicy = make("policy", spec, handed_down("server_policies"), ServerPolicy)
    return deepcopy(policy)


def _answered(function: Callable[[Arrays, Array], Mapping[str, Array]], spec: PolicySpec) -> Downloads:
    """Returns shapes and dtypes of what a function answers to a replica in which all uploads are zeros."""
    rows = 1, spec.agents
    answer = function(zeros(spec.release, rows, np.float64), np.ones(rows, np.bool_))
    arrays = {name: np.asarray(array) for name, array in answer.items()}
    return {name: {"shape": array.shape[1:], "dtype": array.dtype} for name, array in arrays.items()}


def _forget(spec: PolicySpec, seeds: Array) -> None:
    """Resets a function, which has no memory."""


def read_declared(what: str, declared: Mapping[str, Any], read: Callable[..., Thing]) -> dict[str, Thing]:
    """Returns what ``read`` makes of each declared array, by name; errors name the array."""
    made = {}
    for name, one in declared.items():
        try:
            made[name] = read(one)
        except (TypeError, ValueError) as error:
            allowed = "a mapping of 'shape' and 'dtype' is required"
            raise type(error)(f"{what}[{name!r}] is {one!r}; {allowed} ({error})") from error
    return made


def box(shape: Sequence[int], dtype: npt.DTypeLike) -> spaces.Box:
    """Returns the space of all arrays of a shape and dtype."""
    of: Any = np.dtype(dtype)
    low, high = (0.0, 1.0) if of == np.bool_ else (-np.inf, np.inf)
    if of.kind in "iu":
        low, high = np.iinfo(of).min, np.iinfo(of).max
    return spaces.Box(low, high, tuple(shape), of)


def bits_of(dtype: npt.DTypeLike) -> int:
    """Returns the bits of a number of this dtype in a message; a bool takes one."""
    return 1 if np.dtype(dtype) == np.bool_ else 8 * np.dtype(dtype).itemsize


def checked_answer(answer: Any, declared: Mapping[str, spaces.Box], rows: tuple[int, ...]) -> Arrays:
    """Returns an answer with the axes ``(replicas, agents or 1, ...)``.

    Args:
        answer: What the policy has answered.
        declared: Space of each array in an answer, by name.
        rows: Numbers of replicas and agents.

    Raises:
        ValueError: Arrays have wrong names or shapes, or are not finite.
    """
    if not isinstance(answer, Mapping) or answer.keys() != declared.keys():
        found = sorted(answer) if isinstance(answer, Mapping) else answer
        raise ValueError(f"policy answers {found!r}; arrays {sorted(declared)}, as declared, are required")
    checked = {}
    for name, box in declared.items():
        array, shape = np.asarray(answer[name]), (rows[0], *box.shape)
        if array.shape not in (shape, (*rows, *box.shape)):
            raise ValueError(
                f"policy answers {name!r} of shape {array.shape}; {shape} for all, or {(*rows, *box.shape)} for each "
                "of the agents, is required"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"policy answers {name!r} that is not finite; finite numbers are required")
        checked[name] = array[:, np.newaxis] if array.shape == shape else array
    return checked
