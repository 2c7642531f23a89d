"""Comp, which compares scores that are masked and permuted, and learns nothing else (SAMBA, Figure 6c)."""

import numpy as np

from fedbandit_envs.samba.crypto.items import MARK, SCORE, ItemCipher
from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.keystreams import Keystream
from fedbandit_envs.samba.crypto.link import MAX_ENCRYPTIONS
from fedbandit_envs.samba.errors import ProtocolError
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind, Message
from fedbandit_envs.samba.roles.role import Role
from fedbandit_envs.samba.vertical import choose


class Comp(Role):
    """The role that decrypts scores, picks one, and draws the random numbers of picks in proportion."""

    def __init__(self, keyring: Keyring, record: Record) -> None:
        """Sets the role up.

        Args:
            keyring: Comp's keys.
            record: An empty record.
        """
        super().__init__(keyring, None, record)
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
            raise ProtocolError(f"Comp cannot pick in round {self.round}: {error}") from error
        marks = bytearray(self.arms)
        marks[place] = 1
        encrypted = self._cipher.encrypt(bytes(marks), MARK, *at)
        self._close_iteration(plan, explores)
        return [Message("controller", Kind.MARKS, encrypted), *self._open_iteration(plan)]

    def _open_iteration(self, plan: SambaPlan) -> list[Message]:
        self.done = self.round > plan.budget
        return []
