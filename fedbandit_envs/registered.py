"""What a problem's folder says in its ``registered.py``."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Stack = Sequence[Sequence[Any]]
"""Wrappers from the inside out, each a pair of its entry point and its keyword arguments; can be written as JSON."""


class Preset(NamedTuple):
    """One id's settings.

    Attributes:
        kwargs: Arguments of the environment, all of them writable as JSON.
        stack: Wrappers that belong to the id; every face builds them.
    """

    kwargs: Mapping[str, Any] = {}
    stack: Stack = ()


class RegisteredProblem(NamedTuple):
    """One problem.

    Attributes:
        federation: Entry point of the federated environment's class.
        peers: Entry point of the policy that plays a learner's peers by default.
        listener: Entry point of a policy that makes something of what it hears.
        small: Arguments that make a small instance, for tests.
        presets: Settings by Gymnasium id.
    """

    federation: str
    peers: str
    listener: str
    small: Mapping[str, Any]
    presets: Mapping[str, Preset]


class Registered(NamedTuple):
    """One id, with the problem it belongs to.

    Attributes:
        problem: The problem.
        env_id: Gymnasium's id.
        kwargs: The preset: arguments of the federated environment.
        stack: Wrappers that belong to the id.
    """

    problem: RegisteredProblem
    env_id: str
    kwargs: dict[str, Any]
    stack: Stack

    @property
    def federation(self) -> str:
        """Entry point of the federated environment's class."""
        return self.problem.federation

    @property
    def pettingzoo(self) -> str:
        """Id in PettingZoo's registry: ``FedLinearBall-v0`` is ``fedbandit/linear_ball_v0``."""
        name, _, version = self.env_id.removeprefix("Fed").partition("-")
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        return f"fedbandit/{words.removeprefix('_')}_{version}"
