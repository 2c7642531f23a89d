"""Compares trained networks with their rivals on held-out markets and writes a Markdown table.

    python examples/learned/score.py FedProcurement-v0 --networks PPO-procurement-*.npz

Instead of an environment's id, the name of one of the leaderboard's suites makes a table for each of its tasks.
Markets are those of seeds 9000 and up: none was trained on (seeds from a million) or tuned on (5000 and up).
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.learned import LearnedIndex
from fedbandit_envs.baselines.learned.rl2 import RL2
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.experiments import simulate
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.registry.registration import make_federation

HELD_OUT = 9000
HORIZON = 500

RIVALS: dict[str, Sequence[tuple[str, dict[str, float]]]] = {
    "FedProcurement-v0": (
        ("uniform-random", {}), ("SS-UCB", {}), ("SS-UCB", {"radius_scale": 0.5}), ("Thompson-procurement", {}),
        ("SS-UCB", {"radius_scale": 0.25, "exploration_rounds": 0}), ("Thompson-procurement", {"margin": 3.0}),
        ("SS-UCB-tuned", {}), ("Laplace-index", {}), ("Laplace-index", {"width": 0.7}),
    ),
    "FedArms-v0": (
        ("uniform-arms", {}), ("UCB1", {}), ("UCB1-tuned", {}), ("UCB1", {"scale": 0.08}), ("Thompson", {}),
        ("MOSS", {"scale": 0.05}), ("MOSS", {"scale": 0.075}), ("UCB1", {"scale": 0.06}),
    ),
    "FedLinear-v0": (
        ("random-arm", {}), ("LinUCB", {}), ("LinUCB", {"beta_scale": 0.5}), ("LinUCB-tuned", {}),
        ("LinUCB", {"alpha": 1.5}), ("LinUCB", {"ridge": 0.003, "beta_scale": 0.25}),
        ("LinUCB", {"ridge": 0.01, "alpha": 1.0}),
    ),
    "arms-quick": (("MOSS-tuned", {}), ("MOSS", {"scale": 0.1})),
    "procurement-quick": (("Laplace-index-tuned", {}), ("Laplace-index", {"width": 1.0, "margin": 3.0})),
    "linear-quick": (("LinUCB-tuned", {}), ("LinUCB", {"ridge": 0.1, "beta_scale": 0.25})),
}  # fmt: skip
"""Baselines with changed arguments of their policies, by id of the environment or name of the suite."""


class Interval(NamedTuple):
    """A mean and the half width of its 95 % interval."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:,.1f} ± {self.half_width:,.1f}"


def over_markets(values: Array) -> Interval:
    """Returns the mean of one value a market, with Student's interval."""
    width = student.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return Interval(float(values.mean()), float(width))


def over_trainings_and_markets(values: Array) -> Interval:
    """Returns the mean of ``(trainings, markets)``, with an interval for other trainings and other markets.

    Both variances are added, and the quantile is that of the fewer, so that the interval is rather too wide. Of one
    training nothing is known about others: then it is for other markets alone.
    """
    trainings, markets = values.shape
    if trainings == 1:
        return over_markets(values[0])
    variance = values.mean(axis=1).var(ddof=1) / trainings + values.mean(axis=0).var(ddof=1) / markets
    width = student.ppf(0.975, min(trainings, markets) - 1) * np.sqrt(variance)
    return Interval(float(values.mean()), float(width))


def regrets(make: Callable[[], FederatedEnv], policy: Policy, seeds: Sequence[int]) -> Array:
    """Returns an agent's mean regret over the horizon in the market of each seed, ``(seeds,)``."""
    curve = simulate(make(), policy, seeds)
    return curve.regret[-1].mean(axis=-1)


def table(rivals: Mapping[str, Array], learned: Array, names: Sequence[str]) -> str:
    """Writes the table: regret of each, and how much lower the learned ones' is, market by market."""
    lines = ["| policy | mean regret | minus *learned* |", "|---|---:|---:|"]
    for name, values in rivals.items():
        difference = over_trainings_and_markets(values - learned)
        lines.append(f"| {name} | {over_markets(values)} | {difference} |")
    lines.append(
        f"| learned, {len(names)} trainings | {over_trainings_and_markets(learned)} | |"
        if len(names) > 1
        else ""
    )
    lines += [f"| {name} | {over_markets(values)} | |" for name, values in zip(names, learned, strict=True)]
    return "\n".join(line for line in lines if line)


def main() -> None:
    """Reads the command line and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=RIVALS, help="an environment's id, or a suite's name")
    parser.add_argument("--networks", type=Path, nargs="+", required=True)
    parser.add_argument("--markets", type=int, default=100)
    arguments = parser.parse_args()
    seeds, rivals = range(HELD_OUT, HELD_OUT + arguments.markets), RIVALS[arguments.task]
    makers = {arguments.task: partial(make_federation, arguments.task, max_cycles=HORIZON)}
    if arguments.task in SUITES:
        makers = {task.id: task.federation for task in SUITES[arguments.task].tasks}
    for name, make in makers.items():
        measure = partial(regrets, make, seeds=seeds)
        players = [RL2 if path.stem.startswith("RL2") else LearnedIndex for path in arguments.networks]
        learned = [measure(play(path)) for play, path in zip(players, arguments.networks, strict=True)]
        theirs = {
            " ".join([rival, *(f"{key}={value}" for key, value in changes.items())]): measure(
                BASELINES[rival].make_policy(**changes)
            )
            for rival, changes in rivals
        }
        print(f"{name}\n\n{table(theirs, np.stack(learned), [path.stem for path in arguments.networks])}\n")


if __name__ == "__main__":
    main()
