"""One baseline on one registered environment: settings in, a result that can be written as JSON out."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.checks import require_choice, require_integer
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.simulation import Simulation, simulate
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.registration import REGISTRY


@dataclass(frozen=True)
class Settings:
    """All that determines a run.

    Attributes:
        baseline: Name in ``BASELINES``.
        env_id: Id in ``REGISTRY``.
        rounds: Horizon.
        seeds: Number of seeds, each a replica.
        first_seed: The first of them; the others follow.
        env_kwargs: Changes to the preset.
        policy_kwargs: Changes to the baseline's policy.
        wrapper_kwargs: Changes to the baseline's wrappers, by their part.
    """

    baseline: str
    env_id: str
    rounds: int
    seeds: int
    first_seed: int
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    wrapper_kwargs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses unknown names and numbers out of range.

        Raises:
            ValueError: Names the parameter, its value and what is allowed.
        """
        require_choice("baseline", self.baseline, BASELINES)
        require_choice("env_id", self.env_id, REGISTRY)
        require_integer("rounds", self.rounds, 1)
        require_integer("seeds", self.seeds, 1)
        require_integer("first_seed", self.first_seed, 0)

    @classmethod
    def from_assignments(
        cls, baseline: str, env_id: str, rounds: int, seeds: int, first_seed: int, assignments: list[str]
    ) -> "Settings":
        """Builds settings from ``key=value`` strings.

        Args:
            baseline: Name of the baseline.
            env_id: Id of the environment.
            rounds: Horizon.
            seeds: Number of seeds.
            first_seed: The first of them.
            assignments: ``key=value``; values are read as JSON, else taken as strings. A key is an argument of the
                environment, of the policy or of a wrapper; ``env.key``, ``policy.key``, ``channel.key`` and so on
                say which.

        Raises:
            ValueError: An assignment is malformed, or its key unknown or ambiguous.
        """
        settings = cls(baseline, env_id, rounds, seeds, first_seed)
        known = {
            "env": _arguments(resolve(REGISTRY[env_id].federation)) - {"max_cycles", "render_mode"},
            "policy": _arguments(BASELINES[baseline].policy),
        }
        targets = {"env": settings.env_kwargs, "policy": settings.policy_kwargs}
        for part, wrapping in BASELINES[baseline].wrappers.items():
            known[part] = _arguments(wrapping.make) - {"env"}
            targets[part] = settings.wrapper_kwargs.setdefault(part, {})
        for assignment in assignments:
            key, equals, text = assignment.partition("=")
            owner, dot, name = key.partition(".")
            owners = [owner] if dot else [place for place, names in known.items() if key in names]
            name = name if dot else key
            if not equals or len(owners) != 1 or name not in known.get(owners[0], ()):
                allowed = ", ".join(f"{place}.{n}" for place, names in known.items() for n in sorted(names))
                raise ValueError(f"--set {assignment!r} is not key=value with a key among {allowed}")
            targets[owners[0]][name] = _value(text)
        return settings


def _arguments(factory: Any) -> set[str]:
    return set(inspect.signature(factory).parameters)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def federation(settings: Settings) -> FederatedEnv:
    """Makes the environment of a run, without the baseline's wrappers.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An argument has the wrong type.
    """
    preset = REGISTRY[settings.env_id]
    env_kwargs = {**preset.kwargs, **settings.env_kwargs}
    env: FederatedEnv = resolve(preset.federation)(max_cycles=settings.rounds, **env_kwargs)
    return env


def build(settings: Settings) -> tuple[FederatedEnv, Policy]:
    """Makes the wrapped environment and the policy of a run.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An argument has the wrong type.
    """
    baseline = BASELINES[settings.baseline]
    env = baseline.wrap(federation(settings), settings.wrapper_kwargs)
    return env, baseline.make_policy(**settings.policy_kwargs)


def run(
    settings: Settings, advance: Callable[[int], None] = lambda rounds: None
) -> tuple[Simulation, dict[str, Any]]:
    """Plays a run.

    Args:
        settings: What to play.
        advance: Told of rounds played, for progress bars.

    Returns:
        The simulation, and the result: ``checkpoints`` (rows of ``round``, ``regret_mean`` and ``regret_ci``, the
        cumulative regret per agent with its 95 % interval over seeds, null for a single seed), ``per_seed`` (final
        regret per agent of each seed), ``info_mean`` (means over rounds of the other information), ``privacy``
        (what was spent, as a claim), and ``settings``.

    Raises:
        ValueError: An argument is out of its range.
        TypeError: An argument has the wrong type.
    """
    env, policy = build(settings)
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    simulation = simulate(env, policy, seeds, advance)
    per_seed = simulation.regret.mean(axis=2)
    mean, half_width = mean_and_half_width(per_seed)
    baseline = BASELINES[settings.baseline]
    result = {
        "checkpoints": [
            {
                "round": int(round_),
                "regret_mean": float(centre),
                "regret_ci": None if np.isnan(half) else [float(centre - half), float(centre + half)],
            }
            for round_, centre, half in zip(simulation.rounds, mean, half_width, strict=True)
        ],
        "per_seed": per_seed[-1].tolist(),
        "info_mean": {name: float(values.mean()) for name, values in simulation.info.items()},
        "privacy": env.privacy().as_json(),
        "settings": {
            "baseline": settings.baseline,
            "env_id": settings.env_id,
            "env_kwargs": {**REGISTRY[settings.env_id].kwargs, **settings.env_kwargs},
            "policy_kwargs": {**baseline.policy_kwargs, **settings.policy_kwargs},
            "wrapper_kwargs": {
                part: {**wrapping.kwargs, **settings.wrapper_kwargs.get(part, {})}
                for part, wrapping in baseline.wrappers.items()
            },
            "rounds": settings.rounds,
            "seeds": list(seeds),
            "version": version("fedbandit-envs"),
        },
    }
    return simulation, result
