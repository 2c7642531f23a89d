"""The experiment of He, Wang, Min, Gu (NeurIPS 2022), as their published code sets it up: which runs it needs."""

from typing import Any

from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run

RADIUS = 0.5
PAPER_ROUNDS = 30_000

SCALES = {"small": Scale(5_000, 10), "paper": Scale(PAPER_ROUNDS, 40)}
PANELS = {
    "regret-15": "Regret, 15 agents",
    "messages-15": "Messages, 15 agents",
    "regret-50": "Regret, 50 agents",
    "messages-50": "Messages, 50 agents",
    "in-turn": "Regret, 15 agents in turn",
    "theory": "Regret, 15 agents, the theory's constants",
}

FEDERATED = {
    "FedLinUCB": "uploads and downloads by its own determinant, alpha = 1; acts on downloads alone",
    "Async-LinUCB": "uploads and downloads by determinants, gamma = 6; own data at once",
    "OFUL-shared": "every observation to everybody at once",
    "FedUCB-nonprivate": "true data from everybody to everybody, in doubling rounds",
}
"""Those that send messages."""

SILENT, LOWER_LINE = "LinUCB", "OFUL-shared"
DIM = 15
MEANINGS = {
    **FEDERATED,
    SILENT: "silent",
    "FedLinUCB-theory": "alpha = 1/M^2 and the radius of its theory",
    "Async-LinUCB-theory": "gamma = 6, the radius of self-normalised bounds",
    "LinUCB-theory": "silent, the radius of self-normalised bounds",
}


def describe(scale: Scale, mode: str) -> str:
    """Describes what all runs have in common."""
    beside = "" if scale.rounds == PAPER_ROUNDS else (
        f" (the published code has {PAPER_ROUNDS:,}: what is said of the paper's sentences is said of this horizon "
        "alone)"
    )  # fmt: skip
    return (
        f"T = {scale.rounds:,} rounds of the federation{beside}, in each of which one agent acts, {scale.trials} "
        "trials (the published code: 20). As in that code: d = 15, 25 arms a round, entries of contexts uniform on "
        "[-1, 1]/sqrt(15), theta* = 1/sqrt(15) in every entry, reward noise N(0, 0.3^2), lambda = 1, a constant radius "
        "of 0.5, 15 and 50 agents drawn uniformly. Agents in turn and the theory's constants are questions of our own, "
        "and so are FedUCB-nonprivate and silence. The paper draws curves and prints no numbers. Regret and messages "
        "are those of the whole federation. All algorithms meet the same contexts, noise and participation. "
        f"{about_intervals(scale.trials, 'trials')} theta* is the same in all trials. Nothing is private here: raw "
        "statistics leave, and when is decided by raw data."
    )


def _cell(plan: Plan, baseline: str, agents: int, env_id: str, **policy_kwargs: Any) -> Run:
    settings = Settings(
        baseline=baseline,
        env_id=env_id,
        rounds=plan.scale.rounds,
        seeds=plan.scale.trials,
        env_kwargs={"num_agents": agents},
        policy_kwargs=policy_kwargs,
    )
    return Run(settings)


def cells(plan: Plan) -> dict[str, Run]:
    """Runs of one panel; panels of regret and of messages share theirs."""
    agents = 50 if plan.panel.endswith("50") else 15
    env_id = "FedLinearInTurn-v0" if plan.panel == "in-turn" else "FedLinearAsync-v0"
    if plan.panel == "theory":
        return {
            "FedLinUCB-theory": _cell(plan, "FedLinUCB-theory", agents, env_id),
            "Async-LinUCB-theory": _cell(plan, "Async-LinUCB", agents, env_id, beta=None),
            "LinUCB-theory": _cell(plan, SILENT, agents, env_id, noise_sd=0.3),
        }
    runs = {name: _cell(plan, name, agents, env_id) for name in ("FedLinUCB", "Async-LinUCB", "OFUL-shared")}
    for name in ("FedUCB-nonprivate", SILENT):
        runs[name] = _cell(plan, name, agents, env_id, alpha=RADIUS)
    return runs
