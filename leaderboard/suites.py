"""Suites of tasks that are ranked together, and their editions: the lists of seeds under which entries play them.

Each problem declares its suite in its folder's ``registered.py``. A published suite never changes: a change makes a new
version. A task's digest covers everything that determines the task, including default arguments of the environment;
tests compare every suite's digest with the published one.
"""

import hashlib
import inspect
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from itertools import starmap
from typing import Any

from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Adjacency
from fedbandit_envs.experiments.result import log_spaced
from fedbandit_envs.experiments.spec import arguments
from fedbandit_envs.experiments.store import package_digest
from fedbandit_envs.registry.plugins import Registry
from fedbandit_envs.registry.problems import RegisteredProblem, SuiteSpec
from fedbandit_envs.registry.registration import PROBLEMS, REGISTRY, make_federation, problem_of


class BoardError(ValueError):
    """An entry fails or violates a limit of its track, or results do not fit together; the message says why."""


def digest_of(value: object) -> str:
    """Returns the SHA-256 digest of JSON data in a unique form: sorted keys, no blanks, numbers as Python writes them.

    Raises:
        ValueError: A number is not finite: JSON has no infinity.
        TypeError: The value contains an object that JSON cannot represent.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Task:
    """One environment of a suite, played for a number of rounds under a number of seeds.

    Attributes:
        id: The task's id: the suite's name, a slash, and the task's own name.
        env_id: Id of the registered environment, such as ``FedArms-v0``.
        rounds: Horizon, in rounds.
        seeds: Number of evaluation seeds.
        env_kwargs: Arguments of the environment that replace those registered for ``env_id``.

    Example:
        >>> task = Task("mine/arms", "FedArms-v0", rounds=100, seeds=10, env_kwargs={"num_arms": 3})
        >>> len(task.digest)
        64
    """

    id: str
    env_id: str
    rounds: int
    seeds: int
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def federation(self) -> FederatedEnv:
        """Makes the task's environment, without wrappers."""
        return make_federation(self.env_id, **{**self.env_kwargs, "max_cycles": self.rounds})

    @cached_property
    def source(self) -> str:
        """Digest of the plug-in that the environment belongs to; empty for this project's environments."""
        module = REGISTRY[self.env_id].federation.partition(":")[0]
        return "" if REGISTRY.package(self.env_id) is None else package_digest(module)

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of everything that determines the task, including data files of the environment."""
        entry = REGISTRY[self.env_id]
        environment = resolve(entry.federation)
        taken = arguments(environment).items()
        defaults = {name: value for name, value in taken if value is not inspect.Parameter.empty}
        given = {**defaults, **entry.kwargs, **self.env_kwargs, "max_cycles": self.rounds}
        for name, unchanged in getattr(environment, "added_arguments", {}).items():
            if given[name] == unchanged:
                del given[name]
        folder = files(environment.__module__.rpartition(".")[0])
        data = [file for file in folder.iterdir() if file.name.endswith(".csv")]
        return digest_of(
            {
                "id": self.id,
                "env_id": self.env_id,
                "federation": entry.federation,
                "arguments": given,
                "stack": [list(layer) for layer in entry.stack],
                "rounds": log_spaced(self.rounds).tolist(),
                "seeds": self.seeds,
                "data": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in data},
            }
        )


@dataclass(frozen=True)
class Suite:
    """Tasks that are played and ranked together.

    Attributes:
        name: Name of the suite.
        tasks: The tasks.
        reference: Name of the baseline that acts at random; an entry whose regret is as large has the score 0.
        adjacency: Which pairs of histories count as neighbours in the privacy guarantees of private tracks.
        version: Number that grows whenever a task changes; results of different versions are not compared.
    """

    name: str
    tasks: tuple[Task, ...]
    reference: str
    adjacency: Adjacency
    version: int = 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of the suite: of its name, version, reference, adjacency and its tasks' digests."""
        tasks = [task.digest for task in self.tasks]
        return digest_of([self.name, self.version, self.reference, self.adjacency, tasks])


@dataclass(frozen=True)
class Edition:
    """The seeds under which all entries of a suite play, so that they are compared under the same random numbers.

    Attributes:
        suite: Name of the suite.
        digest: Digest of the suite: seeds are for this version of its tasks.
        salt: 32 hexadecimal digits from which the seeds follow.
    """

    suite: str
    digest: str
    salt: str

    @classmethod
    def draw(cls, suite: Suite) -> "Edition":
        """Returns a new edition of a suite, with a salt from the operating system's random generator."""
        return cls(suite.name, suite.digest, secrets.token_hex(16))

    @property
    def id(self) -> str:
        """12 hexadecimal digits by which tables name the edition: the beginning of its salt's digest."""
        return hashlib.sha256(f"edition {self.salt}".encode()).hexdigest()[:12]

    def seeds(self, suite: Suite, task: Task) -> tuple[int, ...]:
        """Returns the seeds of 128 bits under which every entry plays a task of the suite."""
        of = ["seed", suite.name, suite.version, self.salt, task.id]
        names = ([*of, number] for number in range(task.seeds))
        return tuple(int(digest_of(name)[:32], 16) for name in names)


def published(suite: Suite) -> list[Edition]:
    """Returns the editions of a suite whose seeds are public, since results of them were published; the newest is last.

    ``editions.json`` lists those of all versions of all suites.
    """
    listed = json.loads(files("fedbandit_envs.leaderboard").joinpath("editions.json").read_text())
    return [Edition(*one) for one in listed if one[1] == suite.digest]


def suites_of(specs: Mapping[str, SuiteSpec | None]) -> dict[str, Suite]:
    """Returns the full and the quick suite that each specification describes, by name.

    Args:
        specs: Specifications by the name of the full suite; the quick one's name is this and ``-quick``. None for a
            problem without a suite.
    """
    suites = {}
    for name, spec in specs.items():
        if spec is None:
            continue
        for full, (rounds, seeds) in {name: spec.full, f"{name}-quick": spec.quick}.items():
            tasks = tuple(
                Task(f"{full}/{kind}", env_id, rounds, seeds, kwargs)
                for kind, (env_id, kwargs) in spec.tasks.items()
            )
            suites[full] = Suite(full, tasks, spec.reference, spec.adjacency, spec.version)
    return suites


def _specs_of(name: str, problem: RegisteredProblem) -> dict[str, SuiteSpec | None]:
    return {name: problem.suite, **problem.more_suites}


SUITES: Registry[Suite] = Registry(
    suites_of({name: spec for own in starmap(_specs_of, PROBLEMS.items()) for name, spec in own.items()}),
    problems=lambda plugin: suites_of(_specs_of(plugin.name, problem_of(plugin))),
    suites=lambda plugin: suites_of({plugin.name: plugin.content}),
)
"""Every suite by name: those of this project's problems, and those that other packages (plug-ins) declare."""
