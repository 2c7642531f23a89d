"""Runs of a federation put together from menus: what was chosen, what is played, what came out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any
from warnings import catch_warnings

from gymnasium.spaces import Dict

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.baseline import Baseline, Wrapping
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.claim import Claim
from fedbandit_envs.leaderboard.lab import choices
from fedbandit_envs.leaderboard.lab.choices import AS_REGISTERED, EVERYBODY, NONE, of_layer
from fedbandit_envs.leaderboard.run import Settings, SettingsError, arguments, build, play
from fedbandit_envs.leaderboard.simulation import Simulation
from fedbandit_envs.leaderboard.sweep.runs import claims_of
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.wrapper import Layer, find_layer
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, make_schedule
from fedbandit_envs.wrappers.transport.transport import Transport

_PARTICIPATION = "fedbandit_envs.wrappers:Participation"
_BYZANTINE = "fedbandit_envs.wrappers:Byzantine"

Named = tuple[str, Mapping[str, Any]]
"""A choice of a menu, and what it is told."""


@dataclass(frozen=True)
class Choice:
    """What the menus say; see :mod:`.choices` for what they offer.

    Attributes:
        problem: An environment's id.
        policy: A baseline.
        rounds: Horizon.
        seeds: How many, from 0 on.
        transport: What carries messages.
        schedule: When agents send.
        topology: Who hears whom.
        privatizer: What makes noise.
        law: Who acts.
        attack: What liars do.
        liars: The share of agents that lie.
        faults: What is told to the carrier besides: ``delay``, ``loss``, ``duplication``.
        delta: At which spending is claimed.
        same_arms: Whether arms stay from round to round, where the problem can have that.
    """

    problem: Named
    policy: Named
    rounds: int = 1000
    seeds: int = 5
    transport: Named = (AS_REGISTERED, {})
    schedule: Named = (AS_REGISTERED, {})
    topology: Named = (AS_REGISTERED, {})
    privatizer: Named = (AS_REGISTERED, {})
    law: Named = (EVERYBODY, {})
    attack: Named = (NONE, {})
    liars: float = 0.2
    faults: Mapping[str, float] = field(default_factory=dict)
    delta: float = 1e-5
    same_arms: bool = False

    @property
    def label(self) -> str:
        """Says in a few words what is not as registered, for legends."""
        parts = [self.policy[0]]
        usual = (AS_REGISTERED, EVERYBODY)
        for what, (name, said) in {
            "": self.problem, "policy": self.policy, "carried by": self.transport, "sending": self.schedule,
            "graph": self.topology, "noise": self.privatizer, "acting": self.law, "lies": self.attack,
        }.items():  # fmt: skip
            chosen = (
                what not in ("", "policy") and name not in usual and not (what == "lies" and name == NONE)
            )
            words = [f"{what} {name}"] if chosen else []
            parts += [*words, *(f"{key} {value}" for key, value in said.items())]
        parts += ["same arms"] if self.same_arms and choices.keeps_arms(self.problem[0]) else []
        parts += [f"{name} {value:g}" for name, value in self.faults.items() if value]
        return ", ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """What a run has led to.

    Attributes:
        choice: What was played.
        simulation: Regret, messages and what episodes added up to.
        claim: What privacy the releases had, as the environment says.
        claims: The same by all compositions under all adjacencies; none without a privatizer.
        traffic: Total ``messages`` and ``bytes``, ``(seeds, agents)``; empty where nothing carries any.
        groups: Agents to be told apart, by the group's name.
        cpu_seconds: What playing took.
        warned: What the parts warned of when they were put together.
    """

    choice: Choice
    simulation: Simulation
    claim: Claim
    claims: Sequence[Mapping[str, Any]]
    traffic: Arrays
    groups: Mapping[str, Sequence[int]]
    cpu_seconds: float
    warned: Sequence[str] = ()


def outcome_of(choice: Choice, advance: Callable[[int], None] = lambda rounds: None) -> Outcome:
    """Plays what was chosen.

    Args:
        choice: What to play.
        advance: Told of rounds played, for progress bars.

    Raises:
        SettingsError: It cannot be played: a name is unknown, an argument wrong, or a part does not fit the others.
        BudgetExhaustedError: A privatizer refuses a release.
    """
    baseline, settings = put_together(choice)
    start = process_time()
    with catch_warnings(record=True, action="always") as warned:
        env, policy = build(settings, baseline)
    try:
        simulation = play(settings, env, _Answering(policy, choice.policy[0]), advance)
    except UnfitError as error:
        raise SettingsError(str(error)) from error
    transport = find_layer(env, "transport")
    return Outcome(
        choice=choice,
        simulation=simulation,
        claim=env.privacy(),
        claims=claims_of(env, choice.delta),
        traffic=transport.traffic if isinstance(transport, Transport) else {},
        groups=env.groups,
        cpu_seconds=process_time() - start,
        warned=[str(one.message) for one in warned],
    )


class _Answering:
    """A policy that is asked whether to send only if it answers: most do not."""

    def __init__(self, policy: Policy, name: str) -> None:
        """Takes the policy, and its name."""
        self._policy = policy
        self._name = name

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares the policy for an episode."""
        self._asked = isinstance(spaces.action, Dict)
        self._policy.reset(spaces, seeds)

    def act(self, observation: Arrays) -> Array:
        """Returns what the policy does.

        Raises:
            UnfitError: It does not say whether to send.
        """
        action = self._policy.act(observation)
        if self._asked and not isinstance(action, Mapping):
            raise UnfitError(
                f"policy is {self._name!r}, which does not say when to send, and the schedule asks agents; one that is "
                "fixed in advance, or a policy that chooses, is required"
            )
        return action


def put_together(choice: Choice) -> tuple[Baseline, Settings]:
    """Returns the baseline with the wrappers that were chosen, and the settings of the run.

    Raises:
        SettingsError: See :func:`outcome_of`; what only playing shows is said there.
    """
    env_id, env_kwargs = choice.problem
    _require_known("problem", env_id, choices.problems())
    if choice.same_arms and choices.keeps_arms(env_id):
        env_kwargs = {**choices.same_arms(env_id, env_kwargs), **env_kwargs}
    policy, policy_kwargs = choice.policy
    _require_known("policy", policy, BASELINES)
    found = BASELINES[policy]
    said = {"transport": {**_carried(choice), **choice.transport[1]}, "noise": {**choice.privatizer[1]}}
    chosen: dict[Layer, str] = {"noise": choice.privatizer[0], "transport": choice.transport[0]}
    parts: dict[str, Wrapping] = {}
    changes: dict[str, dict[str, Any]] = {}
    for layer in ("data", "noise", "transport", "view"):
        own = {part: one for part, one in found.wrappers.items() if getattr(one.make, "layer", None) == layer}
        if chosen.get(layer, AS_REGISTERED) != AS_REGISTERED:
            own = {} if chosen[layer] == NONE else {layer: Wrapping(_wrapper(layer, chosen[layer]))}
        if said.get(layer) and not own:
            raise SettingsError(
                f"{', '.join(said[layer])} cannot be said of a {layer} layer, since there is none; a policy that has "
                f"one, or one of {', '.join(of_layer(layer))}, is required"
            )
        parts |= own
        changes |= {part: _told(one, said.get(layer, {})) for part, one in own.items()}
    baseline = replace(found, wrappers=parts)
    _plan(choice, baseline, changes)
    stack = []
    if choice.law[0] != EVERYBODY:
        stack.append([_PARTICIPATION, {"law": {"name": choice.law[0], **choice.law[1]}}])
    if choice.attack[0] != NONE:
        lies = {"agents": choice.liars, "attack": {"name": choice.attack[0], **choice.attack[1]}}
        stack.append([_BYZANTINE, lies])
    settings = Settings(
        baseline=policy,
        env_id=env_id,
        rounds=choice.rounds,
        seeds=choice.seeds,
        env_kwargs=dict(env_kwargs),
        policy_kwargs=dict(policy_kwargs),
        wrapper_kwargs=changes,
        stack=stack,
    )
    return baseline, settings


def _require_known(what: str, name: str, known: Collection[str]) -> None:
    """Refuses a name that is not among those known."""
    if name not in known:
        raise SettingsError(f"{what} is {name!r}; one of {', '.join(known)} is required")


def _wrapper(layer: Layer, name: str) -> Callable[..., Any]:
    _require_known(layer, name, known := of_layer(layer))
    return known[name]


def _carried(choice: Choice) -> dict[str, Any]:
    """Returns what menus say of the carrier."""
    found: dict[str, Any] = {name: value for name, value in choice.faults.items() if value}
    if choice.schedule[0] != AS_REGISTERED:
        found["schedule"] = _schedule(choice)
    if choice.topology[0] != AS_REGISTERED:
        found["topology"] = {"name": choice.topology[0], **choice.topology[1]}
    return found


def _schedule(choice: Choice) -> dict[str, Any]:
    name, said = choice.schedule
    _require_known("schedule", name, SCHEDULES)
    horizon = {"horizon": choice.rounds} if "horizon" in arguments(SCHEDULES[name]) else {}
    return {"name": name, **horizon, **said}


def _told(wrapping: Wrapping, said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a wrapper is told, if it knows all of it."""
    known = arguments(wrapping.make).keys() - {"env"}
    for name, value in said.items():
        if name not in known:
            raise SettingsError(
                f"{name} is {value!r}, but {wrapping.make.__name__} has none; it can be told {', '.join(sorted(known))}"
            )
    return dict(said)


def _plan(choice: Choice, baseline: Baseline, changes: dict[str, dict[str, Any]]) -> None:
    """Lets continual release plan for the schedule, where that is not the one that both are registered with."""
    usual = choice.schedule[0] == choice.transport[0] == choice.privatizer[0] == AS_REGISTERED
    for part, wrapping in baseline.wrappers.items():
        if usual or "releases" in changes[part] or wrapping.make is not ContinualPrivatizer:
            continue
        when = _when(baseline, changes)
        if when is not None:
            changes[part]["releases"] = when


def _when(baseline: Baseline, changes: Mapping[str, Mapping[str, Any]]) -> Any:
    """Returns the schedule of the carrier, if it is fixed in advance and known before there is an environment."""
    for part, wrapping in baseline.wrappers.items():
        if getattr(wrapping.make, "layer", None) != "transport":
            continue
        default = arguments(wrapping.make)["schedule"]
        when = {"schedule": default, **wrapping.kwargs, **changes[part]}["schedule"]
        try:
            return when if make_schedule(when).fixed_in_advance else None
        except (TypeError, ValueError) as error:
            raise SettingsError(str(error)) from error
    return None
