"""Handwritten digits as a federated bandit, an arm a class; the experiment is from no paper."""

from functools import partial
from itertools import product
from typing import Any

from fedbandit_envs.papers.experiment import LINEAR, Experiment, PanelRuns, Plan, Runs, Scale, Section
from fedbandit_envs.papers.stats import bounded, final_regret, over, ratio

DELTA = 1e-5
ALPHA = 0.1
RANDOM, ALONE, BY_ARM, SHARED = "random", "alone", "alone, a regression for each arm", "all shared"
PAPER, OURS, PLACEBO = "FedUCB-min", "FedUCB-weighted", "placebo"
MEANINGS = {
    RANDOM: "guesses",
    ALONE: "LinUCB on own answers",
    BY_ARM: "the same with a constant radius",
    SHARED: "LinUCB on the answers of all agents, sent without noise in every round",
    PAPER: "noisy sums, sent in rounds 1, 2, 4 ..., added up",
    OURS: "the same, weighted by their precision",
    PLACEBO: "FedUCB-weighted on noise alone",
}
"""What each algorithm does, by the first part of its name."""
RADIUS = {"beta_scale": 0.2}
"""Of the factors of the radius that tuning tries, the best for agents alone, on seeds that are not played here."""


def _runs(plan: Plan) -> Runs:
    """Returns a panel's runs: agents whose classes are alike, or drawn from Dirichlet(:data:`ALPHA`)."""
    digits = {"name": "classification", "data": "digits", "components": 10}
    if plan.panel == "unlike":
        digits["alpha"] = ALPHA
    plain, by_arm = ({"contexts": contexts} for contexts in (digits, {**digits, "features": "shared"}))
    run = partial(plan.run, env_id="FedClassification-v0", env=plain, policy=RADIUS, delta=DELTA)
    noise = {at: {"privatizer": {"epsilon": at, "delta": DELTA}} for at in (1.0, 10.0)}
    private = product((PAPER, OURS), noise)
    return [
        run(RANDOM, baseline="random-arm", policy={}),
        run(ALONE, baseline="LinUCB"),
        run(BY_ARM, baseline="LinUCB-disjoint", env=by_arm, policy={"alpha": 1.0}),
        run(SHARED, baseline="FedUCB-every-round"),
        *(run(f"{name}, epsilon = {at:g}", baseline=name, wrappers=noise[at]) for name, at in private),
        run(PLACEBO, baseline="FedUCB-weighted-placebo", wrappers=noise[10.0]),
    ]


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports wrong answers of each algorithm, also over those of agents alone, and verdicts on these."""
    found = runs.by()
    beside = over(found, found[ALONE])
    bounds = {SHARED: 0.8} | {line: 1 for line in found if line.startswith((PAPER, OURS))}
    verdicts = [bounded("wrong answers", f"{line} / alone", beside[line], at) for line, at in bounds.items()]
    best = f"{OURS}, epsilon = 10"
    verdicts.append(bounded("wrong answers", f"{best} / placebo", runs.ratio(best, PLACEBO)))
    section.table("verdicts", verdicts)
    columns: dict[str, Any] = {
        "what it does": lambda result: MEANINGS[result.labels["line"].partition(", eps")[0]],
        "wrong answers [95 %]": final_regret,
        "/ alone": partial(ratio, below=found[ALONE]),
    }
    section.table("answers", runs.table("algorithm", columns))
    section.draw_over_rounds(runs)


EXPERIMENTS = {
    "classification": Experiment(
        "Digits: agents that learn to read, alone, together and behind noise",
        "Whether agents who name handwritten digits gain by sharing, with and without noise; 10 minutes.",
        {"x": "round", "y": "wrong answers per agent", **LINEAR},
        {"tiny": Scale(30, 2), "small": Scale(1_000, 20), "paper": Scale(10_000, 20)},
        _runs, _report,
        {"alike": "Agents with the same classes", "unlike": "Classes drawn from Dirichlet(0.1) for each agent"},
    )
}  # fmt: skip
