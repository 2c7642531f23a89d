"""The plan of a run, which the customer makes and every role receives (SAMBA, steps 0 and 1)."""

import json
from dataclasses import asdict, dataclass
from typing import get_args

from fedbandit_envs.baselines.arms.rules import Choice
from fedbandit_envs.basics.checks import require_choice, require_integer
from fedbandit_envs.samba.crypto.keystreams import owner_keys
from fedbandit_envs.samba.crypto.link import MAX_ENCRYPTIONS
from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.owners.algorithm import Algorithm


@dataclass(frozen=True)
class SambaPlan:
    """The plan of a run: its arms, rounds, algorithm, and how each iteration selects an owner.

    A round has one or more iterations: in each, owners submit scores, one owner is picked, and owners learn by a mark
    whether it was them; the owner picked in the last iteration pulls its arm.

    Attributes:
        arms: Number of owners, K.
        budget: Number of rounds, N.
        algorithm: The algorithm that owners play.
        choice: How the last iteration of a round picks; earlier iterations pick the largest score.
        iterations: Number of iterations in a round.

    Example:
        >>> plan = SambaPlan.make(Algorithm("pursuit"), arms=3, budget=100)
        >>> plan.iterations, plan.choice_of(0), plan.choice_of(1)
        (2, 'argmax', 'proportional')
    """

    arms: int
    budget: int
    algorithm: Algorithm
    choice: Choice
    iterations: int

    def __post_init__(self) -> None:
        """Refuses what cannot be run.

        Raises:
            TypeError: A number is no integer.
            ValueError: A number is out of its range, the choice is unknown, or the run is so long that the key of
                owners and Comp would be used too often.
        """
        require_integer("arms", self.arms, 1)
        require_integer("budget", self.budget, self.arms)
        require_integer("iterations", self.iterations, 1)
        require_choice("choice", self.choice, get_args(Choice))
        encryptions = 2 * self.arms * self.iterations * (self.budget - self.arms)
        if encryptions > MAX_ENCRYPTIONS:
            raise ValueError(
                f"budget is {self.budget}, which takes up to {encryptions:.2e} encryptions under one key; at most 2^32 "
                "are allowed, since nonces are random"
            )

    @classmethod
    def make(cls, algorithm: Algorithm, arms: int, budget: int) -> "SambaPlan":
        """Returns the plan of a run; the algorithm determines the number of iterations and the rule of selection.

        Args:
            algorithm: The algorithm that owners play.
            arms: Number of owners, K.
            budget: Number of rounds, N.

        Raises:
            TypeError: As :meth:`.algorithm.Algorithm.bank`, or a number is no integer.
            ValueError: As :meth:`.algorithm.Algorithm.bank`, or a number is out of its range.
        """
        require_integer("arms", arms, 1)
        require_integer("budget", budget, arms)
        bank = algorithm.bank(owner_keys(0, 1), arms, budget)
        return cls(arms, budget, algorithm, bank.choice, bank.iterations)

    def choice_of(self, iteration: int) -> Choice:
        """Returns the rule by which an iteration of a round selects an owner."""
        return self.choice if iteration == self.iterations - 1 else "argmax"

    def to_bytes(self, modulus: int = 0) -> bytes:
        """Returns the content of a PLAN message: the plan and the customer's Paillier modulus (0 leaves it out)."""
        return json.dumps({**asdict(self), "modulus": f"{modulus:x}"}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple["SambaPlan", int]:
        """Returns plan and modulus from the content of a PLAN message.

        Raises:
            SecureError: The content is not that of a plan.
        """
        try:
            parts = json.loads(content)
            modulus = int(parts.pop("modulus"), 16)
            return cls(**{**parts, "algorithm": Algorithm(**parts["algorithm"])}), modulus
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SecureError(f"the plan of the run cannot be read: {error}") from error
