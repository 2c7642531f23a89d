"""The experiments of the SAMBA paper (Ciucanu et al. 2022, Figure 8), and cryptography beside noise: what runs."""

from typing import Any

from fedbandit_envs.checks import require_integer
from fedbandit_envs.leaderboard.figures import BESIDE
from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.reproduction.samba_runs import Selection
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.samba import SambaSettings
from fedbandit_envs.leaderboard.statistics import bootstrap_coverage
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.leaderboard.sweep.runs import Run

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


def describe(scale: Scale, mode: str) -> str:
    """Describes what all runs of Figure 8 have in common."""
    timed = min(TIMED, scale.trials)
    beside = (
        "" if scale.rounds == PAPER_ROUNDS else ": what is said of its sentences is said of this budget alone"
    )
    held = " and ".join(
        f"{bootstrap_coverage(count):.0%} with {count} runs ({of})"
        for of, count in (("rewards", scale.trials), ("times", timed))
    )
    return (
        f"N = {scale.rounds:,} rounds at most (the paper has 50,000 to {PAPER_ROUNDS:,}{beside}), {scale.trials} runs "
        f"for rewards and {timed} for times (the paper: 50); the K films or jokes with the largest shares of high "
        "ratings, one a data owner, as the paper's data files have them, K from 10 to 100 as in the paper. The paper "
        "tuned epsilon, tau and beta and does not print them; ours are those of its published scripts: epsilon = 0.1, "
        "or 1/log2 t; tau = 0.06 (MovieLens), 0.02 (Jester); beta = 0.1, 0.2. Rewards are those of runs in the open: "
        "an encrypted run earns the same, bit for bit, which tests show for all six. Times are CPU seconds of all "
        "roles together, in one process, keys of 2048 and 256 bits dealt anew in each run; the paper's are seconds of "
        "another machine, in Python alone. ± is Student's 95 % interval over runs; brackets are bootstrap intervals "
        f"over runs, meant to hold 95 % and holding about {held}. Arms are the same in all runs: intervals are over "
        "luck alone. Where a sentence of the paper names no measure, the page says what was found, and gives no "
        "verdict. What it says across both figures or both data sets is not tested, but for the orders that each panel "
        "states."
    )


def describe_privacy(scale: Scale, mode: str) -> str:
    """Describes the comparison of noise and encryption."""
    arms = int(scale.sweeps["arms"][0])
    return (
        f"the same K = {arms} arms and {AGENTS * scale.rounds:,} pulls in all, {scale.trials} runs. Two federations: "
        f"horizontal, {AGENTS} agents who each pull any arm in each of {scale.rounds:,} rounds, learn by UCB1 from "
        "what they have seen and from what others tell, which noise hides; and vertical, an owner an arm, of whom "
        f"UCB1 picks one in each of {AGENTS * scale.rounds:,} rounds, among scores that are encrypted. No paper sets "
        "the two side by side. They protect different parties from each other, so numbers are for each pull, not for "
        f"each round. {about_intervals(scale.trials, 'runs')} Arms are the same in all runs: intervals are over luck "
        "alone."
    )


def _selection(
    plan: Plan, algorithm: str, arms: int, budget: int, *, plain: bool, **changes: Any
) -> Selection:
    require_integer("rounds", budget, arms)
    settings = SambaSettings(
        algorithm, plan.panel, arms, budget, 0, parameters=PARAMETERS[plan.panel].get(algorithm, {}),
        plain=plain, **changes,
    )  # fmt: skip
    return Selection(settings, min(TIMED, plan.scale.trials))


def budgets(scale: Scale) -> tuple[int, ...]:
    """Returns the numbers of rounds that are compared, N.

    Raises:
        ValueError: The least of them does not pay for one round of each owner.
    """
    found = tuple(round(share * scale.rounds) for share in scale.sweeps["share"])
    require_integer("rounds", scale.rounds, round(MOST_ARMS / scale.sweeps["share"][0]))
    return found


def fig8a(plan: Plan) -> dict[str, Selection]:
    """Figure 8 (a): execution time, K = 100 and varying N, and the same in the open."""
    return {
        f"{algorithm} {budget}{BESIDE * plain}": _selection(plan, algorithm, MOST_ARMS, budget, plain=plain)
        for algorithm in ALGORITHMS
        for budget in budgets(plan.scale)
        for plain in (False, True)
    }


def fig8b(plan: Plan) -> dict[str, Selection]:
    """Figure 8 (b): execution time, N fixed and varying K, and the same in the open."""
    return {
        f"{algorithm} {arms}{BESIDE * plain}": _selection(
            plan, algorithm, int(arms), plan.scale.rounds, plain=plain
        )
        for algorithm in ALGORITHMS
        for arms in plan.scale.sweeps["arms"]
        for plain in (False, True)
    }


def fig8c(plan: Plan) -> dict[str, Selection]:
    """Figure 8 (c): cumulative reward, K = 100 and varying N.

    No algorithm asks for N, so that what a run has earned by a round is what it earns with that budget.
    """
    noted = budgets(plan.scale)
    return {
        algorithm: Selection(
            _selection(plan, algorithm, MOST_ARMS, noted[-1], plain=True).settings, plan.scale.trials, noted
        )
        for algorithm in ALGORITHMS
    }


def fig8d(plan: Plan) -> dict[str, Selection]:
    """Figure 8 (d): shares of the CPU time by participant; each owner is a role of its own."""
    return {
        f"{algorithm} {arms}": _selection(
            plan, algorithm, int(arms), plan.scale.rounds, plain=False, owners_per_role=1
        )
        for algorithm in ALGORITHMS
        for arms in plan.scale.sweeps["arms"]
    }


def privacy(plan: Plan) -> dict[str, Cell]:
    """Noise beside encryption: agents with UCB1, silent, shared and private, and owners with UCB."""
    arms, pulls = int(plan.scale.sweeps["arms"][0]), AGENTS * plan.scale.rounds

    def agents(baseline: str, epsilon: float | None = None) -> Run:
        wrappers = {} if epsilon is None else {"privatizer": {"epsilon": epsilon, "delta": DELTA}}
        env_kwargs = {"means": plan.panel, "num_arms": arms, "num_agents": AGENTS}
        settings = Settings(
            baseline=baseline,
            env_id="FedArms-v0",
            rounds=plan.scale.rounds,
            seeds=plan.scale.trials,
            env_kwargs=env_kwargs,
            policy_kwargs={},
            wrapper_kwargs=wrappers,
        )
        return Run(settings, delta=DELTA)

    runs: dict[str, Cell] = {name: agents(name) for name in (RANDOM, SILENT, SHARED)}
    for epsilon in plan.scale.sweeps["epsilon"]:
        for name in (PRIVATE, PLACEBO):
            runs[f"{name} {epsilon:g}"] = agents(name, epsilon)
    open_run = _selection(plan, "ucb", arms, pulls, plain=True)
    runs[OPEN] = Selection(open_run.settings, plan.scale.trials)
    runs[ENCRYPTED] = _selection(plan, "ucb", arms, pulls, plain=False)
    return runs
