"""The runs of the experiment of He, Wang, Min and Gu (NeurIPS 2022), set up as in their published code."""

from typing import Any

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale

PAPER_ROUNDS = 30_000
_RADIUS = 0.5

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


def runs(plan: Plan) -> list[RunSpec]:
    """Returns the runs of one panel; the panels on regret and on messages of the same size have the same runs."""
    agents = 50 if plan.panel.endswith("50") else 15
    env_id = "FedLinearInTurn-v0" if plan.panel == "in-turn" else "FedLinearAsync-v0"
    lines: dict[str, tuple[str, dict[str, Any]]]
    if plan.panel == "theory":
        lines = {
            "FedLinUCB-theory": ("FedLinUCB-theory", {}),
            "Async-LinUCB-theory": ("Async-LinUCB", {"beta": None}),
            "LinUCB-theory": (SILENT, {"noise_sd": 0.3}),
        }
    else:
        lines = {name: (name, {}) for name in ("FedLinUCB", "Async-LinUCB", SHARED)}
        lines |= {name: (name, {"alpha": _RADIUS}) for name in ("FedUCB-nonprivate", SILENT)}
    return [
        RunSpec(
            baseline=baseline, env_id=env_id, rounds=plan.scale.rounds, seeds=plan.scale.trials,
            env_kwargs={"num_agents": agents}, policy_kwargs=policy, labels={"line": line},
        )
        for line, (baseline, policy) in lines.items()
    ]  # fmt: skip


EXPERIMENTS = {
    "fedlinucb": Experiment(
        "FedLinUCB and Async-LinUCB: asynchronous agents and a server",
        {"x": "round", "y": "of the federation, cumulative"},
        {"small": Scale(5_000, 20), "paper": Scale(PAPER_ROUNDS, 40)},
        runs,
        {
            "regret-15": "Regret, 15 agents",
            "messages-15": "Messages, 15 agents",
            "regret-50": "Regret, 50 agents",
            "messages-50": "Messages, 50 agents",
            "in-turn": "Regret, 15 agents in turn",
            "theory": "Regret, 15 agents, the theory's constants",
        },
    )
}
