"""The report: the HTML page, Markdown tables and a README's table, made by the jinja2 templates of this folder.

The HTML page is one file with all its data. ``page.html.j2`` lays it out; ``page.js`` draws, sorts and filters.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from math import floor, inf, isnan, log10, nan
from pathlib import Path
from shlex import join
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.report.figures import GroupFigures, privacy_png
from fedbandit_envs.leaderboard.board.report.rows import RankedRow, Spent, rows_of, suite_label
from fedbandit_envs.leaderboard.board.result import Group, ResultError, ResultFile
from fedbandit_envs.leaderboard.board.scores import Estimate, mean_with_interval
from fedbandit_envs.leaderboard.runs.result import report_library
from fedbandit_envs.leaderboard.sandbox.errors import printable

_PACKAGE = __name__.rpartition(".")[0]

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Lines of a README between which the table of best entries stands."""

ABSENT = "\N{EN DASH}"
"""Text of a cell without a value."""

_LEAST_SCORE = -0.5
"""Left end of the scale on which intervals of scores are drawn; 0 is acting at random, 1 no regret."""


def report(
    results: Sequence[ResultFile],
    out: Path,
    withdrawn: Sequence[Mapping[str, str]] = (),
    readme: Path | None = None,
) -> str:
    """Writes ``leaderboard.html``, ``leaderboard.md`` and, where there are private baselines, ``leaderboard.png``.

    Args:
        results: The results to rank; the same results in any order make the same files.
        out: The folder; it is made if it does not exist.
        withdrawn: Withdrawn rows, as records have them; they are listed and not ranked.
        readme: A Markdown file in which the table between :data:`BEGIN` and :data:`END` is renewed.

    Returns:
        Which of the files is not written, and why; empty if all are.

    Raises:
        ResultError: There are no results, or some of one edition cannot be compared, or ``readme`` has no such marks.
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    if not results:
        raise ResultError("results is empty; at least one is required")
    groups = rows_of(results)
    if readme is not None:
        text = renewed(readme.read_text(encoding="utf-8"), summary(groups))
        readme.write_text(text, encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    (out / "leaderboard.md").write_text(markdown(groups, withdrawn), encoding="utf-8")
    (out / "leaderboard.html").write_text(page(groups, withdrawn), encoding="utf-8")
    if find_spec("matplotlib") is None:
        return (
            "leaderboard.png is not drawn: it needs the [report] extra (pip install 'fedbandit-envs[report]')"
        )
    drawn = privacy_png(groups, out / "leaderboard.png")
    return "" if drawn else "leaderboard.png is not drawn: there is no private baseline"


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


def estimate(value: Estimate, least: int = 2) -> str:
    """Returns ``number [low, high]`` as text, rounded to the half width's first digit; the number alone if no interval.

    Args:
        value: The number.
        least: The fewest decimals; the most are five.
    """
    if isnan(value.value):
        return ABSENT
    half = (value.high - value.low) / 2
    decimals = least if isnan(half) or half <= 0 else min(max(-floor(log10(half)), least), 5)
    # Adding 0.0 turns -0.0 into 0.0.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:.{decimals}f}" for end in ends)
    return f"{number} [{interval[0]}, {interval[1]}]" if interval else number


def epsilon(value: float) -> str:
    """Returns an epsilon as text: 0 where nothing is released, the sign of infinity where nothing is promised."""
    if isnan(value):
        return "unknown"
    return "\N{INFINITY}" if value == inf else f"{value:.3g}"


def claimed(spent: Spent) -> str:
    """Returns a claimed epsilon and its delta as text."""
    if not spent.claim or not 0 < spent.epsilon < inf:
        return epsilon(spent.epsilon)
    return f"{epsilon(spent.epsilon)} (\N{GREEK SMALL LETTER DELTA} {spent.claim['delta']:.3g})"


def audited(row: RankedRow) -> tuple[float, str]:
    """Returns the largest lower bound on epsilon that attacks showed, NaN without an attack, and its text."""
    audits = [task.audit for task in row.result.tasks if task.audit is not None]
    if not audits:
        return nan, ABSENT
    # "infinity" is text that float() reads.
    worst = max(float(audit["lower_bound"]) for audit in audits)
    broken = not all(audit["holds"] for audit in audits)
    return worst, f"at least {epsilon(worst)}" + (", claim broken" if broken else "")


def amount(number: float) -> str:
    """Returns a number of messages, bytes or seconds with three digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def bar(score: Estimate) -> tuple[float, float, float]:
    """Returns a score and its interval as percentages of the drawn scale: left end, width, and the score itself."""
    ends = [score.value] * 3 if isnan(score.low) else [score.low, score.value, score.high]
    low, middle, high = 100 * (np.clip(ends, _LEAST_SCORE, 1) - _LEAST_SCORE) / (1 - _LEAST_SCORE)
    return low, max(high - low, 0.5), middle


def plain(values: Mapping[str, Any]) -> str:
    """Returns names and values as a list in words; empty mappings and None are left out."""
    kept = {name: value for name, value in values.items() if value not in ({}, None)}
    return ", ".join(f"{n} {v if isinstance(v, str) else json.dumps(v)}" for n, v in kept.items())


def claim(one: Mapping[str, Any]) -> str:
    """Returns a result's claim as a sentence."""
    value = epsilon(nan if one["epsilon"] is None else float(one["epsilon"]))
    reason = f": {one['reason']}" if one["reason"] else ""
    return (
        f"{one['adjacency']}, {one['composition']}: epsilon {value} at delta {one['delta']:.3g}, "
        f"trust {one['trust']}{reason}"
    )


def audit(outcome: Mapping[str, Any]) -> str:
    """Returns the outcome of an attack as a sentence, without the claim, which stands among the claims."""
    own = {name: value for name, value in outcome.items() if name != "claim"}
    return plain({**own, "lower_bound": epsilon(float(own["lower_bound"]))})


@cache
def _template(name: str) -> Any:
    """Returns the template of this name; HTML escapes whatever is not markup of the template."""
    jinja2 = report_library("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, ""),
        autoescape=name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    called = (estimate, epsilon, claimed, audited, amount, bar, by_task, mean_with_interval, printable)
    environment.globals |= {
        **{function.__name__: function for function in called},
        "text_of": lambda file: (files(_PACKAGE) / file).read_text(encoding="utf-8"),
        "ABSENT": ABSENT,
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
        "Machine": plain(result.machine),
        "Kind": entry.kind,
        "Source": f"{entry.source}, SHA-256 {entry.source_digest[:16]}\N{HORIZONTAL ELLIPSIS}",
        "Settings": plain(entry.settings) or "as registered",
        "Made": f"{result.made}, in {amount(row.cpu_seconds)} CPU seconds",
    }


def by_task(row: RankedRow, kind: str) -> Iterable[str]:
    """Yields a row's ``claims`` or ``audits``, each once, with the tasks that it is of unless it is of all."""
    of: dict[str, list[str]] = {}
    for task in row.result.tasks:
        audits: list[Any] = [task.audit] if task.audit else []
        for sentence in map(claim, task.claims) if kind == "claims" else map(audit, audits):
            of.setdefault(sentence, []).append(task.task)
    for sentence, tasks in of.items():
        yield sentence + (f" ({', '.join(tasks)})" if len(tasks) < len(row.result.tasks) else "")
