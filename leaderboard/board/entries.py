"""Who plays: baselines of this package, in this process, and submissions, in processes of their own."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.checks import require_choice
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.leaderboard.board.canonical import canonical, digest_of
from fedbandit_envs.leaderboard.board.child import ChildPolicy
from fedbandit_envs.leaderboard.board.child.confinement import PARTS
from fedbandit_envs.leaderboard.board.child.source import Source
from fedbandit_envs.leaderboard.board.result import Entry
from fedbandit_envs.leaderboard.board.suites import Suite
from fedbandit_envs.leaderboard.board.tracks import Track, submitted
from fedbandit_envs.registration import make_federation

Settings = Mapping[str, Mapping[str, Any]]


class Submission(NamedTuple):
    """A submission, and where its code is on this machine."""

    entry: Entry
    code: str


def baseline_entry(name: str) -> Entry:
    """Returns the entry of a baseline.

    Raises:
        ValueError: There is no baseline of the name.
    """
    require_choice("BASELINE", name, BASELINES)
    baseline = BASELINES[name]
    wrappers = {
        part: [_named(wrapping.make), repr(dict(wrapping.kwargs))]
        for part, wrapping in baseline.wrappers.items()
    }
    digest = digest_of([name, _named(baseline.policy), repr(dict(baseline.policy_kwargs)), wrappers])
    return Entry(name, "baseline", name, digest, {"policy": dict(baseline.policy_kwargs)})


def as_read(entry: Entry) -> Entry:
    """Returns an entry as it comes back from JSON, which has lists where Python has tuples."""
    return replace(entry, settings=json.loads(json.dumps(entry.settings)))


def _named(maker: Any) -> str:
    return f"{maker.__module__}:{maker.__qualname__}"


def baselines_of(suite: Suite) -> list[str]:
    """Returns the names of all baselines that play a suite's problem."""
    problem = make_federation(suite.tasks[0].env_id).unwrapped
    return [name for name, baseline in BASELINES.items() if baseline.federation is type(problem)]


def submit(load: str, name: str, settings: Settings, sources: Path) -> Submission:
    """Takes a submission in: a file's code is kept.

    Args:
        load: ``"policy.py"``, ``"policy.py:Class"`` or ``"package.module:Class"``.
        name: Under which it is ranked.
        settings: Arguments by part: ``policy``, ``channel``, ``privatizer``.
        sources: Where files are kept, under the digest of what is in them.

    Raises:
        ValueError: ``load`` is none of these, or the settings have what JSON cannot say.
        OSError: There is no such file, or it cannot be read.
        ImportError: There is no such module.
    """
    source = Source.parse(load)
    digest = digest_of_source(source)
    made = {part: dict(arguments) for part, arguments in settings.items() if arguments}
    try:
        canonical(made)
    except (ValueError, TypeError) as error:
        raise ValueError(f"settings are {made}; what JSON can say is required: {error}") from error
    attribute = f":{source.attribute}" if source.attribute else ""
    if not source.is_file:
        return Submission(Entry(name, "submission", load, digest, made), load)
    sources.mkdir(parents=True, exist_ok=True)
    kept = sources / f"{digest}.py"
    if not kept.exists():
        shutil.copyfile(source.module, kept)
    return Submission(
        Entry(name, "submission", f"{Path(source.module).name}{attribute}", digest, made),
        f"{kept}{attribute}",
    )


def found_again(entry: Entry, sources: Path) -> str:
    """Returns where a submission's code is, whose entry was read from a result.

    Raises:
        FileNotFoundError: It is not kept here.
        ValueError: It is not the code that has played.
    """
    place, colon, attribute = entry.source.partition(":")
    code = f"{sources / entry.source_digest}.py{colon}{attribute}" if place.endswith(".py") else entry.source
    digest = digest_of_source(Source.parse(code))
    if digest != entry.source_digest:
        raise ValueError(f"source of {entry.name} has the digest {digest}; {entry.source_digest} has played")
    return code


def digest_of_source(source: Source) -> str:
    """Returns the SHA-256 of a file, or of all Python files of a package, found without running any of it."""
    if source.is_file:
        return hashlib.sha256(Path(source.module).read_bytes()).hexdigest()
    files: list[list[str]] = []
    for root in map(Path, source.roots()):
        found = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        files += [
            [str(file.relative_to(root.parent)), hashlib.sha256(file.read_bytes()).hexdigest()]
            for file in found
        ]
    return digest_of(files)


def baseline_of(entry: Entry, track: Track) -> Baseline:
    """Returns the wrappers of an entry on a track; its policy is made by :class:`Maker`."""
    if entry.kind == "baseline":
        return BASELINES[entry.source]
    wrappers = submitted(entry.settings, track)
    return Baseline("submitted", "-", FederatedEnv, ChildPolicy, {}, wrappers)


class Maker:
    """Makes an entry's policies; those of submissions live in processes of their own until all is over.

    Attributes:
        children: Submitted policies that were made.
    """

    def __init__(self, entry: Entry, code: str, until: ExitStack) -> None:
        """Prepares.

        Args:
            entry: Whose policies.
            code: Where a submission's code is.
            until: What ends their processes.
        """
        self._entry, self._code, self._until = entry, code, until
        self.children: list[ChildPolicy] = []

    def __call__(self) -> Policy:
        """Makes another policy."""
        if self._entry.kind == "baseline":
            return BASELINES[self._entry.source].make_policy()
        policy = ChildPolicy(self._code, settings=dict(self._entry.settings.get("policy", {})))
        self._until.callback(policy.close)
        self.children.append(policy)
        return policy

    @property
    def confined(self) -> list[str] | None:
        """What the kernel kept every one of the children from; None for a baseline, which has none."""
        if self._entry.kind == "baseline":
            return None
        return in_all([policy.confined for policy in self.children])


def in_all(held: Sequence[Sequence[str]]) -> list[str]:
    """Returns the parts of confinement that held everywhere."""
    return [part for part in PARTS if all(part in parts for parts in held)]
