"""Compares a learned rule of when to send with schedules and the determinant trigger, and writes a Markdown table.

    python examples/learned/score_send.py --rules ES-send-*.npz

All of them pull as FedUCB-weighted does, and are played on the same instances, those of seeds 9000 and up, which no
training saw. Noise is made for as many releases as a schedule has; for those who ask, as in training. Differences are
from the learned rules' mean, paired by instance; intervals are for other instances. How far off another training may be
is to be seen from rules one by one.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from score import HELD_OUT, over_markets
from train_send import PRICE, RELEASES, costs, learner, play

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.policy import Policy
from fedbandit_envs.basics.arrays import Array

FIXED: Mapping[str, Any] = {
    "silence": "silent",
    "every round": "every_round",
    **{f"gap {gap}": {"name": "fixed_gap", "gap": gap} for gap in (10, 25, 50, 100, 200)},
    **{
        f"doubling from {start}": {"name": "doubling", "start": start, "stop": None}
        for start in (1, 4, 16, 32, 64)
    },
    **{
        f"doubling from {start} to {stop}": {"name": "doubling", "start": start, "stop": stop}
        for start, stop in ((16, 64), (16, 128), (32, 128), (64, 128))
    },
}
"""Schedules fixed in advance."""

THRESHOLDS = {"the paper's": None, "100": 100.0, "300": 300.0, "1500": 1500.0}
"""D of the determinant trigger."""


class Played(NamedTuple):
    """What a way to send came to, ``(instances,)`` each: means over agents.

    Attributes:
        regret: Over the horizon.
        messages: Sent by an agent, traversals of an edge.
        cost: Regret and the price of messages.
        epsilon: What is claimed; None if nothing is.
    """

    regret: Array
    messages: Array
    cost: Array
    epsilon: float | None


def measure(policy: Policy, schedule: Any, releases: Any, instances: int) -> Played:
    """Plays held-out instances."""
    played, claim = play(policy, schedule, releases, range(HELD_OUT, HELD_OUT + instances))
    assert played.messages is not None
    messages = played.messages[-1].mean(axis=-1)
    return Played(played.regret[-1].mean(axis=-1), messages, costs(played), claim.epsilon)


def line(name: str, played: Played, less: str) -> str:
    """Writes a row of the table."""
    epsilon = "none" if played.epsilon is None else f"{played.epsilon:.2g}"
    sums = f"{over_markets(played.regret)} | {played.messages.mean():.1f} | {over_markets(played.cost)}"
    return f"| {name} | {sums} | {less} | {epsilon} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", type=Path, nargs="+", required=True)
    parser.add_argument("--instances", type=int, default=100)
    arguments = parser.parse_args()
    learned = [
        measure(learner(path), "on_request", RELEASES, arguments.instances) for path in arguments.rules
    ]
    ours = np.mean([played.cost for played in learned], axis=0)

    pulls = BASELINES["FedUCB-weighted"].make_policy
    rivals = {
        name: measure(pulls(), schedule, 1 if schedule == "silent" else schedule, arguments.instances)
        for name, schedule in FIXED.items()
    } | {
        f"determinant, D {name}": measure(
            pulls(threshold=threshold), "synchronise", RELEASES, arguments.instances
        )
        for name, threshold in THRESHOLDS.items()
    }
    print(f"| who sends when | regret | messages | regret + {PRICE} messages | minus *learned* | epsilon |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, played in sorted(rivals.items(), key=lambda rival: rival[1].cost.mean()):
        print(line(name, played, str(over_markets(played.cost - ours))))
    for path, played in zip(arguments.rules, learned, strict=True):
        print(line(path.stem, played, ""))
    print(f"Learned, all {len(learned)}: cost {over_markets(ours)}.")


if __name__ == "__main__":
    main()
