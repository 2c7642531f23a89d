"""Baselines by name: a policy, the wrappers it runs behind, and where it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.procurement import SSUCB, Clairvoyant, OneOfEach, UniformRandom
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.reveal import Reveal


@dataclass(frozen=True)
class Baseline:
    """A reference to compare with.

    Attributes:
        summary: What it does, in a line.
        reference: Where it comes from.
        federation: The environments it plays.
        policy: Makes the policy from keyword arguments.
        policy_kwargs: The arguments that make this baseline.
        wrappers: Wrappers from the inside out, each called with the environment.
    """

    summary: str
    reference: str
    federation: type[FederatedEnv]
    policy: Callable[..., Policy]
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Callable[[FederatedEnv], FederatedEnv], ...] = ()

    def wrap(self, env: FederatedEnv) -> FederatedEnv:
        """Puts the baseline's wrappers around an environment.

        Raises:
            ValueError: The baseline does not play this environment.
        """
        if not isinstance(env, self.federation):
            raise ValueError(f"env is a {type(env).__name__}; this baseline plays {self.federation.__name__}")
        for wrapper in self.wrappers:
            env = wrapper(env)
        return env

    def make_policy(self, **changes: Any) -> Policy:
        """Makes the policy, with other arguments where ``changes`` names them."""
        return self.policy(**{**self.policy_kwargs, **changes})


_DEVA = "Deva, Abhishek, Gujar (AAMAS 2021)"

BASELINES: dict[str, Baseline] = {
    "uniform-random": Baseline(
        "each quantity uniform between 0 and capacity", "placebo", ProcurementEnv, UniformRandom
    ),
    "one-of-each": Baseline("one unit of each producer, for ever", "placebo", ProcurementEnv, OneOfEach),
    "clairvoyant": Baseline(
        "the exact oracle on the true qualities", "upper bound", ProcurementEnv, Clairvoyant, {}, (Reveal,)
    ),
    "SS-UCB": Baseline(
        "silent: optimism and Greedy SSA on own data", _DEVA, ProcurementEnv, SSUCB, {"oracle": "greedy"}
    ),
    "SS-UCB-exact": Baseline(
        "silent: optimism and the integer optimum on own data (DPSS)",
        _DEVA,
        ProcurementEnv,
        SSUCB,
        {"oracle": "exact"},
    ),
}
"""Every baseline of this package by name."""
