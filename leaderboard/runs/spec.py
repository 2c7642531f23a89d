"""A run as data: one baseline on one registered environment, with its numbers of rounds and seeds.

``key=value`` words of a command line are read here as well.
"""

import inspect
import json
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.baselines.registry import find_baseline
from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.stack import Stack, checked
from fedbandit_envs.core.stack import build as build_stack
from fedbandit_envs.leaderboard.runs.result import ONE_STRATUM, RunResult, Strata, claims_of, cpu_seconds
from fedbandit_envs.leaderboard.runs.row_check import RowCheck
from fedbandit_envs.leaderboard.runs.simulate import simulate
from fedbandit_envs.leaderboard.runs.source import foreign_modules, is_foreign, package_digest
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import find_registered

ROWS_PER_SHARD = 500
"""Rows of a shard by default; a row is one agent in one replica. Arrays of so many stay in a processor's cache."""

_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
# Errors of the set-up: numbers that are too large overflow, or ask for more memory than there is.
_WRONG = (ValueError, TypeError, ArithmeticError, MemoryError)


class SettingsError(ValueError):
    """A run cannot be set up as asked; the message names the wrong parameter."""


def split_seeds(
    seeds: Sequence[int], agents: int, rows: int = ROWS_PER_SHARD, multiple: int = 1
) -> list[Sequence[int]]:
    """Returns the seeds of each shard.

    Args:
        seeds: All seeds.
        agents: Number of agents; an agent in a replica is a row.
        rows: About how many rows a shard has.
        multiple: The number of seeds of every shard but the last is a multiple of this.
    """
    size = max(1, rows // agents // multiple) * multiple
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


@contextmanager
def refusing(*errors: type[Exception]) -> Iterator[None]:
    """Turns errors that are due to the settings of a run into :class:`SettingsError`, with the same message.

    Args:
        *errors: Types of these errors.

    Raises:
        SettingsError: One of these errors was raised inside of the ``with`` block.
    """
    try:
        yield
    except errors as error:
        raise SettingsError(str(error)) from error


@dataclass(frozen=True)
class RunSpec:
    """A run as data: everything that its numbers follow from, and how it is split and labelled.

    Attributes:
        baseline: Name of a baseline, or entry point of a policy; see
            :func:`~fedbandit_envs.baselines.registry.find_baseline`.
        env_id: Id of a registered environment, or entry point of an environment; see
            :func:`~fedbandit_envs.registry.registration.find_registered`.
        rounds: Horizon, up to 2**53.
        seeds: Number of seeds, each a replica.
        first_seed: The first of them; the others follow.
        env_kwargs: Changes to the arguments of the environment's preset.
        policy_kwargs: Changes to the arguments of the baseline's policy.
        wrapper_kwargs: Changes to the arguments of the baseline's wrappers, by the wrapper's part.
        stack: Wrappers inside of the baseline's, such as Byzantine agents; see
            :func:`~fedbandit_envs.core.stack.build`.
        delta: The delta at which privacy is claimed (in basic composition it is the promised one).
        strata: The problem instances that seeds take in turn; a shard's seeds begin with the first of them.
        rows: About how many rows a shard has: :data:`ROWS_PER_SHARD` stay in cache; fewer lose less when a long shard
            is interrupted.
        labels: Columns that the result's table has besides, such as ``{"line": "ours"}``; no part of the run's key.

    Example:
        >>> spec = RunSpec("UCB1", "FedArms-v0", rounds=20, seeds=2)
        >>> spec.run().regret.shape[1:]
        (2, 10)
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
    delta: float = 1e-5
    strata: Strata = ONE_STRATUM
    rows: int = ROWS_PER_SHARD
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses unknown names and numbers out of range.

        Raises:
            SettingsError: Names the parameter, its value and what is allowed.
        """
        with refusing(*_WRONG, ImportError, AttributeError):
            find_baseline(self.baseline)
            find_registered(self.env_id)
            require_integer("rounds", self.rounds, 1)
            if self.rounds > MOST:
                raise ValueError(f"rounds is {self.rounds}; at most {MOST} can be counted")
            require_integer("seeds", self.seeds, 1)
            require_integer("first_seed", self.first_seed, 0)
            checked(self.stack)

    def assigned(self, words: Sequence[str]) -> "RunSpec":
        """Returns the run with the arguments that ``--set`` gives on a command line.

        Args:
            words: ``key=value`` each, where a key is an argument of the environment, of the policy or of a wrapper;
                ``env.key``, ``policy.key``, ``channel.key`` and so on name which of them.

        Raises:
            SettingsError: A word is malformed, or its key unknown or ambiguous.
        """
        baseline = find_baseline(self.baseline)
        known = {
            "env": arguments(resolve(find_registered(self.env_id).federation)).keys()
            - {"max_cycles", "render_mode"},
            "policy": arguments(baseline.policy).keys(),
            **{part: arguments(wrapper.make).keys() - {"env"} for part, wrapper in baseline.wrappers.items()},
        }
        given: dict[str, dict[str, Any]] = {part: {} for part in known}
        with refusing(ValueError):
            for word in words:
                part, name, value = read_assignment(word)
                parts = [part] if part else [one for one, names in known.items() if name in names]
                if len(parts) != 1 or name not in known.get(parts[0], ()):
                    allowed = ", ".join(f"{one}.{n}" for one, names in known.items() for n in sorted(names))
                    raise SettingsError(f"--set {word!r} is not key=value with a key among {allowed}")
                given[parts[0]][name] = value
        return replace(
            self, env_kwargs=given.pop("env"), policy_kwargs=given.pop("policy"), wrapper_kwargs=given
        )

    @property
    def all_seeds(self) -> range:
        """The seeds, one a replica."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @cached_property
    def agents(self) -> int:
        """Number of agents in the environment."""
        return self.federation().max_num_agents

    @property
    def size(self) -> float:
        """Number of agent-rounds to play."""
        return float(self.rounds * self.seeds * self.agents)

    @property
    def key(self) -> list[Any]:
        """Everything that the numbers follow from; see :attr:`.store.Cell.key`."""
        settings = asdict(self)
        kept = {name: settings[name] for name in settings.keys() - {"strata", "rows", "labels"}}
        return ["run", kept, *([self.packages] if self.packages else [])]

    @cached_property
    def packages(self) -> dict[str, str]:
        """Digests of the packages, other than this project's, that the run's code lies in, by their names.

        They are those of environment, policy and wrappers, and of what the settings name; not what these import.
        """
        entry, baseline = find_registered(self.env_id), find_baseline(self.baseline)
        made = [baseline.policy, *(wrapper.make for wrapper in baseline.wrappers.values())]
        modules = {getattr(one, "func", one).__module__ for one in made}
        given = [
            self.baseline,
            entry.federation,
            entry.stack,
            self.stack,
            self.env_kwargs,
            self.policy_kwargs,
            self.wrapper_kwargs,
        ]
        foreign = {module for module in modules if is_foreign(module)} | {*foreign_modules(given)}
        return {module.partition(".")[0]: package_digest(module) for module in sorted(foreign)}

    def split(self) -> list["RunSpec"]:
        """Splits the seeds into shards of about :attr:`rows` rows, at multiples of the number of strata."""
        shards = split_seeds(self.all_seeds, self.agents, self.rows, self.strata.count)
        return [replace(self, first_seed=seeds[0], seeds=len(seeds)) for seeds in shards]

    def federation(self) -> FederatedEnv:
        """Makes the environment of the run, without the baseline's wrappers.

        Raises:
            SettingsError: An argument is out of its range or has the wrong type.
        """
        entry = find_registered(self.env_id)
        kwargs = {**entry.kwargs, **self.env_kwargs, "max_cycles": self.rounds}
        with refusing(*_WRONG, ImportError, AttributeError):
            return build_stack(entry.federation, (*entry.stack, *self.stack), **kwargs)

    def build(self) -> tuple[FederatedEnv, Policy]:
        """Makes the wrapped environment and the policy of the run.

        Raises:
            SettingsError: An argument is out of its range or has the wrong type, or the baseline does not play this
                environment.
        """
        baseline = find_baseline(self.baseline)
        with refusing(*_WRONG, ImportError, OSError):
            env = baseline.wrap(self.federation(), self.wrapper_kwargs)
            return env, baseline.make_policy(**self.policy_kwargs)

    def run(self, advance: Callable[[float], None] = lambda played: None, check_rows: int = 0) -> RunResult:
        """Plays all seeds side by side.

        Errors after environment and policy are reset are not due to the settings and are raised unchanged.

        Args:
            advance: Called with the number of agent-rounds played since its last call, for progress bars.
            check_rows: How many rows are played alone as well, which must choose the same actions; see
                :class:`~fedbandit_envs.leaderboard.runs.row_check.RowCheck`.

        Raises:
            SettingsError: The run cannot be set up as asked, the environment cannot start with these arguments, or the
                policy cannot play behind these wrappers.
            BudgetExhaustedError: A privatizer refuses a release.
            MixedRowsError: The policy acts for a row that was checked as it would not for that row alone.
        """
        began, seeds = cpu_seconds(), self.all_seeds
        env, policy = self.build()
        checked_policy = RowCheck(
            policy, partial(find_baseline(self.baseline).make_policy, **self.policy_kwargs), check_rows
        )
        with refusing(*_WRONG):
            start = env.reset_batch(seeds)
        with refusing(UnfitError):
            checked_policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
        return replace(
            simulate(env, checked_policy, seeds, advance, start),
            claims=claims_of(env, self.delta),
            checked_rows=checked_policy.rows,
            cpu_seconds=cpu_seconds() - began,
            strata=self.strata,
            labels=self._all_labels(),
        )

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays all seeds and returns what a shard's file keeps; see :meth:`.store.Cell.play`."""
        return self.run(advance).as_arrays()

    def join(self, parts: Sequence[Arrays]) -> RunResult:
        """Puts the run's result together from its shards; see :meth:`.store.Cell.join`."""
        return replace(RunResult.joined(parts), strata=self.strata, labels=self._all_labels())

    def recorded(self) -> dict[str, Any]:
        """Returns the settings as a result records them: all arguments, also those of presets and baselines."""
        entry, baseline = find_registered(self.env_id), find_baseline(self.baseline)
        stack = (*entry.stack, *self.stack)
        return {
            "baseline": self.baseline,
            "env_id": self.env_id,
            "env_kwargs": {**entry.kwargs, **self.env_kwargs},
            **({"stack": stack} if stack else {}),
            "policy_kwargs": {**baseline.policy_kwargs, **self.policy_kwargs},
            "wrapper_kwargs": baseline.wrapper_arguments(self.federation(), self.wrapper_kwargs),
            "rounds": self.rounds,
            "seeds": list(self.all_seeds),
            "version": version("fedbandit-envs"),
        }

    def _all_labels(self) -> dict[str, Any]:
        """Returns the columns of the result's table that are constant: what was played, and :attr:`labels`."""
        wrappers = self.recorded()["wrapper_kwargs"].values()
        epsilon = next((given["epsilon"] for given in wrappers if "epsilon" in given), None)
        return {"env_id": self.env_id, "baseline": self.baseline, "epsilon": epsilon, **self.labels}


def read_assignment(word: str) -> tuple[str, str, Any]:
    """Reads a word of ``--set``.

    Args:
        word: ``name=value`` or ``part.name=value``.

    Returns:
        The part (what the argument belongs to, such as ``policy``; empty in ``name=value``), the argument's name and
        its value; see :func:`read_value`.

    Raises:
        ValueError: The word is neither; the message names it.
    """
    key, equals, text = word.partition("=")
    part, dot, name = key.rpartition(".")
    if not (equals and name.isidentifier() and (part.isidentifier() or not dot)):
        raise ValueError(f"--set is {word!r}; key=value or part.key=value is required")
    return part, name, read_value(text)


def read_value(text: str) -> Any:
    """Returns the value of a ``key=value``: read as JSON, else as Python (``False``, ``.5``), else the text itself."""
    for read in (json.loads, literal_eval):
        try:
            value = read(text)
            # Settings are recorded as JSON, which has no sets or bytes.
            json.dumps(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    return text


def arguments(factory: Any) -> dict[str, Any]:
    """Returns the arguments that a class or function accepts, with their defaults.

    Arguments that a class passes on by ``**kwargs`` are those of its base class.

    Args:
        factory: A class or a function.

    Returns:
        Defaults by name; ``inspect.Parameter.empty`` where an argument has none.
    """
    found: dict[str, Any] = {}
    classes = factory.__mro__ if isinstance(factory, type) else ()
    for function in [vars(one)["__init__"] for one in classes if "__init__" in vars(one)] or [factory]:
        parameters = inspect.signature(function).parameters.values()
        found = {**{p.name: p.default for p in parameters if p.kind not in _REST}, **found}
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return {name: default for name, default in found.items() if name != "self"}
