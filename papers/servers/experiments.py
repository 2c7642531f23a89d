"""Runs of FedGLB-UCB, Fed-PE and DisLinUCB, beside agents alone and agents who tell each other everything."""

from math import log
from typing import Any

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale
from fedbandit_envs.registry.registration import REGISTRY

SHARED, ALONE, SILENT = "all shared", "alone", "silence"
_DIM = 10


def _run(plan: Plan, baseline: str, env_id: str, env: dict[str, Any], **changes: Any) -> RunSpec:
    """Returns the run of one line.

    Args:
        plan: The panel and the scale.
        baseline: Name of the baseline.
        env_id: Id of the environment.
        env: Arguments of the environment.
        **changes: ``labels`` of the run besides ``line``; ``wrappers``, arguments of the baseline's wrappers by role;
            ``line``, its name; and, as anything else, arguments of the policy.
    """
    labels = {"line": changes.pop("line", baseline), **changes.pop("labels", {})}
    wrappers = changes.pop("wrappers", {})
    return RunSpec(
        baseline, env_id, plan.scale.rounds, plan.scale.trials, env_kwargs=env, policy_kwargs=changes,
        wrapper_kwargs=wrappers, labels=labels,
    )  # fmt: skip


def generalised(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of logistic bandits.

    The panel ``regret`` compares algorithms, ``threshold`` varies D, ``privacy`` varies epsilon, and ``linear`` has the
    algorithm for linear bandits in two problems.
    """
    agents = int(plan.scale.sweeps["agents"][0])
    if plan.panel == "linear":
        # He et al.'s law, with all agents in every round.
        problems = {"FedLinear-v0": {}, "hypercube": REGISTRY["FedLinearAsync-v0"].kwargs}
        every_round = {"channel": {"schedule": "every_round"}}
        return [
            _run(plan, name, "FedLinear-v0", env, line=line, labels={"problem": problem}, **changes)
            for problem, env in problems.items()
            for line, name, changes in (
                (ALONE, "LinUCB", {}),
                ("DisLinUCB", "DisLinUCB", {}),
                ("DisLinUCB, small D", "DisLinUCB", {"threshold": "li"}),
                (SHARED, "FedUCB-nonprivate", {"wrappers": every_round}),
            )
        ]
    env = {"num_agents": agents}
    if plan.panel == "threshold":
        printed = plan.scale.rounds / (agents * _DIM * log(agents * plan.scale.rounds))
        return [
            _run(plan, name, "FedLogistic-v0", env, labels={"factor": factor}, threshold=factor * printed)
            for factor in plan.scale.sweeps["factor"]
            for name in ("FedGLB-UCB", "FedGLB-UCB-quasi-newton")
        ]
    if plan.panel == "privacy":
        exact: tuple[tuple[str, str, dict[str, Any]], ...] = (
            (SILENT, "N-ONS", {"alpha": 0.3}),
            ("true data", "FedGLB-UCB-true", {}),
        )
        private: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("aggregator", "FedGLB-UCB-private", {}),
            ("server", "FedGLB-UCB-private", {"server": {"stage": "server"}}),
            ("placebo", "FedGLB-UCB-placebo", {}),
        )
        return [
            *(_run(plan, name, "FedLogistic-v0", env, line=line, **given) for line, name, given in exact),
            *(
                _run(
                    plan, name, "FedLogistic-v0", env, line=line, labels={"epsilon": epsilon},
                    wrappers={"privatizer": {"epsilon": epsilon}, **changes},
                )
                for epsilon in plan.scale.sweeps["epsilon"]
                for line, name, changes in private
            ),
        ]  # fmt: skip
    little = {"beta_scale": 0.1}
    lines: list[tuple[str, str, dict[str, Any]]] = [
        ("FedGLB-UCB", "FedGLB-UCB", {}),
        ("FedGLB-UCB-quasi-newton", "FedGLB-UCB-quasi-newton", {}),
        (SHARED, "UCB-GLM-shared", {}),
        (f"{SHARED}, a tenth of the radius", "UCB-GLM-shared", little),
        (ALONE, "UCB-GLM", {}),
        (f"{ALONE}, a tenth of the radius", "UCB-GLM", little),
        ("N-ONS", "N-ONS", {}),
        (f"{SHARED}, as if linear", "OFUL-shared", {}),
        ("random", "random-arm", {}),
    ]
    return [_run(plan, name, "FedLogistic-v0", env, line=line, **changes) for line, name, changes in lines]


def fixed_features(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Fed-PE, for each number of agents."""
    lines = {
        "Fed-PE": "Fed-PE",
        "Fed-PE-enhanced": "Fed-PE-enhanced",
        "Fed-PE-collaborative": "Fed-PE-collaborative",
        ALONE: "Local-UCB",
        SHARED: "OFUL-disjoint-shared",
    }
    return [
        _run(plan, name, "FedFixed-v0", {"num_agents": int(agents)}, line=line, labels={"agents": agents})
        for agents in plan.scale.sweeps["agents"]
        for line, name in lines.items()
    ]


_SWEEPS = {"agents": (200.0,), "factor": (0.1, 1.0, 10.0, 100.0), "epsilon": (1.0, 3.0, 10.0, 30.0, 100.0)}

EXPERIMENTS = {
    "fedglb": Experiment(
        "FedGLB-UCB: a server that asks for gradients",
        {"x": "quantity", "y": "regret of all agents"},
        {
            "tiny": Scale(40, 2, {"agents": (5,), "factor": (1.0,), "epsilon": (10.0,)}),
            "small": Scale(2_000, 20, _SWEEPS),
            "paper": Scale(2_000, 20, _SWEEPS),
        },
        generalised,
        {
            "regret": "What is sent for what it saves",
            "threshold": "The threshold D",
            "privacy": "Privacy of all data of an agent",
            "linear": "DisLinUCB in linear bandits",
        },
        "generalised_setting.md.j2",
        panel_axes={
            "regret": {"x": "round"},
            "threshold": {"x": "D over the default", "y": "regret per agent"},
            "privacy": {"x": "epsilon", "y": "regret / silence's"},
            "linear": {"x": "round"},
        },
    ),
    "fed-pe": Experiment(
        "Fed-PE: a server that plans what agents explore",
        {"x": "number of agents", "y": "regret per agent"},
        {
            "tiny": Scale(300, 2, {"agents": (4.0,)}),
            "small": Scale(131_072, 20, {"agents": (10.0, 30.0, 100.0)}),
            "paper": Scale(131_072, 20, {"agents": (10.0, 30.0, 100.0)}),
        },
        fixed_features,
        setting="fixed_setting.md.j2",
    ),
}
