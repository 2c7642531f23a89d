"""The plan of a federation of silos: what each of them plays, when it releases what, and with which noise."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

from fedbandit_envs.baselines import find_baseline
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.core.wrapper import Stack, build, find_layer, layers
from fedbandit_envs.randomness.draws import MOST_ROUNDS
from fedbandit_envs.registry.registration import find_registered
from fedbandit_envs.silos.messages import Layout
from fedbandit_envs.wrappers import Channel, Privatizer, Server
from fedbandit_envs.wrappers.privacy.privatizer import Clip
from fedbandit_envs.wrappers.transport.transport import Transport


class PlanParts(NamedTuple):
    """What a plan is made of, newly made: the parts of a simulation of it, of which a silo uses its own.

    Attributes:
        env: The whole federation, with its wrappers.
        problem: The problem inside.
        privatizer: The layer of noise.
        transport: The transport, whose inboxes and schedule silos use.
        policy: A policy.
    """

    env: FederatedEnv
    problem: Problem
    privatizer: Privatizer
    transport: Transport
    policy: Policy


@dataclass(frozen=True)
class SiloPlan:
    """A federation that silos play: the settings of a run (:class:`.RunSpec` has the same names), as JSON data.

    The environment stands for sizes, bounds and sensitivities; silos draw nothing from it. Releases need noise, a
    privatizer, and a transport whose schedule is fixed in advance: a ``Channel``, through which silos receive each
    other's releases, or a ``Server``, from which they receive sums.

    Attributes:
        baseline: Name of a baseline, or the entry point of a policy.
        env_id: Id or entry point of the environment.
        rounds: T, the number of rounds of each silo.
        env_kwargs: Changes to the arguments of the environment's preset.
        policy_kwargs: Changes to the arguments of the baseline's policy.
        wrapper_kwargs: Changes to the arguments of the baseline's wrappers, by the wrapper's part.
        stack: Wrappers between the environment and the baseline's, such as a privatizer and a channel.

    Example:
        >>> plan = SiloPlan("P-FCB", "FedProcurement-v0", 500, {"num_agents": 4})
        >>> plan.layout.agents, plan.layout.schedule.count(500), plan.layout.shapes["good"]
        (4, 1, (30,))
        >>> SiloPlan(**plan.as_json()).identity == plan.identity
        True
    """

    baseline: str
    env_id: str
    rounds: int
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrapper_kwargs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stack: Stack = ()

    def __post_init__(self) -> None:
        """Checks the number of rounds; names and arguments are checked by :meth:`make`.

        Raises:
            TypeError: ``rounds`` is no integer.
            ValueError: ``rounds`` is out of its range.
        """
        for one in fields(self):
            object.__setattr__(self, one.name, plain(getattr(self, one.name)))
        require_integer("rounds", self.rounds, 1, MOST_ROUNDS)

    def as_json(self) -> dict[str, Any]:
        """Returns all settings by name, as JSON data."""
        return asdict(self)

    @cached_property
    def identity(self) -> str:
        """A digest of all settings and of this package's version; silos refuse messages and stores of other plans."""
        text = json.dumps([self.as_json(), version("fedbandit-envs")], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def layout(self) -> Layout:
        """What the plan's messages look like."""
        parts = self.make()
        shapes = {name: space.shape or () for name, space in parts.privatizer.single_release_space.items()}
        schedule, sums = parts.transport._schedule, isinstance(parts.transport, Server)
        return Layout(self.identity, parts.env.max_num_agents, shapes, self.rounds, schedule, sums)

    def make(self) -> PlanParts:
        """Makes the parts of the plan.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A name is unknown, or an argument is out of its range.
            UnfitError: Silos cannot play it: there is no noise, no transport with a schedule fixed in advance or a
                further wrapper; or agents affect each other.
        """
        entry, baseline = find_registered(self.env_id), find_baseline(self.baseline)
        kwargs = {**entry.kwargs, **self.env_kwargs, "max_cycles": self.rounds}
        inner = build(entry.federation, (*entry.stack, *self.stack), **kwargs)
        env = baseline.wrap(inner, self.wrapper_kwargs)
        privatizer, transport, problem = find_layer(env, "noise"), find_layer(env, "transport"), env.unwrapped
        names = [type(layer).__name__ for layer in layers(env)]
        known = (Problem, Clip, Privatizer, Channel, Server)
        if not (
            isinstance(problem, Problem)
            and isinstance(privatizer, Privatizer)
            and isinstance(transport, Transport)
            and all(isinstance(layer, known) for layer in layers(env))
            and transport._stage is None
            and getattr(transport, "_policy", None) is None
            and not transport._echo
            and transport._schedule.fixed_in_advance
            and not problem.interacting
        ):
            raise UnfitError(
                f"the plan has the layers {names}; a problem whose agents do not affect each other, a privatizer and "
                "a Channel, or a Server without a policy, without stage and echo, fixed in advance, are required"
            )
        return PlanParts(env, problem, privatizer, transport, baseline.make_policy(**self.policy_kwargs))
