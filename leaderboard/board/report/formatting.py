"""Numbers as text, for the tables of the page and of the Markdown file."""

import json
from collections.abc import Mapping
from math import floor, inf, isnan, log10, nan
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.board.report.rows import RankedRow, Spent
from fedbandit_envs.leaderboard.board.scores import Estimate

ABSENT = "\N{EN DASH}"
"""Text of a cell without a value."""

_LEAST_SCORE = -0.5
"""Left end of the scale on which intervals of scores are drawn; 0 is acting at random, 1 no regret."""


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


def sort_value(number: float) -> str:
    """Returns the text by which ``page.js`` sorts a cell; empty for NaN, which is sorted last."""
    return "" if isnan(number) else "Infinity" if number == inf else f"{number:.6g}"


def bar(score: Estimate) -> tuple[float, float, float]:
    """Returns a score and its interval as percentages of the drawn scale: left end, width, and the score itself."""
    ends = [score.value] * 3 if isnan(score.low) else [score.low, score.value, score.high]
    low, middle, high = 100 * (np.clip(ends, _LEAST_SCORE, 1) - _LEAST_SCORE) / (1 - _LEAST_SCORE)
    return low, max(high - low, 0.5), middle


def plain(values: Mapping[str, Any]) -> str:
    """Returns names and values as a list in words; empty mappings and None are left out."""
    kept = {name: value for name, value in values.items() if value not in ({}, None)}
    return ", ".join(f"{n} {v if isinstance(v, str) else json.dumps(v)}" for n, v in kept.items())


def claim(said: Mapping[str, Any]) -> str:
    """Returns a result's claim as a sentence."""
    value = nan if said["epsilon"] is None else float(said["epsilon"])
    return (
        f"{said['adjacency']}, {said['composition']}: epsilon {epsilon(value)} at delta {said['delta']:.3g}, "
        f"trust {said['trust']}" + (f": {said['reason']}" if said["reason"] else "")
    )


def audit(said: Mapping[str, Any]) -> str:
    """Returns the outcome of an attack as a sentence, without the claim, which stands among the claims."""
    own = {name: value for name, value in said.items() if name != "claim"}
    return plain({**own, "lower_bound": epsilon(float(own["lower_bound"]))})
