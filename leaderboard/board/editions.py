"""Editions: what all that is drawn follows from, when a suite is run.

Seeds follow from the suite and a salt, which is published: entries of an edition meet the same luck, and before it is
opened nobody knows which. Noise, and which rows are played alone as well, follow from a secret that stays with who runs
the edition; what followed from it for a row is published with the row, which says nothing of other rows.
"""

import hashlib
import hmac
import secrets
from dataclasses import asdict
from typing import NamedTuple

from fedbandit_envs.leaderboard.board.canonical import canonical
from fedbandit_envs.leaderboard.board.result import Edition, Entry
from fedbandit_envs.leaderboard.board.suites import Suite, Task

_BYTES = 16


class Opened(NamedTuple):
    """An edition with what only those who run it know.

    Attributes:
        edition: What is published.
        secret: What is not.
    """

    edition: Edition
    secret: bytes

    def entropy(self, purpose: str, suite: Suite, track: str, entry: Entry, task: Task) -> int:
        """Returns 128 bits for one purpose of one entry's play of one task.

        The same play has the same ones, so that it can be stopped and started again; any other has others. Who knows
        some of them knows nothing of the secret.

        Args:
            purpose: What they are for.
            suite: The suite.
            track: The track's name.
            entry: Who plays.
            task: What is played.
        """
        of = [purpose, suite.name, suite.version, asdict(self.edition), track, asdict(entry), task.digest]
        return int.from_bytes(hmac.digest(self.secret, canonical(of).encode(), "sha256")[:_BYTES])


def draw() -> Opened:
    """Draws an edition from the operating system's entropy."""
    return Opened(edition_of(secrets.token_hex(_BYTES)), secrets.token_bytes(32))


def edition_of(salt: str) -> Edition:
    """Returns the edition of a salt."""
    return Edition(hashlib.sha256(f"edition {salt}".encode()).hexdigest()[:12], salt)


def evaluation_seeds(suite: Suite, task: Task, edition: Edition) -> list[int]:
    """Returns the seeds of a task, 128 bits each."""
    return [
        int.from_bytes(
            hashlib.sha256(
                canonical(["seed", suite.name, suite.version, edition.salt, task.id, number]).encode()
            ).digest()[:_BYTES]
        )
        for number in range(task.seeds)
    ]


def as_hex(number: int) -> str:
    """Returns 128 bits as 32 hexadecimal digits."""
    return f"{number:032x}"
