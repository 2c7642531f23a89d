"""The table of all rows, which can be sorted and filtered."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import inf, isnan
from typing import Literal, NamedTuple

from fedbandit_envs.leaderboard.board.report.rows import Group, Row, group_of
from fedbandit_envs.leaderboard.board.report.words import amount, audited, epsilon, estimate
from fedbandit_envs.leaderboard.board.scores import Estimate
from fedbandit_envs.leaderboard.reproduction.private_federation import TUNED

_LEAST = -0.5
"""Where the scale of drawn intervals begins; 0 is acting at random."""


class _Column(NamedTuple):
    """A head, and what it says to who asks; ``first`` is how it is sorted when it is pressed first."""

    head: str
    title: str
    first: Literal["ascending", "descending"] = "ascending"


_COLUMNS = (
    _Column("Rank", "among all on the same track of the same edition"),
    _Column("Entry", "leads to its command, claims and machine"),
    _Column("Suite", "and its edition where there are several"),
    _Column("Track", "what was allowed"),
    _Column("Score", "1 - regret / regret at random: interquartile mean, 95 % interval", "descending"),
    _Column(f"Better than {TUNED}", "probability that a run scores higher, 95 % interval", "descending"),
    _Column(
        f"Score over {TUNED}", "difference of interquartile means, in pairs, 95 % interval", "descending"
    ),
    _Column("Epsilon claimed", "for all releases of an agent together, on the worst task"),
    _Column("Epsilon audited", "lower bound that an attack on the mechanism showed"),
    _Column("Messages", "of an agent in an episode"),
    _Column("Bytes", "of an agent in an episode"),
    _Column("CPU s", "of all tasks"),
)


def suite_label(row: Row, groups: Iterable[Group]) -> str:
    """Names a row's suite, with version and edition where there are several."""
    suite, version, edition = group_of(row.result)
    alone = sum(other[0] == suite for other in groups) == 1
    return suite if alone else f"{suite} {version} ({edition})"


def identity(row: Row) -> str:
    """Returns the id of a row's details."""
    suite, version, edition = group_of(row.result)
    return f"{suite}-{version}-{edition}-{row.result.track}-{row.result.entry.kind}-{row.name}"


def ranking(groups: Mapping[Group, Sequence[Row]]) -> str:
    """Returns the filters and the table."""
    every = [(row, suite_label(row, groups)) for rows in groups.values() for row in rows]
    heads = "".join(
        f'<th scope="col" aria-sort="none" data-first="{column.first}"><button type="button" '
        f'title="{escape(column.title)}">{escape(column.head)}</button></th>'
        for column in _COLUMNS
    )
    body = "\n".join(_line(row, label) for row, label in every)
    choices = (
        ("suite", "Suite", (label for _, label in every)),
        ("track", "Track", (row.result.track for row, _ in every)),
        ("kind", "Kind", (row.result.entry.kind for row, _ in every)),
    )
    return (
        '<form id="filters" role="search" aria-label="Filter rows">'
        + "".join(_choice(name, text, found) for name, text, found in choices)
        + '<label>Entry <input type="search" id="filter-name" autocomplete="off" placeholder="part of it"></label>'
        '<button type="reset">Show all</button></form>'
        '<p id="count" role="status"></p>'
        '<div class="scroll" role="region" aria-label="All rows" tabindex="0"><table id="ranking">'
        "<caption>Press a head to sort by it.</caption>"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _choice(name: str, text: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in sorted(set(values)))
    return f'<label>{text} <select id="filter-{name}"><option value="">all</option>{options}</select></label>'


def _line(row: Row, suite: str) -> str:
    result = row.result
    bound, audit = audited(row)
    link = f'<a href="#{escape(identity(row))}">{escape(row.name)}</a>'
    mark = ' <span class="submitted">submitted</span>' if result.entry.kind == "submission" else ""
    numbers = (
        _number(float(row.score.value), f"{escape(estimate(row.score))}{_bar(row.score)}"),
        _number(float(row.better.value), escape(estimate(row.better))),
        _number(float(row.over.value), escape(estimate(row.over))),
        _number(row.spent.epsilon, escape(epsilon(row.spent.epsilon))),
        _number(bound, escape(audit)),
        *(_number(row.traffic(kind), amount(row.traffic(kind))) for kind in ("messages", "bytes")),
        _number(row.cpu_seconds, amount(row.cpu_seconds)),
    )
    return (
        f'<tr data-suite="{escape(suite)}" data-track="{escape(result.track)}" data-kind="{result.entry.kind}" '
        f'data-name="{escape(row.name.lower())}">'
        + _number(row.rank, str(row.rank))
        + f'<th scope="row">{link}{mark}</th><td>{escape(suite)}</td><td>{escape(result.track)}</td>'
        + "".join(numbers)
        + "</tr>"
    )


def _number(value: float, written: str) -> str:
    """Returns a cell; one without a value is sorted last."""
    sort = "" if isnan(value) else "Infinity" if value == inf else f"{value:.6g}"
    return f'<td class="number" data-value="{sort}">{written}</td>'


def _bar(score: Estimate) -> str:
    """Draws an interval on a scale from :data:`_LEAST` to 1; the number beside it says the same."""
    if isnan(score.value):
        return ""
    ends = [score.low, score.value, score.high] if not isnan(score.low) else [score.value] * 3
    low, middle, high = (100 * (min(max(float(end), _LEAST), 1.0) - _LEAST) / (1 - _LEAST) for end in ends)
    return (
        f'<span class="bar" aria-hidden="true"><i style="left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%"></i>'
        f'<b style="left:{middle:.1f}%"></b></span>'
    )
