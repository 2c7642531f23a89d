"""Tables of the pages on unlike agents."""

from dataclasses import replace
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.reproduction.comparison import (
    ENOUGH,
    Mean,
    Ratio,
    compare,
    mean_of,
    over_rounds,
    ratio,
)
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table
from fedbandit_envs.papers.trust.analysis import against_fellow
from fedbandit_envs.papers.unlike.experiments import PLAIN, READ_OFF, RELEASED


def regret_at(result: RunResult, horizon: float) -> Array:
    """Returns regret of all agents until a horizon, ``(seeds,)``; what is not simulated goes on as it did at the end.

    Args:
        result: The result of a run that may have ended before the horizon.
        horizon: T.
    """
    regret = result.regret.sum(axis=2)
    return np.asarray(regret[-1] + (horizon - result.rounds[-1]) * slope(result))


def summed_over_rounds(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns for each line the curve of cumulative regret of all agents together over rounds."""
    return {
        row.labels["line"]: over_rounds(
            replace(row.result, regret=row.result.regret.sum(axis=2, keepdims=True))
        )
        for row in runs.rows
    }


def slope(result: RunResult) -> Array:
    """Returns regret of all agents in a round at the end of a run, ``(seeds,)``: over the last tenth of its rounds."""
    regret = result.regret.sum(axis=2)
    before = int(np.searchsorted(result.rounds, 0.9 * result.rounds[-1]))
    before = min(before, len(result.rounds) - 2)
    return np.asarray((regret[-1] - regret[before]) / (result.rounds[-1] - result.rounds[before]))


def cost(result: RunResult) -> Array:
    """Returns what communication costs at 1 for an agent's message up and down together, ``(seeds,)``."""
    if result.messages is None:
        return np.zeros(result.regret.shape[1])
    return np.asarray(result.messages[-1].sum(axis=1) / 2)


def total(result: RunResult, horizon: float) -> Array:
    """Returns regret of all agents until a horizon and the cost of their messages, ``(seeds,)``."""
    return regret_at(result, horizon) + cost(result)


def horizon_of(runs: PanelRuns, result: RunResult) -> float:
    """Returns the horizon T of a result, which is among its labels."""
    return float(next(row.labels["horizon"] for row in runs.rows if row.result is result))


def unsettled(result: RunResult) -> str:
    """Returns in how many runs agents still had regret in the last tenth of the rounds, as text."""
    regretting = slope(result) > 1e-9
    return f"{int(regretting.sum())} of {regretting.size}"


def released(line: str, horizon: float) -> str:
    """Returns the regret in runs of the authors' released program or of a plain one, with its interval, as text."""
    if (line, horizon) in RELEASED:
        value, half = RELEASED[line, horizon]
        return f"{value:,.0f} ± {half:,.0f}"
    if (line, horizon) in PLAIN:
        value, half = PLAIN[line, horizon]
        return f"{READ_OFF[line, horizon]:,.0f} (read off); plain program {value:,.0f} ± {half:,.0f}"
    return "-"


def agrees(line: str, horizon: float, result: RunResult) -> str:
    """Returns whether our mean and the other program's differ by no more than both intervals together, as text."""
    if (line, horizon) not in {**PLAIN, **RELEASED}:
        return "-"
    value, half = {**PLAIN, **RELEASED}[line, horizon]
    own = mean_of(total(result, horizon))
    close = abs(own.value - value) <= float(np.hypot(half, (own.high - own.low) / 2))
    return "exploratory" if own.instances < ENOUGH else "agrees" if close else "does **not** agree"


def regret_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm (and aim): regret, messages, and the released program's number."""
    for row in runs.rows:
        result, horizon = row.result, row.labels["horizon"]
        line = str(row.labels["line"])
        line += "".join(f", {of} {row.labels[of]:g}" for of in ("alpha", "epsilon") if of in row.labels)
        known = {"released program": released(line, horizon), "joint interval": agrees(line, horizon, result)}
        yield {
            "line": line,
            "T": f"{horizon:,.0f}",
            "regret (± 95 %)": mean_of(regret_at(result, horizon), ",.0f"),
            "median": f"{np.median(regret_at(result, horizon)):,.0f}",
            "messages": mean_of(cost(result), ",.0f"),
            "regret and messages (± 95 %)": mean_of(total(result, horizon), ",.0f"),
            # What is known is not of the user's means.
            **(known if runs.panel != "films" else {}),
            "still regretting": unsettled(result),
        }


def private_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm: regret without messages, over silence's, and the claim."""
    silence = runs["silence, tuned"]
    for row in runs.rows:
        epsilon = f", epsilon {row.labels['epsilon']:g}" if "epsilon" in row.labels else ""
        yield {
            "line": f"{row.labels['line']}{epsilon}",
            "regret (± 95 %)": mean_of(row.result.regret[-1].sum(axis=1), ",.0f"),
            "/ silence": "1" if row.result is silence else ratio(row.result, silence),
            "claim against a fellow agent": against_fellow(row.result),
        }


def over(runs: PanelRuns, above: str, below: str) -> Ratio:
    """Returns the ratio of two lines' regret, without messages, over the same seeds.

    Args:
        runs: The results of a panel, or of one aim.
        above: Name of the line whose regret is divided.
        below: Name of the line by whose regret it is divided.
    """
    one, two = runs[above], runs[below]
    return compare(regret_at(one, horizon_of(runs, one)), regret_at(two, horizon_of(runs, two)))


def curves(runs: PanelRuns, column: str) -> dict[str, dict[float, Mean]]:
    """Returns a curve for each line over a quantity: regret with messages.

    Args:
        runs: The results of a panel.
        column: Name of the quantity, a label.
    """
    return {
        line: {x: mean_of(total(result, horizon_of(runs, result)), ",.0f") for x, result in points.items()}
        for line, points in runs.lines(column).items()
    }


def constant_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each constant: regret and messages together, and runs that end on a wrong arm."""
    for constant in runs.values("constant"):
        row: dict[str, Any] = {"constant": f"{constant:g}"}
        for line, result in runs.where(constant=constant).by("line").items():
            both = total(result, horizon_of(runs, result))
            row[f"{line}, regret and messages (± 95 %)"] = mean_of(both, ",.0f")
            row[f"{line}, median of both"] = f"{np.median(both):,.0f}"
            row[f"{line}, still regretting"] = unsettled(result)
        yield row
