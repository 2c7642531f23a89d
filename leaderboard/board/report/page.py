"""The report's texts, made by the jinja2 templates of this folder: the HTML page, Markdown tables, a README's table.

The HTML page is one file with all its data. ``page.html.j2`` lays it out; ``page.js`` draws, sorts and filters.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from shlex import join
from typing import Any

from fedbandit_envs.leaderboard.board.report import formatting
from fedbandit_envs.leaderboard.board.report.figures import GroupFigures
from fedbandit_envs.leaderboard.board.report.rows import RankedRow, suite_label
from fedbandit_envs.leaderboard.board.result import Group, ResultError
from fedbandit_envs.leaderboard.board.scores import mean_with_interval
from fedbandit_envs.leaderboard.sandbox.errors import printable

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Lines of a README between which the table of best entries stands."""


def page(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns the page as HTML, with style, scripts and data inside.

    Args:
        groups: All rows, by group.
        withdrawn: Withdrawn rows, as records have them; they are listed and not ranked.

    Raises:
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    sections = [_section(suite_label(group, groups), rows) for group, rows in groups.items()]
    figures = [
        one._asdict() for kind in ("privacy", "figures") for section in sections for one in section[kind]
    ]
    # Captions and words are in the page itself.
    figures = [{name: one[name] for name in one if name not in ("caption", "words")} for one in figures]
    results = [row.result for rows in groups.values() for row in rows]
    return _template("page.html.j2").render(
        # No text in the data can end its script element early.
        data=json.dumps(figures, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        sections=sections,
        versions=sorted({str(result.package["version"]) for result in results}),
        newest=max(result.made for result in results)[:10],
        tracks=sorted({result.track for result in results}),
        kinds=sorted({result.entry.kind for result in results}),
        withdrawn=withdrawn,
    )


def markdown(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns ``leaderboard.md``: a table for each suite, edition and track, and one of withdrawn rows."""
    return _template("leaderboard.md.j2").render(groups=groups, withdrawn=withdrawn)


def summary(groups: Mapping[Group, Sequence[RankedRow]]) -> str:
    """Returns a table of each track's best entry and its score; entries that are shown the truth do not compete."""
    suites = {
        suite_label(group, groups): {r.result.track: r for r in rows if r.rank == 1 and not r.track.revealed}
        for group, rows in groups.items()
    }

    # Silence first, then private tracks, then the others.
    def place(track: str) -> tuple[bool, bool, str]:
        return track != "silent", not track.startswith("private"), track

    tracks = list(dict.fromkeys(track for best in suites.values() for track in sorted(best, key=place)))
    return _template("summary.md.j2").render(suites=suites, tracks=tracks).rstrip()


def renewed(text: str, table: str) -> str:
    """Returns the text of a README with another table between its marks.

    Raises:
        ResultError: The text has not exactly one :data:`BEGIN` and one :data:`END` behind it, in lines of their own.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise ResultError(f"text has not one line {BEGIN} and one line {END} behind it; both are required")
    return f"{before}{begin}{table}\n{end}{after}"


@cache
def _template(name: str) -> Any:
    """Returns the template of this name; HTML escapes whatever is not markup of the template."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'fedbandit-envs[report]'") from error

    package = __name__.rpartition(".")[0]
    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= vars(formatting) | {
        "by_task": _by_task,
        "mean_with_interval": mean_with_interval,
        "printable": printable,
        "text_of": lambda file: (files(package) / file).read_text(encoding="utf-8"),
    }
    environment.filters |= {"shell": join, "cell": lambda text: re.sub(r"\n", " ", text.replace("|", "\\|"))}
    return environment.get_template(name)


def _section(label: str, rows: Sequence[RankedRow]) -> dict[str, Any]:
    """Returns a group's part of the page: rows with facts of their own, facts that all rows share, and figures."""
    facts = [_facts(row) for row in rows]
    common = {name: text for name, text in facts[0].items() if all(own[name] == text for own in facts)}
    own = [{name: text for name, text in one.items() if name not in common} for one in facts]
    figures = GroupFigures(rows)
    privacy = map(figures.privacy, range(len(rows[0].result.tasks)))
    return {
        "label": label,
        "rows": list(zip(rows, own, strict=True)),
        "common": common,
        "privacy": [figure for figure in privacy if figure is not None],
        "figures": figures.all(),
    }


def _facts(row: RankedRow) -> dict[str, str]:
    """Returns where a row comes from, by heading."""
    result = row.result
    package, entry = result.package, result.entry
    return {
        "Edition": f"{result.edition.id}, salt {result.edition.salt}",
        "Package": f"{package['version']}, commit {package['commit'] or 'not known'}, source SHA-256 "
        f"{package['source_digest']}",
        "Machine": formatting.plain(result.machine),
        "Kind": entry.kind,
        "Source": f"{entry.source}, SHA-256 {entry.source_digest[:16]}\N{HORIZONTAL ELLIPSIS}",
        "Settings": formatting.plain(entry.settings) or "as registered",
        "Made": f"{result.made}, in {formatting.amount(row.cpu_seconds)} CPU seconds",
    }


def _by_task(row: RankedRow, kind: str) -> Iterable[str]:
    """Yields a row's ``claims`` or ``audits``, each once, with the tasks that it is of unless it is of all."""
    of: dict[str, list[str]] = {}
    for task in row.result.tasks:
        audits: list[Any] = [task.audit] if task.audit else []
        said = map(formatting.claim, task.claims) if kind == "claims" else map(formatting.audit, audits)
        for sentence in said:
            of.setdefault(sentence, []).append(task.task)
    for sentence, tasks in of.items():
        yield sentence + (f" ({', '.join(tasks)})" if len(tasks) < len(row.result.tasks) else "")
