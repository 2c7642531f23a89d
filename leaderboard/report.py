"""Ranks the rows of a table, and writes them as Markdown tables and a picture.

A run is one task played under one seed. Runs of different entries are in the same order, to compare them under the same
seeds. Confidence intervals are from the percentile bootstrap, stratified by task: seeds are resampled within each task,
and tasks are not resampled (Agarwal et al., NeurIPS 2021).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.util import find_spec
from itertools import groupby
from math import floor, inf, isnan, log10, nan
from pathlib import Path

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines import comparison_lines as compared
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.plots import Curve, figure_of
from fedbandit_envs.experiments.result import Estimate, bootstrapped
from fedbandit_envs.experiments.store import write_whole
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, Edition
from fedbandit_envs.leaderboard.table import Entry, Line, ResultTable
from fedbandit_envs.registry.registration import REGISTRY

UNKNOWN: Estimate = (nan, nan, nan)

Groups = Mapping[Edition, Sequence["Ranked"]]
"""Ranked rows by their edition, see :func:`ranked`."""

_INTRODUCTION = """# All rows of the leaderboard

Made by `fedbandit leaderboard report` from `results.csv.gz` and `entries.json`. [The
leaderboard](../leaderboard.md#columns) says what columns mean, [the last section](#entries) what entries are."""

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


def rounded(value: Estimate) -> str:
    """Returns an estimate and its interval as the text ``number [low, high]``; a dash if it is unknown.

    The interval decides the digits: the last one counts units of 1/20 to 1/2 of the interval's half-width. Without an
    interval, or with one that is empty, there are three significant digits, and for numbers below 1 two decimals.
    """
    centre, low, high = value
    if isnan(centre):
        return "\N{EN DASH}"
    half, size = (high - low) / 2, abs(centre)
    if half > max(1e-5, 1e-9 * size):
        # The small factor keeps half-widths such as 0.02, which rounding errors may make smaller, on one side.
        decimals = -floor(log10(half * (1 + 1e-6) / 2))
    else:
        decimals = max(2 - floor(log10(size)), 0) if size >= 1 else 2
    # Adding 0.0 turns -0.0 into 0.0.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:,.{max(decimals, 0)}f}" for end in ends)
    return f"{number} [{', '.join(interval)}]" if interval else number


def _middle_mean(values: Array) -> Array:
    """Returns the mean over the last axis without the lowest and the highest quarter; unknown if one is."""
    cut = (count := values.shape[-1]) // 4
    middle = np.partition(values, (cut, count - cut - 1))[..., cut : count - cut]
    return np.where(np.isnan(values).any(axis=-1), nan, middle.mean(axis=-1))


def regret_ratio(mine: Array, other: Array, tasks: Array) -> Estimate:
    """Returns the typical ratio of one entry's regret to another's under the same seeds, with its 95 % interval.

    It is the exponential of the interquartile mean of the logarithms of all runs' ratios, so that a ratio of 2 and one
    of 1/2 average to 1. No regret, or less, has the ratio 0.

    Args:
        mine: Regret of the one entry's runs, ``(runs,)``.
        other: Regret of the other entry's runs on the same tasks and seeds, same shape.
        tasks: Index of each run's task, same shape.
    """
    above, below = np.maximum((mine, other), np.finfo(np.float64).tiny)
    return bootstrapped(lambda each: np.exp(_middle_mean(each)), tasks, np.log(above / below))


@dataclass(frozen=True)
class Ranked:
    """A row of the leaderboard, ranked against the others of its suite and edition.

    Attributes:
        entry: The entry.
        lines: Its runs, task by task, in the order of the edition's seeds.
        score: Interquartile mean of 1 - regret / regret of the suite's reference, which acts at random; unknown if that
            was not run.
        ratio: Typical ratio of the regret to that of tuned silence; unknown if that was not run.
        rank: Rank on the track, from 1; 0 for an open row, which has none.
    """

    entry: Entry
    lines: list[Line]
    score: Estimate
    ratio: Estimate
    rank: int = 0

    def values(self, name: str, task: str = "") -> Array:
        """Returns one measure of all runs, or of one task's runs, float64 ``(runs,)``.

        Args:
            name: A numeric field of :class:`~.table.Line`.
            task: Id of the task; empty for all.
        """
        return np.array([getattr(line, name) for line in self.lines if task in ("", line.task)], np.float64)


def lines_of(suite: str) -> dict[str, str]:
    """Returns the names of the baselines with which private ones of a suite are compared, by their role.

    Roles are agents that send nothing, with default and with tuned constants; a placebo, whose messages carry no data;
    and a federation without noise, with the constants of tuned silence and with its own, if they differ. Empty for
    suites of environments that other packages add.
    """
    # "fedbandit_envs.linear.env:LinearEnv" is of the problem "linear", and a problem may have several suites.
    package, problem, *_ = REGISTRY[SUITES[suite].tasks[0].env_id].federation.split(".")
    named = compared.BASELINE_OF.get(problem, {}) if package == "fedbandit_envs" else {}
    roles = (compared.SILENT, compared.TUNED, compared.PLACEBO, compared.TRUE, compared.TRUE_TUNED)
    # Where both forms on true data are the same baseline, it has the first of the two roles.
    role_of = {named[role]: role for role in reversed(roles) if named}
    return {role: name for name, role in reversed(role_of.items())}


def ranked(table: ResultTable) -> dict[Edition, list[Ranked]]:
    """Scores and ranks the finished rows of each suite and edition on each track: by score, or by regret without it.

    Open rows have no rank and come after the ranked rows of their track.

    Returns:
        The rows of each edition, sorted by track and rank; editions are in the order of :data:`.suites.SUITES`.

    Raises:
        BoardError: Runs are missing in a row, or are twice in it, or its suite has changed since.
    """
    runs, order = {row: table.runs_of(row) for row in table.lines}, list(SUITES)
    groups: dict[Edition, list[tuple[Entry, list[Line]]]] = {}
    for row in sorted(runs, key=lambda row: (order.index(row.suite), row)):
        groups.setdefault(table.editions[row.edition], []).append((table.entries[row], runs[row]))
    return {edition: _ranked(rows, edition.suite) for edition, rows in groups.items()}


def _ranked(rows: list[tuple[Entry, list[Line]]], suite: str) -> list[Ranked]:
    reference = _regret_of(rows, SUITES[suite].reference)
    tuned = _regret_of(rows, lines_of(suite).get(compared.TUNED, ""))
    seeds = [task.seeds for task in SUITES[suite].tasks]
    tasks = np.repeat(np.arange(len(seeds)), seeds)
    unranked = []
    for entry, lines in rows:
        regret = np.array([line.regret for line in lines])
        score = UNKNOWN if reference is None else bootstrapped(_middle_mean, tasks, 1 - regret / reference)
        ratio = UNKNOWN if tuned is None else regret_ratio(regret, tuned, tasks)
        place = float(regret.mean()) if reference is None else -score[0]
        unranked.append((entry.track, entry.is_open, place, entry.name, Ranked(entry, lines, score, ratio)))
    places: Counter[str] = Counter()
    ordered = []
    for track, is_open, *_, row in sorted(unranked, key=lambda one: one[:4]):
        places[track] += 1
        ordered.append(row if is_open else replace(row, rank=places[track]))
    return ordered


def _regret_of(rows: list[tuple[Entry, list[Line]]], name: str) -> Array | None:
    """Returns the regret of all runs of a baseline, which no track changes; None if it was not run."""
    found = sorted((entry.is_open, number) for number, (entry, _) in enumerate(rows) if entry.name == name)
    return np.array([line.regret for line in rows[found[0][1]][1]]) if found else None


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


def markdown(groups: Groups) -> str:
    """Returns the text of ``leaderboard.md``: a ranking for each suite, edition and track, and what entries are."""
    parts = [_INTRODUCTION, best(groups)]
    for edition, rows in groups.items():
        tasks = ", ".join(f"`{task.id}` ({task.seeds} seeds)" for task in SUITES[edition.suite].tasks)
        parts.append(f"## {_name(edition, groups)}\n\nTasks: {tasks}; edition {edition.id}.")
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
        task, levels = SUITES[edition.suite].tasks[0].id, lines_of(edition.suite)
        names = compared.BASELINE_OF.get(edition.suite.removesuffix("-quick"), {})
        regret: dict[str, dict[float, Array]] = {}
        for row in rows:
            ranked_here = row.rank and row.entry.track[-4:] != "-few"
            if ranked_here and 0 < (epsilon := float(row.values("epsilon", task)[0])) < inf:
                regret.setdefault(row.entry.name, {})[epsilon] = row.values("regret", task)
        curves: dict[str, Curve] = {}
        for line, name in names.items():
            # A baseline that stands for two lines, such as "weighted" and its tuned form, is drawn as the first.
            own = sorted(regret.pop(name, {}).items())
            if own and name not in levels.values():
                means = [
                    bootstrapped(lambda each: each.mean(axis=-1), np.zeros(len(one)), one) for _, one in own
                ]
                y, low, high = np.transpose(means)
                curves[line] = [epsilon for epsilon, _ in own], y, (y - low, high - y)
        span = sorted({epsilon for curve in curves.values() for epsilon in curve[0]})
        flat: dict[str, Curve] = {}
        for line, name in levels.items():
            if found := [row.values("regret", task).mean() for row in rows if row.entry.name == name]:
                flat[line] = span, [np.mean(found)] * len(span), None
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
    bound, epsilons = row.entry.audited, row.values("epsilon")
    broken = "" if row.entry.holds else ", claim broken"
    sent = {name: float(row.values(name).mean()) for name in ("messages", "bytes")}
    return {
        "rank": str(row.rank or "open"),
        "entry": row.entry.name,
        "regret / tuned silence's": rounded(row.ratio),
        "score": rounded(row.score),
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
