"""Runs of SAMBA for who wants to look: reward, time by role, and what each role got to see, message by message."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.leaderboard.run import SettingsError
from fedbandit_envs.leaderboard.samba import SambaSettings, run_samba, seed_of
from fedbandit_envs.wrappers.secure.errors import MissingExtraError, SecureError
from fedbandit_envs.wrappers.secure.items import SCORE_BYTES
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.transcript import Transcript

OWNERS = "owners"

_SHOWN_BYTES = 12
_SHOWN_SCORES = 12
_MORE = ", \u2026"
# What the receiver of such a message may open, and with which key.
_OPENED = {"comp": (Kind.SCORES,), "customer": (Kind.TOTAL,), "owner": (Kind.MARKS,)}

KNOWS: Mapping[str, str] = {
    "customer": "The cumulative reward, and nothing else: no arm's, no round's.",
    "comp": "Scores under a mask and in an order that are new in every round: it can compare them, and knows neither "
    "whose they are nor how large.",
    "controller": "Who has sent something and when, and ciphertexts of constant length, none of which it can open.",
    "owner": "Its own pulls and rewards, and in each round whether it was picked: nothing of other owners.",
}
"""What the protocol lets each role know (SAMBA, Figure 7)."""


class Sighting(NamedTuple):
    """A message as its receiver saw it.

    Attributes:
        number: Of the message among those that the role received, from 1 on.
        sender: The role that it came from.
        kind: What it is.
        size: Bytes of it, without the link's own seal.
        read: What the receiver could make of it, in words.
        opened: Whether it was encrypted for the receiver's eyes, who has opened it; a message that was not is either
            in the open between the two, or nothing but bytes.
    """

    number: int
    sender: str
    kind: str
    size: int
    read: str
    opened: bool


@dataclass(frozen=True)
class SambaOutcome:
    """What a run has led to.

    Attributes:
        result: See :func:`~fedbandit_envs.leaderboard.samba.run_samba`.
        open_reward: What the same run in the open has earned.
        transcripts: What each role saw, by its name; see :func:`sightings`.
    """

    result: Mapping[str, Any]
    open_reward: int
    transcripts: Mapping[str, Transcript]

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds by role, those of all owners together."""
        spent: dict[str, float] = {}
        for name, seconds in self.result["cpu_seconds"].items():
            role = OWNERS if name.startswith("owner-") else name
            spent[role] = spent.get(role, 0.0) + seconds
        return spent


def samba_outcome(
    algorithm: str,
    ratings: str,
    arms: int,
    budget: int,
    seed: int | None,
    advance: Callable[[int], None] = lambda rounds: None,
) -> SambaOutcome:
    """Runs SAMBA with a role for each owner, all in this process, and the same in the open.

    Args:
        algorithm: One of :func:`.choices.algorithms`.
        ratings: ``"movielens"`` or ``"jester"``.
        arms: K.
        budget: N.
        seed: Of both runs; None for one that nobody knows.
        advance: Told of rounds played, for progress bars.

    Raises:
        SettingsError: It cannot be run: an argument is out of its range, the algorithm cannot be played in secret, the
            ``[secure]`` extra is not installed, or a role has ended the run.
    """
    settings = SambaSettings(algorithm, ratings, arms, budget, seed_of(seed), owners_per_role=1)
    transcripts: dict[str, Transcript] = {}
    try:
        result = run_samba(settings, advance, transcripts)
        in_the_open = run_samba(replace(settings, plain=True))
    except (ValueError, TypeError, OSError, SecureError, MissingExtraError) as error:
        raise SettingsError(str(error)) from error
    return SambaOutcome(result, in_the_open["cumulative_reward"], transcripts)


def sightings(role: str, transcript: Transcript) -> Iterator[Sighting]:
    """Yields what a role has received, in order, and what it could make of it.

    Args:
        role: Its name.
        transcript: What its links and its ciphers have written down.
    """
    opened = iter(transcript.opened)
    opens = _OPENED.get(kind_of(role), ())
    for number, (peer, payload) in enumerate(transcript.received, 1):
        kind, content = Kind(payload[0]), payload[1:]
        # What it could open its cipher has written down, in the order of the messages.
        plain = next(opened).plain if kind in opens else None
        words = kind.name.lower().replace("_", " ")
        yield Sighting(number, peer, words, len(payload), _read(kind, content, plain), plain is not None)


def kind_of(role: str) -> str:
    """Returns what sort of role a name is of; see :data:`KNOWS`."""
    return role.partition("-")[0]


def _read(kind: Kind, content: bytes, plain: bytes | None) -> str:
    if kind is Kind.PLAN:
        plan = json.loads(content)
        return f"{plan['algorithm']['name']}, {plan['arms']} arms, {plan['budget']} rounds, picks by {plan['choice']}"
    if kind is Kind.COMMON_SCORE:
        score = np.frombuffer(content[:SCORE_BYTES], "<f8")[0]
        return f"one score of Controller's own for all, {score:.4g}: the round explores"
    if plain is None:
        return f"cannot open it: {content[:_SHOWN_BYTES].hex(' ')} \u2026"
    if kind is Kind.SCORES:
        scores = np.frombuffer(plain, "<f8")
        shown = ", ".join(f"{score:.4g}" for score in scores[:_SHOWN_SCORES])
        return f"masked, in an order of this round: {shown}{_MORE if len(scores) > _SHOWN_SCORES else ''}"
    if kind is Kind.MARKS:
        return "picked" if plain[0] else "not picked"
    return f"the cumulative reward, {int.from_bytes(plain, 'big'):,}"
