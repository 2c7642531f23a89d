"""Tables, ratios and curves of the page on FedLinUCB."""

from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Mean, ratio
from fedbandit_envs.leaderboard.reproduction.page import Table, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.fedlinucb.experiments import MEANINGS

_DIM = 15


def at_horizon(runs: PanelRuns, rival: str) -> Table:
    """Yields the table of what all agents together have at T, regret and messages, and of regret over a rival's."""
    for name, result in runs.by("line").items():
        sent = "-" if result.messages is None else over_seeds(result.messages[-1].sum(axis=1), ",.0f")
        yield {
            "algorithm": name,
            "what it does": MEANINGS[name],
            "regret at T (± 95 %)": over_seeds(result.regret[-1].sum(axis=1), ",.0f"),
            f"/ {rival}": "1" if name == rival else ratio(result, runs[rival]),
            "messages at T (± 95 %)": sent,
        }


def curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns all agents' regret or messages over rounds, whichever the panel is about."""
    about, curves = "messages" if runs.panel.startswith("messages") else "regret", {}
    for name, result in runs.by("line").items():
        if getattr(result, about) is not None:
            points = zip(result.rounds, getattr(result, about).sum(axis=2), strict=True)
            curves[name] = {at: over_seeds(values) for at, values in points}
    return curves


def communication(result: Any) -> dict[str, float]:
    """Returns d M^2, the paper's bound on messages, the messages at T over it, and over those at T / 10."""
    bound = _DIM * result.regret.shape[2] ** 2
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    total = result.messages.sum(axis=2).mean(axis=1)
    return {"bound": bound, "share": total[-1] / bound, "growth": total[-1] / max(total[early], 1)}
