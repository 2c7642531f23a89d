"""Published editions: editions of the leaderboard whose seeds are public, since their results are in the repository.

Anybody can play a published edition, to set a row beside the published ones. Such a row is *open*: its author could
know the seeds. ``published.json`` has one publication after another, each with the salts of its editions and with the
seal of the record's last line at that time. The record's seals are a chain of digests, so that nobody can make another
record with that seal: rows that a record has before it are those that were published, and all others are open.
"""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from fedbandit_envs.leaderboard.result import Edition, ResultFile
from fedbandit_envs.leaderboard.suites import Suite

PUBLICATIONS: list[dict[str, Any]] = json.loads(
    files("fedbandit_envs.leaderboard").joinpath("published.json").read_text()
)
"""All publications, the newest last; ``docs/generator/publish.py`` appends one.

Each has ``seal``, the seal of the record's last line, and ``editions``, each with its ``suite``, the suite's ``digest``
and its ``salt``.
"""


def published_editions(suite: Suite) -> list[Edition]:
    """Returns the published editions of a suite in its present version, the newest last."""
    editions = [edition for publication in PUBLICATIONS for edition in publication["editions"]]
    return [Edition.of(edition["salt"]) for edition in editions if edition["digest"] == suite.digest]


def newest_published(suite: Suite) -> Edition:
    """Returns the newest published edition of a suite in its present version.

    Raises:
        ValueError: No edition of the suite in this version was published.
    """
    if not (editions := published_editions(suite)):
        raise ValueError(
            f"--edition is 'published', but no edition of {suite.name} in version {suite.version} was published; "
            "without the option, an edition of your own is opened"
        )
    return editions[-1]


def is_open(result: ResultFile, lines: Iterable[Mapping[str, Any]]) -> bool:
    """Returns whether a result is of a published edition, and is none of the results that were published with it.

    Of the result itself only its edition counts, by which it is set beside the published rows: it cannot deny that it
    is open. A published salt gives the published seeds, and a published id the place beside their rows.

    Args:
        result: The result.
        lines: The lines of the record of the result's folder, of which the seals were checked.
    """
    seals = {
        publication["seal"]
        for publication in PUBLICATIONS
        for edition in map(Edition.of, (one["salt"] for one in publication["editions"]))
        if result.edition.salt == edition.salt or result.edition.id == edition.id
    }
    added, published = set(), set()
    for line in lines:
        added.add(line.get("result"))
        if line["seal"] in seals:
            published |= added
    return bool(seals) and result.digest not in published
