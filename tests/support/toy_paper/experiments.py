from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Scale


def runs(plan):
    return [
        RunSpec(
            name, "FedProcurement-v0", plan.scale.rounds, plan.scale.trials,
            policy_kwargs={"radius_scale": radius}, delta=0.1, labels={"line": name, "radius": radius},
        )
        for name in ("SS-UCB", "P-FCB")
        for radius in plan.scale.sweeps["radius"]
    ]  # fmt: skip


TOY = Experiment(
    "Radius of confidence",
    {"x": "round", "y": "regret"},
    {"small": Scale(300, 8, {"radius": (0.5, 1.0)})},
    runs,
    {"federation": "The federation"},
)
