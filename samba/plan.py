"""The plan of a run: its settings, which the customer sends and every role receives (SAMBA, steps 0 and 1)."""

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

    A round has one or more iterations: in each, owners submit scores, one owner is picked, and every owner gets a mark
    that tells whether it is the one; the owner picked in the last iteration pulls its arm.

    Attributes:
        arms: Number of owners, K.
        budget: Number of rounds, N.
        algorithm: The algorithm that owners play.
        choice: How the last iteration of a round picks an owner: ``"argmax"``, by the largest score, or
            ``"proportional"``, at random in proportion to scores. Earlier iterations pick the largest score.
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
        """Checks that the plan can be run.

        Raises:
            TypeError: A number is no integer.
            ValueError: A number is out of its range, the choice is unknown, or the run is so long that the key which
                owners share with Comp would encrypt more than 2^32 items.
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
            TypeError: The algorithm does not know a parameter, or a number is no integer; see
                :meth:`.algorithm.Algorithm.bank`.
            ValueError: The algorithm cannot be played on encrypted scores, or a number is out of its range; see
                :meth:`.algorithm.Algorithm.bank`.
        """
        require_integer("arms", arms, 1)
        require_integer("budget", budget, arms)
        bank = algorithm.bank(owner_keys(0, 1), arms, budget)
        return cls(arms, budget, algorithm, bank.choice, bank.iterations)

    def choice_of(self, iteration: int) -> Choice:
        """Returns how an iteration of a round picks an owner: ``choice`` for the last iteration, else ``"argmax"``."""
        return self.choice if iteration == self.iterations - 1 else "argmax"

    def to_bytes(self, modulus: int = 0) -> bytes:
        """Returns the content of a PLAN message: the plan and the customer's Paillier modulus, as JSON.

        Comp, which adds and encrypts no sums, is sent the modulus 0.
        """
        return json.dumps({**asdict(self), "modulus": f"{modulus:x}"}).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple["SambaPlan", int]:
        """Returns the plan and the customer's Paillier modulus from the content of a PLAN message.

        Raises:
            SecureError: The content does not describe a plan.
        """
        try:
            parts = json.loads(content)
            modulus = int(parts.pop("modulus"), 16)
            return cls(**{**parts, "algorithm": Algorithm(**parts["algorithm"])}), modulus
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SecureError(f"the plan of the run cannot be read: {error}") from error
