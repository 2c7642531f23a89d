"""What the papers say of their results, beside what the reproductions' pages found: figures, and verdicts on them.

`docs/claims.toml` has the sentences. A sentence (a *claim*) names the page that has its figures, and checks: which
cells of the page's CSV file, and between which bounds they have to lie for the sentence to hold. The verdict follows
from the cells' intervals; the file has none, but that something cannot be compared, and why.

Fields of a claim:
    * ``paper``: a key of ``papers``; ``place``: where it stands there; ``quote``: with "[...]" for formulas;
    * ``part``: of the sentence, if the claim is about a part of it;
    * ``page`` and ``checks``: where its figures are, and what they have to be;
    * ``instances``: what finds their number, and what they are, in the page's text, if not as for the paper;
      ``unit``: what they are, if the page's word does not say;
    * ``not_comparable``: the reason; figures may be shown all the same.

Fields of a check:
    * ``says``: what the figure is; ``printed``: the paper's figure;
    * ``where``: the cells; ``over``: by which cells they are divided (as ``where``, but for the fields it has);
    * ``falls``: the field along which each cell is divided by the one before, where all are to be at most 1;
    * ``at_most``, ``at_least`` or ``within``: the bounds;
    * ``number``: what a number without an interval is, ``exact`` or a ``lower bound``.

Fields of cells are ``panel``, ``name`` (without one the sentence, under which pages have what they say of it),
``quantity``, ``x``, and ``row`` (which one, from 0 on, of rows that are alike in these). A list stands for each of its
values.
"""

import csv
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

from fedbandit_envs.papers.reproduction import comparison
from fedbandit_envs.papers.reproduction.comparison import Mean, all_hold

HOLDS, FAILS, UNDECIDED = "holds", "does **not** hold", "undecided"
EXPLORATORY, NOT_COMPARABLE = "exploratory", "not comparable"

_CLAIM = {"paper", "place", "quote", "part", "page", "instances", "unit", "checks", "not_comparable"}
_CHECK = {"says", "printed", "where", "over", "falls", "at_most", "at_least", "within", "number"}
_CELL = {"panel", "name", "quantity", "x", "row"}
_NUMBERS = {"", "exact", "lower bound"}
_RATIOS = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")
_NUMBER = re.compile(r"(-?[\d,]*\.?\d+)(?: ± ([\d,]*\.?\d+))?")


class Check(NamedTuple):
    """A figure, or several, and the bounds between which a sentence has them.

    Attributes:
        says: What the figure is.
        printed: The paper's figure; empty where it prints none.
        figures: Ours, with 95 % intervals.
        low: Lower bound, -inf if there is none.
        high: Upper bound, inf if there is none.
    """

    says: str
    printed: str
    figures: list[Mean]
    low: float
    high: float


class Claim(NamedTuple):
    """A sentence of a paper, or a part of one.

    Attributes:
        paper: The paper's key.
        place: Where it stands there.
        quote: The sentence.
        part: Which part of it is meant; empty for all of it.
        page: Stem of the page that has its figures; empty if none has.
        instances: How many instances that page has; 0 without a page.
        unit: What these are, such as ``markets``.
        checks: What decides it.
        reason: Why it cannot be compared; empty if it can.
        verdict: :data:`HOLDS`, :data:`FAILS`, :data:`UNDECIDED`, :data:`EXPLORATORY` or :data:`NOT_COMPARABLE`.
    """

    paper: str
    place: str
    quote: str
    part: str
    page: str
    instances: int
    unit: str
    checks: list[Check]
    reason: str
    verdict: str


def verdict(checks: Iterable[Check]) -> str:
    """Returns the verdict on a sentence.

    It holds where every whole interval lies between its bounds, and does not where some whole interval lies outside;
    else it is undecided, as where a figure has no interval. From too few instances no verdict follows.

    Args:
        checks: What decides it.
    """
    return all_hold(
        comparison.verdict(figure, check.low, check.high) for check in checks for figure in check.figures
    )


def read(docs: Path) -> tuple[dict[str, dict[str, Any]], list[Claim]]:
    """Returns the papers by key, as the file has them, and all claims.

    Args:
        docs: The folder of the documentation.
    """
    written = tomllib.loads((docs / "claims.toml").read_text())
    papers = {paper["key"]: paper for paper in written["papers"]}
    return papers, [_claim(entry, papers, docs / "reproductions") for entry in written["claims"]]


def _claim(entry: Mapping[str, Any], papers: Mapping[str, Mapping[str, Any]], pages: Path) -> Claim:
    page, reason = entry.get("page", ""), entry.get("not_comparable", "")
    if unknown := {*entry} - _CLAIM:
        raise ValueError(f"{entry['quote']!r} has {sorted(unknown)}, which nothing reads")
    if not reason and not entry.get("checks"):
        raise ValueError(f"{entry['quote']!r} has neither checks nor a reason why it cannot be compared")
    checks: list[Check] = []
    instances, unit = 0, ""
    if page:
        pattern = entry.get("instances") or papers[entry["paper"]]["instances"]
        found = re.search(pattern, (pages / f"{page}.md").read_text())
        if found is None:
            raise ValueError(f"{page}.md does not say its instances as {pattern!r}")
        instances, unit = int(found[1].replace(",", "")), entry.get("unit", found[2])
        cells = Cells(pages / f"{page}.csv", entry["quote"], instances)
        checks = [_check(check, cells) for check in entry["checks"]]
    return Claim(
        entry["paper"],
        entry["place"],
        entry["quote"],
        entry.get("part", ""),
        page,
        instances,
        unit,
        checks,
        reason,
        NOT_COMPARABLE if reason else verdict(checks),
    )


def _check(check: Mapping[str, Any], cells: "Cells") -> Check:
    number = check.get("number", "")
    unknown = {*check} - _CHECK | {*check["where"], *check.get("over", {})} - _CELL | {number} - _NUMBERS
    if unknown:
        raise ValueError(f"the check {check['says']!r} has {sorted(unknown)}, which nothing reads")
    figures = list(cells.figures(check["where"], number))
    low, high = check.get("within", (check.get("at_least", -inf), check.get("at_most", inf)))
    if "falls" in check:
        figures, high = list(_steps(check["where"], check["falls"], cells)), 1.0
    elif "over" in check:
        below = list(cells.figures({**check["where"], **check["over"]}, number))
        # One cell is divided by each of several, or each by the one that corresponds to it.
        figures = [
            quotient(*pair) for pair in zip(figures * (len(below) // len(figures)), below, strict=True)
        ]
    if (low, high) == (-inf, inf):
        raise ValueError(f"{check['says']!r} has no bounds")
    return Check(check["says"], check.get("printed", ""), figures, low, high)


def _steps(where: Mapping[str, Any], field: str, cells: "Cells") -> Iterator[Mean]:
    """Yields each cell divided by the one before along a field."""
    others = {name: values for name, values in where.items() if name != field}
    for rest in _each(others):
        along = cells.figures({**rest, field: where[field]}, "")
        yield from (quotient(after, before) for before, after in pairwise(along))


def quotient(above: Mean, below: Mean) -> Mean:
    """Returns a quotient of two positive figures, with what both intervals allow of it.

    What an interval has below 0 is left out, since the figures are positive; where the divisor's begins there, the
    quotient has no upper bound. Where both are the same, to all their digits, they are from the same runs, and the
    quotient is 1.

    Raises:
        ValueError: Some figure is not above 0.
    """
    if (above.value, above.low, above.high) == (below.value, below.low, below.high):
        return Mean(1.0, 1.0, 1.0, above.instances)
    if min(above.value, below.value) <= 0:
        raise ValueError(f"{above} / {below} is not a quotient of positive figures")
    high = above.high / below.low if below.low > 0 else inf
    return Mean(above.value / below.value, max(above.low, 0.0) / below.high, high, above.instances)


class Cells:
    """The cells of a page's CSV file."""

    def __init__(self, path: Path, quote: str, instances: int) -> None:
        """Reads them.

        Args:
            path: The CSV file.
            quote: The sentence that they are to decide.
            instances: How many instances they are from.
        """
        with path.open(newline="", encoding="utf-8") as file:
            self._rows = list(csv.DictReader(file))
        self._page, self._quote, self._instances = path.stem, quote, instances

    def figures(self, where: Mapping[str, Any], number: str) -> Iterator[Mean]:
        """Yields the figures of cells.

        Args:
            where: Fields of the cells.
            number: What a number without an interval is.

        Raises:
            ValueError: There is not one row for a cell, or no number in it.
        """
        for cell in _each({"name": f'"{self._quote}"', **where}):
            row = self._row(cell)
            found = _measured(row, self._instances) or _read_off(row["printed"], number, self._instances)
            if not found:
                raise ValueError(f"{self._page}.csv has no number at {cell}")
            yield from found

    def _row(self, cell: Mapping[str, Any]) -> dict[str, str]:
        rows = [
            row for row in self._rows if all(row[key] == cell[key] for key in ("panel", "name", "quantity"))
        ]
        if "x" in cell:
            rows = [row for row in rows if row["x"] and float(row["x"]) == cell["x"]]
        if "row" in cell:
            rows = rows[cell["row"] :][:1]
        if len(rows) != 1:
            raise ValueError(f"{self._page}.csv has {len(rows)} rows at {dict(cell)}; 1 is required")
        return rows[0]


def _each(where: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the fields of each cell: a list stands for each of its values."""
    lists = [value if isinstance(value, list) else [value] for value in where.values()]
    yield from (dict(zip(where, values, strict=True)) for values in product(*lists))


def _measured(row: Mapping[str, str], instances: int) -> list[Mean]:
    """Returns the figure that a row has in numbers, if it has an interval there."""
    if not row["low"]:
        return []
    ends = (float(row[name]) if row[name] else nan for name in ("value", "low", "high"))
    return [Mean(*ends, instances)]


def _read_off(printed: str, number: str, instances: int) -> list[Mean]:
    """Returns the figures in what the page prints: all ratios with their intervals, or else the first number."""
    ratios = [Mean(*map(float, found), instances) for found in _RATIOS.findall(printed)]
    first = _NUMBER.match(printed)
    if ratios or first is None:
        return ratios
    value, half = (float((part or "nan").replace(",", "")) for part in first.groups())
    ends = {"exact": (value, value), "lower bound": (value, inf)}.get(number, (value - half, value + half))
    return [Mean(value, *ends, instances)]
