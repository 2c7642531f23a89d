"""Description of a run as data: one baseline on one environment, with numbers of rounds and seeds, and arguments.

This module also reads the ``key=value`` words by which a command line sets arguments.
"""

import inspect
import json
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib.metadata import version
from time import process_time
from typing import Any

from fedbandit_envs.baselines import find_baseline
from fedbandit_envs.baselines.baseline import Baseline, asked_epsilon
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import Arrays, plain
from fedbandit_envs.basics.checks import MOST_OF_A_SIZE, require_choice, require_integer, require_number
from fedbandit_envs.basics.entry_points import package_digest, resolve
from fedbandit_envs.core.actions import EntryRequiredError
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.wrapper import Stack, checked, find_wrapper
from fedbandit_envs.core.wrapper import build as build_stack
from fedbandit_envs.experiments.result import ROWS_PER_SHARD, RunResult, claims_of, play_started, split_seeds
from fedbandit_envs.experiments.store import foreign_modules
from fedbandit_envs.registry.registration import REGISTRY, find_registered
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

_WRONG = (
    ValueError, TypeError, ArithmeticError, MemoryError, ImportError, AttributeError, SyntaxError, OSError,
)  # fmt: skip
_REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class SettingsError(ValueError):
    """A run cannot be set up as asked; the message names the wrong parameter."""


REFUSALS = (SettingsError, UnfitError, EntryRequiredError, BudgetExhaustedError)
"""Errors which say that a run cannot be played as asked; all others are faults of a program."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turns errors that wrong settings cause while a run is set up into :class:`SettingsError`, with the same message.

    Numbers that are too large cause overflows or fill the memory.

    Raises:
        SettingsError: Such an error was raised inside of the ``with`` block.
    """
    try:
        yield
    except _WRONG as error:
        raise SettingsError(str(error)) from error


@dataclass(frozen=True)
class RunSpec:
    """Description of a run: everything that determines its numbers, and how it is split into shards and labelled.

    Attributes:
        baseline: Name of a baseline, or entry point of a policy; see
            :func:`~fedbandit_envs.baselines.baseline.find_baseline`. Or the baseline itself, if it has no name; then
            the result cannot be stored.
        env_id: Id of a registered environment, or entry point of an environment; see
            :func:`~fedbandit_envs.registry.registration.find_registered`.
        rounds: Horizon in rounds, at most 2**53.
        seeds: Number of seeds, at most 2**20; each seed is one replica (episode).
        first_seed: The first seed; the others are the integers after it.
        env_kwargs: Changes to the arguments of the environment's preset.
        policy_kwargs: Changes to the arguments of the baseline's policy.
        wrapper_kwargs: Changes to the arguments of the baseline's wrappers, by the wrapper's part.
        stack: Additional wrappers between the environment and the baseline's wrappers, such as Byzantine agents; see
            :func:`~fedbandit_envs.core.wrapper.build`.
        delta: The delta of the privacy claims; only claims by basic composition have the delta that the privatizer
            promised.
        instances: Number of problem instances that seeds take in turn; a shard's seeds begin with the first of them.
            None if each seed draws an instance of its own.
        rows: About how many rows (agents times seeds) a shard has. Arrays with :data:`ROWS_PER_SHARD` rows fit into a
            processor's cache; with fewer, less is lost when a long shard is interrupted.
        labels: Further constant columns of the result's table, such as ``{"line": "ours"}``; they do not identify the
            stored run.

    Example:
        >>> spec = RunSpec("UCB1", "FedArms-v0", rounds=20, seeds=2)
        >>> spec.run().regret.shape[1:]
        (2, 10)
    """

    baseline: str | Baseline
    env_id: str
    rounds: int
    seeds: int
    first_seed: int = 0
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    policy_kwargs: dict[str, Any] = field(default_factory=dict)
    wrapper_kwargs: dict[str, dict[str, Any]] = field(default_factory=dict)
    stack: Stack = ()
    delta: float = 1e-5
    instances: int | None = None
    rows: int = ROWS_PER_SHARD
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks that names are known and that numbers are in their range; NumPy's numbers and arrays become Python's.

        Raises:
            SettingsError: A setting is wrong; the message names the parameter, its value and what is allowed.
        """
        for one in fields(self):
            object.__setattr__(self, one.name, plain(getattr(self, one.name)))
        with refusing():
            if str(self.baseline) in REGISTRY:
                raise ValueError(
                    f"baseline is {self.baseline!r}, an environment's id; the baseline comes first"
                )
            find_baseline(self.baseline)
            find_registered(self.env_id)
            require_integer("rounds", self.rounds, 1, MOST)
            require_integer("seeds", self.seeds, 1, MOST_OF_A_SIZE)
            require_integer("first_seed", self.first_seed, 0)
            require_number("delta", self.delta, 0, 1, open_above=True)
            for name, _ in checked(self.stack):
                find_wrapper(name)

    def changed(self, settings: Mapping[str, Any]) -> "RunSpec":
        """Returns this run with other arguments of environment, policy and wrappers.

        Args:
            settings: Values by key. A key is the name of an argument of the environment, the policy or a wrapper; if
                several of them have it, ``env.key``, ``policy.key``, ``channel.key`` and so on say which one is meant.
                ``agents`` is short for ``num_agents``, and likewise for other arguments.

        Raises:
            SettingsError: A key is unknown or ambiguous, or two keys stand for the same argument.
        """
        given: dict[str, dict[str, Any]] = {part: {} for part in self.known_settings}
        known = [(part, name) for part, names in self.known_settings.items() for name in sorted(names)]
        for key, value in settings.items():
            places = self.places(key)
            if len(places) != 1:
                with refusing():
                    # An ambiguous key, or one with a dot, is told from others by its part.
                    names = [
                        ".".join(place) if places or "." in key else place[1] for place in places or known
                    ]
                    require_choice(f"key for {self.baseline} on {self.env_id}", key, dict.fromkeys(names))
            ((part, name),) = places
            if name in given[part]:
                raise SettingsError(f"{key} is {value!r}; {part}.{name} has a value already")
            given[part][name] = value
        stack = [[name, {**kwargs, **given[_short(name)]}] for name, kwargs in self.stack]
        for name, _ in stack:
            given.pop(_short(name), None)
        return replace(
            self,
            env_kwargs={**self.env_kwargs, **given.pop("env")},
            policy_kwargs={**self.policy_kwargs, **given.pop("policy")},
            stack=stack,
            wrapper_kwargs={
                part: {**self.wrapper_kwargs.get(part, {}), **kwargs} for part, kwargs in given.items()
            },
        )

    def places(self, key: str) -> list[tuple[str, str]]:
        """Returns the arguments that a key of :meth:`changed` may stand for: pairs of part and argument.

        There is one for a key that can be used, several for an ambiguous one, and none for an unknown one.
        """
        part, _, name = key.rpartition(".")
        found = []
        for one, names in self.known_settings.items():
            own = [tried for tried in (name, f"num_{name}") if tried in names]
            found += [(one, tried) for tried in own[:1] if part in ("", one)]
        return found

    @cached_property
    def known_settings(self) -> dict[str, dict[str, Any]]:
        """The arguments that can be set, and their defaults.

        They are those of the environment (``env``), the policy (``policy``), each of the baseline's wrappers (by its
        role, such as ``channel``) and each wrapper of :attr:`stack` (by its name, such as ``Byzantine``). A required
        argument has the default ``inspect.Parameter.empty``.
        """
        entry, baseline = find_registered(self.env_id), find_baseline(self.baseline)
        federation = resolve(entry.federation)
        known = {
            "env": {**arguments(federation), **getattr(federation, "defaults", {}), **entry.kwargs},
            "policy": {**arguments(baseline.policy), **baseline.policy_kwargs},
            **{part: {**arguments(one.make), **one.kwargs} for part, one in baseline.wrappers.items()},
            **{_short(name): {**arguments(find_wrapper(name)), **given} for name, given in self.stack},
        }
        for name in ("env", "max_cycles", "render_mode"):
            for values in known.values():
                values.pop(name, None)
        return known

    @property
    def all_seeds(self) -> range:
        """All seeds of the run, one for each replica."""
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
        """All settings that determine the run's numbers, as JSON data that identify the stored run.

        See :attr:`.store.Cell.key`.
        """
        settings = asdict(self)
        kept = {name: settings[name] for name in settings.keys() - {"instances", "rows", "labels"}}
        return ["run", kept, *([self.packages] if self.packages else [])]

    @property
    def packages(self) -> dict[str, str]:
        """Digests of other packages whose code the run uses, by the package's name.

        These are the packages of environment, policy and wrappers, and those that the settings name, as far as they are
        not this project's. Modules that they import count with them, unless these are installed packages.

        Raises:
            SettingsError: A file of a package cannot be read, or the package has a link to a folder.
        """
        entry, baseline = find_registered(self.env_id), find_baseline(self.baseline)
        given = [asdict(replace(self, labels={})), entry.federation, entry.stack]
        with refusing():
            modules = foreign_modules([*given, baseline.policy, *baseline.wrappers.values()])
            return {module.partition(".")[0]: package_digest(module) for module in sorted(modules)}

    def split(self) -> list["RunSpec"]:
        """Returns the run's shards: the same run with some of the seeds, of about :attr:`rows` rows each.

        The number of seeds in a shard is a multiple of :attr:`instances`, so that each shard begins with the first one.
        """
        shards = split_seeds(self.all_seeds, self.agents, self.rows, self.instances or 1)
        if len(shards) == 1:
            return [self]  # It knows what it has asked its environment.
        return [replace(self, first_seed=seeds[0], seeds=len(seeds)) for seeds in shards]

    def federation(self) -> FederatedEnv:
        """Makes the environment of the run, without the baseline's wrappers.

        Raises:
            SettingsError: An argument is out of its range or has the wrong type.
        """
        entry = find_registered(self.env_id)
        kwargs = {**entry.kwargs, **self.env_kwargs, "max_cycles": self.rounds}
        with refusing():
            return build_stack(entry.federation, (*entry.stack, *self.stack), **kwargs)

    def build(self) -> tuple[FederatedEnv, Policy]:
        """Makes the wrapped environment and the policy of the run.

        Raises:
            SettingsError: An argument is out of its range or has the wrong type, or the baseline does not play this
                environment.
        """
        with refusing():
            env = self.form.wrap(self.federation(), self.wrapper_kwargs)
            return env, self.form.make_policy(**self.policy_kwargs)

    def run(self, advance: Callable[[float], None] = lambda played: None) -> RunResult:
        """Plays one episode for each seed, shard by shard, and returns the result.

        Errors during play are raised unchanged.

        Args:
            advance: Called with the number of agent-rounds played since its last call, for progress bars.

        Raises:
            SettingsError: The run cannot be set up as asked, or the environment cannot start with these arguments.
            UnfitError: The policy cannot play behind these wrappers.
            EntryRequiredError: The policy returns only actions, where the environment also needs messages or the choice
                whether to send.
            BudgetExhaustedError: A privatizer refuses a release.
        """
        return self.join([shard.play(advance) for shard in self.split()])

    def play(self, advance: Callable[[float], None] = lambda played: None) -> Arrays:
        """Plays all seeds, and returns the result as arrays for the shard's file; see :meth:`.store.Cell.play`."""
        began, seeds = process_time(), self.all_seeds
        env, policy = self.build()
        with refusing():
            start = env.reset_batch(seeds)
        result = play_started(env, policy, seeds, start, advance)
        claims = claims_of(env, self.delta)
        return replace(result, claims=claims, cpu_seconds=process_time() - began).as_arrays()

    def join(self, parts: Sequence[Arrays]) -> RunResult:
        """Returns the run's result, put together from the arrays of its shards; see :meth:`.store.Cell.join`."""
        epsilon = asked_epsilon(self._wrappers)
        labels = {"env_id": self.env_id, "baseline": self.baseline, "epsilon": epsilon, **self.labels}
        return replace(RunResult.joined(parts), instances=self.instances, labels=labels)

    def recorded(self) -> dict[str, Any]:
        """Returns all settings by name, to be saved with a result.

        Arguments include those from the registration of the environment and of the baseline.
        """
        entry = find_registered(self.env_id)
        stack = (*entry.stack, *self.stack)
        return {
            "baseline": self.baseline,
            "env_id": self.env_id,
            "env_kwargs": {**entry.kwargs, **self.env_kwargs},
            **({"stack": stack} if stack else {}),
            "policy_kwargs": {**self.form.policy_kwargs, **self.policy_kwargs},
            "wrapper_kwargs": self._wrappers,
            "rounds": self.rounds,
            "seeds": list(self.all_seeds),
            "version": version("fedbandit-envs"),
        }

    @property
    def form(self) -> Baseline:
        """The baseline that plays; constants that were tuned by epsilon are those for the privatizer's epsilon."""
        # It is not kept: other processes are sent the run, and cannot import a policy's file by its name.
        baseline = find_baseline(self.baseline)
        if not baseline.by_epsilon:
            return baseline
        return baseline.at(asked_epsilon(baseline.wrapper_arguments(self.federation(), self.wrapper_kwargs)))

    @cached_property
    def _wrappers(self) -> Mapping[str, Mapping[str, Any]]:
        return self.form.wrapper_arguments(self.federation(), self.wrapper_kwargs)


def _short(name: str) -> str:
    """Returns the name by which settings refer to a wrapper of a stack: its class', without the module."""
    return name.rpartition(":")[2]


def read_assignments(words: Iterable[str]) -> dict[str, Any]:
    """Returns the values that words of a command line's option ``--set`` set, by ``name`` or ``part.name``.

    Raises:
        SettingsError: A word has neither the form ``name=value`` nor ``part.name=value``, or a name that another has.
    """
    read: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key or key in read:
            raise SettingsError(f"{word!r} is given; key=value or part.key=value is required, each key once")
        read[key] = read_value(text)
    return read


def read_value(text: str) -> Any:
    """Returns the value that a text on the command line represents.

    It is read as JSON; if that fails, as a Python literal (``False``, ``.5``); if that fails, it is the text itself.
    """
    for read in (json.loads, literal_eval):
        try:
            value = read(text)
            # Raises TypeError for sets and bytes, which JSON cannot represent: settings are saved as JSON.
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
