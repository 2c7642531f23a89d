"""One baseline on one registered environment: settings in, a result that can be written as JSON out."""

import inspect
import json
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.baselines.registry import find_baseline
from fedbandit_envs.checks import require_choice, require_integer
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.row_check import RowCheck
from fedbandit_envs.leaderboard.simulation import Simulation, play_episodes
from fedbandit_envs.leaderboard.statistics import mean_and_half_width
from fedbandit_envs.problem import MOST
from fedbandit_envs.registered import Stack
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.streams import row_seeds
from fedbandit_envs.views.stack import build as build_stack
from fedbandit_envs.views.stack import checked

_CHECKED_ROWS = 3
_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
# Of setting up: numbers that are too large overflow, or ask for more memory than there is.
_WRONG = (ValueError, TypeError, ArithmeticError, MemoryError)


class SettingsError(ValueError):
    """A run cannot be set up as asked: the message says which parameter is wrong."""


@contextmanager
def _refusing(*errors: type[Exception]) -> Iterator[None]:
    """Says of errors that are due to what was asked for that they are."""
    try:
        yield
    except errors as error:
        raise SettingsError(str(error)) from error


@dataclass(frozen=True)
class Settings:
    """All that determines a run.

    Attributes:
        baseline: Name of a baseline, or entry point of a policy; see
            :func:`~fedbandit_envs.baselines.registry.find_baseline`.
        env_id: Id in ``REGISTRY``.
        rounds: Horizon, up to 2**53.
        seeds: Number of seeds, each a replica.
        first_seed: The first of them; the others follow.
        env_kwargs: Changes to the preset.
        policy_kwargs: Changes to the baseline's policy.
        wrapper_kwargs: Changes to the baseline's wrappers, by their part.
        stack: Wrappers inside of the baseline's, as :func:`~fedbandit_envs.views.stack.build` takes them: what agents
            live through besides, liars say.
    """

    baseline: str
    env_id: str
    rounds: int
    seeds: int
    first_seed: int = 0
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    wrapper_kwargs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stack: Stack = ()

    def __post_init__(self) -> None:
        """Refuses unknown names and numbers out of range.

        Raises:
            SettingsError: Names the parameter, its value and what is allowed.
        """
        with _refusing(*_WRONG, ImportError, AttributeError):
            find_baseline(self.baseline)
            require_choice("env_id", self.env_id, REGISTRY)
            require_integer("rounds", self.rounds, 1)
            if self.rounds > MOST:
                raise ValueError(f"rounds is {self.rounds}; at most {MOST} can be counted")
            require_integer("seeds", self.seeds, 1)
            require_integer("first_seed", self.first_seed, 0)
            checked(self.stack)

    @property
    def all_seeds(self) -> range:
        """The seeds, one a replica."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @classmethod
    def from_assignments(
        cls, baseline: str, env_id: str, rounds: int, seeds: int, first_seed: int, assignments: list[str],
        stack: Stack = (),
    ) -> "Settings":  # fmt: skip
        """Builds settings from ``key=value`` strings.

        Args:
            baseline: Name of the baseline.
            env_id: Id of the environment.
            rounds: Horizon.
            seeds: Number of seeds.
            first_seed: The first of them.
            assignments: ``key=value``; values are read as JSON, else as Python (``False``, ``.5``), else taken as
                strings. A key is an argument of the environment, of the policy or of a wrapper; ``env.key``,
                ``policy.key``, ``channel.key`` and so on say which.
            stack: See :class:`Settings`.

        Raises:
            SettingsError: A name is unknown, a number out of range, an assignment is malformed, or its key unknown
                or ambiguous.
        """
        settings = cls(baseline, env_id, rounds, seeds, first_seed, stack=stack)
        found = find_baseline(baseline)
        known = {
            "env": arguments(resolve(REGISTRY[env_id].federation)).keys() - {"max_cycles", "render_mode"},
            "policy": arguments(found.policy).keys(),
        }
        targets = {"env": settings.env_kwargs, "policy": settings.policy_kwargs}
        for part, wrapping in found.wrappers.items():
            known[part] = arguments(wrapping.make).keys() - {"env"}
            targets[part] = settings.wrapper_kwargs.setdefault(part, {})
        for assignment in assignments:
            key, equals, text = assignment.partition("=")
            owner, dot, name = key.partition(".")
            owners = [owner] if dot else [place for place, names in known.items() if key in names]
            name = name if dot else key
            if not equals or len(owners) != 1 or name not in known.get(owners[0], ()):
                allowed = ", ".join(f"{place}.{n}" for place, names in known.items() for n in sorted(names))
                raise SettingsError(f"--set {assignment!r} is not key=value with a key among {allowed}")
            targets[owners[0]][name] = read_value(text)
        return settings


def arguments(factory: Any) -> dict[str, Any]:
    """Returns what a class or function can be told, by name, with defaults; ``Parameter.empty`` where there is none.

    What a class passes on are its base's.
    """
    found: dict[str, Any] = {}
    classes = factory.__mro__ if isinstance(factory, type) else ()
    for function in [vars(one)["__init__"] for one in classes if "__init__" in vars(one)] or [factory]:
        parameters = inspect.signature(function).parameters.values()
        found = {**{p.name: p.default for p in parameters if p.kind not in _REST}, **found}
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return {name: default for name, default in found.items() if name != "self"}


def read_value(text: str) -> Any:
    """Reads the value of a ``key=value``: JSON, else Python, else the string itself."""
    for read in (json.loads, literal_eval):
        try:
            value = read(text)
            # Settings are recorded as JSON, which has no sets or bytes.
            json.dumps(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    return text


def federation(settings: Settings) -> FederatedEnv:
    """Makes the environment of a run, without the baseline's wrappers.

    Raises:
        SettingsError: An argument is out of its range or has the wrong type.
    """
    entry = REGISTRY[settings.env_id]
    arguments = {**entry.kwargs, **settings.env_kwargs, "max_cycles": settings.rounds}
    with _refusing(*_WRONG, ImportError, AttributeError):
        return build_stack(entry.federation, (*entry.stack, *settings.stack), **arguments)


def build(settings: Settings, baseline: Baseline | None = None) -> tuple[FederatedEnv, Policy]:
    """Makes the wrapped environment and the policy of a run.

    Args:
        settings: What to play.
        baseline: In place of the one that is registered, the same with other wrappers.

    Raises:
        SettingsError: An argument is out of its range or has the wrong type, or the baseline does not play this
            environment.
    """
    baseline = baseline or find_baseline(settings.baseline)
    with _refusing(*_WRONG, ImportError, OSError):
        env = baseline.wrap(federation(settings), settings.wrapper_kwargs)
        return env, baseline.make_policy(**settings.policy_kwargs)


def play(
    settings: Settings,
    env: FederatedEnv,
    policy: Policy,
    advance: Callable[[int], None] = lambda rounds: None,
) -> Simulation:
    """Plays what :func:`build` has made.

    Whatever goes wrong once both are reset is nobody's wrong setting, and raised as it is.

    Args:
        settings: What to play.
        env: The wrapped environment.
        policy: Plays every agent.
        advance: Told of rounds played, for progress bars.

    Raises:
        SettingsError: The environment cannot start with these arguments, or the policy cannot play behind these
            wrappers.
        BudgetExhaustedError: A privatizer refuses a release.
    """
    seeds = settings.all_seeds
    with _refusing(*_WRONG):
        start = env.reset_batch(seeds)
    with _refusing(UnfitError):
        policy.reset(env.policy_spaces, row_seeds(seeds, env.max_num_agents))
    return play_episodes(env, policy, start, advance)


def run(
    settings: Settings, advance: Callable[[int], None] = lambda rounds: None, *, check_rows: bool = False
) -> tuple[Simulation, dict[str, Any]]:
    """Plays a run.

    Args:
        settings: What to play.
        advance: Told of rounds played, for progress bars.
        check_rows: Whether a few rows are checked, see :class:`~fedbandit_envs.leaderboard.row_check.RowCheck`.

    Returns:
        The simulation, and the result: ``checkpoints`` (rows of ``round``, ``regret_mean`` and ``regret_ci``, the
        cumulative regret per agent with its 95 % interval over seeds, null for fewer than three of them), ``per_seed``
        (final regret per agent of each seed), ``info_mean`` (means over rounds of the other information), ``privacy``
        (what was spent, as a claim), ``checked_rows`` (``[replica, agent]`` of each row checked), ``settings``, and,
        where there are groups of agents, ``groups``: for each of them its ``agents``, and ``checkpoints`` and
        ``per_seed`` of these alone.

    Raises:
        SettingsError: The run cannot be set up as asked.
        BudgetExhaustedError: A privatizer refuses a release.
        MixedRowsError: The policy acts for a row that was checked as it would not for that row alone.
    """
    baseline = find_baseline(settings.baseline)
    env, policy = build(settings)
    make_alone = partial(baseline.make_policy, **settings.policy_kwargs)
    checked = RowCheck(policy, make_alone, _CHECKED_ROWS if check_rows else 0)
    simulation = play(settings, env, checked, advance)
    entry = REGISTRY[settings.env_id]
    stack = (*entry.stack, *settings.stack)
    result = {
        **_regret_of(simulation, range(env.max_num_agents)),
        "info_mean": {name: float(values.mean()) for name, values in simulation.info.items()},
        "privacy": env.privacy().as_json(),
        "checked_rows": [list(row) for row in checked.rows],
        **({"groups": _by_group(simulation, env.groups)} if env.groups else {}),
        "settings": {
            "baseline": settings.baseline,
            "env_id": settings.env_id,
            "env_kwargs": {**entry.kwargs, **settings.env_kwargs},
            **({"stack": stack} if stack else {}),
            "policy_kwargs": {**baseline.policy_kwargs, **settings.policy_kwargs},
            "wrapper_kwargs": baseline.wrapper_arguments(env, settings.wrapper_kwargs),
            "rounds": settings.rounds,
            "seeds": list(settings.all_seeds),
            "version": version("fedbandit-envs"),
        },
    }
    return simulation, result


def _regret_of(simulation: Simulation, agents: Sequence[int]) -> dict[str, Any]:
    """Returns ``checkpoints`` and ``per_seed`` of some agents, see :func:`run`."""
    per_seed = simulation.regret[:, :, list(agents)].mean(axis=2)
    mean, half_width = mean_and_half_width(per_seed)
    return {
        "checkpoints": [
            {
                "round": int(round_),
                "regret_mean": float(centre),
                "regret_ci": None if np.isnan(half) else [float(centre - half), float(centre + half)],
            }
            for round_, centre, half in zip(simulation.rounds, mean, half_width, strict=True)
        ],
        "per_seed": per_seed[-1].tolist(),
    }


def _by_group(simulation: Simulation, groups: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    return {
        name: {"agents": list(agents), **_regret_of(simulation, agents)} for name, agents in groups.items()
    }
