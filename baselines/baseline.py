"""Baselines: policies with the wrappers around their environments, and the papers that they come from.

Each folder lists its baselines in ``BASELINES`` of its module ``registered``. Further forms of some baselines are made
here, so that folders give only their names: ``PLACEBOS`` those of placebos, whose messages hold noise but no data, and
``ON_TRUE_DATA`` those of forms without noise. Tuned forms follow from ``tuned.json``; private ones have constants by
epsilon (:meth:`Baseline.at`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import signature
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple

from fedbandit_envs import baselines
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.tuned import TUNED_NAMES, Constants, by_epsilon, nearest
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.basics.html import html_table
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_wrapper
from fedbandit_envs.registry.registration import Registry, find_registered, registered
from fedbandit_envs.wrappers import Channel, ContinualPrivatizer, Interleaved, Messages, Reveal, Server
from fedbandit_envs.wrappers.releases import Placebo


class WrapperSpec(NamedTuple):
    """One wrapper that a baseline puts around its environment, with the wrapper's arguments.

    Attributes:
        make: Class or function that wraps an environment, given the environment and keyword arguments.
        kwargs: Keyword arguments for ``make``, the same for every environment.
        kwargs_from_env: Returns further keyword arguments for ``make``, computed from the environment to be wrapped.
    """

    make: Callable[..., FederatedEnv]
    kwargs: Mapping[str, Any] = {}
    kwargs_from_env: Callable[[FederatedEnv], Mapping[str, Any]] = lambda env: {}


@dataclass(frozen=True)
class Baseline:
    """A policy together with the wrappers around the environment that it plays (channel, privatizer and others).

    Attributes:
        summary: What the baseline does, in one line.
        reference: The publication that the baseline comes from, or the kind of control that it is.
        federation: Class of the environments that the baseline can play.
        policy: Class or function that makes the policy from keyword arguments.
        policy_kwargs: Keyword arguments with which the baseline makes its policy.
        wrappers: The baseline's wrappers, from the innermost to the outermost, each under the name of its role
            (``"privatizer"``, ``"channel"``, ...).
        only: The one registered id that lists name the baseline for (:meth:`fits`); :meth:`wrap` takes any environment
            of the problem. Empty if it is for all of the problem's ids.
        by_epsilon: Constants of the policy by the epsilon that they were tuned for; empty if it does not matter.

    Example:
        >>> from fedbandit_envs import procurement_v0
        >>> from fedbandit_envs.baselines import BASELINES
        >>> baseline = BASELINES["P-FCB"]
        >>> env = baseline.wrap(procurement_v0.parallel_env(num_agents=3), {"channel": {"loss": 0.1}})
        >>> policy = baseline.make_policy(omega1=0.2)
    """

    summary: str
    reference: str
    federation: type[Any]
    policy: Callable[..., Policy]
    policy_kwargs: Mapping[str, Any] = field(default_factory=dict)
    wrappers: Mapping[str, WrapperSpec] = field(default_factory=dict)
    only: str = ""
    by_epsilon: Mapping[float, Constants] = field(default_factory=dict)

    def fits(self, env_id: str) -> bool:
        """Returns whether the baseline plays a registered environment, given its id."""
        entry = find_registered(env_id)
        # Around an environment that comes with a transport there is no room for a baseline's wrappers.
        full = any(find_wrapper(name).layer == "transport" for name, _ in entry.stack)
        plays = issubclass(resolve(entry.federation), self.federation) and self.only in ("", env_id)
        return plays and not (full and self.wrappers)

    def wrap(self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None) -> FederatedEnv:
        """Returns the environment with the baseline's wrappers around it.

        Args:
            env: The environment to be wrapped.
            changes: Arguments of wrappers that replace the baseline's, by the wrapper's role (a key of ``wrappers``)
                and the argument's name.

        Raises:
            ValueError: The environment belongs to a problem that the baseline does not play.
        """
        # A registered id may come with wrappers of its own, so that the innermost environment tells the problem.
        problem = getattr(env, "unwrapped", env)
        if not isinstance(problem, self.federation):
            raise ValueError(
                f"env is a {type(problem).__name__}; this baseline plays {self.federation.__name__}. "
                "`fedbandit list --env ID` names those that fit an environment"
            )
        arguments = self.wrapper_arguments(env, changes)
        for part, wrapper in self.wrappers.items():
            env = wrapper.make(env, **arguments[part])
        return env

    def wrapper_arguments(
        self, env: FederatedEnv, changes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Returns the arguments of each of the baseline's wrappers, by the wrapper's role.

        An ``epsilon`` of all releases replaces the size of noise of a paper's form, which is for each release; the
        channel's schedule is then what it plans with.

        Args:
            env: The environment, without the baseline's wrappers.
            changes: Arguments that replace the baseline's, by the wrapper's role and the argument's name.
        """
        arguments = {
            part: {**wrapper.kwargs, **wrapper.kwargs_from_env(env), **(changes or {}).get(part, {})}
            for part, wrapper in self.wrappers.items()
        }
        noise = arguments.get("privatizer", {})
        asked = (changes or {}).get("privatizer", {}).get("epsilon")
        if asked is not None and noise.pop("epsilon_per_release", None) and noise.get("releases") is None:
            noise["releases"] = arguments.get("channel", {}).get("schedule")
        return arguments

    def tuned_by(self, constants: Mapping[str, Any]) -> "Baseline":
        """Returns the baseline with other constants of its policy, or of the server policy that plans for its agents.

        Args:
            constants: Arguments by name.
        """
        server = self.wrappers.get("server", WrapperSpec(Server))
        if not isinstance(planned := server.kwargs.get("policy"), Mapping):
            return replace(self, policy_kwargs={**self.policy_kwargs, **constants})
        server = server._replace(kwargs={**server.kwargs, "policy": {**planned, **constants}})
        return replace(self, wrappers={**self.wrappers, "server": server})

    def at(self, epsilon: float | None) -> "Baseline":
        """Returns the baseline with the constants that were tuned for the nearest epsilon on a logarithmic scale.

        Args:
            epsilon: Epsilon of all releases of an agent together, which is public. None if it is unknown.
        """
        if epsilon is None or not self.by_epsilon:
            return self
        return self.tuned_by(nearest(self.by_epsilon, epsilon))

    def make_policy(self, **changes: Any) -> Policy:
        """Returns a new policy of the baseline; arguments in ``changes`` replace the baseline's own."""
        return self.policy(**{**self.policy_kwargs, **changes})

    def _repr_html_(self) -> str:
        """Returns the HTML table that notebooks show: what it plays, its policy and wrappers, and their arguments."""
        made: list[tuple[str, Any, Mapping[str, Any]]] = [("policy", self.policy, self.policy_kwargs)]
        made += [(part, one.make, one.kwargs) for part, one in self.wrappers.items()]
        rows = [("plays", self.federation.__name__), ("reference", self.reference)]
        for part, make, kwargs in made:
            arguments = ", ".join(f"{name}={value!r}" for name, value in kwargs.items())
            rows.append((part, f"{getattr(make, '__name__', make)}({arguments})"))
        return html_table(self.summary, rows)


_PARTS: Mapping[str, Callable[..., FederatedEnv]] = {
    "reveal": Reveal,
    "interleaved": Interleaved,
    "messages": Messages,
    "privatizer": ContinualPrivatizer,
    "channel": Channel,
    "server": Server,
}


def listed(
    federation: type[Any],
    policy: Callable[..., Policy],
    summary: str,
    reference: str = "control",
    /,
    only: str = "",
    **settings: Any,
) -> Baseline:
    """Returns a :class:`Baseline` whose wrappers and policy arguments are given as keyword arguments.

    Args:
        federation: Class of the environments that the baseline can play.
        policy: Class or function that makes the policy from keyword arguments.
        summary: What the baseline does, in one line. Without wrappers it is said that agents do not communicate.
        reference: The publication that the baseline comes from, or the kind of control that it is.
        only: The one registered id that the baseline is listed for; empty for all ids of the problem.
        **settings: Arguments of the policy. The keys ``reveal``, ``interleaved``, ``messages``, ``privatizer``,
            ``channel`` and ``server`` are set apart: each adds the usual wrapper for that role, with the arguments in
            its value, or the wrapper of the :class:`WrapperSpec` that is its value.
    """
    wrappers = {}
    for part, usual in _PARTS.items():
        if part in settings:
            given = settings.pop(part)
            wrappers[part] = given if isinstance(given, WrapperSpec) else WrapperSpec(usual, given)
    if reference not in ("control", "oracle") and not wrappers:
        summary = f"no communication; {summary}"
    return Baseline(summary, reference, federation, policy, settings, wrappers, only)


def asked_epsilon(arguments: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Returns the epsilon that a baseline's wrappers are asked for; None if there is none.

    It is that of all releases, or where a paper's form has it that of one.

    Args:
        arguments: The wrappers' arguments by their roles, see :meth:`Baseline.wrapper_arguments`.
    """
    asked = [given.get("epsilon") or given.get("epsilon_per_release") for given in arguments.values()]
    return next((size for size in asked if isinstance(size, int | float)), None)


def secure_sum(env: FederatedEnv, missing: int = 1) -> dict[str, Any]:
    """Returns the stage of a channel or server in which all agents but ``missing`` make up the noise of a sum."""
    return {"stage": {"name": "aggregator", "honest": max(env.max_num_agents - missing, 1)}}


def forms(family: Any) -> dict[str, Baseline]:
    """Returns the baselines of a folder or a plug-in by name, with those that are derived from them.

    Args:
        family: The module ``registered``: ``BASELINES`` by name and, where it has them, ``PLACEBOS`` and
            ``ON_TRUE_DATA``, names of derived baselines by the names of those that they derive from.
    """
    found = dict(family.BASELINES)
    for of, name in getattr(family, "PLACEBOS", {}).items():
        base = family.BASELINES[of]
        # Messages that agents write replace statistics, so that they become zeros outside of that wrapper.
        written = {part: wrapper for part, wrapper in base.wrappers.items() if part == "messages"}
        wrappers = {**written, "placebo": WrapperSpec(Placebo), **base.wrappers}
        summary = f"{of} on messages that contain noise and no data"
        found[name] = replace(base, summary=summary, reference="placebo", wrappers=wrappers)
    for of, name in getattr(family, "ON_TRUE_DATA", {}).items():
        base = family.BASELINES[of]
        wrappers = {part: wrapper for part, wrapper in base.wrappers.items() if part != "privatizer"}
        summary = f"{of} on messages without noise"
        found[name] = replace(base, summary=summary, reference="control", wrappers=wrappers)
    return found


@cache
def all_baselines() -> Registry[Baseline]:
    """Returns ``fedbandit_envs.baselines.BASELINES``: every baseline by name.

    A plug-in of the group ``baselines`` names a module like a folder's ``registered``.
    """
    own: dict[str, Baseline] = {}
    for family in registered(baselines):
        own |= forms(family)
    tuned = {}
    for of, name in TUNED_NAMES.items():
        if of not in own:
            continue  # It is of a plug-in.
        summary, reference = f"{of} with tuned constants", "tuned on other seeds by `fedbandit tune`"
        form = replace(own[of], summary=summary, reference=reference, by_epsilon=by_epsilon(name))
        epsilon = asked_epsilon({part: wrapper.kwargs for part, wrapper in form.wrappers.items()})
        tuned[name] = form.at(inf if epsilon is None else epsilon)
    return Registry(own | tuned, baselines=lambda plugin: forms(plugin.content))


def find_baseline(name: str | Baseline) -> Baseline:
    """Returns the baseline with a name, or a new one without wrappers for the entry point of an unregistered policy.

    Args:
        name: A key of ``BASELINES``; or the entry point of a policy, ``"module:Class"`` or ``"file.py:Class"``,
            whose baseline then accepts environments of any problem. A baseline is returned itself.

    Raises:
        ValueError: No baseline has this name, and the name has no colon, as an entry point would.
        ImportError: The module of the entry point does not exist.
        AttributeError: The module of the entry point has no such attribute.
        TypeError: The entry point is no class or function.
    """
    if isinstance(name, Baseline):
        return name
    if name.endswith(".py"):
        raise ValueError(f"baseline is {name!r}; '{name}:Class' is required")
    if ":" not in name:
        require_choice("baseline", name, all_baselines())
        return all_baselines()[name]
    policy = resolve(name)
    if not callable(policy):
        raise TypeError(f"baseline is {name!r}, a {type(policy).__name__}; a class or function is required")
    # FederatedEnv is the base class of all environments, so that the baseline accepts every problem.
    return Baseline("a policy that is not registered", "-", FederatedEnv, policy)


def as_baseline(policy: str | Baseline | Policy | Callable[..., Any]) -> tuple[str, Baseline]:
    """Returns what a user has passed as a policy as a baseline, and the name under which results show it.

    Args:
        policy: A baseline, or a name or entry point as in :func:`find_baseline`. Or a policy or its class; or a
            function that is called in each round with the observations of all agents, and returns their actions, as
            :meth:`.Policy.act` does. The baseline of these has no wrappers and accepts environments of any problem.

    Raises:
        ValueError: See :func:`find_baseline`.
        TypeError: It is none of these things.
    """
    if isinstance(policy, str):
        return policy, find_baseline(policy)
    if isinstance(policy, Baseline):
        names = (name for name, one in all_baselines().items() if one is policy)
        return next(names, getattr(policy.policy, "__name__", "policy")), policy
    name, made = getattr(policy, "__name__", type(policy).__name__), policy
    if not isinstance(policy, type | Policy):
        with suppress(TypeError, ValueError):
            signature(policy).bind({})
            made = SimpleNamespace(reset=lambda spec, seeds: None, act=policy)
    if not isinstance(made, Policy):
        raise TypeError(
            f"policy is {policy!r}; the name of a baseline, a Baseline, a policy (an object with reset and act), or a "
            "function that maps the observations of all agents to their actions, is required"
        )
    make = made if isinstance(made, type) else lambda: made
    return name, Baseline("a policy that is not registered", "-", FederatedEnv, make)
