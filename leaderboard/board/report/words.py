"""How numbers are written in the tables of the page and of the Markdown file."""

from math import inf, isnan

from fedbandit_envs.leaderboard.board.report.rows import Row, Spent
from fedbandit_envs.leaderboard.board.scores import Estimate

ABSENT = "\N{EN DASH}"
"""Where there is nothing to say."""


def estimate(value: Estimate, spec: str = ".3f") -> str:
    """Writes a number and its interval, if it has one."""
    if isnan(value.value):
        return ABSENT
    text = format(float(value.value), spec)
    return text if isnan(value.low) else f"{text} [{value.low:{spec}}, {value.high:{spec}}]"


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
    bounds = [(audit.get("lower_bound"), audit.get("holds")) for audit in row.audits]
    if not bounds:
        return float("nan"), ABSENT
    # A bound is null where it is infinite.
    worst = max(inf if bound is None else float(bound) for bound, _ in bounds)
    broken = any(holds is False for _, holds in bounds)
    return worst, f"at least {epsilon(worst)}" + (", claim broken" if broken else "")


def amount(number: float) -> str:
    """Writes messages, bytes or seconds with three digits."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
