"""Runs on handwritten digits, an arm a class; the experiment is from no paper."""

from typing import Any

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import LINEAR, Experiment, Plan, Scale

DELTA = 1e-5
ALPHA = 0.1
RANDOM, ALONE, BY_ARM, SHARED = "random", "alone", "alone, a regression for each arm", "all shared"
PAPER, OURS = "FedUCB-min", "FedUCB-weighted"
PLACEBO = "placebo"
RADIUS = {"beta_scale": 0.2}
"""Of the factors of the radius that tuning tries, the best for agents alone, on seeds that are not played here."""


def classification(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs: agents whose classes are alike, or drawn from Dirichlet(:data:`ALPHA`)."""
    digits = {"name": "classification", "data": "digits", "components": 10}
    if plan.panel == "unlike":
        digits["alpha"] = ALPHA

    def run(line: str, baseline: str, policy: dict[str, Any] = RADIUS, **wrappers: Any) -> RunSpec:
        contexts = {**digits, "features": "shared"} if line == BY_ARM else digits
        return RunSpec(
            baseline, "FedClassification-v0", plan.scale.rounds, plan.scale.trials, delta=DELTA,
            env_kwargs={"contexts": contexts}, policy_kwargs=policy, wrapper_kwargs=wrappers, labels={"line": line},
        )  # fmt: skip

    return [
        run(RANDOM, "random-arm", {}),
        run(ALONE, "LinUCB"),
        run(BY_ARM, "LinUCB-disjoint", {"alpha": 1.0}),
        run(SHARED, "FedUCB-nonprivate", channel={"schedule": "every_round"}),
        *(
            run(f"{name}, epsilon = {epsilon:g}", name, privatizer={"epsilon": epsilon, "delta": DELTA})
            for name in (PAPER, OURS)
            for epsilon in plan.scale.sweeps["epsilon"]
        ),
        run(PLACEBO, "FedUCB-weighted-placebo", privatizer={"epsilon": 10.0, "delta": DELTA}),
    ]


_EPSILONS = {"epsilon": (1.0, 10.0)}
EXPERIMENTS = {
    "classification": Experiment(
        "Digits: agents that learn to read, alone, together and behind noise",
        {"x": "round", "y": "wrong answers per agent", **LINEAR},
        {
            "tiny": Scale(30, 2, _EPSILONS),
            "small": Scale(1_000, 20, _EPSILONS),
            "paper": Scale(10_000, 20, _EPSILONS),
        },
        classification,
        {
            "alike": "Agents with the same classes",
            "unlike": "Classes drawn from Dirichlet(0.1) for each agent",
        },
    )
}
