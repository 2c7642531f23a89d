"""Suites of tasks that are ranked together. Each problem declares its suite in its folder's ``registered.py``.

A published suite never changes: a change makes a new version. A task's digest covers everything that determines the
task, including default arguments of the environment; tests compare every suite's digest with the published one.
"""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Any

from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Adjacency
from fedbandit_envs.experiments.simulate import log_spaced
from fedbandit_envs.experiments.spec import arguments
from fedbandit_envs.experiments.store import package_digest
from fedbandit_envs.leaderboard.result import digest_of
from fedbandit_envs.registry.plugins import Registry
from fedbandit_envs.registry.problems import RegisteredProblem, SuiteSpec
from fedbandit_envs.registry.registration import PROBLEMS, REGISTRY, make_federation, problem_of


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

    @property
    def packages(self) -> dict[str, str]:
        """Digest of the plug-in that the environment belongs to, by its name and version; empty for this project's."""
        package = REGISTRY.package(self.env_id)
        module = REGISTRY[self.env_id].federation.partition(":")[0]
        return {} if package is None else {str(package): package_digest(module)}

    def federation(self) -> FederatedEnv:
        """Makes the task's environment, without wrappers."""
        return make_federation(self.env_id, **{**self.env_kwargs, "max_cycles": self.rounds})

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

    @property
    def packages(self) -> dict[str, str]:
        """Digests of the plug-ins that its tasks need, by name and version; empty for suites of this project."""
        return {name: digest for task in self.tasks for name, digest in task.packages.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 digest of the suite: of its name, version, reference, adjacency and its tasks' digests."""
        tasks = [task.digest for task in self.tasks]
        return digest_of([self.name, self.version, self.reference, self.adjacency, tasks])


def suites_of(name: str, spec: SuiteSpec | None) -> dict[str, Suite]:
    """Returns the full and the quick suite that a problem's specification describes, by name.

    Args:
        name: Name of the full suite; the quick one's name is this and ``-quick``.
        spec: The specification; None for a problem without a suite, which gives an empty dictionary.
    """
    return (
        {
            full: Suite(
                full,
                tuple(
                    Task(f"{full}/{kind}", env_id, rounds, seeds, kwargs)
                    for kind, (env_id, kwargs) in spec.tasks.items()
                ),
                spec.reference,
                spec.adjacency,
                spec.version,
            )
            for full, (rounds, seeds) in ((name, spec.full), (f"{name}-quick", spec.quick))
        }
        if spec
        else {}
    )


def _suites_of_problem(name: str, problem: RegisteredProblem) -> dict[str, Suite]:
    specs = {name: problem.suite, **problem.more_suites}
    return {made: suite for full, spec in specs.items() for made, suite in suites_of(full, spec).items()}


SUITES: Registry[Suite] = Registry(
    {
        name: suite
        for folder, problem in PROBLEMS.items()
        for name, suite in _suites_of_problem(folder, problem).items()
    },
    problems=lambda plugin: _suites_of_problem(plugin.name, problem_of(plugin)),
    suites=lambda plugin: suites_of(plugin.name, plugin.content),
)
"""Every suite by name: those of this project's problems, and those that other packages (plug-ins) declare."""
