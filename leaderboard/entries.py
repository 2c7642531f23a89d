"""Entries of the leaderboard: baselines of this package, and submitted policies, which play in a sandbox."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.files import write_whole
from fedbandit_envs.experiments.store import is_foreign, source_digest
from fedbandit_envs.leaderboard.result import Entry, digest_of
from fedbandit_envs.leaderboard.sandbox.source import Source
from fedbandit_envs.leaderboard.suites import Suite
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Channel, Privatizer

_REFERENCE_ROUNDS = 30
"""Number of rounds of the check that a suite's reference policy acts at random (:func:`require_random`)."""

Settings = Mapping[str, Mapping[str, Any]]

_RECORDED_NAMES = {
    "fedbandit_envs.wrappers.observation:Reveal": "fedbandit_envs.wrappers.reveal:Reveal",
    "fedbandit_envs.baselines.exposure.simple:DeservedShares": "fedbandit_envs.baselines.exposure.simple:Clairvoyant",
    "fedbandit_envs.wrappers.privacy.privatizers:GaussianPrivatizer": (
        "fedbandit_envs.wrappers.privacy.gaussian:GaussianPrivatizer"
    ),
    "fedbandit_envs.wrappers.privacy.privatizers:ContinualPrivatizer": (
        "fedbandit_envs.wrappers.privacy.continual:ContinualPrivatizer"
    ),
    "fedbandit_envs.wrappers.privacy.privatizers:VectorSumPrivatizer": (
        "fedbandit_envs.wrappers.privacy.mechanisms.vector_sum:VectorSumPrivatizer"
    ),
}
"""Former names of classes, by their present names, for classes that were renamed or moved but not changed.

Digests of baselines are taken of the former names, so that results which were recorded before still verify.
"""


def baseline_entry(name: str) -> Entry:
    """Returns the leaderboard entry of a baseline; its digest covers policy, wrappers and their arguments.

    Raises:
        ValueError: There is no baseline of the name.
    """
    require_choice("BASELINE", name, BASELINES)
    baseline = BASELINES[name]
    wrappers = {part: [_named(one.make), repr(dict(one.kwargs))] for part, one in baseline.wrappers.items()}
    digest = digest_of([name, _named(baseline.policy), repr(dict(baseline.policy_kwargs)), wrappers])
    return Entry(name, "baseline", name, digest, {"policy": _as_json(dict(baseline.policy_kwargs))})


def plugin_entry(name: str) -> tuple[Entry, str]:
    """Returns the entry of a baseline of another package (a plug-in), and the entry point of its code.

    On the leaderboard such a baseline counts as a submission: its policy runs in a sandbox. It keeps the arguments of
    its channel, by which it sends; the privatizer, which adds the noise, is set by the track.

    Raises:
        ValueError: The baseline has other wrappers than a channel and a privatizer.
    """
    baseline = BASELINES[name]
    settings = {"policy": baseline.policy_kwargs}
    for part, spec in baseline.wrappers.items():
        if part == "channel" and spec.make is Channel:
            settings[part] = spec.kwargs
        elif not (part == "privatizer" and isinstance(spec.make, type) and issubclass(spec.make, Privatizer)):
            raise ValueError(
                f"{name} has the wrapper {part!r}; on the leaderboard a plug-in's baseline may have a Channel as its "
                "'channel' and a Privatizer as its 'privatizer'"
            )
    return submission_of(_named(baseline.policy), name, settings, Path())


def require_random(suite: Suite) -> None:
    """Checks that a suite's reference policy, whose regret is given the score 0, acts at random.

    Its actions must not depend on what it observes: they are compared in two episodes under one seed in which agents
    have acted differently. Integer actions (arms or units) must differ between seeds; a probability distribution over
    the arms may be the same for all seeds.

    Raises:
        ValueError: There is no baseline of that name, or it does not act at random.
    """
    require_choice("reference", suite.reference, BASELINES)
    seeds = range(8)
    baseline = BASELINES[suite.reference]
    # Two environments under the same seeds. Agents act differently in them (the second plays the actions of the round
    # before), so that observations differ.
    envs = [baseline.wrap(suite.tasks[0].federation()) for _ in range(2)]
    seen, others = (env.reset_batch(seeds).observation for env in envs)
    rows = row_seeds(seeds, envs[0].max_num_agents)
    policy, same = (baseline.make_policy() for _ in range(2))
    for player in (policy, same):
        player.reset(envs[0].policy_spec, rows)
    action = None
    for _ in range(min(_REFERENCE_ROUNDS, suite.tasks[0].rounds)):
        previous, action = action, policy.act(seen).copy()
        fixed = action.dtype.kind in "iu" and (action == action[:1]).all()
        if fixed or not np.array_equal(action, same.act(others)):
            raise ValueError(
                f"reference of {suite.name} is {suite.reference!r}, which does not act at random; a baseline whose "
                "actions depend on its seed and not on what it has observed is required, since its regret is score 0"
            )
        seen = envs[0].step_batch(action).observation
        others = envs[1].step_batch(action if previous is None else previous).observation


def _as_json(settings: Any) -> Any:
    """Returns settings after a round trip through JSON, in which tuples become lists."""
    return json.loads(json.dumps(settings, allow_nan=False))


def _named(maker: Any) -> str:
    name = f"{maker.__module__}:{maker.__qualname__}"
    return _RECORDED_NAMES.get(name, name)


def baselines_of(suite: Suite) -> list[str]:
    """Returns the names of all baselines for the problem (class of environments) of a suite."""
    problem = make_federation(suite.tasks[0].env_id).unwrapped
    return [
        name
        for name, baseline in BASELINES.items()
        if baseline.federation is type(problem) and baseline.fits(type(problem), suite.tasks[0].env_id)
    ]


def submission_of(policy: str, name: str, settings: Settings, sources: Path) -> tuple[Entry, str]:
    """Returns a submission's entry and the place of its code; if it is a file, a copy is kept.

    Args:
        policy: ``"policy.py"``, ``"policy.py:Class"`` or ``"package.module:Class"``.
        name: The submission's name in rankings.
        settings: Keyword arguments of the submission's ``policy``, of its ``channel`` and of its ``privatizer``, each a
            mapping under that key.
        sources: Folder in which copies of submitted files are kept, each named by the digest of its content.

    Returns:
        The entry, and the place of the code on this machine, in the form of ``policy``.

    Raises:
        ValueError: ``policy`` has none of these forms, or the settings cannot be written as JSON.
        OSError: The file does not exist or cannot be read.
        ImportError: The module does not exist.
    """
    source = Source.parse(policy)
    digest = _digest(source)
    given = {part: dict(arguments) for part, arguments in settings.items() if arguments}
    try:
        given = _as_json(given)
    except (ValueError, TypeError) as error:
        raise ValueError(f"settings are {given}; what JSON can say is required: {error}") from error
    if not source.is_file:
        return Entry(name, "submission", policy, digest, given), policy
    sources.mkdir(parents=True, exist_ok=True)
    kept = sources / f"{digest}.py"
    write_whole(kept, Path(source.module).read_bytes())
    attribute = f":{source.attribute}" if source.attribute else ""
    played = f"{Path(source.module).name}{attribute}"
    return Entry(name, "submission", played, digest, given), f"{kept}{attribute}"


def find_code(entry: Entry, sources: Path) -> str:
    """Returns where a submission's code is on this machine, after a check that its digest is the entry's.

    Args:
        entry: The submission, as its result describes it.
        sources: Folder in which copies of submitted files are kept.

    Raises:
        FileNotFoundError: The submission is a file, of which no copy is kept here.
        ValueError: The digest of the code differs from the entry's.
    """
    place, colon, attribute = entry.source.partition(":")
    code = f"{sources / entry.source_digest}.py{colon}{attribute}" if place.endswith(".py") else entry.source
    digest = _digest(Source.parse(code))
    if digest != entry.source_digest:
        raise ValueError(f"source of {entry.name} has the digest {digest}; {entry.source_digest} has played")
    return code


def _digest(source: Source) -> str:
    """Returns the SHA-256 of a file, or of all files of a package, without importing it."""
    if source.is_file:
        return hashlib.sha256(Path(source.module).read_bytes()).hexdigest()
    if not is_foreign(source.module):
        return source_digest(source.module)
    files = source.files().items()
    return digest_of([[name, hashlib.sha256(file.read_bytes()).hexdigest()] for name, file in files])
