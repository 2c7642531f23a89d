"""The four roles of the protocol (SAMBA, Figure 6), and :func:`make_role`, which makes the role of a keyring.

A group of owners is one owner, or several who share a machine. What an owner sends follows from its own data alone, so
the result of a run is the same, to the last bit, however owners are grouped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedbandit_envs.samba.crypto.items import MARK, SCORE, ItemCipher
from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.keystreams import Keystream, OwnerKeys, Permutations
from fedbandit_envs.samba.crypto.link import MAX_ENCRYPTIONS
from fedbandit_envs.samba.crypto.paillier import PrivateKey, PublicKey
from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.owners.bank import OwnerArm, OwnerBank
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Frame, Kind, Message
from fedbandit_envs.samba.roles.role import Role
from fedbandit_envs.samba.vertical import choose


class Customer(Role):
    """The role that holds the Paillier private key, sends the plan and receives the encrypted total."""

    def __init__(self, keyring: Keyring, plan: SambaPlan, record: Record) -> None:
        """Sets the role up and draws its Paillier key.

        Args:
            keyring: The customer's keys.
            plan: The run that it asks for.
            record: An empty record.
        """
        super().__init__(keyring, plan.algorithm, record)
        self.plan: SambaPlan = plan
        self._key = PrivateKey(record)

    def start(self) -> list[Frame]:
        """Returns the frame with the plan."""
        return self._seal([("controller", Kind.PLAN, self.plan.to_bytes(self._key.modulus))])

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if kind is not Kind.TOTAL:
            raise self._unexpected(peer, kind)
        reward = self._key.decrypt(content)
        if reward > plan.budget:
            raise SecureError(
                f"the total is {reward}; {plan.budget} rewards of 0 or 1 cannot add up to it", peer
            )
        self.reward, self.done = reward, True
        return []


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
            raise SecureError(
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
            return [("controller", Kind.SUMS, sums)]
        self._exploring = self.iteration == 0 and self.bank.explores(self.round)
        if self._exploring:
            return []
        at = self.round, self.iteration
        masked = self._masks.uniform(*at) * self.bank.scores(*at)
        encrypted = self._cipher.encrypt(masked.astype("<f8", copy=False).tobytes(), SCORE, *at)
        return [("controller", Kind.SCORES, encrypted)]

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Step 5: decrypts the marks; the owner picked in the last iteration pulls its arm."""
        if kind is not Kind.MARKS:
            raise self._unexpected(peer, kind)
        marks = self._cipher.decrypt(content, len(self._own), MARK, self.round, self.iteration)
        place = marks.find(1)
        if marks.count(0) + (place >= 0) != len(marks):
            raise SecureError(
                f"marks of round {self.round} are {list(marks)}; zeros and at most one 1 are required"
            )
        if not self._exploring:
            self.bank.mark(self.round, self.iteration, np.frombuffer(marks, np.bool_).copy())
        if self._close_iteration(plan, self._exploring) and place >= 0:
            self.bank.observe(place, self._own[place].pull())
        return self._open_iteration(plan)


class Controller(Role):
    """The role between all others; it holds the permutations, and no key that decrypts a score, a mark or a sum."""

    def __init__(self, keyring: Keyring, algorithm: Algorithm, record: Record) -> None:
        """Sets the role up.

        Args:
            keyring: Controller's keys.
            algorithm: The algorithm of the run, which determines together with the coin in which rounds owners explore.
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
        owners = [(name, Kind.PLAN, plan.to_bytes(modulus)) for name in self._group_arms]
        return [("comp", Kind.PLAN, plan.to_bytes()), *owners]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Asks Comp without the owners in a round of exploration, with the same score for all."""
        self._exploring = self.iteration == 0 and self.round <= plan.budget and self._explores(self.round)
        if not self._exploring:
            return []
        score = np.float64(self._common_scores.uniform(self.round)).astype("<f8").tobytes()
        self._asked_comp = True
        return [("comp", Kind.COMMON_SCORE, score.ljust(self.arms * SCORE.encrypted_size, b"\0"))]

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
        items = np.frombuffer(b"".join(received[name] for name in self._group_arms), f"V{width}")
        if kind is Kind.SCORES:
            order = self._permutations.order(self.round, self.iteration)
            self._received, self._asked_comp = {}, True
            return [("comp", Kind.SCORES, items[order].tobytes())]
        total = self._key.add(items.tolist())
        self._received, self.done = {}, True
        return [("customer", Kind.TOTAL, total)]

    def _hand_out(self, plan: SambaPlan, content: bytes) -> list[Message]:
        """Step 5: undoes the permutation and gives each owner its mark."""
        width = MARK.encrypted_size
        self._require_bytes("comp", content, self.arms * width)
        marks = np.empty(self.arms, f"V{width}")
        marks[self._permutations.order(self.round, self.iteration)] = np.frombuffer(content, marks.dtype)
        answers = [(name, Kind.MARKS, marks[place].tobytes()) for name, place in self._group_arms.items()]
        self._asked_comp = False
        self._close_iteration(plan, self._exploring)
        return answers + self._open_iteration(plan)


class Comp(Role):
    """The role that decrypts scores, picks one, and draws the random numbers of picks in proportion."""

    def __init__(self, keyring: Keyring, algorithm: None, record: Record) -> None:
        """Sets the role up; arguments as :class:`.role.Role`. Comp agrees to any algorithm."""
        super().__init__(keyring, algorithm, record)
        # Comp encrypts as many marks as all owners together encrypt scores.
        self._cipher = ItemCipher(keyring.secrets["cipher"], MAX_ENCRYPTIONS // 2, record)
        self._draws = Keystream(keyring.secrets["choice"])
        # Loads the kernel before the run, so that nobody waits for it during the run.
        choose("argmax", np.ones(1), 0.5)

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        at = self.round, self.iteration
        explores = kind is Kind.COMMON_SCORE and not self.iteration
        if explores:
            # Controller's score is not encrypted beyond the link, and padded to the length of encrypted scores.
            self._require_bytes(peer, content, self.arms * SCORE.encrypted_size)
            scores = np.full(self.arms, np.frombuffer(content[: SCORE.size], "<f8")[0])
        elif kind is Kind.SCORES:
            plain = self._cipher.decrypt(content, self.arms, SCORE, *at)
            scores = np.frombuffer(plain, "<f8").astype(np.float64)
        else:
            raise self._unexpected(peer, kind)
        choice = "argmax" if explores else plan.choice_of(self.iteration)
        try:
            place = choose(choice, scores, self._draws.uniform(*at))
        except ValueError as error:
            raise SecureError(f"Comp cannot pick in round {self.round}: {error}") from error
        marks = bytearray(self.arms)
        marks[place] = 1
        encrypted = self._cipher.encrypt(bytes(marks), MARK, *at)
        self._close_iteration(plan, explores)
        return [("controller", Kind.MARKS, encrypted), *self._open_iteration(plan)]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        self.done = self.round > plan.budget
        return []


@dataclass(frozen=True)
class RoleSetup:
    """The keys, settings and data with which one role takes part in a run.

    Attributes:
        keyring: Its keys.
        algorithm: The algorithm of the run, which the role agrees to; not needed for Comp, which agrees to any.
        budget: Number of rounds, N; needed for the customer.
        means: Means of the owners' arms; needed for a group of owners.
    """

    keyring: Keyring
    algorithm: Algorithm | None = None
    budget: int | None = None
    means: Sequence[float] = ()


def make_role(setup: RoleSetup, keeps_transcript: bool = False) -> Role:
    """Returns the role that a keyring is for.

    Args:
        setup: The keyring, and what else the role needs.
        keeps_transcript: Whether the role's record keeps what it receives and decrypts.

    Raises:
        TypeError: The algorithm does not know a parameter, or a number is no integer.
        ValueError: Something that this role needs is missing or out of its range.
    """
    keyring, algorithm, record = setup.keyring, setup.algorithm, Record(keeps_transcript)
    if keyring.role == "comp":
        return Comp(keyring, None, record)
    if algorithm is None:
        raise ValueError(f"algorithm is None; {keyring.role} requires the algorithm of the run")
    if keyring.role == "controller":
        return Controller(keyring, algorithm, record)
    if keyring.role != "customer":
        return OwnerGroup(keyring, algorithm, setup.means, record)
    if setup.budget is None:
        raise ValueError(f"budget is None; the customer requires an integer >= {keyring.arms}")
    return Customer(keyring, SambaPlan.make(algorithm, keyring.arms, setup.budget), record)
