"""FedGLB-UCB, Fed-PE and DisLinUCB, beside agents alone and agents who tell each other everything."""

from functools import partial
from math import log
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale
from fedbandit_envs.papers.page import Section
from fedbandit_envs.papers.stats import (
    Row,
    bounded,
    compare,
    each,
    final_regret,
    mean_of,
    over_line,
    pays_at,
    ratio,
)
from fedbandit_envs.papers.trust import against_fellow
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES

SHARED, ALONE, SILENT = "all shared", "alone", "silence"
LITTLE = "a tenth of the radius"
DIM = 10


def _run(plan: Plan, env_id: str, env: dict[str, Any], line: str, baseline: str, **changes: Any) -> RunSpec:
    """Returns the run of one line.

    Args:
        plan: The panel and the scale.
        env_id: Id of the environment.
        env: Arguments of the environment.
        line: Name of the line.
        baseline: Name of the baseline.
        **changes: ``labels`` of the run besides ``line``; ``wrappers``, arguments of the baseline's wrappers by role;
            and, as anything else, arguments of the policy.
    """
    labels, wrappers = changes.pop("labels", {}), changes.pop("wrappers", {})
    return plan.run(line, env_id, baseline, env=env, policy=changes, wrappers=wrappers, labels=labels)


def _generalised(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of logistic bandits.

    The panel ``regret`` compares algorithms, ``threshold`` varies D, and ``privacy`` varies epsilon.
    """
    if plan.panel == "linear":
        return _linear(plan)
    agents, rounds = int(plan.scale.sweeps["agents"][0]), plan.scale.rounds
    logistic = partial(_run, plan, "FedLogistic-v0", {"num_agents": agents})
    if plan.panel == "threshold":
        printed = rounds / (agents * DIM * log(agents * rounds))
        return [
            logistic(name, name, labels={"factor": factor}, threshold=factor * printed)
            for factor in plan.scale.sweeps["factor"]
            for name in ("FedGLB-UCB", "FedGLB-UCB-quasi-newton")
        ]
    if plan.panel == "privacy":
        private: dict[str, tuple[str, dict[str, Any]]] = {
            "aggregator": ("FedGLB-UCB-private", {}),
            "server": ("FedGLB-UCB-private", {"server": {"stage": "server"}}),
            "placebo": ("FedGLB-UCB-placebo", {}),
        }
        exact = [logistic(SILENT, "N-ONS", alpha=0.3), logistic("true data", "FedGLB-UCB-true")]
        return exact + [
            logistic(
                line, name, labels={"epsilon": epsilon},
                wrappers={"privatizer": {"epsilon": epsilon}, **changes},
            )
            for epsilon in plan.scale.sweeps["epsilon"]
            for line, (name, changes) in private.items()
        ]  # fmt: skip
    return [
        logistic("FedGLB-UCB", "FedGLB-UCB"),
        logistic("FedGLB-UCB-quasi-newton", "FedGLB-UCB-quasi-newton"),
        logistic(SHARED, "UCB-GLM-shared"),
        logistic(f"{SHARED}, {LITTLE}", "UCB-GLM-shared", beta_scale=0.1),
        logistic(ALONE, "UCB-GLM"),
        logistic(f"{ALONE}, {LITTLE}", "UCB-GLM", beta_scale=0.1),
        logistic("N-ONS", "N-ONS"),
        logistic(f"{SHARED}, as if linear", "OFUL-shared"),
        logistic("random", "random-arm"),
    ]


def _linear(plan: Plan) -> list[RunSpec]:
    """Returns the runs of DisLinUCB in two problems of linear bandits."""
    # He et al.'s distribution, with all agents in every round.
    problems = {"FedLinear-v0": {}, "hypercube": REGISTRY["FedLinearAsync-v0"].kwargs}
    lines: dict[str, tuple[str, dict[str, Any]]] = {
        ALONE: ("LinUCB", {}),
        "DisLinUCB": ("DisLinUCB", {}),
        "DisLinUCB, small D": ("DisLinUCB", {"threshold": "li"}),
        SHARED: ("FedUCB-nonprivate", {"wrappers": {"channel": {"schedule": "every_round"}}}),
    }
    return [
        _run(plan, "FedLinear-v0", env, line, name, labels={"problem": problem}, **changes)
        for problem, env in problems.items()
        for line, (name, changes) in lines.items()
    ]


def _fixed(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Fed-PE, for each number of agents."""
    lines = {name: name for name in ("Fed-PE", "Fed-PE-enhanced", "Fed-PE-collaborative")}
    lines |= {ALONE: "Local-UCB", SHARED: "OFUL-disjoint-shared"}
    return [
        _run(plan, "FedFixed-v0", {"num_agents": int(agents)}, line, name, labels={"agents": agents})
        for agents in plan.scale.sweeps["agents"]
        for line, name in lines.items()
    ]


def sent(result: RunResult) -> tuple[Array, Array]:
    """Returns messages of all agents, up and down, and the numbers of 64 bits that they hold, each ``(seeds,)``."""
    if not result.traffic:
        nothing = np.zeros(result.regret.shape[1])
        return nothing, nothing
    messages, size = (np.asarray(result.traffic[name].sum(axis=1)) for name in ("messages", "bytes"))
    return messages, (size - HEADER_BYTES * messages) / 8


RIVAL = {"regret": SHARED, "linear": SHARED, "threshold": "FedGLB-UCB", "all": ALONE, "privacy": SILENT}
"""The line by whose regret the others' regret is divided, by panel."""


def _costs(runs: PanelRuns) -> list[Row]:
    """Returns a row for each run: regret of all agents, also over a rival's, and what is sent, or the claim."""
    rows: list[Row] = []
    rival = RIVAL[runs.panel]
    for labels, result in runs.rows:
        swept = {name: value for name, value in labels.items() if name not in ("line", "problem")}
        shared = {name: labels[name] for name in ("factor", "agents", "problem") if name in labels}
        other = runs.one(rival, **shared)
        row: dict[str, Any] = {
            "algorithm": ", ".join([labels["line"], *(f"{name} {value:g}" for name, value in swept.items())]),
            "regret (± 95 %)": mean_of(result.regret[-1].sum(axis=1), ",.0f"),
            f"/ {rival}": "1" if other is result else ratio(result, other),
        }
        if runs.panel == "privacy":
            row["claim against a fellow agent"] = against_fellow(result)
        else:
            row["messages"], row["numbers sent"] = (mean_of(count, ",.0f") for count in sent(result))
        rows.append(row)
    return rows


def _regret_verdicts(runs: PanelRuns) -> list[Row]:
    fed, newton, shared, alone = (
        runs[line] for line in ("FedGLB-UCB", "FedGLB-UCB-quasi-newton", SHARED, ALONE)
    )
    (of_fed, size), (of_newton, small), (of_shared, large) = map(sent, (fed, newton, shared))
    little, less = runs[f"{ALONE}, {LITTLE}"], runs[f"{SHARED}, {LITTLE}"]
    asked = {
        "regret, FedGLB-UCB / all shared": (ratio(fed, shared), 1.5),
        "regret, FedGLB-UCB / alone": (ratio(fed, alone), 1 / 30),
        f"regret, FedGLB-UCB / alone, {LITTLE}": (ratio(fed, little), None),
        f"regret, all shared, {LITTLE} / FedGLB-UCB": (ratio(less, fed), None),
        "numbers sent, quasi-Newton / FedGLB-UCB": (compare(small, size), 0.1),
        "messages, quasi-Newton / FedGLB-UCB": (compare(of_newton, of_fed), None),
        "regret, quasi-Newton / FedGLB-UCB": (ratio(newton, fed), None),
        "messages, FedGLB-UCB / all shared": (compare(of_fed, of_shared), None),
        "numbers sent, FedGLB-UCB / all shared": (compare(size, large), None),
    }
    return [bounded("ratio", what, value, bound) for what, (value, bound) in asked.items()]


def _report_generalised(section: Section, runs: PanelRuns) -> None:
    """Reports verdicts, regret and what is sent, over rounds or over the quantity that the panel varies."""
    if runs.panel == "privacy":
        curves = over_line(runs.lines("epsilon"), SILENT)
        below = [{"line": name, "below silence at epsilon": pays_at(own)} for name, own in curves.items()]
        section.table("verdicts", below)
        section.table("regret", _costs(runs))
        section.draw(curves)
        return
    if runs.panel == "threshold":
        section.table("regret", _costs(runs))
        section.draw(each(runs.lines("factor"), final_regret))
        return
    if runs.panel == "regret":
        section.table("verdicts", _regret_verdicts(runs))
        section.table("regret", _costs(runs))
    problems = {problem: runs.where(problem=problem) for problem in runs.values("problem")}
    for problem, at in problems.items():
        near, alone = ratio(at["DisLinUCB, small D"], at[SHARED]), ratio(at["DisLinUCB"], at[ALONE])
        verdicts = [
            bounded("regret", "DisLinUCB, small D / all shared", near, 1.2),
            bounded("regret", "DisLinUCB / alone", alone, 1),
        ]
        section.table(f"verdicts-{problem}", verdicts)
    for problem, at in problems.items():
        section.table(f"regret-{problem}", _costs(at))
    for labels, result in runs.rows:
        points = zip(result.rounds, result.regret.sum(axis=2), strict=True)
        name = ", ".join(str(labels[of]) for of in ("line", "problem") if of in labels)
        section.draw({name: {at: mean_of(values) for at, values in points}})


def _report_fixed(section: Section, runs: PanelRuns) -> None:
    """Reports verdicts, regret and what is sent for each number of agents."""
    for agents in runs.values("agents"):
        at = runs.where(agents=agents)
        fed, shared = at["Fed-PE"], at[SHARED]
        messages = compare(sent(shared)[0], sent(fed)[0]).value
        verdicts = [
            bounded("ratio", "regret, Fed-PE / alone", ratio(fed, at[ALONE]), 1),
            bounded("ratio", "regret, enhanced / Fed-PE", ratio(at["Fed-PE-enhanced"], fed)),
            bounded("ratio", "regret, collaborative / Fed-PE", ratio(at["Fed-PE-collaborative"], fed)),
            bounded("ratio", "regret, all shared / Fed-PE", ratio(shared, fed)),
            bounded("ratio", "messages, all shared / Fed-PE", f"{messages:,.0f}"),
        ]
        section.table(f"verdicts{agents:g}", verdicts)
    section.table("regret", _costs(runs))
    section.draw(each(runs.lines("agents"), final_regret))


_SWEEPS = {"agents": (200.0,), "factor": (0.1, 1.0, 10.0, 100.0), "epsilon": (1.0, 3.0, 10.0, 30.0, 100.0)}

EXPERIMENTS = {
    "fedglb": Experiment(
        "FedGLB-UCB: a server that asks for gradients",
        "What a server that asks for gradients gains, sends and gives away; an hour.",
        {"x": "quantity", "y": "regret of all agents"},
        {
            "tiny": Scale(40, 2, {"agents": (5,), "factor": (1.0,), "epsilon": (10.0,)}),
            "small": Scale(2_000, 20, _SWEEPS),
            "paper": Scale(2_000, 20, _SWEEPS),
        },
        _generalised,
        _report_generalised,
        {
            "regret": "What is sent for what it saves",
            "threshold": "The threshold D",
            "privacy": "Privacy of all data of an agent",
            "linear": "DisLinUCB in linear bandits",
        },
        panel_axes={
            "regret": {"x": "round"},
            "threshold": {"x": "D over the default", "y": "regret per agent"},
            "privacy": {"x": "epsilon", "y": "regret / silence's"},
            "linear": {"x": "round"},
        },
    ),
    "fed-pe": Experiment(
        "Fed-PE: a server that plans what agents explore",
        "What a server gains that plans what agents explore; 20 minutes.",
        {"x": "number of agents", "y": "regret per agent"},
        {
            "tiny": Scale(300, 2, {"agents": (4.0,)}),
            "small": Scale(131_072, 20, {"agents": (10.0, 30.0, 100.0)}),
            "paper": Scale(131_072, 20, {"agents": (10.0, 30.0, 100.0)}),
        },
        _fixed,
        _report_fixed,
    ),
}
