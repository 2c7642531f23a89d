"""Runs of SAMBA in the lab: reward, CPU time by role, and what each role could read of the messages it received."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.runs.spec import refusing
from fedbandit_envs.samba.crypto.items import SCORE
from fedbandit_envs.samba.errors import MissingExtraError, SecureError
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind
from fedbandit_envs.samba.runs import SambaSettings, run_samba, seed_or_random

_SHOWN = 12  # most scores, or bytes of a ciphertext that the role cannot decrypt, shown of one message
# The kinds of messages that a role can decrypt, since they are encrypted with its key.
_OPENED = {"comp": (Kind.SCORES,), "customer": (Kind.TOTAL,), "owner": (Kind.MARKS,)}

KNOWS: Mapping[str, str] = {
    "customer": "The cumulative reward, and nothing else: no arm's, no round's.",
    "comp": "Scores under a mask and in an order that are new in every round: it can compare them, and knows neither "
    "whose they are nor how large.",
    "controller": "Who has sent something and when, and ciphertexts of constant length, none of which it can open.",
    "owner": "Its own pulls and rewards, and in each round whether it was picked: nothing of other owners.",
}
"""What each kind of role learns in a run (SAMBA, Figure 7); owners are named ``owner-0``, ``owner-1`` ..."""


@dataclass(frozen=True)
class SambaOutcome:
    """The result of a run of SAMBA in the lab.

    Attributes:
        result: Reward, counts and times of the run, as :func:`~fedbandit_envs.samba.runs.run_samba` returns them.
        open_reward: The cumulative reward of the same run without encryption.
        transcripts: For each role, by its name, the record of the messages that it received; :func:`sightings` makes
            a table of it.
    """

    result: Mapping[str, Any]
    open_reward: int
    transcripts: Mapping[str, Record]

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds by role; ``owners`` is the sum over all owners."""
        spent = Counter[str]()
        for name, seconds in self.result["cpu_seconds"].items():
            spent["owners" if name.startswith("owner-") else name] += seconds
        return dict(spent)


def samba_outcome(
    algorithm: str,
    ratings: str,
    arms: int,
    budget: int,
    seed: int | None,
    advance: Callable[[int], None] = lambda rounds: None,
) -> SambaOutcome:
    """Runs SAMBA once with encryption and once without, on the same seed, to compare the rewards.

    Each data owner is a role of its own, and all roles run in this process.

    Args:
        algorithm: A name of :data:`~fedbandit_envs.samba.owners.algorithm.RULES`.
        ratings: ``"movielens"`` or ``"jester"``.
        arms: Number of arms K.
        budget: Number of rounds N.
        seed: The seed of both runs; None for a secret one.
        advance: Called with the number of rounds played since its last call, for progress bars.

    Raises:
        SettingsError: An argument is out of its range, the algorithm cannot be played under encryption, the
            ``[secure]`` extra is not installed, or a role has ended the run.
    """
    settings = SambaSettings(algorithm, ratings, arms, budget, seed_or_random(seed), owners_per_role=1)
    transcripts: dict[str, Record] = {}
    with refusing(ValueError, TypeError, OSError, SecureError, MissingExtraError):
        result = run_samba(settings, advance, transcripts)
        plain = run_samba(replace(settings, plain=True))
    return SambaOutcome(result, plain["cumulative_reward"], transcripts)


def sightings(role: str, record: Record) -> list[dict[str, Any]]:
    """Returns the messages that a role received, in order, each as a row of the table that shows them.

    A row has the place of the message (``number``, from 1 on), ``sender``, the ``kind`` of message in words, its
    ``size`` in bytes without the encryption of the link, what the receiver could ``read`` in it, in words, and whether
    the receiver decrypted it (``opened``). Other messages are plain to both ends of the link, or ciphertexts that the
    receiver cannot decrypt.

    Args:
        role: The role's name.
        record: Its record, with messages received (by its links) and items decrypted (by its ciphers).
    """
    opened = iter(record.decrypted)
    opens = _OPENED.get(role.partition("-")[0], ())
    rows = []
    for number, (peer, payload) in enumerate(record.received, 1):
        kind, content = Kind(payload[0]), payload[1:]
        # Items were decrypted in the order in which their messages came, so the next one belongs to this message.
        plain = next(opened).plain if kind in opens else None
        rows.append({
            "number": number, "sender": peer, "kind": kind.name.lower().replace("_", " "), "size": len(payload),
            "read": _read(kind, content, plain), "opened": plain is not None,
        })  # fmt: skip
    return rows


def _read(kind: Kind, content: bytes, plain: bytes | None) -> str:
    if kind is Kind.PLAN:
        plan = json.loads(content)
        return f"{plan['algorithm']['name']}, {plan['arms']} arms, {plan['budget']} rounds, picks by {plan['choice']}"
    if kind is Kind.COMMON_SCORE:
        score = np.frombuffer(content[: SCORE.size], "<f8")[0]
        return f"one score of Controller's own for all, {score:.4g}: the round explores"
    if plain is None:
        return f"cannot open it: {content[:_SHOWN].hex(' ')} \u2026"
    if kind is Kind.SCORES:
        scores = np.frombuffer(plain, "<f8")
        shown = [f"{score:.4g}" for score in scores[:_SHOWN]] + ["\u2026"] * (len(scores) > _SHOWN)
        return f"masked, in an order of this round: {', '.join(shown)}"
    if kind is Kind.MARKS:
        return "picked" if plain[0] else "not picked"
    return f"the cumulative reward, {int.from_bytes(plain, 'big'):,}"
