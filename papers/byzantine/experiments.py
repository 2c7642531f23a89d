"""Runs that measure how much Byzantine agents raise the regret of honest agents; the experiment is from no paper."""

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale

SILENT = "LinUCB"
BY_NUMBER = "FedUCB-trimmed-mean"
MEANINGS = {
    SILENT: "silent",
    "FedUCB-nonprivate": "true data, added up",
    "FedUCB-trimmed": "true data, without the two in five senders furthest from the median",
    BY_NUMBER: "true data, each number without a quarter of the senders at either end",
    "FedUCB-min": "noisy data, added up",
    "FedUCB-min-trimmed": "noisy data, without the two in five senders furthest from the median",
}
"""A description of each baseline compared, by name."""

_PRIVATE = (SILENT, "FedUCB-min", "FedUCB-min-trimmed")
_NONPRIVATE = (SILENT, "FedUCB-nonprivate", "FedUCB-trimmed", BY_NUMBER)
_LIARS = {"liars": (0.0, 0.1, 0.2, 0.3, 0.4)}
SCALES = {"small": Scale(10_000, 20, _LIARS), "paper": Scale(100_000, 20, _LIARS)}

DELTA = 0.1


def byzantine(plan: Plan) -> list[RunSpec]:
    """Returns the runs of a panel: each of its baselines with each share of liars, under the panel's attack."""
    attack = plan.panel.removesuffix("-private")
    return [
        RunSpec(
            name, "FedLinear-v0", plan.scale.rounds, plan.scale.trials,
            env_kwargs={"num_agents": 10, "dim": 5, "num_arms": 20, "gap": 0.1},
            stack=[("fedbandit_envs.wrappers.byzantine:Byzantine", {"agents": share, "attack": attack})],
            delta=DELTA, labels={"line": name, "liars": share},
        )
        for name in (_NONPRIVATE if attack == plan.panel else _PRIVATE)
        for share in plan.scale.sweeps["liars"]
    ]  # fmt: skip


EXPERIMENTS = {
    "byzantine": Experiment(
        "Liars: honest agents' regret against their share",
        {"x": "share of liars", "y": "honest agents' regret at T", "xscale": "linear"},
        SCALES,
        byzantine,
        {
            "garbage": "Garbage, true data",
            "sign_flip": "Sign flip, true data",
            "garbage-private": "Garbage, private, epsilon = 1",
            "sign_flip-private": "Sign flip, private, epsilon = 1",
        },
    )
}
