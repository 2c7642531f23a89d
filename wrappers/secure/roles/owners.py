"""Data owners: each keeps its arm, its rewards and its policy to itself (SAMBA, Figure 6a).

A role has the owners of one house: one of them, or several who share a machine. Their policies are rows of a bank, and
what an owner sends follows from its own row alone, so a run is the same, to the bit, however owners are spread.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fedbandit_envs.arms.masks import Keystream, OwnerKeys
from fedbandit_envs.arms.vertical import OwnerArm, OwnerBank
from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.items import (
    MARK_BYTES,
    MARKS_DIRECTION,
    SCORE_BYTES,
    SCORES_DIRECTION,
    ItemCipher,
    bound_to,
)
from fedbandit_envs.wrappers.secure.link import MOST_ENCRYPTIONS, LinkKeys
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.paillier import PublicKey
from fedbandit_envs.wrappers.secure.plan import Algorithm, Plan
from fedbandit_envs.wrappers.secure.roles.role import Message, Role
from fedbandit_envs.wrappers.secure.transcript import Transcript


class Owners(Role):
    """The owners of one house; they share the key that Comp opens scores with.

    Attributes:
        bank: Their policies, pulls and rewards, once they have heard the plan.
    """

    bank: OwnerBank

    def __init__(
        self,
        name: str,
        links: Mapping[str, LinkKeys],
        arms: int,
        means: Sequence[float],
        algorithm: Algorithm,
        keys: Sequence[OwnerKeys],
        cipher_key: bytes,
        transcript: Transcript | None = None,
    ) -> None:
        """Sets the role up.

        Args:
            name: Of the role.
            links: To ``controller``.
            arms: Number of owners in all houses, K.
            means: Of the arms of this house's owners: their data.
            algorithm: What they have agreed to play; a plan for another is refused.
            keys: Of these owners.
            cipher_key: Of owners and Comp.
            transcript: To write down what they see, or None.

        Raises:
            TypeError: The algorithm does not know a parameter.
            ValueError: There is not one mean for each owner, or it is no probability; the algorithm is unknown.
        """
        super().__init__(name, links, arms, transcript)
        if len(means) != len(keys):
            raise ValueError(f"{name} has {len(means)} means; {len(keys)}, one for each owner, are required")
        size = len(keys)
        self._arms = arms
        self._own = [OwnerArm(mean, own.reward) for mean, own in zip(means, keys, strict=True)]
        self._algorithm = algorithm
        self._keys = list(keys)
        self._masks = Keystream(keys[0].mask)
        # All owners together encrypt as many scores as Comp encrypts marks.
        most = MOST_ENCRYPTIONS // 2 * size // arms
        self._cipher = ItemCipher(cipher_key, most, self.counts, transcript)
        self._plan: Plan | None = None
        self._iteration = 0
        self._exploring = False
        self._rehearse()

    def waits_for(self) -> list[str]:
        """Waits for the plan, or for marks."""
        return [] if self.done else ["controller"]

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if self._plan is None and kind is Kind.PLAN:
            return self._begin(content)
        if self._plan is None or self.done or kind is not Kind.MARKS:
            raise self._unexpected(peer, kind)
        bound = bound_to(MARKS_DIRECTION, self.round, self._iteration)
        marks = self._cipher.decrypt(content, len(self._own), MARK_BYTES, bound)
        place = marks.find(1)
        if marks.count(0) + (place >= 0) != len(marks):
            raise ProtocolError(
                f"marks of round {self.round} are {list(marks)}; zeros and at most one 1 are required"
            )
        if not self._exploring:
            self.bank.mark(self.round, self._iteration, np.frombuffer(marks, np.bool_).copy())
        self._iteration += 1
        if self._exploring or self._iteration == self._plan.iterations:
            if place >= 0:
                self.bank.observe(place, self._own[place].pull())
            self.round, self._iteration = self.round + 1, 0
        return self._turn(self._plan)

    def _rehearse(self) -> None:
        """Plays a round in vain, so that nobody waits for kernels to be loaded once the run goes on."""
        bank = self._algorithm.bank(self._keys, self._arms, self._arms + 1)
        for place in range(len(self._own)):
            bank.observe(place, 0)
        for iteration in range(bank.iterations):
            bank.scores(self._arms + 1, iteration)
            bank.mark(self._arms + 1, iteration, np.zeros(len(self._own), np.bool_))

    def _begin(self, content: bytes) -> list[Message]:
        """Step 1: hears the plan; everybody pulls its arm once."""
        plan, modulus = Plan.read(content)
        if plan.algorithm != self._algorithm or plan.arms != self._arms:
            raise ProtocolError(
                f"the plan is for {plan.arms} owners and {plan.algorithm}; {self.name} has agreed to {self._arms} and "
                f"{self._algorithm}"
            )
        bank = self._algorithm.bank(self._keys, plan.arms, plan.budget)
        if (bank.choice, bank.iterations) != (plan.choice, plan.iterations):
            raise ProtocolError(
                f"the plan picks by {plan.choice} in {plan.iterations} iterations; {self._algorithm.name} by "
                f"{bank.choice} in {bank.iterations}"
            )
        self._key = PublicKey(modulus, self.counts)
        self.bank = bank
        for place, arm in enumerate(self._own):
            bank.observe(place, arm.pull())
        self._plan = plan
        self.round, self.budget = plan.arms + 1, plan.budget
        return self._turn(plan)

    def _turn(self, plan: Plan) -> list[Message]:
        """Step 2, or 6 once the budget is spent; in a round that explores owners send nothing."""
        if self.round > plan.budget:
            self.done = True
            sums = b"".join(map(self._key.encrypt, self.bank.sums))
            return [Message("controller", Kind.SUMS, sums)]
        self._exploring = self._iteration == 0 and self.bank.explores(self.round)
        if self._exploring:
            return []
        at = self.round, self._iteration
        masked = self._masks.uniform(*at) * self.bank.scores(*at)
        bound = bound_to(SCORES_DIRECTION, *at)
        encrypted = self._cipher.encrypt(masked.astype("<f8", copy=False).tobytes(), SCORE_BYTES, bound)
        return [Message("controller", Kind.SCORES, encrypted)]
