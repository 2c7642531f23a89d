"""Editions: the randomness of one occasion on which a suite is run.

Evaluation seeds follow from the suite and a salt, which is published with every row: entries of one edition have common
random numbers, and nobody knows the seeds before the edition is opened. Noise, and the choice of rows that are replayed
alone, follow from a secret of the edition's operator. The noise entropy of a row is published with the
row, and reveals nothing about other rows.
"""

import hashlib
import hmac
import secrets
from dataclasses import asdict
from typing import NamedTuple, Self

from fedbandit_envs.leaderboard.board.result import Edition, Entry, canonical
from fedbandit_envs.leaderboard.board.suites import Suite, Task

_BYTES = 16


class EditionSecrets(NamedTuple):
    """An edition together with its secret.

    Attributes:
        edition: The edition, which is published.
        secret: 32 bytes that only the operators of the edition know.
    """

    edition: Edition
    secret: bytes

    @classmethod
    def draw(cls) -> Self:
        """Returns a new edition, drawn from the operating system's entropy."""
        return cls(Edition.of(secrets.token_hex(_BYTES)), secrets.token_bytes(32))

    def entropy(self, purpose: str, suite: Suite, track: str, entry: Entry, task: Task) -> int:
        """Returns 128 bits for one purpose of one entry's run of one task, by HMAC-SHA256 with the secret.

        The same run has the same bits, so that it can be stopped and started again; every other run has others, and
        none reveals the secret.

        Args:
            purpose: ``noise``, or ``watch`` for the choice of rows that are replayed alone.
            suite: The suite.
            track: The track's name.
            entry: The entry.
            task: The task.
        """
        of = [purpose, suite.name, suite.version, asdict(self.edition), track, asdict(entry), task.digest]
        return int.from_bytes(hmac.digest(self.secret, canonical(of).encode(), "sha256")[:_BYTES])


def evaluation_seeds(suite: Suite, task: Task, edition: Edition) -> list[int]:
    """Returns a task's evaluation seeds in an edition, 128 bits each."""
    named = (
        ["seed", suite.name, suite.version, edition.salt, task.id, number] for number in range(task.seeds)
    )
    digests = (hashlib.sha256(canonical(name).encode()).digest() for name in named)
    return [int.from_bytes(digest[:_BYTES]) for digest in digests]
