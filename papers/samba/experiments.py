"""The experiments of the SAMBA paper (Ciucanu et al. 2022, Figure 8), and cryptography beside noise: what runs."""

from typing import Any

from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.leaderboard.reproduction.experiment import (
    LINEAR,
    LOG_LINEAR,
    Experiment,
    LabelledCell,
    Plan,
    Scale,
)
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.papers.samba.runs import Selection
from fedbandit_envs.samba.runs import SambaSettings

ALGORITHMS = {
    "epsilon-greedy": "fixed epsilon",
    "epsilon-decreasing": "decreasing epsilon",
    "ucb": "UCB",
    "thompson": "Thompson",
    "softmax": "Softmax",
    "pursuit": "Pursuit",
}
PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "movielens": {
        "epsilon-greedy": {"epsilon": 0.1},
        "softmax": {"temperature": 0.06},
        "pursuit": {"rate": 0.1},
    },
    "jester": {
        "epsilon-greedy": {"epsilon": 0.1},
        "softmax": {"temperature": 0.02},
        "pursuit": {"rate": 0.2},
    },
}
PANELS = {"movielens": "MovieLens", "jester": "Jester"}
PAPER_ROUNDS, MOST_ARMS = 100_000, 100

_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FIG8A_SCALES = {
    "small": Scale(2_000, 3, {"share": (0.25, 0.5, 0.75, 1.0)}),
    "paper": Scale(PAPER_ROUNDS, 50, {"share": _SHARES}),
}
FIG8B_SCALES = {
    "small": Scale(1_000, 3, {"arms": (10, 40, 70, 100)}),
    "paper": Scale(PAPER_ROUNDS, 50, {"arms": (10, 20, 40, 60, 80, 100)}),
}
FIG8C_SCALES = {
    "small": Scale(20_000, 20, {"share": (0.25, 0.5, 0.75, 1.0)}),
    "paper": Scale(PAPER_ROUNDS, 50, {"share": _SHARES}),
}
FIG8D_SCALES = {
    "small": Scale(500, 3, {"arms": (10, 100)}),
    "paper": Scale(PAPER_ROUNDS, 50, {"arms": (10, 100)}),
}
PRIVACY_SCALES = {
    "small": Scale(2_000, 20, {"arms": (10,), "epsilon": (0.5, 2.0, 8.0)}),
    "paper": Scale(10_000, 50, {"arms": (100,), "epsilon": (0.1, 0.5, 1.0, 2.0, 8.0)}),
}

TIMED = 3
"""Runs of which CPU time is measured."""

AGENTS, DELTA = 10, 1e-5
SILENT, SHARED, PRIVATE, PLACEBO = "UCB1", "Fed-UCB1", "Priv-UCB1", "Priv-UCB1-placebo"
OPEN, ENCRYPTED = "owners in the open", "SAMBA"
RANDOM = "uniform-arms"


def _run(
    plan: Plan,
    algorithm: str,
    arms: int,
    budget: int,
    *,
    plain: bool,
    seeds: int = TIMED,
    note: tuple[int, ...] = (),
    line: str = "",
    **changes: Any,
) -> Selection:
    """Returns the runs of an algorithm on a vertical federation.

    Args:
        plan: Its panel says of whose ratings the arms are.
        algorithm: The algorithm.
        arms: K.
        budget: N.
        plain: Whether scores are left in the open.
        seeds: Number of runs, if the scale has as many.
        note: Rounds after which the cumulative reward is kept as well.
        line: What the page calls the runs, if not like the algorithm.
        **changes: Other settings.
    """
    require_integer("rounds", budget, arms)
    parameters = PARAMETERS[plan.panel].get(algorithm, {})
    settings = SambaSettings(
        algorithm, plan.panel, arms, budget, 0, parameters=parameters, plain=plain, **changes
    )
    labels = {"line": line or algorithm, "arms": arms, "budget": budget, "plain": plain}
    return Selection(settings, min(seeds, plan.scale.trials), note, labels)


def budgets(scale: Scale) -> tuple[int, ...]:
    """Returns the numbers of rounds that are compared, N.

    Raises:
        ValueError: The least of them does not pay for one round of each owner.
    """
    found = tuple(round(share * scale.rounds) for share in scale.sweeps["share"])
    require_integer("rounds", scale.rounds, round(MOST_ARMS / scale.sweeps["share"][0]))
    return found


def fig8a(plan: Plan) -> list[Selection]:
    """Figure 8 (a): execution time, K = 100 and varying N, and the same in the open."""
    return [
        _run(plan, algorithm, MOST_ARMS, budget, plain=plain)
        for algorithm in ALGORITHMS
        for budget in budgets(plan.scale)
        for plain in (False, True)
    ]


def fig8b(plan: Plan) -> list[Selection]:
    """Figure 8 (b): execution time, N fixed and varying K, and the same in the open."""
    return [
        _run(plan, algorithm, int(arms), plan.scale.rounds, plain=plain)
        for algorithm in ALGORITHMS
        for arms in plan.scale.sweeps["arms"]
        for plain in (False, True)
    ]


def fig8c(plan: Plan) -> list[Selection]:
    """Figure 8 (c): cumulative reward, K = 100 and varying N.

    No algorithm asks for N, so that what a run has earned by a round is what it earns with that budget.
    """
    noted = budgets(plan.scale)
    return [
        _run(plan, algorithm, MOST_ARMS, noted[-1], plain=True, seeds=plan.scale.trials, note=noted)
        for algorithm in ALGORITHMS
    ]


def fig8d(plan: Plan) -> list[Selection]:
    """Figure 8 (d): shares of the CPU time by participant; each owner is a role of its own."""
    return [
        _run(plan, algorithm, int(arms), plan.scale.rounds, plain=False, owners_per_role=1)
        for algorithm in ALGORITHMS
        for arms in plan.scale.sweeps["arms"]
    ]


def privacy(plan: Plan) -> list[LabelledCell]:
    """Noise beside encryption: agents with UCB1, silent, shared and private, and owners with UCB."""
    arms, pulls = int(plan.scale.sweeps["arms"][0]), AGENTS * plan.scale.rounds

    def agents(baseline: str, epsilon: float | None = None) -> RunSpec:
        wrappers = {} if epsilon is None else {"privatizer": {"epsilon": epsilon, "delta": DELTA}}
        swept = {} if epsilon is None else {"epsilon": epsilon}
        return RunSpec(
            baseline=baseline,
            env_id="FedArms-v0",
            rounds=plan.scale.rounds,
            seeds=plan.scale.trials,
            env_kwargs={"means": plan.panel, "num_arms": arms, "num_agents": AGENTS},
            wrapper_kwargs=wrappers,
            delta=DELTA,
            labels={"line": baseline, **swept},
        )

    return [
        *(agents(name) for name in (RANDOM, SILENT, SHARED)),
        *(agents(name, epsilon) for epsilon in plan.scale.sweeps["epsilon"] for name in (PRIVATE, PLACEBO)),
        _run(plan, "ucb", arms, pulls, plain=True, seeds=plan.scale.trials, line=OPEN),
        _run(plan, "ucb", arms, pulls, plain=False, line=ENCRYPTED),
    ]


_TIME = {"y": "CPU seconds", "xscale": "linear", "yscale": "log"}
EXPERIMENTS = {
    "samba-fig8a": Experiment(
        "SAMBA, Figure 8 (a): execution time against N, K = 100",
        {"x": "N", **_TIME},
        FIG8A_SCALES,
        PANELS,
        fig8a,
        "times.md.j2",
    ),
    "samba-fig8b": Experiment(
        "SAMBA, Figure 8 (b): execution time against K", {"x": "K", **_TIME}, FIG8B_SCALES, PANELS, fig8b,
        "times.md.j2",
    ),
    "samba-fig8c": Experiment(
        "SAMBA, Figure 8 (c): cumulative reward against N, K = 100",
        {"x": "N", "y": "cumulative reward", **LINEAR},
        FIG8C_SCALES,
        PANELS,
        fig8c,
        "rewards.md.j2",
    ),
    "samba-fig8d": Experiment(
        "SAMBA, Figure 8 (d): shares of the CPU time by participant",
        {"x": "1: one owner, 2: Controller, 3: data customer, 4: Comp", "y": "% of the CPU time", **LINEAR},
        FIG8D_SCALES,
        PANELS,
        fig8d,
        "shares.md.j2",
    ),
    "samba-privacy": Experiment(
        "Noise beside encryption: differential privacy and SAMBA on the same arms",
        {"x": "epsilon", "y": "regret a pull", **LOG_LINEAR},
        PRIVACY_SCALES,
        PANELS,
        privacy,
        "privacy.md.j2",
        "privacy_setting.md.j2",
    ),
}  # fmt: skip
