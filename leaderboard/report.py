"""Ranks the rows of a table, and writes them as Markdown tables and a picture.

A run is one task played under one seed. Rows are ranked by the ratio of their expected regret to that of the suite's
best silence under the same seeds, since regret is an expectation: no measure that ranks leaves runs out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from itertools import groupby
from math import inf, isnan, nan
from pathlib import Path

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines import comparison_lines as compared
from fedbandit_envs.baselines.tuned import best_silence
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments import measures
from fedbandit_envs.experiments.plots import Curve, curve_of, figure_of
from fedbandit_envs.experiments.store import write_whole
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, Edition
from fedbandit_envs.leaderboard.table import Entry, Line, ResultTable

Groups = Mapping[Edition, Sequence["Ranked"]]
"""Ranked rows by their edition, see :func:`ranked`."""

_INTRODUCTION = """# All rows of the leaderboard

A row is an entry (an algorithm) on a track (a limit on what agents may send). The first table has the best rows. [The
leaderboard](../leaderboard.md#columns) explains the columns, and [the last section](#entries) describes the entries."""

_TITLE = """Compare lines with the same constants:
"weighted", "placebo", "true data", "tuned silence";
or "weighted, tuned" and "true data, tuned\""""
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


_FLAT = _LEVELS.keys() - {compared.OURS_TUNED}


@dataclass(frozen=True)
class Ranked:
    """A row of the leaderboard, ranked against the others of its suite and edition.

    Attributes:
        entry: The entry.
        lines: Its runs, task by task, in the order of the edition's seeds.
        tasks: The task's id of each run, ``(runs,)``.
        silence: Regret of the suite's best silence in the same runs, ``(runs,)``; NaN where that was not run.
        ratio: Ratio of expected regrets to it, the geometric mean over tasks; NaN if it is unknown.
        rank: Rank on the track, from 1; 0 for an open row, which has none.
    """

    entry: Entry
    lines: list[Line]
    tasks: Array
    silence: Array
    ratio: measures.Estimate
    rank: int = 0

    def values(self, name: str, task: str = "") -> Array:
        """Returns one measure of all runs, or of one task's runs, float64 ``(runs,)``.

        Args:
            name: A numeric field of :class:`~.table.Line`.
            task: Id of the task; empty for all.
        """
        return np.array([getattr(line, name) for line in self.lines if task in ("", line.task)], np.float64)


def ranked(table: ResultTable) -> dict[Edition, list[Ranked]]:
    """Ranks the finished rows of each suite and edition on each track.

    Ranks are by the ratio of expected regrets to best silence; by mean regret where that is unknown, as in suites of
    other packages. Open rows have no rank and come after the ranked rows of their track.

    Returns:
        The rows of each edition, sorted by track and rank; editions are in the order of :data:`.suites.SUITES`.

    Raises:
        BoardError: Runs are missing in a row, or are twice in it, or its suite has changed since.
    """
    runs, order = {row: table.runs_of(row) for row in table.lines}, list(SUITES)
    groups: dict[Edition, list[tuple[Entry, list[Line]]]] = {}
    for row in sorted(runs, key=lambda row: (order.index(row.suite), row)):
        groups.setdefault(table.editions[row.edition], []).append((table.entries[row], runs[row]))
    return {edition: _ranked(rows, best_silence(edition.suite)) for edition, rows in groups.items()}


def _ranked(rows: list[tuple[Entry, list[Line]]], control: str | None) -> list[Ranked]:
    found = [(entry.is_open, lines) for entry, lines in rows if entry.source == control == entry.name]
    silent = {(line.task, line.seed): line.regret for line in min(found, default=(False, []))[1]}
    unranked = []
    for entry, lines in rows:
        regret, tasks = np.array([line.regret for line in lines]), np.array([line.task for line in lines])
        silence = np.array([silent.get((line.task, line.seed), nan) for line in lines])
        ratio = measures.ratio_with_interval(regret, silence, tasks)
        # Without a control for its seeds a row comes last; without any control rows are ranked by regret.
        place = (inf if isnan(ratio[0]) else ratio[0]) if silent else float(regret.mean())
        row = Ranked(entry, lines, tasks, silence, ratio)
        unranked.append((entry.track, entry.is_open, place, entry.name, row))
    places: Counter[str] = Counter()
    ordered = []
    for track, is_open, *_, row in sorted(unranked, key=lambda one: one[:4]):
        places[track] += 1
        ordered.append(row if is_open else replace(row, rank=places[track]))
    return ordered


def report(table: ResultTable, out: Path) -> str:
    """Writes ``leaderboard.md`` and, if there are private baselines, ``leaderboard.png``.

    Args:
        table: The results, from which rows are removed that cannot be compared.
        out: Folder for the files; it is made if it does not exist.

    Returns:
        What was left out, and why, in a line each; empty if nothing was.

    Raises:
        BoardError: There are no results that can be compared.
        OSError: A file cannot be written.
    """
    left = [f"{row.entry} on {row.track}: not finished" for row in table.entries.keys() - table.lines.keys()]
    for row in [*table.lines]:
        try:
            table.runs_of(row)
        except BoardError as error:
            left.append(f"{row.entry} on {row.track}: {error}")
            del table.lines[row]
    groups = ranked(table)
    if not groups:
        raise BoardError("results have no finished rows; at least one is required")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "leaderboard.md", markdown(groups).encode())
    if find_spec("matplotlib") is None:
        left.append("leaderboard.png: it needs the [report] extra (pip install 'fedbandit-envs[report]')")
    elif panels := privacy_panels(groups):
        axes = {"x": "epsilon claimed", "y": "regret per agent"}
        figure_of(panels, axes, _TITLE, given=_LEVELS, text_scale=1.7).savefig(out / "leaderboard.png")
    else:
        left.append("leaderboard.png: there is no private baseline")
    return "\n".join(sorted(left))


def best(groups: Groups) -> str:
    """Returns a Markdown table of the first entry of each suite and track.

    Each stands with the ratio of its expected regret to that of best silence. Entries that are shown parameters which
    agents do not know are left out.
    """
    cells = {
        (_name(edition, groups), row.entry.track): f"{row.entry.name} {measures.rounded(row.ratio)}"
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


def markdown(groups: Groups) -> str:
    """Returns the text of ``leaderboard.md``: a ranking for each suite, edition and track, and what entries are."""
    parts = [_INTRODUCTION, best(groups)]
    for edition, rows in groups.items():
        tasks = " and ".join(f"`{task.id}` ({task.seeds} seeds)" for task in SUITES[edition.suite].tasks)
        parts += [f"## {_name(edition, groups)}", f"Tasks are {tasks}. Edition {edition.id} lists the seeds."]
        for track, own in groupby(rows, key=lambda row: row.entry.track):
            cells = [_cells(row) for row in own]
            table = _markdown_table(cells[0], [list(one.values()) for one in cells])
            parts += [f"### Track {escape(track)}", table]
    entries = {row.entry.name: row.entry for rows in groups.values() for row in rows}
    about = [_about(entries[name]) for name in sorted(entries)]
    parts += ["## Entries", _markdown_table(("entry", "what it is", "source"), about)]
    return "\n\n".join(parts) + "\n"


def privacy_panels(groups: Groups) -> dict[str, dict[str, Curve]]:
    """Returns the curves of regret against epsilon that the picture shows, for the first task of each edition.

    Returns:
        For each panel's title its curves, by the role of the baseline (such as ``tuned silence``). Editions without
        private baselines have no panel.
    """
    panels: dict[str, dict[str, Curve]] = {}
    for edition, rows in groups.items():
        task, roles = SUITES[edition.suite].tasks[0].id, dict[str, str]()
        # A plug-in has no names. A baseline that stands for two lines, such as "weighted" and its tuned form, is drawn
        # as the first.
        for role, name in compared.BASELINE_OF.get(edition.suite.removesuffix("-quick"), {}).items():
            roles.setdefault(name, role)
        regret: dict[str, dict[float, Array]] = {
            name: {} for name, role in roles.items() if role not in _FLAT
        }
        for row in rows:
            ranked_here = row.rank and row.entry.track[-4:] != "-few" and row.entry.name in regret
            if ranked_here and 0 < (epsilon := float(row.values("epsilon", task)[0])) < inf:
                regret[row.entry.name][epsilon] = row.values("regret", task)
        curves: dict[str, Curve] = {}
        for name, own in regret.items():
            if means := {at: measures.mean_with_interval(one) for at, one in sorted(own.items())}:
                curves[roles[name]] = curve_of(means)
        span = sorted({epsilon for curve in curves.values() for epsilon in curve[0]})
        flat: dict[str, Curve] = {}
        for name in [one for one, role in roles.items() if role in _FLAT]:
            if found := [row.values("regret", task).mean() for row in rows if row.entry.name == name]:
                flat[roles[name]] = span, [np.mean(found)] * len(span), None
        if curves:
            panels[task + (f", edition {edition.id}" if task in panels else "")] = {**flat, **curves}
    return panels


def _name(edition: Edition, groups: Groups) -> str:
    """Returns the name of an edition's suite, with the edition's id where a suite has several."""
    several = sum(other.suite == edition.suite for other in groups) > 1
    return f"{edition.suite} ({edition.id})" if several else edition.suite


def _epsilon(value: float) -> str:
    return "unknown" if isnan(value) else "\N{INFINITY}" if value == inf else f"{value:.3g}"


def _cells(row: Ranked) -> dict[str, str]:
    bound, epsilons, regret = row.entry.audited, row.values("epsilon"), row.values("regret")
    broken = "" if row.entry.holds else ", claim broken"
    sent = {name: float(row.values(name).mean()) for name in ("messages", "bytes")}
    against, tasks = (regret, row.silence, row.tasks), SUITES[row.entry.suite].tasks
    late, failures, seeds = regret - row.values("half"), "\N{EN DASH}", len(regret) // len(tasks)
    if not np.isnan([late, row.silence]).any():
        count = measures.failures(late, row.silence, row.tasks)
        failures = f"{count} of {late.size} (at most {measures.most_failures(count, late.size):.1%})"
    ratio = {"regret / best silence's": measures.rounded(row.ratio)}
    share = f"{measures.largest_share(regret, row.tasks):.0%}"
    return {
        "rank": str(row.rank or "open"),
        "entry": row.entry.name + (f" ({seeds} seeds)" if seeds < tasks[0].seeds else ""),
        **({"regret": f"{regret.mean():,.4g}"} if isnan(row.ratio[0]) else ratio),
        "median ratio": measures.rounded((measures.median_ratio(regret, row.silence), nan, nan)),
        "worst tenth": measures.rounded((measures.worst_tenth(*against), nan, nan)),
        "failed runs": failures,
        "largest run's share": share,
        # The largest claim on any task; NumPy's maximum of an unknown one, NaN, is NaN.
        "epsilon claimed": _epsilon(float(np.max(epsilons))),
        "audited": "\N{EN DASH}" if bound is None else f"at least {_epsilon(bound)}{broken}",
        # Three significant digits, or an integer from 100 on.
        **{name: f"{mean:,.0f}" if mean >= 100 else f"{mean:.3g}" for name, mean in sent.items()},
    }


def _about(entry: Entry) -> list[str]:
    """Returns the name of an entry, what it is, and its source."""
    if not entry.is_file and entry.name in BASELINES:
        return [entry.name, BASELINES[entry.name].summary, BASELINES[entry.name].reference]
    settings = {
        f"{part}.{name}": value for part, own in entry.settings.items() for name, value in own.items()
    }
    return [entry.name, f"{entry.source} with {settings}", "submitted" if entry.is_file else "settings"]


def _markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in (heads, *rows)]
    # Names and settings of entries are free text, which is not to become part of the page's HTML.
    lines = [escape(f"| {' | '.join(line)} |", quote=False) for line in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])
