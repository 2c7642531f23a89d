"""An experiment that is no paper's: one panel, seeds with markets of their own, one mode."""

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.comparison import ordered, over_rounds
from fedbandit_envs.papers.experiment import Experiment, Scale


def runs(plan):
    return [
        RunSpec(
            name, "FedProcurement-v0", plan.scale.rounds, plan.scale.trials,
            policy_kwargs={"radius_scale": radius}, delta=0.1, labels={"line": name, "radius": radius},
        )
        for name in ("SS-UCB", "P-FCB")
        for radius in plan.scale.sweeps["radius"]
    ]  # fmt: skip


def report(page, runs):
    order, links = ordered(runs.by("radius", line="SS-UCB").values())
    page.sentences(("A narrow radius has less regret.", links[0], order))
    page.record({"narrow / wide": {"": links[0]}})
    page.claims(runs.one("P-FCB", radius=1.0).claims)
    page.draw({f"{own['line']} {own['radius']:g}": over_rounds(result) for own, result in runs.rows})


TOY = Experiment(
    "Radius of confidence",
    "What a narrow radius saves; seconds",
    {"x": "round", "y": "regret"},
    {"small": Scale(300, 8, {"radius": (0.5, 1.0)})},
    runs,
    report,
    {"federation": "The federation"},
)
EXPERIMENTS = {"toy": TOY}
