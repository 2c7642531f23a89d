"""The data customer: asks for a run, and alone can read what it has earned (SAMBA, Figure 6d)."""

from collections.abc import Mapping

from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.link import LinkKeys
from fedbandit_envs.wrappers.secure.message import Kind
from fedbandit_envs.wrappers.secure.paillier import PrivateKey
from fedbandit_envs.wrappers.secure.plan import Plan
from fedbandit_envs.wrappers.secure.roles.role import Message, Role
from fedbandit_envs.wrappers.secure.transcript import Transcript


class Customer(Role):
    """Holds the Paillier key.

    Attributes:
        reward: The cumulative reward, once it is known.
    """

    def __init__(
        self, links: Mapping[str, LinkKeys], plan: Plan, transcript: Transcript | None = None
    ) -> None:
        """Sets the role up.

        Args:
            links: To ``controller``.
            plan: What it asks for.
            transcript: To write down what it sees, or None.
        """
        super().__init__("customer", links, plan.arms, transcript)
        self._plan = plan
        self._key = PrivateKey(self.counts, transcript)
        self.reward: int | None = None

    def waits_for(self) -> list[str]:
        """Waits for the total."""
        return [] if self.done else ["controller"]

    def _opening(self) -> list[Message]:
        return [Message("controller", Kind.PLAN, self._plan.as_bytes(self._key.modulus))]

    def _answer(self, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if kind is not Kind.TOTAL or self.done:
            raise self._unexpected(peer, kind)
        reward = self._key.decrypt(content)
        if reward > self._plan.budget:
            raise ProtocolError(
                f"the total is {reward}; {self._plan.budget} rewards of 0 or 1 cannot add up to it", peer
            )
        self.reward, self.done = reward, True
        return []
