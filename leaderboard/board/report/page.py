"""The HTML page: one file with all its data. ``page.html.j2`` lays it out; ``page.js`` draws, sorts and filters."""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from fedbandit_envs.leaderboard.board.report import formatting
from fedbandit_envs.leaderboard.board.report.figure_data import FigureData
from fedbandit_envs.leaderboard.board.report.figures import of_group, what_privacy_buys
from fedbandit_envs.leaderboard.board.report.rows import Group, RankedRow, suite_label
from fedbandit_envs.leaderboard.board.report.templates import render
from fedbandit_envs.leaderboard.board.scores import mean_with_interval


class _Section(NamedTuple):
    """One group's part of the page: its suite's label, rows with their own facts, facts that all share, and figures."""

    label: str
    rows: Sequence[tuple[RankedRow, Mapping[str, str]]]
    common: Mapping[str, str]
    privacy: Sequence[FigureData]
    figures: Sequence[FigureData]


def page(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns the page as HTML, with style, scripts and data inside.

    Args:
        groups: All rows, by group.
        withdrawn: Withdrawn rows, as records have them; they are listed and not ranked.

    Raises:
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    sections = [_section(suite_label(group, groups), rows) for group, rows in groups.items()]
    figures = [one for section in sections for one in section.privacy]
    figures += [one for section in sections for one in section.figures]
    results = [row.result for rows in groups.values() for row in rows]
    data = json.dumps([figure.as_json() for figure in figures], separators=(",", ":"), allow_nan=False)
    return render(
        "page.html.j2",
        style=_text("page.css"),
        # The bundle with basic charts only.
        plotly=_text("plotly-basic.min.js"),
        script=_text("page.js"),
        # No text in the data can end its script element early.
        data=data.replace("<", "\\u003c"),
        sections=sections,
        versions=sorted({str(result.package["version"]) for result in results}),
        newest=max(result.made for result in results)[:10],
        tracks=sorted({result.track for result in results}),
        kinds=sorted({result.entry.kind for result in results}),
        withdrawn=withdrawn,
        by_task=_by_task,
        mean_with_interval=mean_with_interval,
    )


def _text(name: str) -> str:
    """Returns the text of a file of this folder."""
    return (files(__name__.rpartition(".")[0]) / name).read_text(encoding="utf-8")


def _section(label: str, rows: Sequence[RankedRow]) -> _Section:
    facts = [_facts(row) for row in rows]
    common = dict.fromkeys(name for name in facts[0] if len({own[name] for own in facts}) == 1)
    own = [{name: text for name, text in one.items() if name not in common} for one in facts]
    bought = (what_privacy_buys(rows, number) for number in range(len(rows[0].result.tasks)))
    return _Section(
        label,
        list(zip(rows, own, strict=True)),
        {name: facts[0][name] for name in common},
        [figure for figure in bought if figure is not None],
        of_group(rows),
    )


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
