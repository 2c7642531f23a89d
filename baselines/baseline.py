"""What a baseline is: a policy, the wrappers it runs behind, and where it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.federation import FederatedEnv


class Wrapping(NamedTuple):
    """One wrapper of a baseline.

    Attributes:
        make: Wraps an environment, given keyword arguments.
        kwargs: The arguments that make this baseline.
        fitted: Those that follow from the environment, by a function of it.
    """

    make: Callable[..., FederatedEnv]
    kwargs: Mapping[str, Any] = {}
    fitted: Callable[[FederatedEnv], Mapping[str, Any]] = lambda env: {}


@dataclass(frozen=True)
class Baseline:
    """A reference to compare with.

    Attributes:
        summary: What it does, in a line.
        reference: Where it comes from.
        federation: The class of the problems it plays.
        policy: Makes the policy from keyword arguments.
        policy_kwargs: The arguments that make this baseline.
        wrappers: The wrappers it runs behind, by the part they play, from the inside out.
    """

    summary: str
    reference: str
    federation: type[Any]
    policy: Callable[..., Policy]
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Mapping[str, Wrapping] = field(default_factory=dict)

    def wrap(self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None) -> FederatedEnv:
        """Puts the baseline's wrappers around an environment.

        Args:
            env: The environment.
            changes: Other arguments of the wrappers, by their part.

        Raises:
            ValueError: The baseline does not play the problem in it.
        """
        # Whatever already stands around it: a registered id may come with wrappers of its own.
        problem = getattr(env, "unwrapped", env)
        if not isinstance(problem, self.federation):
            raise ValueError(
                f"env is a {type(problem).__name__}; this baseline plays {self.federation.__name__}"
            )
        arguments = self.wrapper_arguments(env, changes)
        for part, wrapping in self.wrappers.items():
            env = wrapping.make(env, **arguments[part])
        return env

    def wrapper_arguments(
        self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Returns the arguments of the baseline's wrappers around an environment, by their part.

        Args:
            env: The environment, without them.
            changes: Other arguments, by part.
        """
        return {
            part: {**wrapping.kwargs, **wrapping.fitted(env), **(changes or {}).get(part, {})}
            for part, wrapping in self.wrappers.items()
        }

    def make_policy(self, **changes: Any) -> Policy:
        """Makes the policy, with other arguments where ``changes`` names them."""
        return self.policy(**{**self.policy_kwargs, **changes})
