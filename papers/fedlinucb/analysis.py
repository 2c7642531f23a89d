"""Tables, ratios and curves of the page on FedLinUCB."""

from typing import Any

import numpy as np

from fedbandit_envs.papers.fedlinucb.experiments import MEANINGS
from fedbandit_envs.papers.reproduction.comparison import Mean, mean_of, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table

_DIM = 15


def at_horizon(runs: PanelRuns, rival: str) -> Table:
    """Yields a table with a line for each algorithm: regret and messages of all agents together at the horizon T.

    Args:
        runs: The results of one panel.
        rival: Name of the algorithm by whose regret the others' regret is divided.
    """
    for name, result in runs.by("line").items():
        sent = "-" if result.messages is None else mean_of(result.messages[-1].sum(axis=1), ",.0f")
        yield {
            "algorithm": name,
            "what it does": MEANINGS[name],
            "regret at T (± 95 %)": mean_of(result.regret[-1].sum(axis=1), ",.0f"),
            f"/ {rival}": "1" if name == rival else ratio(result, runs[rival]),
            "messages at T (± 95 %)": sent,
        }


def curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns curves over rounds, by algorithm: the sum over agents of regret, or of messages in panels on messages."""
    about, curves = "messages" if runs.panel.startswith("messages") else "regret", {}
    for name, result in runs.by("line").items():
        if getattr(result, about) is not None:
            points = zip(result.rounds, getattr(result, about).sum(axis=2), strict=True)
            curves[name] = {at: mean_of(values) for at, values in points}
    return curves


def communication(result: Any) -> dict[str, float]:
    """Compares the number of messages with the paper's bound d M^2, for dimension d and M agents.

    Args:
        result: The result of a run whose agents send messages.

    Returns:
        ``bound``: d M^2; ``share``: messages until the horizon T, divided by the bound; ``growth``: messages until T,
        divided by messages until T / 10.
    """
    bound = _DIM * result.regret.shape[2] ** 2
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    total = result.messages.sum(axis=2).mean(axis=1)
    return {"bound": bound, "share": total[-1] / bound, "growth": total[-1] / max(total[early], 1)}
