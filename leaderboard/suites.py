"""Suites of tasks, their editions (lists of seeds under which entries play them), and tracks, which limit entries.

Each problem declares its suite in its folder's ``registered.py``. A published suite never changes: a change makes a new
version. A task's digest covers everything that determines the task, including default arguments of the environment;
tests compare every suite's digest with the published one.

Wrappers between an entry and the problem enforce a track's limits. On a private track, the wrapper that adds the
privacy noise (the privatizer) gets its epsilon from the track, whatever the entry asks for. After the episode, the
privacy loss that the accountant has computed must be at most that epsilon.
"""

import hashlib
import inspect
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from itertools import starmap
from math import inf
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.basics.entry_points import package_digest, resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Adjacency, Claim
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.experiments.result import log_spaced
from fedbandit_envs.experiments.spec import arguments
from fedbandit_envs.registry.problems import RegisteredProblem, SuiteSpec
from fedbandit_envs.registry.registration import PROBLEMS, REGISTRY, Registry, make_federation, problem_of
from fedbandit_envs.wrappers import ContinualPrivatizer, GaussianPrivatizer
from fedbandit_envs.wrappers.observation import Reveal
from fedbandit_envs.wrappers.privacy.accounting.calibration import equal_shares
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.releases import Quota
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import make_schedule


class BoardError(ValueError):
    """An entry fails or violates a limit of its track, or results do not fit together; the message says why."""


def _digest_of(value: object) -> str:
    """Returns the SHA-256 digest of JSON data in a unique form: sorted keys, no blanks, numbers as Python writes them.

    Raises:
        ValueError: A number is not finite: JSON has no infinity.
        TypeError: The value contains an object that JSON cannot represent.
    """
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
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
        return _digest_of(
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
        reference: Name of the baseline that acts at random, for comparison.
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
        return _digest_of([self.name, self.version, self.reference, self.adjacency, tasks])


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
        return tuple(int(_digest_of(name)[:32], 16) for name in names)


def published(suite: Suite) -> list[Edition]:
    """Returns the editions of a suite whose seeds are public, since results of them were published; the newest is last.

    ``editions.json`` lists those of all versions of all suites.
    """
    listed = json.loads(files("fedbandit_envs.leaderboard").joinpath("editions.json").read_text())
    return [Edition(*one) for one in listed if one[1] == suite.digest]


def suites_of(specs: Mapping[str, SuiteSpec]) -> dict[str, Suite]:
    """Returns the full and the quick suite that each specification describes, by name.

    Args:
        specs: Specifications by the name of the full suite; the quick one's name is this and ``-quick``.
    """
    suites = {}
    for name, spec in specs.items():
        for full, size in {name: spec.full, f"{name}-quick": spec.quick}.items():
            tasks = [Task(f"{full}/{kind}", one[0], *size, one[1]) for kind, one in spec.tasks.items()]
            suites[full] = Suite(full, tuple(tasks), spec.reference, spec.adjacency, spec.version)
    return suites


def _specs_of(name: str, problem: RegisteredProblem) -> dict[str, SuiteSpec]:
    return {**({name: problem.suite} if problem.suite else {}), **problem.more_suites}


SUITES: Registry[Suite] = Registry(
    suites_of({name: spec for own in starmap(_specs_of, PROBLEMS.items()) for name, spec in own.items()}),
    problems=lambda plugin: suites_of(_specs_of(plugin.name, problem_of(plugin))),
    suites=lambda plugin: suites_of({plugin.name: plugin.content}),
)
"""Every suite by name: those of this project's problems, and those that other packages (plug-ins) declare."""

FEW = 8
"""The most releases of an agent on tracks that limit them."""

Settings = Mapping[str, Mapping[str, Any]]
"""Arguments of an entry by what they belong to: ``policy``, or a wrapper's part such as ``channel``."""

_DELTA = 1e-5
_EPSILONS = (0.1, 1.0, 10.0)
_DOUBLING = {"name": "doubling", "start": 1, "stop": None}
# Arguments of the privatizer that a submission may choose itself; the track sets all others.
_FREE = {"mechanism", "releases"}
# Further arguments of a Gaussian privatizer, by adjacency. The numbers of good and of defective units of one-quantity
# neighbours differ by at most the capacity in total, so that noise on these two numbers pays epsilon only once.
_TOGETHER = {"one-quantity": {"pair": "good_and_defective"}}


@dataclass(frozen=True)
class Track:
    """Limits on what an entry may send.

    Attributes:
        name: Name of the track.
        epsilon: Largest privacy loss that is allowed; 0 where agents may send nothing, infinity where no privacy is
            required.
        delta: The delta for which epsilon must hold.
        adjacency: Which pairs of histories count as neighbours in the privacy guarantee.
        messages: Largest number of releases of an agent in an episode; None for no limit.
        revealed: Whether entries are shown the parameters that agents do not know; such entries are listed for
            comparison and do not compete.

    Example:
        >>> Track("private-1", 1.0, 1e-5, "one-observation").private
        True
    """

    name: str
    epsilon: float
    delta: float
    adjacency: Adjacency
    messages: int | None = None
    revealed: bool = False

    @property
    def private(self) -> bool:
        """Whether releases must be noisy: agents may send, and epsilon is limited."""
        return 0 < self.epsilon < inf

    def wrap(self, env: FederatedEnv, baseline: Baseline, noise: int | None = None) -> FederatedEnv:
        """Returns an environment wrapped in the track's limits and in a baseline's wrappers.

        Args:
            env: The environment.
            baseline: The baseline; its privatizer gets the track's epsilon, delta and adjacency.
            noise: Entropy that the privacy noise follows from; None to keep the noise seed of the baseline's arguments.

        Raises:
            BoardError: The baseline's privatizer cannot be set to an epsilon.
        """
        limited = env if self.messages is None else Quota(env, self.messages)
        return baseline.wrap(limited, self.changes(env, baseline, noise))

    def changes(self, env: FederatedEnv, baseline: Baseline, noise: int | None = None) -> Settings:
        """Returns the arguments of a baseline's privatizer that the track sets; see :meth:`wrap`."""
        part = privatizer_of(baseline)
        if part is None:
            return {}
        budget = self._budget(baseline, part, env) if self.private else {}
        return {part: budget if noise is None else {**budget, "noise_seed": noise}}

    def _budget(self, baseline: Baseline, part: str, env: FederatedEnv) -> dict[str, Any]:
        """Returns arguments of a privatizer with which all its releases together cost the track's epsilon."""
        make = baseline.wrappers[part].make
        arguments = baseline.wrapper_arguments(env)
        known = (ContinualPrivatizer, GaussianPrivatizer)
        if arguments[part].get("noise_multiplier") is not None or make not in known:
            raise BoardError(f"no epsilon can be asked of this noise on track {self.name}: {make}")
        if make is ContinualPrivatizer:
            return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency}
        # Epsilon is shared out over the number of releases: that of the transport's schedule if it has one, otherwise
        # the number that the privatizer's own argument gives.
        schedules = [one["schedule"] for one in arguments.values() if one.get("schedule") is not None]
        planned = (make_schedule(one).count(env.max_cycles) for one in schedules)
        releases = next(planned, arguments[part].get("releases"))
        if not isinstance(releases, int) or self.adjacency not in _TOGETHER:
            raise BoardError(f"{releases} releases cannot share epsilon out on track {self.name}")
        return {**equal_shares(self.epsilon, self.delta, max(1, releases)), **_TOGETHER[self.adjacency]}

    def check(self, env: FederatedEnv) -> Claim:
        """Checks that the episode which an environment has just played kept the track's limits.

        Returns:
            The privacy claim for the episode.

        Raises:
            BoardError: The privacy loss is larger than the track's epsilon or unknown, or the guarantee depends on
                trust in others than the agent itself, or the noise could be repeated by others.
        """
        noise = find_layer(env, "noise")
        claim = env.privacy()
        if isinstance(noise, Privatizer):
            claim = noise.accountant.epsilon(self.delta, composition="exact", adjacency=self.adjacency)
        if self.epsilon == inf:
            return claim
        wrong = ""
        if claim.epsilon is None or claim.epsilon > self.epsilon * (1 + 1e-9):
            wrong = f"epsilon is {claim.epsilon}, {claim.reason or 'by releases'}; at most {self.epsilon:g}"
        elif claim.trust != "local":
            wrong = f"trust is {claim.trust!r}; 'local'"
        elif self.private and claim.noise == "repeatable":
            wrong = f"noise is {claim.noise!r}; 'secret'"
        if wrong:
            raise BoardError(f"{wrong} is required on track {self.name}")
        return claim

    def fits(self, baseline: Baseline, suite: Suite) -> bool:
        """Returns whether a baseline belongs on the track in every task of a suite; its wrappers decide.

        Baselines without a transport belong on silent tracks. Baselines with noise and with a known epsilon (which
        requires sending times that depend on no data) belong on private tracks. The others send raw data and belong on
        non-private tracks. Baselines that are shown parameters unknown to agents belong on the revealed track alone.
        Baselines whose privacy needs trust in others (a stage of the transport), or whose noise cannot be set to an
        epsilon, belong on no track.
        """
        return all(self._fits(baseline, task) for task in suite.tasks)

    def _fits(self, baseline: Baseline, task: Task) -> bool:
        try:
            env = replace(self, messages=None).wrap(task.federation(), baseline)
        except BoardError:
            return False
        reveals = any(isinstance(layer, Reveal) for layer in layers(env))
        if reveals or self.revealed:
            return reveals and self.revealed
        if find_layer(env, "transport") is None:
            return self.epsilon == 0
        if any("stage" in given for given in baseline.wrapper_arguments(env.unwrapped).values()):
            return False
        env.reset_batch([0])
        noisy = find_layer(env, "noise") is not None and env.privacy().epsilon is not None
        return self.private if noisy else self.epsilon == inf

    def submitted(self, settings: Settings) -> dict[str, WrapperSpec]:
        """Returns the wrappers around the environment that a file's entry plays, by part.

        Args:
            settings: Arguments that the entry chooses, by part: ``channel`` for
                :class:`~fedbandit_envs.wrappers.transport.channel.Channel`, ``privatizer`` for
                :class:`~fedbandit_envs.wrappers.ContinualPrivatizer`; ``policy`` is for the entry itself.

        Raises:
            BoardError: The settings have a part that does not exist on this track (such as a privatizer on a
                non-private one), an argument that the track sets itself, or one that names code, such as the schedule
                ``"mine.py:rule"``: wrappers run in the process of the environment.
        """
        if self.revealed:
            raise BoardError(f"track is {self.name!r}, for lines to compare with; another one is required")
        channel = {"schedule": _DOUBLING, **settings.get("channel", {})}
        privatizer = {"epsilon": 1.0, "delta": _DELTA, "releases": channel["schedule"]}
        wrappers = {}
        if self.private:
            privatizer.update(settings.get("privatizer", {}))
            wrappers["privatizer"] = WrapperSpec(ContinualPrivatizer, privatizer)
        if self.epsilon > 0:
            wrappers["channel"] = WrapperSpec(Channel, channel)
        for part, given in settings.items():
            if part not in ("policy", *wrappers) or (part == "privatizer" and given.keys() - _FREE):
                allowed = f"policy, {', '.join(wrappers)}; of the privatizer {sorted(_FREE)}"
                raise BoardError(f"settings have {part} {dict(given)}; {self.name} allows only {allowed}")
        require_no_code({part: given for part, given in settings.items() if part != "policy"})
        return wrappers


def require_no_code(settings: Settings) -> None:
    """Refuses settings that name code, such as ``"mine.py:rule"``: it would run in the environment's process.

    Raises:
        BoardError: A text in the settings has a colon.
    """
    # JSON itself has blanks behind its colons.
    if named := re.search(r"\S+:\S+", json.dumps(settings)):
        raise BoardError(f"settings name code, {named[0]}; names of this package are required")


def privatizer_of(baseline: Baseline) -> str | None:
    """Returns the part (key among a baseline's wrappers) of the wrapper that adds privacy noise; None without one."""
    made = {part: spec.make for part, spec in baseline.wrappers.items()}
    return next(
        (part for part, make in made.items() if isinstance(make, type) and issubclass(make, Privatizer)), None
    )


def tracks_of(suite: Suite) -> dict[str, Track]:
    """Returns the tracks of a suite by name; on private tracks the guarantee is for the suite's adjacency."""
    epsilons = {"non-private": inf, **{f"private-{epsilon:g}": epsilon for epsilon in _EPSILONS}}
    sending = [Track(name, epsilon, _DELTA, suite.adjacency) for name, epsilon in epsilons.items()]
    silent = Track("silent", 0.0, _DELTA, suite.adjacency, messages=0)
    revealed = replace(silent, name="revealed", messages=None, revealed=True)
    few = [replace(track, name=f"{track.name}-few", messages=FEW) for track in sending]
    return {track.name: track for track in [silent, *sending, revealed, *few]}
