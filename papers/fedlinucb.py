"""The experiment of He, Wang, Min and Gu (NeurIPS 2022), set up as in their published code."""

from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Runs, Scale, Section
from fedbandit_envs.papers.stats import bounded, compare, curve_of, mean_of, of_all_agents, ratio

DIM, RADIUS = 15, 0.5
SILENT, SHARED = "LinUCB", "OFUL-shared"
MEANINGS = {
    "FedLinUCB": "uploads and downloads by its own determinant, alpha = 1; acts on downloads alone",
    "Async-LinUCB": "uploads and downloads by determinants, gamma = 6; own data at once",
    SHARED: "every observation to everybody at once",
    "FedUCB-nonprivate": "true data from everybody to everybody, in doubling rounds",
    SILENT: "silent",
    "FedLinUCB-theory": "alpha = 1/M^2 and the radius of its theory",
    "Async-LinUCB-theory": "gamma = 6, the radius of self-normalised bounds",
    "LinUCB-theory": "silent, the radius of self-normalised bounds",
}
"""A description of each algorithm on the page, by its name."""


def _runs(plan: Plan) -> Runs:
    """Returns the runs of one panel; the panels on regret and on messages of the same size have the same runs."""
    env_id = "FedLinearInTurn-v0" if plan.panel == "in-turn" else "FedLinearAsync-v0"
    run = partial(plan.run, env_id=env_id, env={"num_agents": 50 if plan.panel.endswith("50") else 15})
    if plan.panel == "theory":
        return [
            run("FedLinUCB-theory"),
            run("Async-LinUCB-theory", baseline="Async-LinUCB", policy={"beta": None}),
            run("LinUCB-theory", baseline=SILENT),
        ]
    tuned = [run(name, policy={"alpha": RADIUS}) for name in ("FedUCB-nonprivate", SILENT)]
    return [*map(run, ("FedLinUCB", "Async-LinUCB", SHARED)), *tuned]


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports regret and messages of all agents together, also beside the paper's bounds; or draws the messages."""
    found = runs.by()
    sent = {name: one.messages.sum(axis=2) for name, one in found.items() if one.messages is not None}
    if runs.plan.panel.startswith("messages"):
        section.draw({name: curve_of(found[name], messages) for name, messages in sent.items()})
        return
    (ours, own), (rival, other) = list(found.items())[:2]
    verdicts = [
        bounded("ratio", f"regret, {ours} / {rival}", ratio(own, other), 1),
        bounded("ratio", f"messages, {ours} / {rival}", compare(sent[ours][-1], sent[rival][-1])),
    ]
    if SHARED in found:
        bound, total = DIM * own.regret.shape[2] ** 2, sent[ours].mean(axis=1)
        growth = total[-1] / max(total[np.searchsorted(own.rounds, own.rounds[-1] / 10)], 1)
        verdicts += [
            bounded("ratio", f"regret, {ours} / {SHARED}", ratio(own, found[SHARED])),
            bounded("ratio", f"messages, {ours} / d M^2 = {bound:,}", f"{total[-1] / bound:.3f}"),
            bounded("ratio", f"messages, {ours}, at T / at T / 10", f"{growth:.2f}"),
        ]
    section.table("verdicts", verdicts)
    ends = {name: mean_of(messages[-1], ",.0f") for name, messages in sent.items()}
    columns: dict[str, Any] = {
        "what it does": lambda result: MEANINGS[result.labels["line"]],
        "regret at T [95 %]": of_all_agents,
        f"/ {rival}": partial(ratio, below=other),
        "messages at T [95 %]": lambda result: ends.get(result.labels["line"], "-"),
    }
    section.table("regret", runs.table("algorithm", columns))
    section.draw({name: curve_of(result, result.regret.sum(axis=2)) for name, result in found.items()})


EXPERIMENTS = {
    "fedlinucb": Experiment(
        "FedLinUCB and Async-LinUCB: asynchronous agents and a server",
        "Regret and messages of asynchronous agents and a server; 2 minutes.",
        {"x": "round", "y": "of the federation, cumulative"},
        {"small": Scale(5_000, 20), "paper": Scale(30_000, 40)},
        _runs, _report,
        {
            "regret-15": "Regret, 15 agents",
            "messages-15": "Messages, 15 agents",
            "regret-50": "Regret, 50 agents",
            "messages-50": "Messages, 50 agents",
            "in-turn": "Regret, 15 agents in turn",
            "theory": "Regret, 15 agents, the theory's constants",
        },
    )
}  # fmt: skip
