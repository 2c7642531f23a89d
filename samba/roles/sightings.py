"""What a role of SAMBA could read of the messages that it received, in words, from its transcript.

A transcript is the :class:`~fedbandit_envs.samba.record.Record` that a run keeps for each role on request.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.samba.crypto.items import SCORE
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind

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
