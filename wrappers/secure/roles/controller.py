"""Controller: permutes what it cannot read, and hands out what it cannot read (SAMBA, Figure 6b)."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from fedbandit_envs.arms.masks import Keystream, OwnerKeys, Permutations
from fedbandit_envs.arrays import Array
from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.items import MARK_BYTES, SCORE_BYTES, encrypted_bytes
from fedbandit_envs.wrappers.secure.link import LinkKeys
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.paillier import PublicKey
from fedbandit_envs.wrappers.secure.plan import Algorithm, Plan
from fedbandit_envs.wrappers.secure.roles.role import Message, Role
from fedbandit_envs.wrappers.secure.transcript import Transcript

_SCORE = encrypted_bytes(SCORE_BYTES)
_MARK = encrypted_bytes(MARK_BYTES)


class ControllerKeys(NamedTuple):
    """What Controller alone holds, 32 bytes each; the coin's it shares with the owners."""

    permutation: bytes
    common_score: bytes
    coin: bytes


class Controller(Role):
    """Stands between all others; holds permutations, and no key that opens a score, a mark or a sum."""

    def __init__(
        self,
        links: Mapping[str, LinkKeys],
        owners: Mapping[str, int],
        algorithm: Algorithm,
        keys: ControllerKeys,
        transcript: Transcript | None = None,
    ) -> None:
        """Sets the role up.

        Args:
            links: To ``customer``, ``comp`` and the owners' roles.
            owners: How many owners each of these roles has, in the order of the arms.
            algorithm: Says with the coin when owners explore.
            keys: Of permutations, the common score and the coin.
            transcript: To write down what it sees, or None.
        """
        arms = sum(owners.values())
        super().__init__("controller", links, arms, transcript)
        bounds = pairwise(accumulate(owners.values(), initial=0))
        self._places = {name: slice(*bound) for name, bound in zip(owners, bounds, strict=True)}
        self._permutations = Permutations(keys.permutation, arms)
        self._common_scores = Keystream(keys.common_score)
        self._coin = OwnerKeys(bytes(32), keys.coin, bytes(32), bytes(32))
        self._algorithm = algorithm
        self._arms = arms
        self._plan: Plan | None = None
        self._sent: dict[str, bytes] = {}
        self._asked = False
        self._iteration = 0
        self._exploring = False

    def waits_for(self) -> list[str]:
        """Waits for the customer's plan, for owners who have not sent their part yet, or for Comp."""
        if self.done:
            return []
        if self._plan is None:
            return ["customer"]
        return ["comp"] if self._asked else [name for name in self._places if name not in self._sent]

    def needs(self, peer: str) -> bool:
        """Says whether something is still to come from a peer: from Comp and owners until they have sent their last."""
        if self.done or self._plan is None or self.round <= self._plan.budget:
            return not self.done
        return peer == "customer" or (peer in self._places and peer not in self._sent)

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if peer not in self.waits_for():
            raise self._unexpected(peer, kind)
        if self._plan is None and kind is Kind.PLAN:
            return self._begin(content)
        if self._plan is not None and self._asked and kind is Kind.MARKS:
            return self._hand_out(self._plan, content)
        if self._plan is not None and not self._asked:
            if kind is Kind.SCORES and self.round <= self._plan.budget:
                return self._gather(peer, content, _SCORE)
            if kind is Kind.SUMS and self.round > self._plan.budget:
                return self._gather(peer, content, self._key.ciphertext_bytes)
        raise self._unexpected(peer, kind)

    def _begin(self, content: bytes) -> list[Message]:
        """Step 1: hands the plan on."""
        plan, modulus = Plan.read(content)
        if plan.arms != self._arms:
            raise ProtocolError(f"the plan is for {plan.arms} owners; there are {self._arms}")
        if plan.algorithm != self._algorithm:
            raise ProtocolError(
                f"the plan is for {plan.algorithm}; Controller was set up for {self._algorithm}"
            )
        self._key = PublicKey(modulus, self.counts)
        self._explores = self._algorithm.bank([self._coin], self._arms, plan.budget).explores
        self._plan = plan
        self.round, self.budget = self._arms + 1, plan.budget
        told = [Message("comp", Kind.PLAN, plan.as_bytes())]
        told += [Message(name, Kind.PLAN, plan.as_bytes(modulus)) for name in self._places]
        return told + self._turn(plan)

    def _turn(self, plan: Plan) -> list[Message]:
        """Begins a round: one that explores goes to Comp without the owners."""
        self._exploring = self._iteration == 0 and self.round <= plan.budget and self._explores(self.round)
        if not self._exploring:
            return []
        score = np.float64(self._common_scores.uniform(self.round)).astype("<f8").tobytes()
        self._asked = True
        return [Message("comp", Kind.COMMON_SCORE, score.ljust(self._arms * _SCORE, b"\0"))]

    def _gather(self, peer: str, content: bytes, width: int) -> list[Message]:
        """Steps 2 and 6: keeps an owner's part; the last one completes the list."""
        place = self._places[peer]
        if len(content) != (place.stop - place.start) * width:
            raise ProtocolError(
                f"{peer} sent {len(content)} bytes; {(place.stop - place.start) * width} are required", peer
            )
        sent = {**self._sent, peer: content}
        if len(sent) < len(self._places):
            self._sent = sent
            return []
        together = b"".join(sent[name] for name in self._places)
        if width == _SCORE:
            permuted = _rows(together, _SCORE)[self._permutations.order(self.round, self._iteration)]
            self._sent, self._asked = {}, True
            return [Message("comp", Kind.SCORES, permuted.tobytes())]
        total = self._key.add(together[i : i + width] for i in range(0, len(together), width))
        self._sent, self.done = {}, True
        return [Message("customer", Kind.TOTAL, total)]

    def _hand_out(self, plan: Plan, content: bytes) -> list[Message]:
        """Step 5: undoes the permutation and gives each owner its mark."""
        if len(content) != self._arms * _MARK:
            raise ProtocolError(f"comp sent {len(content)} bytes; {self._arms * _MARK} are required", "comp")
        marks = np.empty((self._arms, _MARK), np.uint8)
        marks[self._permutations.order(self.round, self._iteration)] = _rows(content, _MARK)
        told = [Message(name, Kind.MARKS, marks[place].tobytes()) for name, place in self._places.items()]
        self._asked = False
        self._iteration += 1
        if self._exploring or self._iteration == plan.iterations:
            self.round, self._iteration = self.round + 1, 0
        return told + self._turn(plan)


def _rows(items: bytes, width: int) -> Array:
    return np.frombuffer(items, np.uint8).reshape(-1, width)
