"""How numbers are written in the tables of the page and of the Markdown file."""

from math import floor, inf, isnan, log10, nan

from fedbandit_envs.leaderboard.board.report.rows import Row, Spent
from fedbandit_envs.leaderboard.board.scores import Estimate

ABSENT = "\N{EN DASH}"
"""Where there is nothing to say."""


def estimate(value: Estimate, least: int = 2) -> str:
    """Writes a number and its interval, if it has one, to the first digit of its half width.

    Args:
        value: The number.
        least: The fewest decimals; the most are five.
    """
    if isnan(value.value):
        return ABSENT
    half = (value.high - value.low) / 2
    decimals = least if isnan(half) or half <= 0 else min(max(-floor(log10(half)), least), 5)
    # No zero below zero.
    ends = [round(float(end), decimals) + 0.0 for end in value if not isnan(end)]
    number, *interval = (f"{end:.{decimals}f}" for end in ends)
    return f"{number} [{interval[0]}, {interval[1]}]" if interval else number


def epsilon(value: float) -> str:
    """Writes an epsilon: 0 where nothing leaves, the sign of infinity where nothing is promised."""
    if isnan(value):
        return "unknown"
    return "\N{INFINITY}" if value == inf else f"{value:.3g}"


def claimed(spent: Spent) -> str:
    """Writes a claim with its delta."""
    at = (
        f" (\N{GREEK SMALL LETTER DELTA} {spent.claim['delta']:.3g})"
        if spent.claim and 0 < spent.epsilon < inf
        else ""
    )
    return epsilon(spent.epsilon) + at


def audited(row: Row) -> tuple[float, str]:
    """Returns the largest lower bound that attacks showed, NaN without an attack, and writes it."""
    if not row.audits:
        return nan, ABSENT
    # Infinity is a word, which float reads.
    worst = max(float(audit["lower_bound"]) for audit in row.audits)
    broken = not all(audit["holds"] for audit in row.audits)
    return worst, f"at least {epsilon(worst)}" + (", claim broken" if broken else "")


def amount(number: float) -> str:
    """Writes messages, bytes or seconds with three digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
