"""Roles made from their keyrings; each is given what it needs and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedbandit_envs.samba.crypto.keys import Keyring
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Record, Transcript
from fedbandit_envs.samba.roles.comp import Comp
from fedbandit_envs.samba.roles.controller import Controller
from fedbandit_envs.samba.roles.customer import Customer
from fedbandit_envs.samba.roles.owner_group import OwnerGroup
from fedbandit_envs.samba.roles.role import Role


@dataclass(frozen=True)
class RoleSetup:
    """The keys, settings and data with which one role takes part in a run.

    Attributes:
        keyring: Its keys.
        algorithm: The algorithm of the run; not needed for Comp.
        budget: Number of rounds, N; needed for the customer.
        means: Means of the owners' arms; needed for a group of owners.
    """

    keyring: Keyring
    algorithm: Algorithm | None = None
    budget: int | None = None
    means: Sequence[float] = ()


def make_role(setup: RoleSetup, transcript: Transcript | None = None) -> Role:
    """Returns the role that a keyring is for.

    Args:
        setup: The keyring, and what else the role needs.
        transcript: Receives what the role sees, or None.

    Raises:
        TypeError: The algorithm does not know a parameter, or a number is no integer.
        ValueError: Something that this role needs is missing or out of its range.
    """
    keyring, record = setup.keyring, Record(transcript=transcript)
    if keyring.role == "comp":
        return Comp(keyring, record)
    if setup.algorithm is None:
        raise ValueError(f"algorithm is None; {keyring.role} requires the algorithm of the run")
    if keyring.role == "controller":
        return Controller(keyring, setup.algorithm, record)
    if keyring.role != "customer":
        return OwnerGroup(keyring, setup.algorithm, setup.means, record)
    if setup.budget is None:
        raise ValueError(f"budget is None; the customer requires an integer >= {keyring.arms}")
    return Customer(keyring, SambaPlan.make(setup.algorithm, keyring.arms, setup.budget), record)
