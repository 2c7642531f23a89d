"""Comp: compares scores that are masked and permuted, and nothing else (SAMBA, Figure 6c)."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.arms.masks import Keystream
from fedbandit_envs.arms.vertical import choose
from fedbandit_envs.arrays import Array
from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.items import (
    MARK_BYTES,
    MARKS_DIRECTION,
    SCORE_BYTES,
    SCORES_DIRECTION,
    ItemCipher,
    bound_to,
    encrypted_bytes,
)
from fedbandit_envs.wrappers.secure.link import MOST_ENCRYPTIONS, LinkKeys
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.plan import Plan
from fedbandit_envs.wrappers.secure.roles.role import Message, Role
from fedbandit_envs.wrappers.secure.transcript import Transcript


class Comp(Role):
    """Holds the key that owners encrypt scores with, and draws the luck of proportional picks."""

    def __init__(
        self,
        links: Mapping[str, LinkKeys],
        arms: int,
        cipher_key: bytes,
        choice_key: bytes,
        transcript: Transcript | None = None,
    ) -> None:
        """Sets the role up.

        Args:
            links: To ``controller``.
            arms: Number of owners, K.
            cipher_key: Of owners and Comp.
            choice_key: Of its own draws.
            transcript: To write down what it sees, or None.
        """
        super().__init__("comp", links, arms, transcript)
        # It encrypts as many marks as all owners together encrypt scores.
        self._cipher = ItemCipher(cipher_key, MOST_ENCRYPTIONS // 2, self.counts, transcript)
        self._draws = Keystream(choice_key)
        self._arms = arms
        self._plan: Plan | None = None
        self._iteration = 0
        # In vain, so that nobody waits for the kernel to be loaded once the run goes on.
        choose("argmax", np.ones(1), 0.5)

    def waits_for(self) -> list[str]:
        """Waits for scores."""
        return [] if self.done else ["controller"]

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if self._plan is None:
            if kind is not Kind.PLAN:
                raise self._unexpected(peer, kind)
            return self._begin(content)
        if (
            self.done
            or kind not in (Kind.SCORES, Kind.COMMON_SCORE)
            or (kind is Kind.COMMON_SCORE and self._iteration)
        ):
            raise self._unexpected(peer, kind)
        at = self.round, self._iteration
        explores = kind is Kind.COMMON_SCORE
        if explores:
            scores = self._common(content)
        else:
            plain = self._cipher.decrypt(content, self._arms, SCORE_BYTES, bound_to(SCORES_DIRECTION, *at))
            scores = np.frombuffer(plain, "<f8").astype(np.float64)
        choice = "argmax" if explores else self._plan.choice_of(self._iteration)
        try:
            place = choose(choice, scores, self._draws.uniform(*at))
        except ValueError as error:
            raise ProtocolError(f"Comp cannot pick in round {self.round}: {error}") from error
        marks = bytearray(self._arms)
        marks[place] = 1
        encrypted = self._cipher.encrypt(bytes(marks), MARK_BYTES, bound_to(MARKS_DIRECTION, *at))
        self._advance(self._plan, explores)
        return [Message("controller", Kind.MARKS, encrypted)]

    def _begin(self, content: bytes) -> list[Message]:
        plan, _ = Plan.read(content)
        if plan.arms != self._arms:
            raise ProtocolError(f"the plan is for {plan.arms} owners; there are {self._arms}")
        self._plan = plan
        self.round, self.budget = plan.arms + 1, plan.budget
        self.done = self.round > plan.budget
        return []

    def _common(self, content: bytes) -> Array:
        """Reads Controller's score, which comes in the open (of the link) and padded."""
        if len(content) != self._arms * encrypted_bytes(SCORE_BYTES):
            raise ProtocolError(
                f"a common score has {len(content)} bytes; as many as scores have are required"
            )
        return np.full(self._arms, np.frombuffer(content[:SCORE_BYTES], "<f8")[0])

    def _advance(self, plan: Plan, explores: bool) -> None:
        self._iteration += 1
        if explores or self._iteration == plan.iterations:
            self.round, self._iteration = self.round + 1, 0
        self.done = self.round > plan.budget
