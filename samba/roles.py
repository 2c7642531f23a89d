"""The four roles of the protocol (SAMBA, Figure 6), as state machines over messages; transports deliver frames.

A group of owners is one owner, or several who share a machine. An owner's messages follow from its own data alone, so
that the result of a run is the same, to the last bit, however owners are grouped.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from time import process_time
from typing import NamedTuple, TypeVar

import numpy as np

from fedbandit_envs.baselines.arms import Choice
from fedbandit_envs.samba import messages
from fedbandit_envs.samba.keys import Keyring, Keystream, OwnerKeys, Permutations
from fedbandit_envs.samba.messages import MARK, SCORE, Counts, Frame, Kind, Message, Record, SecureError
from fedbandit_envs.samba.owners import Algorithm, OwnerBank, SambaPlan, choose, owner_rewards

Result = TypeVar("Result")

HUB = "controller"
"""Name of Controller, to which all other roles have a link."""


@dataclass(frozen=True)
class RoleReport:
    """A role's report at the end of its part of a run.

    Attributes:
        role: The role's name.
        counts: Numbers of the role's operations, frames and bytes.
        cpu_seconds: CPU time of the role's part in seconds, with the set-up of the role but not the start of a process.
        reward: The cumulative reward in the customer's report; None in all others.
    """

    role: str
    counts: Counts
    cpu_seconds: float
    reward: int | None = None


class RoleSetup(NamedTuple):
    """The keys, settings and data with which one role takes part in a run.

    Attributes:
        keyring: The role's keys.
        algorithm: The algorithm of the run, to which the role agrees; not needed for Comp, which agrees to any.
        budget: Number of rounds, N; needed for the customer only.
        means: Means of the owners' Bernoulli arms; needed for a group of owners only.
    """

    keyring: Keyring
    algorithm: Algorithm | None = None
    budget: int | None = None
    means: Sequence[float] = ()


class Role(ABC):
    """The base class of the participants of the protocol, which are given frames and return the frames that they send.

    Attributes:
        name: The role's name.
        arms: Number of owners in all groups, K.
        max_bytes: Length of the longest frame that the role accepts.
        links: The role's ends of its links, by the peer's name.
        certificate: The role's certificate for links under TLS, or None.
        record: The role's counts of operations and traffic, and its transcript if one is kept.
        plan: The plan of the run, or None before it is received.
        round: The round t that the role is in; 0 before the plan is received.
        iteration: The iteration within the round, counted from 0.
        done: Whether the role has finished its part of the run.
        reward: The cumulative reward, once the customer knows it; None for all other roles.
        cpu_seconds: CPU time of the role, which whoever plays it measures.
    """

    def __init__(self, setup: RoleSetup, record: Record) -> None:
        """Sets up the role and its links, before any frame is sent.

        Args:
            setup: The role's keys, settings and data.
            record: An empty record, to which the role writes.

        Raises:
            TypeError: The algorithm does not know a parameter, or a number is no integer.
            ValueError: A setting that this role needs is missing or out of its range.
        """
        self.name = setup.keyring.role
        self.arms = sum(setup.keyring.group_sizes.values())
        self.certificate = setup.keyring.certificate
        self.record = record
        self._setup = setup
        self._secrets = setup.keyring.secrets
        # The longest message has a Paillier ciphertext of 512 bytes for each arm, so that this bound is ample.
        self.max_bytes = 8192 + 1024 * self.arms
        self.links = {peer: messages.Link(peer, keys, record) for peer, keys in setup.keyring.links.items()}
        self.plan: SambaPlan | None = None
        self.round = 0
        self.iteration = 0
        self.done = False
        self.reward: int | None = None
        self.cpu_seconds = 0.0

    def timed(self, act: Callable[..., Result], *arguments: object) -> Result:
        """Returns what a function returns, and adds the CPU time that it takes to the role's."""
        before = process_time()
        result = act(*arguments)
        self.cpu_seconds += process_time() - before
        return result

    def start(self) -> list[Frame]:
        """Returns the frames that the role sends before it has received any."""
        return []

    def handle(self, peer: str, data: bytes) -> list[Frame]:
        """Processes the next frame from a peer and returns the frames that the role sends in answer.

        Args:
            peer: Name of the role at the other end of the link.
            data: The frame.

        Raises:
            SecureError: The frame or its message is refused; the role is unchanged.
        """
        payload = self.open(peer, data)
        return self._seal(self._answer(peer, int.from_bytes(payload[:1]), payload[1:]))

    def open(self, peer: str, data: bytes) -> bytes:
        """Returns the decrypted message of the next frame from a peer.

        Args:
            peer: Name of the role at the other end of the link.
            data: The frame.

        Raises:
            SecureError: The frame is refused, or the peer has stopped the run.
        """
        if peer not in self.links:
            raise SecureError(f"{self.name} has no link to {peer}", peer)
        payload = self.links[peer].open(data)
        if payload[:1] == bytes((Kind.STOP,)):
            said = json.loads(payload[1:])
            raise SecureError(f"{peer} stopped the run: {said['reason']}", said["culprit"])
        return payload

    def stop(self, culprit: str, reason: str) -> list[Frame]:
        """Returns frames that tell all peers that the run has ended, which role has caused this, and why."""
        content = json.dumps({"culprit": culprit, "reason": reason[:500]}).encode()
        return self._seal([(peer, Kind.STOP, content) for peer in self.links])

    def report(self) -> RoleReport:
        """Returns the role's counts of the run, its CPU time and its reward."""
        return RoleReport(self.name, self.record.counts, self.cpu_seconds, self.reward)

    def waits_for(self) -> list[str]:
        """Returns the names of the peers whose next message the role needs in order to continue."""
        return [] if self.done else [HUB]

    def _answer(self, peer: str, kind: int, content: bytes) -> list[Message]:
        """Processes a message and returns the answers; if the message is refused, the role must stay unchanged."""
        expected = (Kind.PLAN,) if self.plan is None else self._expected(self.plan)
        if peer not in self.waits_for() or kind not in expected:
            raise SecureError(
                f"{peer} sent a message of kind {kind} to {self.name}, which does not expect it in round {self.round}",
                peer,
            )
        if self.plan is not None:
            return self._play(self.plan, peer, Kind(kind), content)
        plan, modulus = SambaPlan.from_bytes(content)
        agreed = self._setup.algorithm
        if plan.arms != self.arms or (agreed and plan != SambaPlan.make(agreed, plan.arms, plan.budget)):
            raise SecureError(
                f"the plan is for {plan}; {self.name} has agreed to {self.arms} owners and "
                f"{agreed or 'any algorithm'}"
            )
        answers = self._begin(plan, modulus)
        self.plan, self.round = plan, plan.arms + 1
        return answers + self._open_iteration(plan)

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Processes the plan and the customer's modulus; returns the messages that the role sends before any round."""
        return []

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Returns the messages that the role sends at the start of an iteration, or after the last round."""
        return []

    @abstractmethod
    def _expected(self, plan: SambaPlan) -> Collection[Kind]:
        """Returns the kinds of which the next message may be, after the plan."""

    @abstractmethod
    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Processes a message that comes after the plan, and returns the answers."""

    def _close_iteration(self, plan: SambaPlan, explored: bool) -> bool:
        """Moves the role on to the next iteration, and returns whether this begins a new round.

        A round of exploration (``explored``) has just one iteration.
        """
        self.iteration += 1
        if not explored and self.iteration < plan.iterations:
            return False
        self.round, self.iteration = self.round + 1, 0
        return True

    def _require_bytes(self, peer: str, content: bytes, required: int) -> None:
        """Raises :class:`SecureError` if the content of a peer's message has another length than required, in bytes."""
        if len(content) != required:
            raise SecureError(f"{peer} sent {len(content)} bytes; {required} are required", peer)

    def _seal(self, sent: list[Message]) -> list[Frame]:
        """Returns the encrypted frames of messages. They are numbered, so that all must be sent, in this order."""
        return [
            Frame(self.name, to, self.links[to].seal(bytes((kind,)) + content)) for to, kind, content in sent
        ]


class Customer(Role):
    """The customer: it holds the Paillier private key, sends the plan and decrypts the total reward."""

    plan: SambaPlan

    def __init__(self, setup: RoleSetup, record: Record) -> None:
        """Sets the role up and draws its Paillier key; see :class:`Role`."""
        super().__init__(setup, record)
        if setup.budget is None:
            raise ValueError(f"budget is None; the customer requires an integer >= {self.arms}")
        self.plan = SambaPlan.make(_algorithm_of(setup), self.arms, setup.budget)
        self._key = messages.Paillier(record)

    def start(self) -> list[Frame]:
        """Returns the frame that sends the plan to Controller, the first frame of a run."""
        return self._seal([("controller", Kind.PLAN, self.plan.to_bytes(self._key.modulus))])

    def _expected(self, plan: SambaPlan) -> Collection[Kind]:
        return (Kind.TOTAL,)

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        self.reward, self.done = self._key.decrypt(content), True
        return []


class OwnerGroup(Role):
    """A group of data owners: they send encrypted scores, and the picked owner pulls its arm.

    Owners share with Comp, the role that compares scores, a key. It encrypts their scores, and the marks by which Comp
    answers who is picked.

    Attributes:
        bank: The owners' pulls, rewards and scores, once the plan has been received.
    """

    bank: OwnerBank

    def __init__(self, setup: RoleSetup, record: Record) -> None:
        """Sets the role up; see :class:`Role`. A plan with another algorithm than the setup's is refused."""
        super().__init__(setup, record)
        self._keys = setup.keyring.owners
        size = len(self._keys)
        if len(setup.means) != size:
            raise ValueError(f"{self.name} has {len(setup.means)} means; {size}, one an owner, are required")
        owners = zip(setup.means, self._keys, strict=True)
        self._own = [owner_rewards(mean, own.reward) for mean, own in owners]
        self._algorithm = _algorithm_of(setup)
        self._algorithm.bank(self._keys, self.arms, self.arms)
        self._masks = Keystream(self._keys[0].mask)
        self._cipher = messages.ItemCipher(self._secrets["cipher"], record)
        self._exploring = False

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Processes the plan (step 1): every owner pulls its arm once; no messages are sent."""
        self._key = messages.Paillier(self.record, modulus)
        self.bank = self._algorithm.bank(self._keys, plan.arms, plan.budget)
        for place, arm in enumerate(self._own):
            self.bank.observe(place, next(arm))
        return []

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Returns the message with encrypted scores (step 2), or after the last round with encrypted sums (step 6).

        In a round of exploration owners send no scores.
        """
        if self.round > plan.budget:
            self.done = True
            return [("controller", Kind.SUMS, b"".join(map(self._key.encrypt, self.bank.sums)))]
        self._exploring = self.iteration == 0 and self.bank.explores(self.round)
        if self._exploring:
            return []
        at = self.round, self.iteration
        masked = self._masks.uniform(*at) * self.bank.scores(*at)
        encrypted = self._cipher.encrypt(masked.astype("<f8", copy=False).tobytes(), SCORE, *at)
        return [("controller", Kind.SCORES, encrypted)]

    def _expected(self, plan: SambaPlan) -> Collection[Kind]:
        return (Kind.MARKS,)

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Processes encrypted marks (step 5), and returns the messages of the next iteration.

        If a mark of the last iteration of a round tells that an owner of the group was picked, it pulls its arm.
        """
        marks = self._cipher.decrypt(content, len(self._own), MARK, self.round, self.iteration)
        place = marks.find(1)
        if not self._exploring:
            self.bank.mark(self.iteration, np.frombuffer(marks, np.bool_).copy())
        if self._close_iteration(plan, self._exploring) and place >= 0:
            self.bank.observe(place, next(self._own[place]))
        return self._open_iteration(plan)


class Controller(Role):
    """Controller: the role that passes messages between all others and permutes scores.

    It has no key that decrypts a score, a mark or a sum.
    """

    def __init__(self, setup: RoleSetup, record: Record) -> None:
        """Sets the role up; see :class:`Role`.

        The algorithm, together with the random numbers of the ``coin`` key, determines in which rounds an owner is
        picked at random.
        """
        super().__init__(setup, record)
        self._algorithm = _algorithm_of(setup)
        self._group_arms = setup.keyring.group_arms
        self._permutations = Permutations(self._secrets["permutation"], self.arms)
        self._common_scores = Keystream(self._secrets["common score"])
        self._received: dict[str, bytes] = {}
        self._asked_comp = False
        self._exploring = False

    def waits_for(self) -> list[str]:
        """Returns the names of the peers whose messages Controller needs next; none when the run is over.

        These are the customer before the plan was received, Comp while it picks an owner, and else the groups of owners
        that have not sent their scores or sums yet.
        """
        if self.done:
            return []
        if self.plan is None:
            return ["customer"]
        if self._asked_comp:
            return ["comp"]
        return [name for name in self._group_arms if name not in self._received]

    def _begin(self, plan: SambaPlan, modulus: int) -> list[Message]:
        """Processes the plan, and returns the messages that pass it on to Comp and the owners (step 1)."""
        self._key = messages.Paillier(self.record, modulus)
        # A bank with one imaginary owner is only asked in which rounds owners explore, which depends on the coin key
        # alone; its other keys are never used.
        coin = OwnerKeys(bytes(32), self._secrets["coin"], bytes(32), bytes(32))
        self._explores = self._algorithm.bank([coin], self.arms, plan.budget).explores
        owners = [(name, Kind.PLAN, plan.to_bytes(modulus)) for name in self._group_arms]
        return [("comp", Kind.PLAN, plan.to_bytes()), *owners]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        """Returns, in a round of exploration, a message that asks Comp to pick by the same score for all owners.

        In other rounds there is no message, since Controller waits for the owners' scores.
        """
        self._exploring = self.iteration == 0 and self.round <= plan.budget and self._explores(self.round)
        if not self._exploring:
            return []
        score = np.float64(self._common_scores.uniform(self.round)).astype("<f8").tobytes()
        self._asked_comp = True
        return [("comp", Kind.COMMON_SCORE, score.ljust(self.arms * SCORE.layout.itemsize, b"\0"))]

    def _expected(self, plan: SambaPlan) -> Collection[Kind]:
        if self._asked_comp:
            return (Kind.MARKS,)
        return (Kind.SCORES,) if self.round <= plan.budget else (Kind.SUMS,)

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        return self._hand_out(plan, content) if self._asked_comp else self._gather(peer, kind, content)

    def _gather(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        """Processes the encrypted scores (step 2) or sums (step 6) of a group of owners.

        Once those of all groups are there, it returns the message with the permuted scores for Comp or, after the last
        round, with the product of the sums for the customer.
        """
        width = SCORE.layout.itemsize if kind is Kind.SCORES else self._key.ciphertext_bytes
        place = self._group_arms[peer]
        self._require_bytes(peer, content, (place.stop - place.start) * width)
        received = {**self._received, peer: content}
        if len(received) < len(self._group_arms):
            self._received = received
            return []
        items = np.frombuffer(b"".join(received[name] for name in self._group_arms), f"V{width}")
        if kind is Kind.SCORES:
            order = self._permutations.words(self.round, self.iteration)
            self._received, self._asked_comp = {}, True
            return [("comp", Kind.SCORES, items[order].tobytes())]
        total = self._key.add(items.tolist())
        self._received, self.done = {}, True
        return [("customer", Kind.TOTAL, total)]

    def _hand_out(self, plan: SambaPlan, content: bytes) -> list[Message]:
        """Undoes the permutation of encrypted marks and returns the messages that send them to owners (step 5)."""
        width = MARK.layout.itemsize
        self._require_bytes("comp", content, self.arms * width)
        marks = np.empty(self.arms, f"V{width}")
        marks[self._permutations.words(self.round, self.iteration)] = np.frombuffer(content, marks.dtype)
        answers = [(name, Kind.MARKS, marks[place].tobytes()) for name, place in self._group_arms.items()]
        self._asked_comp = False
        self._close_iteration(plan, self._exploring)
        return answers + self._open_iteration(plan)


class Comp(Role):
    """Comp: the role that decrypts permuted scores, picks one of them, and returns encrypted marks.

    It draws the random numbers that are needed to pick in proportion to scores.
    """

    def __init__(self, setup: RoleSetup, record: Record) -> None:
        """Sets the role up; see :class:`Role`."""
        # Comp agrees to any algorithm.
        super().__init__(RoleSetup(setup.keyring), record)
        self._cipher = messages.ItemCipher(self._secrets["cipher"], record)
        self._draws = Keystream(self._secrets["choice"])

    def _expected(self, plan: SambaPlan) -> Collection[Kind]:
        return (Kind.SCORES,) if self.iteration else (Kind.SCORES, Kind.COMMON_SCORE)

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        at = self.round, self.iteration
        explores = kind is Kind.COMMON_SCORE
        if explores:
            # The content is one score, which only the link has encrypted. Controller has padded it with zeros, so that
            # an observer cannot tell it by its length from encrypted scores.
            self._require_bytes(peer, content, self.arms * SCORE.layout.itemsize)
            scores = np.full(self.arms, np.frombuffer(content[: SCORE.size], "<f8")[0])
        else:
            plain = self._cipher.decrypt(content, self.arms, SCORE, *at)
            scores = np.frombuffer(plain, "<f8").astype(np.float64)
        choice: Choice = "argmax" if explores else plan.choice_of(self.iteration)
        place = choose(choice, scores, self._draws.uniform(*at))
        marks = bytearray(self.arms)
        marks[place] = 1
        encrypted = self._cipher.encrypt(bytes(marks), MARK, *at)
        self._close_iteration(plan, explores)
        return [("controller", Kind.MARKS, encrypted), *self._open_iteration(plan)]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        self.done = self.round > plan.budget
        return []


def _algorithm_of(setup: RoleSetup) -> Algorithm:
    if setup.algorithm is None:
        raise ValueError(f"algorithm is None; {setup.keyring.role} requires the algorithm of the run")
    return setup.algorithm


def make_role(setup: RoleSetup, keeps_transcript: bool = False) -> Role:
    """Makes the role that a keyring belongs to: customer, Controller, Comp, or a group of owners.

    Args:
        setup: The keyring, and the settings and data of the role.
        keeps_transcript: Whether the role's record keeps the messages that the role has received and decrypted.

    Raises:
        TypeError: The algorithm does not know a parameter, or a number is no integer.
        ValueError: A setting that this role needs is missing or out of its range.
    """
    before = process_time()
    kinds: dict[str, type[Role]] = {"customer": Customer, HUB: Controller, "comp": Comp}
    role = kinds.get(setup.keyring.role, OwnerGroup)(setup, Record(keeps_transcript))
    role.cpu_seconds = process_time() - before
    return role
