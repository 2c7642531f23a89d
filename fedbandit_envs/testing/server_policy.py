"""Conformance checks of server policies."""

from copy import deepcopy
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.testing.assertions import require, require_same, taken
from fedbandit_envs.testing.episodes import Make, Trial, copied

HORIZON = 40
"""Number of rounds that a server policy plays."""


def check_server_policy(policy: Any, make_env: Make) -> None:
    """Checks that a server's answers and questions to a replica follow from that replica's uploads and seed alone.

    The protocol is :class:`~fedbandit_envs.wrappers.transport.server_policy.ServerPolicy`. One episode is played, in
    which agents act and upload at random; its uploads and reports are then given to the policy again: after another
    reset, replica by replica, and in arrays that are overwritten after each call. Names, shapes, dtypes and bounds of
    answers must be as declared, and all numbers finite. The policy must not write into what it is given.

    Args:
        policy: The policy, as :class:`~fedbandit_envs.wrappers.Server` accepts it; it is copied.
        make_env: A function that makes the federation inside of the server. It should be small; each call must make a
            new one.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    # Wrappers are a higher layer of the package, imported when they are used.
    server, make_server_policy, declared_spaces = (
        resolve(f"fedbandit_envs.wrappers.transport.{name}")
        for name in ("server:Server", "server_policy:make_server_policy", "server_policy:declared_spaces")
    )
    recorder = _Recorder(deepcopy(make_server_policy(policy)))
    trial = Trial(lambda: server(make_env(), "on_request", policy=recorder), rounds=HORIZON)
    try:
        trial.episode()
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"the server refuses the policy's reply, or the policy fails: {error!r}"
        ) from error
    declared = recorder.downloads
    boxes = declared_spaces(declared(recorder.spec) if callable(declared) else declared)
    for name, box in boxes.items():
        for found in (np.asarray(calls[-1][2][name]) for calls in recorder.conversations):
            require(
                found.dtype == box.dtype and bool(((found >= box.low) & (found <= box.high)).all()),
                f"answer {name!r} is {found.dtype} from {found.min()} to {found.max()}; an element of {box}, as "
                "declared in downloads, is required",
            )
    everything = slice(None)
    recorder.require_same(
        "an episode and its repetition after reset",
        recorder.policy,
        everything,
        "let reset forget everything",
    )
    recorder.require_same(
        "an episode and its repetition with arrays that are overwritten after each call",
        deepcopy(make_server_policy(policy)),
        everything,
        "copy what is to be kept of uploads and mask, and draw from the seeds given to reset only",
        overwrite=True,
    )
    alone = deepcopy(make_server_policy(policy))
    for r in range(len(recorder.seeds)):
        recorder.require_same(
            f"replica {r}, alone and among the others",
            alone,
            slice(r, r + 1),
            "a replica's answers may depend on its own uploads and seed alone, and may not change without uploads",
        )


class _Recorder:
    """A server policy that passes everything on to another one, and records it.

    Attributes:
        policy: The other policy.
        downloads: What it declares.
        spec: Description of the environment, of the last reset.
        seeds: Seed of each replica, of the last reset.
        conversations: For each answer the calls up to it: copies of uploads, mask and reply.
    """

    def __init__(self, policy: Any) -> None:
        self.policy, self.downloads = policy, policy.downloads

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Recorder":
        # Servers copy their policies; what is recorded is read from this object.
        return self

    def reset(self, spec: Any, seeds: Array) -> None:
        self.spec, self.seeds = spec, seeds
        self.conversations: list[list[tuple[Arrays, Array, Any]]] = []
        self._asked = False
        self.policy.reset(spec, seeds)

    def answer(self, uploads: Arrays, mask: Array) -> Any:
        if not self._asked:
            self.conversations.append([])
        call = copied(uploads), mask.copy()
        reply = self.policy.answer(uploads, mask)
        self._asked = _asks(reply)
        self.conversations[-1].append((*call, _copied(reply, call[1])))
        return reply

    def require_same(
        self, what: str, policy: Any, replicas: slice, required: str, overwrite: bool = False
    ) -> None:
        """Requires that a policy replies to some of the replicas as was recorded.

        Args:
            what: Description of the two episodes, for the error message.
            policy: The policy, which is reset.
            replicas: The replicas that it is given.
            required: What is required and where to correct it, for the error message.
            overwrite: Whether its inputs are overwritten after each call.
        """
        policy.reset(self.spec, self.seeds[replicas])
        for calls in self.conversations:
            due = bool(calls[0][1][replicas].any())
            for uploads, mask, reply in calls:
                if not due:
                    break
                given, marks = taken(uploads, replicas), mask[replicas]
                if overwrite:
                    given, marks = copied(given), marks.copy()
                found = _copied(policy.answer(given, marks), mask[replicas])
                if overwrite:
                    for array in (*given.values(), marks):
                        array.fill(1)
                due = _asks(reply) and bool(reply.who[replicas].any())
                expected = _rows(reply if due else calls[-1][2], replicas)
                require_same(
                    f"of {what}, the server's reply",
                    found,
                    expected,
                    f"equality is required: {required}",
                )


def _asks(reply: Any) -> bool:
    """Returns whether a reply is a question, an ``Ask``, and no answer by name."""
    return isinstance(reply, tuple)


def _copied(reply: Any, mask: Array) -> Any:
    """Returns a reply with a copy of every array, and with agents' marks if it asks those in ``mask``."""
    if not _asks(reply):
        return copied(reply)
    return reply._replace(
        question=copied(reply.question), who=np.array(mask if reply.who is None else reply.who)
    )


def _rows(reply: Any, replicas: slice) -> Any:
    """Returns the part of a reply that belongs to some replicas."""
    if not _asks(reply):
        return taken(reply, replicas)
    return reply._replace(question=taken(reply.question, replicas), who=reply.who[replicas])
