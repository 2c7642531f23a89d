"""Statements of the P-FCB paper, and our verdicts on them."""

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import Statement, instance_ratios
from fedbandit_envs.leaderboard.reproduction.experiment import Scale
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.papers.pfcb.experiments import MARKETS

PAPER_ROUNDS, PAPER_TRIALS = 100_000, 20

# What the paper prints: "136%, 233% more regret" than FCB (uniform), "235%, 394%" (normal), section 6.2.
PAPER_ABOVE_FCB = {
    "uniform": {"P-FCB": 2.36, "SS-UCB": 3.33},
    "normal": {"P-FCB": 3.35, "SS-UCB": 4.94},
}
PAPER_FRR = {panel: above["P-FCB"] / above["SS-UCB"] for panel, above in PAPER_ABOVE_FCB.items()}

_VERDICTS: dict[Statement, str] = {
    "holds": "agrees",
    "does **not** hold": "**differs**",
    "undecided": "undecided",
}


def beside(scale: Scale) -> str:
    """Returns the paper's size of the experiments, to be said beside ours."""
    if (scale.rounds, scale.trials) == (PAPER_ROUNDS, PAPER_TRIALS):
        return "as in the paper"
    return f"the paper: T = {PAPER_ROUNDS:,}, {MARKETS} instances x {PAPER_TRIALS} runs"


def verdict(statement: Statement, result: RunResult) -> str:
    """Returns the verdict on a statement of the paper; none where the horizon is not the paper's."""
    at_its_horizon = result.rounds[-1] == PAPER_ROUNDS
    return _VERDICTS[statement] if at_its_horizon else "not the paper's setting"


def median_market(numerator: RunResult, denominator: RunResult) -> str:
    """Returns the median of the markets' ratios, which one market near binding does not move, as text."""
    return f"{np.median(instance_ratios(numerator, denominator)):.3f}"
