"""Conformance checks of server policies."""

from copy import deepcopy
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.testing.assertions import mapped, require, require_same, taken
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
        first: The first answer that the last reset returned, empty without one.
        conversations: For each answer the calls up to it: copies of uploads, mask, reply, and who is asked.
    """

    def __init__(self, policy: Any) -> None:
        self.policy, self.downloads = policy, policy.downloads

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Recorder":
        # Servers copy their policies; what is recorded is read from this object.
        return self

    def reset(self, spec: Any, seeds: Array) -> Any:
        self.spec, self.seeds = spec, seeds
        self.conversations: list[list[tuple[Arrays, Array, Any, Array]]] = []
        self._asked = False
        first = self.policy.reset(spec, seeds)
        self.first = copied({} if first is None else first)
        return first

    def answer(self, uploads: Arrays, mask: Array) -> Any:
        if not self._asked:
            self.conversations.append([])
        kept = copied(uploads), mask.copy()
        reply = self.policy.answer(uploads, mask)
        plain, who = _plain(reply, kept[1])
        self.conversations[-1].append((*kept, plain, who))
        self._asked = bool(who.any())
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
        first = policy.reset(self.spec, self.seeds[replicas])
        require_same(
            f"of {what}, the server's first answer",
            copied({} if first is None else first),
            taken(self.first, replicas),
            f"equality is required: {required}",
        )
        for calls in self.conversations:
            due = calls[0][1][replicas].any()
            for uploads, mask, reply, who in calls:
                if not due:
                    break
                given = copied({"mask": mask[replicas], "uploads": taken(uploads, replicas)})
                found, _ = _plain(policy.answer(given["uploads"], given["mask"]), mask[replicas])
                if overwrite:
                    mapped(lambda array: array.fill(1), given)
                due = who[replicas].any()
                # A replica that is not asked any more gets the answer at the end of the conversation.
                expected = taken(reply if due else calls[-1][2], replicas)
                require_same(
                    f"of {what}, the server's reply", found, expected, f"equality is required: {required}"
                )


def _plain(reply: Any, mask: Array) -> tuple[Any, Array]:
    """Returns copies of a reply's arrays, and who is asked, bool ``(replicas, agents)``, nobody in an answer."""
    if not isinstance(reply, tuple):
        return copied(reply), np.zeros_like(mask)
    question, who = reply
    who = np.array(mask if who is None else who)
    return {"question": copied(question), "who": who}, who
