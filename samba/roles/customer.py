"""The data customer, who asks for a run and alone learns the cumulative reward (SAMBA, Figure 6d)."""

from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.crypto.paillier import PrivateKey
from fedbandit_envs.samba.errors import ProtocolError
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record
from fedbandit_envs.samba.roles.messages import Kind, Message
from fedbandit_envs.samba.roles.role import Role


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

    def _opening(self) -> list[Message]:
        return [Message("controller", Kind.PLAN, self.plan.to_bytes(self._key.modulus))]

    def _play(self, plan: SambaPlan, peer: str, kind: Kind, content: bytes) -> list[Message]:
        if kind is not Kind.TOTAL:
            raise self._unexpected(peer, kind)
        reward = self._key.decrypt(content)
        if reward > plan.budget:
            raise ProtocolError(
                f"the total is {reward}; {plan.budget} rewards of 0 or 1 cannot add up to it", peer
            )
        self.reward, self.done = reward, True
        return []
