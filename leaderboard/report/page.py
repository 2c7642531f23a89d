"""The report: the HTML page, Markdown tables and a README's table, made by the jinja2 templates of this folder.

The HTML page is one file with all its data. ``page.html.j2`` lays it out; ``page.js`` draws, sorts and filters.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from math import inf, isnan, log10, nan
from pathlib import Path
from shlex import join
from typing import Any

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.files import write_whole
from fedbandit_envs.experiments.result import report_library
from fedbandit_envs.leaderboard.report.figures import GroupFigures
from fedbandit_envs.leaderboard.report.privacy_picture import privacy_png
from fedbandit_envs.leaderboard.report.rows import RankedRow, Spent, rows_of, suite_label
from fedbandit_envs.leaderboard.result import Group, ResultError, ResultFile
from fedbandit_envs.leaderboard.sandbox.errors import printable
from fedbandit_envs.leaderboard.scores import Estimate, mean_with_interval, rounded
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of

_PACKAGE = __name__.rpartition(".")[0]

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Marks in a README: the table of best entries is between the line ``BEGIN`` and the line ``END``."""

ABSENT = "\N{EN DASH}"
"""Text of a table cell that has no value because there can be none: a dash."""

NOT_RUN = "not run"
"""Text of a table cell that has no value because nothing was played."""

_MOST_RATIO = 10.0
"""Ratio to the regret of tuned silence at the right end of the scale of bars; its inverse is at the left end."""


def report(
    results: Sequence[ResultFile],
    out: Path,
    withdrawn: Sequence[Mapping[str, str]] = (),
    readme: Path | None = None,
    open_results: Collection[str] = (),
) -> str:
    """Writes ``leaderboard.html``, ``leaderboard.md`` and, if there are private baselines, ``leaderboard.png``.

    Args:
        results: The results to rank; their order does not matter.
        out: Folder for the files; it is made if it does not exist.
        withdrawn: Withdrawn rows, as :meth:`.records.Records.withdrawn` returns them; they are listed and not ranked.
        readme: A Markdown file, in which the text between the lines :data:`BEGIN` and :data:`END` is replaced by a new
            table of best entries; None for no such file.
        open_results: Digests of those results whose rows are open (:func:`.published.is_open`): they are listed below
            the others, without a rank.

    Returns:
        A sentence about the file that was not written, and why; empty if all were written.

    Raises:
        ResultError: There are no results, or some results of one edition cannot be compared, or ``readme`` lacks the
            two marks.
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
        OSError: A file cannot be read or written.
    """
    if not results:
        raise ResultError("results is empty; at least one is required")
    groups = rows_of(results, open_results)
    if readme is not None:
        text = renewed(readme.read_text(encoding="utf-8"), summary(groups))
        write_whole(readme, text.encode())
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "leaderboard.md", markdown(groups, withdrawn).encode())
    write_whole(out / "leaderboard.html", page(groups, withdrawn).encode())
    if find_spec("matplotlib") is None:
        return (
            "leaderboard.png is not drawn: it needs the [report] extra (pip install 'fedbandit-envs[report]')"
        )
    drawn = privacy_png(groups, out / "leaderboard.png")
    return "" if drawn else "leaderboard.png is not drawn: there is no private baseline"


def page(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns the leaderboard's page as HTML, which contains its style, scripts and data.

    Args:
        groups: All rows, by their group (suite, version and edition).
        withdrawn: Withdrawn rows, as :meth:`.records.Records.withdrawn` returns them; they are listed and not ranked.

    Raises:
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    sections = [_section(suite_label(group, groups), rows) for group, rows in groups.items()]
    figures = [one for kind in ("privacy", "figures") for section in sections for one in section[kind]]
    # Captions and descriptions are left out of the data for the script: the HTML itself contains them.
    drawn = [{k: v for k, v in one._asdict().items() if k not in ("caption", "words")} for one in figures]
    results = [row.result for rows in groups.values() for row in rows]
    return _template("page.html.j2").render(
        # "<" is escaped so that no text in the data, such as "</script>", can end the script element early.
        data=json.dumps(drawn, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        sections=sections,
        versions=sorted({str(result.package["version"]) for result in results}),
        newest=max(result.made for result in results)[:10],
        withdrawn=withdrawn,
    )


def markdown(groups: Mapping[Group, Sequence[RankedRow]], withdrawn: Sequence[Mapping[str, str]] = ()) -> str:
    """Returns the text of ``leaderboard.md``: a ranking for each suite, edition and track, and the withdrawn rows."""
    return _template("leaderboard.md.j2").render(groups=groups, withdrawn=withdrawn)


def summary(groups: Mapping[Group, Sequence[RankedRow]]) -> str:
    """Returns a Markdown table of the entries with the best score of each suite and track.

    Each stands with the ratio of its regret to that of tuned silence, since scores may all be close to 1. Entries that
    are shown parameters which agents do not know are left out.

    Args:
        groups: All rows, by their group (suite, version and edition).
    """
    suites = {
        suite_label(group, groups): {r.result.track: r for r in rows if r.rank == 1 and not r.track.revealed}
        for group, rows in groups.items()
    }

    # Silence first, then private tracks, then the others.
    def place(track: str) -> tuple[bool, bool, str]:
        return track != "silent", not track.startswith("private"), track

    tracks = list(dict.fromkeys(track for best in suites.values() for track in sorted(best, key=place)))
    return _template("summary.md.j2").render(suites=suites, tracks=tracks).rstrip()


def unplayed(suite: str, rows: Iterable[RankedRow]) -> list[str]:
    """Returns the names of a suite's tracks on which no row was played; empty for an unknown suite."""
    played = {row.result.track for row in rows}
    return [name for name in (tracks_of(SUITES[suite]) if suite in SUITES else {}) if name not in played]


def renewed(text: str, table: str) -> str:
    """Returns the text of a README in which the text between the lines :data:`BEGIN` and :data:`END` is replaced.

    Args:
        text: The README's text.
        table: The new text between the two marks.

    Raises:
        ResultError: The text does not have exactly one line :data:`BEGIN` and after it exactly one line :data:`END`.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise ResultError(f"text has not one line {BEGIN} and one line {END} behind it; both are required")
    return f"{before}{begin}{table}\n{end}{after}"


def estimate(value: Estimate, absent: str = ABSENT) -> str:
    """Returns an estimate and its interval as text (:func:`.scores.rounded`).

    Args:
        value: The estimate.
        absent: Text for an estimate that is unknown: why it is.
    """
    return absent if isnan(value.value) else rounded(value)


def epsilon(value: float) -> str:
    """Returns an epsilon as text with three digits: infinity as its sign, NaN as "unknown"."""
    return "unknown" if isnan(value) else "\N{INFINITY}" if value == inf else f"{value:.3g}"


def claimed(spent: Spent) -> str:
    """Returns a claimed epsilon as text, with its delta in brackets if epsilon is neither 0, infinite nor unknown."""
    if not spent.claim or not 0 < spent.epsilon < inf:
        return epsilon(spent.epsilon)
    return f"{epsilon(spent.epsilon)} (\N{GREEK SMALL LETTER DELTA} {spent.claim['delta']:.3g})"


def audited(row: RankedRow) -> tuple[float, str]:
    """Returns the outcome of the attacks on a row's privatizer, over all tasks.

    Returns:
        The largest lower bound on epsilon that an attack has shown (NaN without an attack), and its text for a table,
        which also says so if a bound exceeds the claimed epsilon.
    """
    audits = [task.audit for task in row.result.tasks if task.audit is not None]
    if not audits:
        return nan, ABSENT
    # An infinite bound is the text "infinity" in JSON, which float() also converts.
    worst = max(float(audit["lower_bound"]) for audit in audits)
    broken = not all(audit["holds"] for audit in audits)
    return worst, f"at least {epsilon(worst)}" + (", claim broken" if broken else "")


def amount(number: float) -> str:
    """Returns a number of messages, bytes or seconds as text: three significant digits, or an integer from 100 on."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def bar(ratio: Estimate) -> tuple[float, float, float]:
    """Returns where the bar of a ratio's interval is drawn, in percent of the logarithmic scale from left to right.

    Returns:
        Left end of the interval, width of the interval, and position of the ratio itself.
    """
    ends = [ratio.value] * 3 if isnan(ratio.low) else [ratio.low, ratio.value, ratio.high]
    low, middle, high = 50 + 50 * np.log10(np.clip(ends, 1 / _MOST_RATIO, _MOST_RATIO)) / log10(_MOST_RATIO)
    return low, max(high - low, 0.5), middle


def plain(values: Mapping[str, Any]) -> str:
    """Returns a mapping as text, ``name value, name value``; entries that are empty mappings or None are left out."""
    kept = {name: value for name, value in values.items() if value not in ({}, None)}
    return ", ".join(f"{n} {v if isinstance(v, str) else json.dumps(v)}" for n, v in kept.items())


def claim(one: Mapping[str, Any]) -> str:
    """Returns a privacy claim, in the form that a result file has, as one line of text."""
    value = epsilon(nan if one["epsilon"] is None else float(one["epsilon"]))
    reason = f": {one['reason']}" if one["reason"] else ""
    return (
        f"{one['adjacency']}, {one['composition']}: epsilon {value} at delta {one['delta']:.3g}, "
        f"trust {one['trust']}{reason}"
    )


def audit(outcome: Mapping[str, Any]) -> str:
    """Returns the outcome of an attack on a privatizer as one line of text.

    The privacy claim that was attacked is left out, since the page lists all claims elsewhere.
    """
    own = {name: value for name, value in outcome.items() if name != "claim"}
    return plain({**own, "lower_bound": epsilon(float(own["lower_bound"]))})


def text_of(file: str) -> str:
    """Returns the text of a file in this package's folder, such as the page's script.

    Args:
        file: Name of the file.
    """
    return (files(_PACKAGE) / file).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Any:
    """Returns the jinja2 template of this name; in HTML templates all inserted values are escaped."""
    jinja2 = report_library("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, ""),
        autoescape=name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Templates may use all names of this module, and some functions of other modules.
    environment.globals |= {**globals(), "mean_with_interval": mean_with_interval, "printable": printable}
    environment.globals["BASELINES"] = BASELINES
    environment.filters |= {"shell": join, "cell": lambda text: re.sub(r"\n", " ", text.replace("|", "\\|"))}
    return environment.get_template(name)


def _section(label: str, rows: Sequence[RankedRow]) -> dict[str, Any]:
    """Returns the data of one section of the page, that of one suite in one edition.

    Args:
        label: Heading of the section.
        rows: All rows of the suite in the edition.

    Returns:
        ``label``; ``rows``, each with the facts about its origin that differ between rows; ``common``, the facts that
        are the same for all rows; and the figures, in ``privacy`` and ``figures``.
    """
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
    """Returns the facts about a row's origin (package, machine, source, settings ...) as texts, by heading."""
    result = row.result
    package, entry = result.package, result.entry
    return {
        "Edition": f"{result.edition.id}, salt {result.edition.salt}",
        "Package": f"{package['version']}, commit {package['commit'] or 'not known'}, source SHA-256 "
        f"{package['source_digest']}",
        "Machine": plain(result.machine),
        "Kind": entry.kind,
        "Source": f"{entry.source}, SHA-256 {entry.source_digest[:16]}\N{HORIZONTAL ELLIPSIS}",
        "Settings": plain(entry.settings) or "as registered",
        "Made": f"{result.made}, in {amount(row.cpu_seconds)} CPU seconds",
    }


def by_task(row: RankedRow, kind: str) -> Iterable[str]:
    """Yields a row's different privacy claims, or different outcomes of attacks, each as a line of text.

    If a claim or outcome is not the same for all tasks, the line ends with the ids of the tasks for which it holds.

    Args:
        row: The row.
        kind: ``claims`` or ``audits``.
    """
    of: dict[str, list[str]] = {}
    for task in row.result.tasks:
        audits: list[Any] = [task.audit] if task.audit else []
        for sentence in map(claim, task.claims) if kind == "claims" else map(audit, audits):
            of.setdefault(sentence, []).append(task.task)
    for sentence, tasks in of.items():
        yield sentence + (f" ({', '.join(tasks)})" if len(tasks) < len(row.result.tasks) else "")
