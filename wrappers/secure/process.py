"""One role in a process of its own."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from time import monotonic, process_time

from fedbandit_envs.wrappers.secure.casting import cast
from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import SecureError
from fedbandit_envs.wrappers.secure.keys import Keyring
from fedbandit_envs.wrappers.secure.plan import Algorithm
from fedbandit_envs.wrappers.secure.roles.customer import Customer
from fedbandit_envs.wrappers.secure.session import HUB
from fedbandit_envs.wrappers.secure.tcp import connect, listen

_SECONDS_BETWEEN_REPORTS = 0.2


@dataclass(frozen=True)
class Report:
    """What a role tells once its part is done.

    Attributes:
        role: Its name.
        counts: What it has done.
        cpu_seconds: Of its part, from setting the role up; without starting a process.
        reward: The cumulative reward: the customer's; None for all others.
    """

    role: str
    counts: Counts
    cpu_seconds: float
    reward: int | None = None


@dataclass(frozen=True)
class Part:
    """What one role needs to play its part on the network.

    Attributes:
        keyring: What it holds.
        address: Where Controller listens.
        timeout: Seconds; whoever is waited for longer counts as hung.
        algorithm: What is played; None for Comp.
        budget: N; the customer's.
        means: Of an owners' role's own arms.
    """

    keyring: Keyring
    address: str
    timeout: float
    algorithm: Algorithm | None = None
    budget: int | None = None
    means: Sequence[float] = ()

    def play(
        self,
        listening: Callable[[int], None] = lambda port: None,
        progress: Callable[[int, int], None] = lambda round_, rounds: None,
    ) -> Report:
        """Plays the part to its end.

        Args:
            listening: Told of the port that Controller listens at.
            progress: Told of the round when it changes, and of how many there are.

        Raises:
            ValueError: The part lacks something, or its address needs TLS.
            OSError: Nothing can listen there.
            SecureError: The run has ended without a result.
        """
        before = process_time()
        role = cast(self.keyring, algorithm=self.algorithm, budget=self.budget, means=self.means)
        certificate = self.keyring.certificate
        if role.name == HUB:
            coroutine = listen(role, self.address, certificate, self.timeout, listening, progress)
        else:
            coroutine = connect(role, self.address, certificate, self.timeout, progress)
        asyncio.run(coroutine)
        spent = process_time() - before
        return Report(role.name, role.counts, spent, role.reward if isinstance(role, Customer) else None)


def play_in_child(part: Part, pipe: Pipe) -> None:
    """Plays a part and tells through a pipe what happens: ``(event, value)``."""
    last = 0.0

    def progress(round_: int, rounds: int) -> None:
        nonlocal last
        if monotonic() - last > _SECONDS_BETWEEN_REPORTS:
            last = monotonic()
            pipe.send(("round", round_))

    try:
        pipe.send(("done", part.play(lambda port: pipe.send(("listening", port)), progress)))
    except Exception as error:
        culprit = getattr(error, "culprit", "") or part.keyring.role
        known = isinstance(error, SecureError | ValueError | TypeError | OSError)
        pipe.send(("failed", (culprit, str(error) if known else repr(error))))
        sys.exit(1)
