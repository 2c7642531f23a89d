"""Tables of the pages on servers that compute."""

from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.reproduction.comparison import Mean, Ratio, mean_of, over_line, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table
from fedbandit_envs.papers.servers.experiments import SILENT
from fedbandit_envs.papers.trust.analysis import against_fellow
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES


def sent(result: RunResult) -> tuple[Array, Array]:
    """Returns messages of all agents, up and down, and the numbers of 64 bits that they hold, each ``(seeds,)``."""
    if not result.traffic:
        nothing = np.zeros(result.regret.shape[1])
        return nothing, nothing
    messages, size = (np.asarray(result.traffic[name].sum(axis=1)) for name in ("messages", "bytes"))
    return messages, (size - HEADER_BYTES * messages) / 8


def cost_table(runs: PanelRuns, rival: str) -> Table:
    """Yields a table with a line for each run: regret of all agents, also over a rival's, messages and numbers sent.

    Args:
        runs: The results of a panel, or of one problem in it.
        rival: Name of the line by whose regret the others' regret is divided.
    """
    for row in runs.rows:
        messages, numbers = sent(row.result)
        line = str(row.labels["line"])
        line += "".join(f", {of} {row.labels[of]:g}" for of in ("factor", "agents") if of in row.labels)
        yield {
            "algorithm": line,
            "regret (± 95 %)": mean_of(row.result.regret[-1].sum(axis=1), ",.0f"),
            f"/ {rival}": _over(runs, row.result, rival, row.labels),
            "messages": mean_of(messages, ",.0f"),
            "numbers sent": mean_of(numbers, ",.0f"),
        }


def _over(runs: PanelRuns, result: RunResult, rival: str, labels: Any) -> Any:
    of = {name: value for name, value in labels.items() if name != "line"}
    other = runs.one(rival, **of)
    return "1" if other is result else ratio(result, other)


def regrets(runs: PanelRuns) -> dict[str, dict[Any, Mean]]:
    """Returns curves of regret of all agents over rounds, by algorithm, and by problem if there are several."""
    found = {}
    for row in runs.rows:
        points = zip(row.result.rounds, row.result.regret.sum(axis=2), strict=True)
        name = ", ".join(str(row.labels[of]) for of in ("line", "problem") if of in row.labels)
        found[name] = {at: mean_of(values) for at, values in points}
    return found


def curves(runs: PanelRuns, column: str) -> dict[str, dict[Any, Mean]]:
    """Returns curves of regret per agent over a quantity, a label, by algorithm."""
    return {
        line: {x: mean_of(result.regret[-1].mean(axis=1)) for x, result in points.items()}
        for line, points in runs.lines(column).items()
    }


def privacy_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each run: regret, also over silence's, and the claim against a fellow agent."""
    for row in runs.rows:
        epsilon = f", epsilon {row.labels['epsilon']:g}" if "epsilon" in row.labels else ""
        yield {
            "line": f"{row.labels['line']}{epsilon}",
            "regret (± 95 %)": mean_of(row.result.regret[-1].sum(axis=1), ",.0f"),
            "/ silence": _over(runs, row.result, SILENT, {}),
            "claim against a fellow agent": against_fellow(row.result),
        }


def privacy_curves(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns curves of regret over epsilon, divided by silence's, by line."""
    return over_line(runs.lines("epsilon"), SILENT)
