"""Reports of the leaderboard: Markdown tables, a README's table of best entries, and a picture."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import groupby
from math import inf, isnan
from pathlib import Path

import numpy as np

from fedbandit_envs.baselines import comparison_lines as compared
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.files import write_whole
from fedbandit_envs.leaderboard.ranking import Estimate, Ranked, bootstrapped, lines_of, ranked, rounded
from fedbandit_envs.leaderboard.suites import Edition, digest_of
from fedbandit_envs.leaderboard.table import Entry, ResultTable, TableError

BEGIN, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
"""Marks in a Markdown file: the table of best entries is between the line ``BEGIN`` and the line ``END``."""

Curve = tuple[Array, Array, tuple[Array, Array] | None]
"""A curve of the picture: epsilons, mean regret, and lengths of its error bars below and above, if it has some."""

Groups = Mapping[Edition, Sequence[Ranked]]
"""Ranked rows by their edition, see :func:`.ranking.ranked`."""

_HEADS = [
    "rank",
    "entry",
    "regret / tuned silence's",
    "score",
    "epsilon claimed",
    "audited",
    "messages",
    "bytes",
]
_INTRODUCTION = """# All rows of the leaderboard

Made by `fedbandit leaderboard report` from `results.csv.gz` and `entries.json`. [The
leaderboard](../leaderboard.md#columns) says what columns mean, [the last section](#entries) what entries are."""

_TITLE = """Compare lines with the same constants:
"weighted", "placebo", "true data", "tuned silence";
or "weighted, tuned" and "true data, tuned\""""
_AXES = {"x": "epsilon claimed", "y": "regret per agent", "xscale": "log", "yscale": "log"}
# Colours and dashes of the horizontal lines in the picture. Baselines with which private ones are compared are grey and
# black; the placebo is dotted, since its line often covers that of silence.
_LEVELS = {
    compared.SILENT: ("#8a929b", "solid"),
    compared.TUNED: ("black", "solid"),
    compared.PLACEBO: ("#8a929b", "dotted"),
    compared.TRUE: ("black", "dashed"),
    # Lines of one colour have the same constants.
    compared.OURS_TUNED: ("#c7751a", "solid"),
    compared.TRUE_TUNED: ("#c7751a", "dashed"),
}


def report(table: ResultTable, out: Path, readmes: Iterable[Path] = ()) -> str:
    """Writes ``leaderboard.md`` and, if there are private baselines, ``leaderboard.png``.

    Args:
        table: The results.
        out: Folder for the files; it is made if it does not exist.
        readmes: Markdown files, in each of which the text between the lines :data:`BEGIN` and :data:`END` is replaced
            by a new table of best entries.

    Returns:
        What was left out, and why, in a line each; empty if nothing was.

    Raises:
        TableError: There are no results, some cannot be compared, or a file of ``readmes`` lacks the two marks.
        OSError: A file cannot be read or written.
    """
    groups = ranked(table)
    if not groups:
        raise TableError("results have no finished rows; at least one is required")
    texts = {readme: renewed(readme.read_text(encoding="utf-8"), best(groups)) for readme in readmes}
    out.mkdir(parents=True, exist_ok=True)
    texts[out / "leaderboard.md"] = markdown(groups)
    for path, text in texts.items():
        write_whole(path, text.encode())
    left = [f"{row.entry} on {row.track}: not finished" for row in table.entries.keys() - table.lines.keys()]
    if find_spec("matplotlib") is None:
        left.append("leaderboard.png: it needs the [report] extra (pip install 'fedbandit-envs[report]')")
    elif not privacy_png(groups, out / "leaderboard.png"):
        left.append("leaderboard.png: there is no private baseline")
    return "\n".join(sorted(left))


def best(groups: Groups) -> str:
    """Returns a Markdown table of the entries with the best score of each suite and track.

    Each stands with the ratio of its regret to that of tuned silence, since scores may all be close to 1. Entries that
    are shown parameters which agents do not know are left out.
    """
    cells = {
        (_name(edition, groups), row.entry.track): f"{row.entry.name} {rounded(row.ratio)}"
        for edition, rows in groups.items()
        for row in rows
        if row.rank == 1 and row.entry.track != "revealed"
    }
    # Silence first, then private tracks, then the others.
    tracks = sorted(
        {track for _, track in cells}, key=lambda one: (one != "silent", one[:7] != "private", one)
    )
    suites = dict.fromkeys(suite for suite, _ in cells)
    rows = [[suite, *(cells.get((suite, track), "not run") for track in tracks)] for suite in suites]
    return _markdown_table(["suite", *tracks], rows)


def renewed(text: str, table: str) -> str:
    """Returns a Markdown text in which what is between the lines :data:`BEGIN` and :data:`END` is replaced.

    Raises:
        TableError: The text does not have exactly one line :data:`BEGIN` and after it exactly one line :data:`END`.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise TableError(f"text has not one line {BEGIN} and one line {END} behind it; both are required")
    return f"{before}{begin}{table}\n{end}{after}"


def markdown(groups: Groups) -> str:
    """Returns the text of ``leaderboard.md``: a ranking for each suite, edition and track, and what entries are."""
    parts = [_INTRODUCTION, best(groups)]
    for edition, rows in groups.items():
        tasks = ", ".join(f"`{task}` ({rows[0].values('regret', task).size} seeds)" for task in rows[0].tasks)
        parts.append(f"## {_name(edition, groups)}\n\nTasks: {tasks}; edition {edition.id}.")
        for track, own in groupby(rows, key=lambda row: row.entry.track):
            parts += [f"### Track {track}", _markdown_table(_HEADS, map(_cells, own))]
    entries = {row.entry.name: row.entry for rows in groups.values() for row in rows}
    about = [_about(entries[name]) for name in sorted(entries)]
    parts += ["## Entries", _markdown_table(("entry", "what it is", "source"), about)]
    return "\n\n".join(parts) + "\n"


def privacy_png(groups: Groups, path: Path) -> bool:
    """Draws regret against epsilon, with a panel for the first task of each suite and edition.

    The file's ``Description`` is a digest of the drawn numbers (to four digits), by which a test can compare pictures.

    Returns:
        Whether there was anything to draw.
    """
    # Imported here, since matplotlib comes with an extra.
    from fedbandit_envs.experiments.plots import figure_of

    panels = privacy_panels(groups)
    numbers = [
        [title, line, [f"{number:.4g}" for part in (x, y, *(error or ())) for number in part]]
        for title, curves in panels.items()
        for line, (x, y, error) in curves.items()
    ]
    if panels:
        figure = figure_of(panels, _AXES, _TITLE, given=_LEVELS, text_scale=1.7)
        figure.savefig(path, metadata={"Description": digest_of(numbers)})
    return bool(panels)


def privacy_panels(groups: Groups) -> dict[str, dict[str, Curve]]:
    """Returns the curves of regret against epsilon that the picture shows.

    Returns:
        For each panel's title its curves, by the role of the baseline (such as ``tuned silence``). Editions without
        private baselines have no panel.
    """
    panels: dict[str, dict[str, Curve]] = {}
    for edition, rows in groups.items():
        task, levels = rows[0].tasks[0], lines_of(edition.suite)
        names = compared.BASELINE_OF.get(edition.suite.removesuffix("-quick"), {})
        # In some problems this package's federation ("ours") has the tuned constants by default. Its tuned form is then
        # the same baseline, whose curve must not be drawn twice.
        twice = names.get(compared.OURS_TUNED) == names.get(compared.OURS)
        curves: dict[str, Curve] = {}
        for line, name in names.items():
            own = [
                row for row in rows if row.entry.name == name and row.rank and row.entry.track[-4:] != "-few"
            ]
            regret = {
                epsilon: _mean(row.values("regret", task))
                for row in own
                if 0 < (epsilon := float(row.values("epsilon", task)[0])) < inf
            }
            if regret and name not in levels.values() and not (twice and line == compared.OURS_TUNED):
                x = np.array(sorted(regret))
                y, low, high = np.transpose([regret[epsilon] for epsilon in sorted(regret)])
                # There is no interval where seeds are few.
                curves[line] = (x, y, None if np.isnan(low).any() else (y - low, high - y))
        span = np.array(sorted({epsilon for curve in curves.values() for epsilon in curve[0].tolist()}))
        flat: dict[str, Curve] = {}
        for line, name in levels.items() if curves else ():
            if found := [row.values("regret", task).mean() for row in rows if row.entry.name == name]:
                flat[line] = (span, np.full(span.size, np.mean(found)), None)
        if curves:
            panels[task + (f", edition {edition.id}" if task in panels else "")] = {**flat, **curves}
    return panels


def _mean(values: Array) -> Estimate:
    """Returns the mean over seeds, with its 95 % interval."""
    return bootstrapped(lambda each: each.mean(axis=-1), np.zeros(values.size), values)


def _name(edition: Edition, groups: Groups) -> str:
    """Returns the name of an edition's suite, with the edition's id where a suite has several."""
    several = sum(other.suite == edition.suite for other in groups) > 1
    return f"{edition.suite} ({edition.id})" if several else edition.suite


def _epsilon(value: float) -> str:
    return "unknown" if isnan(value) else "\N{INFINITY}" if value == inf else f"{value:.3g}"


def _amount(number: float) -> str:
    """Returns a number of messages or bytes as text: three significant digits, or an integer from 100 on."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _cells(row: Ranked) -> list[str]:
    bound = row.entry.audited
    broken = "" if row.entry.holds else ", claim broken"
    audited = "\N{EN DASH}" if bound is None else f"at least {_epsilon(bound)}{broken}"
    measures = [rounded(row.ratio), rounded(row.score)]
    sent = [_amount(float(row.values(name).mean())) for name in ("messages", "bytes")]
    return [str(row.rank or "open"), row.entry.name, *measures, _epsilon(row.epsilon), audited, *sent]


def _about(entry: Entry) -> list[str]:
    """Returns the name of an entry, what it is, and its source."""
    if not entry.is_file and entry.name in BASELINES:
        return [entry.name, BASELINES[entry.name].summary, BASELINES[entry.name].reference]
    settings = {
        f"{part}.{name}": value for part, own in entry.settings.items() for name, value in own.items()
    }
    return [entry.name, f"{entry.source} with {settings}", "submitted" if entry.is_file else "settings"]


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in (heads, *rows)]
    lines = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([lines[0], "|" + "---|" * len(heads), *lines[1:]])
