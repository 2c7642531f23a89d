"""Tables, ratios and curves of the page on FedLinUCB."""

from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Mean, Ratio, compare, ratio
from fedbandit_envs.leaderboard.reproduction.page import means, over_seeds
from fedbandit_envs.leaderboard.reproduction.panel_runs import PanelRuns
from fedbandit_envs.papers.fedlinucb.experiments import MEANINGS

_DIM = 15


def at_the_end(runs: PanelRuns) -> list[dict[str, Any]]:
    """Returns the table of what all agents together have at T: regret and messages."""
    _, rival, *_ = runs.values("line")
    return [
        {
            "algorithm": name,
            "what it does": MEANINGS[name],
            "regret at T (± 95 %)": over_seeds(result.regret[-1].sum(axis=1), ",.0f"),
            f"/ {rival}": "1" if name == rival else ratio(result, runs.one(rival)),
            "messages at T (± 95 %)": "-"
            if result.messages is None
            else over_seeds(result.messages[-1].sum(axis=1), ",.0f"),
        }
        for name, result in runs.by("line").items()
    ]


def curves(runs: PanelRuns) -> dict[str, dict[int, Mean]]:
    """Returns the federation's regret or messages over rounds, whichever the panel is about."""
    about = "messages" if runs.panel.startswith("messages") else "regret"
    drawn = {name: (result.rounds, getattr(result, about)) for name, result in runs.by("line").items()}
    return {
        name: means(rounds, values.sum(axis=2))
        for name, (rounds, values) in drawn.items()
        if values is not None
    }


def message_ratio(runs: PanelRuns, above: str, below: str) -> Ratio:
    """Returns the ratio of two lines' messages at T."""
    return compare(*(runs.one(line).messages[-1].sum(axis=1) for line in (above, below)))


def communication(runs: PanelRuns, line: str) -> dict[str, float]:
    """Returns the paper's bound d M^2 on messages, a line's messages at T over it, and over those at T / 10."""
    result = runs.one(line)
    bound = _DIM * result.regret.shape[2] ** 2
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    total = result.messages.sum(axis=2).mean(axis=1)
    return {"bound": bound, "share": total[-1] / bound, "growth": total[-1] / max(total[early], 1)}
