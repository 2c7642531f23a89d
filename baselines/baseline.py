"""Baselines: a policy, the wrappers around its environment, and the paper that it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server


class WrapperSpec(NamedTuple):
    """One wrapper of a baseline.

    Attributes:
        make: Wraps an environment, given keyword arguments.
        kwargs: The baseline's arguments of the wrapper.
        kwargs_from_env: Returns further arguments, those that depend on the environment.
    """

    make: Callable[..., FederatedEnv]
    kwargs: Mapping[str, Any] = {}
    kwargs_from_env: Callable[[FederatedEnv], Mapping[str, Any]] = lambda env: {}


@dataclass(frozen=True)
class Baseline:
    """A registered policy with the wrappers that it is played behind.

    Attributes:
        summary: What it does, in one line.
        reference: Where it comes from.
        federation: Class of the environments that it plays.
        policy: Makes the policy from keyword arguments.
        policy_kwargs: The baseline's arguments of the policy.
        wrappers: Its wrappers by their part (``"privatizer"``, ``"channel"``, ...), from the inside out.

    Example:
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines import BASELINES
        >>> baseline = BASELINES["P-FCB"]
        >>> env = baseline.wrap(procurement_v0.parallel_env(num_agents=3), {"privatizer": {"epsilon": 2.0}})
        >>> policy = baseline.make_policy(omega1=0.2)
    """

    summary: str
    reference: str
    federation: type[Any]
    policy: Callable[..., Policy]
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Mapping[str, WrapperSpec] = field(default_factory=dict)

    def wrap(self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None) -> FederatedEnv:
        """Returns an environment inside of the baseline's wrappers.

        Args:
            env: The environment.
            changes: Other arguments of the wrappers, by part.

        Raises:
            ValueError: The environment is none that the baseline plays.
        """
        # A registered id may come with wrappers of its own.
        problem = getattr(env, "unwrapped", env)
        if not isinstance(problem, self.federation):
            raise ValueError(
                f"env is a {type(problem).__name__}; this baseline plays {self.federation.__name__}"
            )
        arguments = self.wrapper_arguments(env, changes)
        for part, wrapper in self.wrappers.items():
            env = wrapper.make(env, **arguments[part])
        return env

    def wrapper_arguments(
        self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Returns the arguments of the baseline's wrappers around an environment, by part.

        Args:
            env: The environment, without them.
            changes: Other arguments, by part.
        """
        return {
            part: {**wrapper.kwargs, **wrapper.kwargs_from_env(env), **(changes or {}).get(part, {})}
            for part, wrapper in self.wrappers.items()
        }

    def make_policy(self, **changes: Any) -> Policy:
        """Returns the baseline's policy, with other arguments where ``changes`` names them."""
        return self.policy(**{**self.policy_kwargs, **changes})


_PARTS: Mapping[str, Callable[..., FederatedEnv]] = {
    "reveal": Reveal,
    "interleaved": Interleaved,
    "privatizer": ContinualPrivatizer,
    "channel": Channel,
    "server": Server,
}


def listed(
    federation: type[Any], policy: Callable[..., Policy], summary: str, reference: str, /, **settings: Any
) -> Baseline:
    """Returns a :class:`Baseline` whose wrappers and arguments of the policy are written as keyword arguments.

    Args:
        federation: See :class:`Baseline`.
        policy: See there.
        summary: See there.
        reference: See there.
        **settings: Arguments of the policy; and under ``reveal``, ``interleaved``, ``privatizer``, ``channel`` and
            ``server`` the arguments of the usual wrapper for that part, or a :class:`WrapperSpec` of another.
    """
    wrappers = {}
    for part, usual in _PARTS.items():
        if part in settings:
            given = settings.pop(part)
            wrappers[part] = given if isinstance(given, WrapperSpec) else WrapperSpec(usual, given)
    return Baseline(summary, reference, federation, policy, settings, wrappers)
