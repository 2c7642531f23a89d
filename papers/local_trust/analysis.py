"""Tables and curves of the pages on Zhou and Chowdhury's federations."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from fedbandit_envs.papers.local_trust.experiments import (
    BASELINE_OF,
    LADDER,
    LOCAL,
    MOST,
    RELEASED,
    SILENT,
    TRUE,
    TWIN,
)
from fedbandit_envs.papers.reproduction.comparison import (
    Ratio,
    final_regret,
    over_line,
    ratio,
    regret_by_instance,
)
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table
from fedbandit_envs.papers.trust.analysis import against_fellow

TARGETS = {(LOCAL, SILENT): 0.55, (LOCAL, RELEASED): 0.08, (MOST, TRUE): 1.25}
"""Largest ratios of two lines' regret that were set as targets before the runs."""


def figure_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each federation of a figure: regret, the twin's regret, and the claim."""
    twins = {line: f"{regret:.0f}" for (panel, line), regret in TWIN.items() if panel == runs.panel}
    for line, result in runs.by("line").items():
        regret = final_regret(result)
        yield {
            "line": line,
            "baseline": BASELINE_OF[line],
            "regret per agent (± 95 %)": regret,
            "regret per agent and round": f"{regret.value / result.rounds[-1]:.4f}",
            **({"numpy twin": twins.get(line, "-")} if twins else {}),
            "/ silence": "1" if line == SILENT else ratio(result, runs[SILENT]),
            "claim against a fellow agent": against_fellow(result),
        }


def settings_of(runs: PanelRuns) -> list[PanelRuns]:
    """Returns the results under each delta, each with the lines that have no delta."""
    free = runs.where(delta=None).rows
    return [PanelRuns(runs.plan, [*free, *runs.where(delta=delta).rows]) for delta in runs.values("delta")]


def order_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each line of a panel: regret, its ratios to silence and true data, and the claim.

    Args:
        runs: Results under one delta.
    """
    found = runs.by("line")
    for line in sorted(found, key=lambda line: float(regret_by_instance(found[line]).mean())):
        yield {
            "line": line,
            "baseline": BASELINE_OF[line],
            "regret per agent (± 95 %)": final_regret(found[line]),
            "/ silence": "1" if line == SILENT else ratio(found[line], found[SILENT]),
            "/ true data": "1" if line == TRUE else ratio(found[line], found[TRUE]),
            "claim against a fellow agent": against_fellow(found[line]),
        }


def steps(runs: PanelRuns) -> list[tuple[str, Ratio]]:
    """Returns the ratio of each line's regret to that of the next one, which trusts less, after the names of both."""
    found = runs.by("line")
    return [(f"{below} / {above}", ratio(found[below], found[above])) for below, above in pairwise(LADDER)]


def curves(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns a curve for each line over the panel's quantity: regret, divided by that of silence.

    In the panel ``order`` the quantity is delta, in the panel ``level`` epsilon.
    """
    column = {"order": "delta", "level": "epsilon"}.get(runs.panel, runs.panel)
    return over_line(runs.lines(column, _named), SILENT)


def _named(labels: Mapping[str, Any]) -> str:
    return f"{labels['line']}, delta {labels['delta']:g}" if "delta" in labels else str(labels["line"])
