"""What a run does, as the customer asks for it and every role hears it (SAMBA, steps 0 and 1)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, get_args

from fedbandit_envs.arms.masks import OwnerKeys, owner_keys
from fedbandit_envs.arms.vertical import Choice, OwnerBank
from fedbandit_envs.checks import require_choice, require_integer
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.wrappers.secure.errors import ProtocolError
from fedbandit_envs.wrappers.secure.link import MOST_ENCRYPTIONS

# Policies live on a floor above.
_MAKE_OWNERS = "fedbandit_envs.baselines.arms.owners:make_owners"


@dataclass(frozen=True)
class Algorithm:
    """A bandit algorithm; roles that compute with it are told beforehand and never load one by a message's word.

    Attributes:
        name: A name that :data:`fedbandit_envs.baselines.arms.owners.OWNERS` knows, or an entry point.
        parameters: Its own.
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def bank(self, keys: Sequence[OwnerKeys], arms: int, budget: int) -> OwnerBank:
        """Returns the policies of some owners.

        Args:
            keys: Of these owners.
            arms: Number of all owners, K.
            budget: N.

        Raises:
            TypeError: The algorithm does not know a parameter, or is none.
            ValueError: It is unknown, a parameter is out of its range, or it cannot be played in secret (SAMBA,
                Theorem 1): its scores need other owners' data, or it picks in another way.
        """
        bank: OwnerBank = resolve(_MAKE_OWNERS)(self.name, keys, arms, budget, **self.parameters)
        if bank.choice not in get_args(Choice):
            raise ValueError(
                f"algorithm {self.name!r} picks by {bank.choice!r}, which Comp cannot do among masked and permuted "
                f"scores; one of {get_args(Choice)} is required"
            )
        require_integer("iterations", bank.iterations, 1)
        return bank


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes:
        arms: K.
        budget: N.
        algorithm: Which one.
        choice: How the last iteration of a round picks; those before it pick by the largest score.
        iterations: How many there are in a round.
    """

    arms: int
    budget: int
    algorithm: Algorithm
    choice: Choice
    iterations: int

    def __post_init__(self) -> None:
        """Refuses what cannot be run.

        Raises:
            TypeError: A number is none.
            ValueError: A number is out of its range, the choice is unknown, or the run is so long that the key of
                owners and Comp would wear out.
        """
        require_integer("arms", self.arms, 1)
        require_integer("budget", self.budget, self.arms)
        require_integer("iterations", self.iterations, 1)
        require_choice("choice", self.choice, get_args(Choice))
        encryptions = 2 * self.arms * self.iterations * (self.budget - self.arms)
        if encryptions > MOST_ENCRYPTIONS:
            raise ValueError(
                f"budget is {self.budget}, which takes up to {encryptions:.2e} encryptions under one key; at most 2^32 "
                "are allowed, since nonces are random"
            )

    @classmethod
    def make(cls, algorithm: Algorithm, arms: int, budget: int) -> "Plan":
        """Asks an algorithm how it picks.

        Raises:
            TypeError: As :meth:`Algorithm.bank`, or a number is none.
            ValueError: As :meth:`Algorithm.bank`, or a number is out of its range.
        """
        require_integer("arms", arms, 1)
        require_integer("budget", budget, arms)
        bank = algorithm.bank(owner_keys(0, 1), arms, budget)
        return cls(arms, budget, algorithm, bank.choice, bank.iterations)

    def choice_of(self, iteration: int) -> Choice:
        """Returns how an iteration picks."""
        return self.choice if iteration == self.iterations - 1 else "argmax"

    def as_bytes(self, modulus: int = 0) -> bytes:
        """Returns the plan as roles are told it, with the customer's modulus where they need that."""
        return json.dumps({**asdict(self), "modulus": f"{modulus:x}"}).encode()

    @classmethod
    def read(cls, told: bytes) -> tuple["Plan", int]:
        """Reads what :meth:`as_bytes` wrote: plan and modulus.

        Raises:
            ProtocolError: It says something else.
        """
        try:
            parts = json.loads(told)
            modulus = int(parts.pop("modulus"), 16)
            return cls(**{**parts, "algorithm": Algorithm(**parts["algorithm"])}), modulus
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ProtocolError(f"the plan of the run cannot be read: {error}") from error
