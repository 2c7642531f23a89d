"""Data owners: each keeps its arm, its rewards and its policy to itself (SAMBA, Figure 6a).

A group is one owner, or several who share a machine. What an owner sends follows from its own data alone, so the result
of a run is the same, to the last bit, however owners are grouped.
"""

from collections.abc import Sequence

import numpy as np

from fedbandit_envs.samba.crypto.items import MARK, SCORE, ItemCipher
from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.keystreams import Keystream
from fedbandit_envs.samba.crypto.link import MAX_ENCRYPTIONS
from fedbandit_envs.samba.crypto.paillier import PublicKey
from fedbandit_envs.samba.errors import ProtocolError
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.owners.arm import OwnerArm
from fedbandit_envs.samba.owners.bank import OwnerBank
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind, Message
from fedbandit_envs.samba.roles.role import Role


class OwnerGroup(Role):
    """The role of the owners of one group; they share with Comp the key of scores and marks.

    Attributes:
        bank: Their pulls, rewards and scores, once the plan has been received.
    """

    bank: OwnerBank

    def __init__(
        self, keyring: Keyring, algorithm: Algorithm, means: Sequence[float], record: Record
    ) -> None:
        """Sets the role up.

        Args:
            keyring: The group's keys.
            algorithm: The algorithm that the owners have agreed to; a plan with another is refused.
            means: Means of the owners' arms: their data.
            record: An empty record.

        Raises:
            TypeError: The algorithm does not know a parameter.
            ValueError: The number of means is not that of owners, a mean is no probability, or the algorithm cannot be
                played.
        """
        super().__init__(keyring, algorithm, record)
        self._keys = keyring.owners
        size = len(self._keys)
        if len(means) != size:
            raise ValueError(f"{self.name} has {len(means)} means; {size}, one for each owner, are required")
        self._own = [OwnerArm(mean, own.reward) for mean, own in zip(means, self._keys, strict=True)]
        self.algorithm: Algorithm = algorithm
        self._masks = Keystream(self._keys[0].mask)
        # All owners together encrypt as many scores as Comp encrypts marks.
        allowed = MAX_ENCRYPTIONS // 2 * size // self.arms
        self._cipher = ItemCipher(keyring.secrets["cipher"], allowed, record)
        self._exploring = False
        self._load_kernels()

    def _load_kernels(self) -> None:
        """Plays a round that is thrown away, so that nobody waits for compiled code to be loaded during the run."""
        bank = self.algorithm.bank(self._keys, self.arms, self.arms + 1)
        for place in range(len(self._own)):
            bank.observe(place, 0)
        for iteration in range(bank.iterations):
            bank.scores(self.arms + 1, iteration)
            bank.mark(self.arms + 1, iteration, np.zeros(len(self._own), np.bool_))

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Step 1: receives the plan; every owner pulls its arm once."""
        bank = self.algorithm.bank(self._keys, plan.arms, plan.budget)
        if (bank.choice, bank.iterations) != (plan.choice, plan.iterations):
            raise ProtocolError(
                f"the plan picks by {plan.choice} in {plan.iterations} iterations; {self.algorithm.name} by "
                f"{bank.choice} in {bank.iterations}"
            )
        self._key = PublicKey(modulus, self.record)
        self.bank = bank
        for place, arm in enumerate(self._own):
            bank.observe(place, arm.pull())
        return []

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Step 2, or step 6 after the last round; owners send nothing in a round of exploration."""
        if self.round > plan.budget:
            self.done = True
            sums = b"".join(map(self._key.encrypt, self.bank.sums))
            return [Message("controller", Kind.SUMS, sums)]
        self._exploring = self.iteration == 0 and self.bank.explores(self.round)
        if self._exploring:
            return []
        at = self.round, self.iteration
        masked = self._masks.uniform(*at) * self.bank.scores(*at)
        encrypted = self._cipher.encrypt(masked.astype("<f8", copy=False).tobytes(), SCORE, *at)
        return [Message("controller", Kind.SCORES, encrypted)]

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Step 5: decrypts the marks; the owner picked in the last iteration pulls its arm."""
        if kind is not Kind.MARKS:
            raise self._unexpected(peer, kind)
        marks = self._cipher.decrypt(content, len(self._own), MARK, self.round, self.iteration)
        place = marks.find(1)
        if marks.count(0) + (place >= 0) != len(marks):
            raise ProtocolError(
                f"marks of round {self.round} are {list(marks)}; zeros and at most one 1 are required"
            )
        if not self._exploring:
            self.bank.mark(self.round, self.iteration, np.frombuffer(marks, np.bool_).copy())
        if self._close_iteration(plan, self._exploring) and place >= 0:
            self.bank.observe(place, self._own[place].pull())
        return self._open_iteration(plan)
