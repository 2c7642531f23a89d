"""Controller, which permutes encrypted scores and hands out encrypted marks (SAMBA, Figure 6b)."""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.samba.crypto.items import MARK, SCORE
from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.keystreams import Keystream, OwnerKeys, Permutations
from fedbandit_envs.samba.crypto.paillier import PublicKey
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind, Message
from fedbandit_envs.samba.roles.role import Role


class Controller(Role):
    """The role between all others; it holds the permutations, and no key that decrypts a score, a mark or a sum."""

    def __init__(self, keyring: Keyring, algorithm: Algorithm, record: Record) -> None:
        """Sets the role up.

        Args:
            keyring: Controller's keys.
            algorithm: The algorithm of the run, which says together with the coin in which rounds owners explore.
            record: An empty record.
        """
        super().__init__(keyring, algorithm, record)
        secrets = keyring.secrets
        self._group_arms = keyring.group_arms
        self._permutations = Permutations(secrets["permutation"], self.arms)
        self._common_scores = Keystream(secrets["common_score"])
        # A bank of one owner, of which nothing but the common coin is used.
        self._coin = OwnerKeys(bytes(32), secrets["coin"], bytes(32), bytes(32))
        self.algorithm: Algorithm = algorithm
        self._received: dict[str, bytes] = {}
        self._asked_comp = False
        self._exploring = False

    def waits_for(self) -> list[str]:
        """Returns the customer before the plan, Comp while it picks, else the groups of owners that are awaited."""
        if self.done:
            return []
        if self.plan is None:
            return ["customer"]
        if self._asked_comp:
            return ["comp"]
        return [name for name in self._group_arms if name not in self._received]

    def needs(self, peer: str) -> bool:
        """Returns whether a peer still has to send something; Comp and owners only until they have sent their last."""
        if self.done or self.plan is None or self.round <= self.plan.budget:
            return not self.done
        return peer == "customer" or (peer in self._group_arms and peer not in self._received)

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Step 1: passes the plan on."""
        self._key = PublicKey(modulus, self.record)
        self._explores = self.algorithm.bank([self._coin], self.arms, plan.budget).explores
        owners = [Message(name, Kind.PLAN, plan.to_bytes(modulus)) for name in self._group_arms]
        return [Message("comp", Kind.PLAN, plan.to_bytes()), *owners]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Asks Comp without the owners in a round of exploration, with the same score for all."""
        self._exploring = self.iteration == 0 and self.round <= plan.budget and self._explores(self.round)
        if not self._exploring:
            return []
        score = np.float64(self._common_scores.uniform(self.round)).astype("<f8").tobytes()
        self._asked_comp = True
        return [Message("comp", Kind.COMMON_SCORE, score.ljust(self.arms * SCORE.encrypted_size, b"\0"))]

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        in_rounds = self.round <= plan.budget
        expected = Kind.MARKS if self._asked_comp else Kind.SCORES if in_rounds else Kind.SUMS
        if kind is not expected:
            raise self._unexpected(peer, kind)
        return self._hand_out(plan, content) if self._asked_comp else self._gather(peer, kind, content)

    def _gather(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Steps 2 and 6: keeps the scores or sums of a group; those of the last group complete the list."""
        width = SCORE.encrypted_size if kind is Kind.SCORES else self._key.ciphertext_bytes
        place = self._group_arms[peer]
        self._require_bytes(peer, content, (place.stop - place.start) * width)
        received = {**self._received, peer: content}
        if len(received) < len(self._group_arms):
            self._received = received
            return []
        together = b"".join(received[name] for name in self._group_arms)
        if kind is Kind.SCORES:
            permuted = _rows(together, width)[self._permutations.order(self.round, self.iteration)]
            self._received, self._asked_comp = {}, True
            return [Message("comp", Kind.SCORES, permuted.tobytes())]
        total = self._key.add(together[i : i + width] for i in range(0, len(together), width))
        self._received, self.done = {}, True
        return [Message("customer", Kind.TOTAL, total)]

    def _hand_out(self, plan: SambaPlan, content: bytes) -> list[Message]:
        """Step 5: undoes the permutation and gives each owner its mark."""
        width = MARK.encrypted_size
        self._require_bytes("comp", content, self.arms * width)
        marks = np.empty((self.arms, width), np.uint8)
        marks[self._permutations.order(self.round, self.iteration)] = _rows(content, width)
        answers = [
            Message(name, Kind.MARKS, marks[place].tobytes()) for name, place in self._group_arms.items()
        ]
        self._asked_comp = False
        self._close_iteration(plan, self._exploring)
        return answers + self._open_iteration(plan)


def _rows(items: bytes, width: int) -> Array:
    """Returns items as bytes, uint8 ``(items, width)``."""
    return np.frombuffer(items, np.uint8).reshape(-1, width)
