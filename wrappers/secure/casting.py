"""Roles from keyrings: each gets what it holds and is told, and nothing else."""

from collections.abc import Sequence

from fedbandit_envs.wrappers.secure.keys import Keyring
from fedbandit_envs.wrappers.secure.plan import Algorithm, Plan
from fedbandit_envs.wrappers.secure.roles.comp import Comp
from fedbandit_envs.wrappers.secure.roles.controller import Controller, ControllerKeys
from fedbandit_envs.wrappers.secure.roles.customer import Customer
from fedbandit_envs.wrappers.secure.roles.owners import Owners
from fedbandit_envs.wrappers.secure.roles.role import Role
from fedbandit_envs.wrappers.secure.transcript import Transcript


def cast(
    keyring: Keyring,
    *,
    algorithm: Algorithm | None = None,
    budget: int | None = None,
    means: Sequence[float] = (),
    transcript: Transcript | None = None,
) -> Role:
    """Makes the role that a keyring is for.

    Args:
        keyring: What it holds.
        algorithm: What is played; Comp needs not know.
        budget: N, which the customer alone says.
        means: Of an owners' role's own arms.
        transcript: To write down what the role sees, or None.

    Raises:
        TypeError: The algorithm does not know a parameter, or a number is none.
        ValueError: Something that this role needs is missing or out of its range.
    """
    arms, links = keyring.arms, keyring.links
    if keyring.role == "comp":
        return Comp(links, arms, keyring.secrets["cipher"], keyring.secrets["choice"], transcript)
    if algorithm is None:
        raise ValueError(f"algorithm is None; {keyring.role} requires the one that is played")
    if keyring.role == "customer":
        if budget is None:
            raise ValueError(f"budget is None; the customer requires an integer >= {arms}")
        return Customer(links, Plan.make(algorithm, arms, budget), transcript)
    if keyring.role == "controller":
        return Controller(links, keyring.houses, algorithm, ControllerKeys(**keyring.secrets), transcript)
    cipher = keyring.secrets["cipher"]
    return Owners(
        name=keyring.role,
        links=links,
        arms=arms,
        means=means,
        algorithm=algorithm,
        keys=keyring.owners,
        cipher_key=cipher,
        transcript=transcript,
    )
