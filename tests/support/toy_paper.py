"""An experiment that is no paper's: one panel, seeds with markets of their own, one mode."""

from fedbandit_envs.papers.experiment import Experiment, Scale
from fedbandit_envs.papers.stats import judged, links, over_rounds


def runs(plan):
    return [
        plan.run(
            name, "FedProcurement-v0", policy={"radius_scale": radius}, delta=0.1, labels={"radius": radius}
        )
        for name in ("SS-UCB", "P-FCB")
        for radius in plan.scale.sweeps["radius"]
    ]


def report(page, runs):
    (narrow,) = links(runs.by("radius", line="SS-UCB").values())
    page.verdicts([judged("narrow / wide", [narrow])])
    page.record({"narrow / wide": {"": narrow}})
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
