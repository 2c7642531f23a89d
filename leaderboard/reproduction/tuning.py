"""Tuning: every baseline of a problem on one grid, with one budget, on seeds that nothing else plays.

What a policy gains by being tuned is not owed to what it hears. So silence is tuned first, and whoever is compared with
it is tuned on the same grid of constants, over as many rounds of as many seeds: the same ones.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import exp, log
from typing import Any

import numpy as np

from fedbandit_envs.checks import require_choice, require_integer
from fedbandit_envs.leaderboard.reproduction.comparison import regret_by_seed
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Result, Run

FIRST_SEED = 1_000_000
"""Seeds from here on are for tuning alone; experiments play smaller ones."""

RADII = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""What the papers' radius of confidence is multiplied by."""

Constants = dict[str, Any]


@dataclass(frozen=True)
class Tuning:
    """How the baselines of a problem are tuned.

    Attributes:
        env_ids: Where regret is measured; of several the geometric mean counts.
        rounds: Horizon.
        seeds: Number of seeds for each id.
        grid: What is tried: arguments of the policy.
        baselines: Those that are tuned, by the names of their tuned forms; silent ones first.
    """

    env_ids: tuple[str, ...]
    rounds: int
    seeds: int
    grid: tuple[Constants, ...]
    baselines: Mapping[str, str] = field(default_factory=dict)


def _scaled(name: str) -> tuple[Constants, ...]:
    return tuple({name: radius} for radius in RADII)


TUNINGS = {
    "procurement": Tuning(
        ("FedProcurement-v0", "FedProcurementNormal-v0"),
        20_000,
        4,
        tuple({"radius_scale": r, "exploration_rounds": rounds} for rounds in (0, 1) for r in RADII),
        {"SS-UCB-tuned": "SS-UCB", "P-FCB-tuned": "P-FCB", "P-FCB-weighted-tuned": "P-FCB-weighted"},
    ),
    "linear": Tuning(
        ("FedLinear-v0",),
        8_000,
        3,
        _scaled("beta_scale"),
        {
            "LinUCB-tuned": "LinUCB",
            "FedUCB-min-tuned": "FedUCB-min",
            "FedUCB-weighted-tuned": "FedUCB-weighted",
        },
    ),
    "exposure": Tuning(
        ("FedExposure-v0",),
        20_000,
        3,
        _scaled("beta_scale"),
        {
            "FairX-tuned": "FairX-LinUCB",
            "Priv-FairX-tuned": "Priv-FairX-LinUCB",
            "Priv-FairX-weighted-tuned": "Priv-FairX-weighted",
        },
    ),
    "arms": Tuning(
        ("FedArms-v0",),
        20_000,
        24,
        # UCB1 says its radius as what stands under the root, and refuses 0.
        tuple({"scale": round(2.0 * radius**2, 6)} for radius in RADII if radius > 0),
        {"UCB1-tuned": "UCB1", "Priv-UCB1-tuned": "Priv-UCB1", "UCB1-weighted-tuned": "UCB1-weighted"},
    ),
}
"""By problem. The problem's baselines share grid, rounds and seeds, so none is tuned better than another."""


def cells(problem: str, rounds: int | None = None, seeds: int | None = None) -> dict[str, list[list[Run]]]:
    """Returns what is played to tune a problem's baselines.

    Args:
        problem: One of :data:`TUNINGS`.
        rounds: Horizon, if not the problem's.
        seeds: Number of seeds, if not the problem's.

    Returns:
        For each tuned baseline a list for each of the grid's constants, of a run for each id.

    Raises:
        ValueError: The problem is unknown, or a number out of range.
    """
    require_choice("problem", problem, TUNINGS)
    tuning = TUNINGS[problem]
    for name, value in (("rounds", rounds), ("seeds", seeds)):
        if value is not None:
            require_integer(name, value, 1)

    def run(baseline: str, constants: Constants, env_id: str) -> Run:
        budget = rounds or tuning.rounds, seeds or tuning.seeds
        return Run(Settings(baseline, env_id, *budget, FIRST_SEED, policy_kwargs=constants))

    return {
        name: [[run(baseline, constants, env_id) for env_id in tuning.env_ids] for constants in tuning.grid]
        for name, baseline in tuning.baselines.items()
    }


def mean_regret(results: Sequence[Result]) -> float:
    """Returns regret per agent at the horizon, averaged over seeds; the geometric mean over several ids."""
    means = [float(regret_by_seed(result).mean()) for result in results]
    if min(means) <= 0.0:
        return min(means)
    return exp(sum(map(log, means)) / len(means))


def findings(
    problems: Mapping[str, Mapping[str, Sequence[Sequence[Run]]]],
    load: Callable[[Run], Result],
    command: str,
) -> dict[str, Any]:
    """Says which constants have the least regret.

    Args:
        problems: What was played, from :func:`cells`, by problem.
        load: Returns a run's result.
        command: What was typed.

    Returns:
        What is written as JSON: ``command``, ``version``, ``first_seed``, and ``baselines``: for each tuned baseline
        ``of`` (what it is a tuned form of), ``env_ids``, ``rounds``, ``seeds``, ``tried`` (pairs of constants and
        regret), and ``chosen``, the constants with the least regret (the first of these, where several have it).
    """
    baselines: dict[str, Any] = {}
    for problem, plans in problems.items():
        tuning = TUNINGS[problem]
        for name, grid in plans.items():
            played = grid[0][0].settings
            regrets = [round(mean_regret([load(run) for run in runs]), 2) for runs in grid]
            baselines[name] = {
                "of": tuning.baselines[name],
                "env_ids": list(tuning.env_ids),
                "rounds": played.rounds,
                "seeds": played.seeds,
                "chosen": tuning.grid[int(np.argmin(regrets))],
                "tried": [list(pair) for pair in zip(tuning.grid, regrets, strict=True)],
            }
    return {
        "command": command,
        "version": version("fedbandit-envs"),
        "first_seed": FIRST_SEED,
        "baselines": baselines,
    }


def written(found: Mapping[str, Any]) -> str:
    """Writes what :func:`findings` returned as JSON, a line a baseline."""
    head = json.dumps({name: value for name, value in found.items() if name != "baselines"}, indent=1)
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found["baselines"].items()
    )
    return f'{head[:-2]},\n "baselines": {{\n{lines}\n }}\n}}\n'
