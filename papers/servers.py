"""FedGLB-UCB, Fed-PE and DisLinUCB, beside agents alone and agents who tell each other everything."""

from functools import partial
from math import log
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Runs, Scale, Section, named
from fedbandit_envs.papers.stats import Ratio, Row, bounded, compare, mean_of, ratio
from fedbandit_envs.papers.trust import against_fellow
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES

SHARED, ALONE, SILENT = "all shared", "alone", "silence"
LITTLE = "a tenth of the radius"
DIM = 10
PRIVATE = {
    "aggregator": "FedGLB-UCB-private",
    "server": "FedGLB-UCB-at-server",
    "placebo": "FedGLB-UCB-placebo",
}
"""The baseline of each line with noise, by who adds it."""


def _generalised(plan: Plan) -> Runs:
    """Returns a panel's runs.

    The panel ``regret`` compares algorithms, ``threshold`` varies D, and ``privacy`` varies epsilon.
    """
    if plan.panel == "linear":
        return _linear(plan)
    agents, rounds, sweeps = int(plan.scale.sweeps["agents"][0]), plan.scale.rounds, plan.scale.sweeps
    logistic = partial(plan.run, env_id="FedLogistic-v0", env={"num_agents": agents})
    both, tenth = ("FedGLB-UCB", "FedGLB-UCB-quasi-newton"), {"beta_scale": 0.1}
    if plan.panel == "threshold":
        printed = rounds / (agents * DIM * log(agents * rounds))
        return [
            logistic(name, labels={"factor": factor}, policy={"threshold": factor * printed})
            for factor in sweeps["factor"]
            for name in both
        ]
    if plan.panel == "privacy":
        silence = logistic(SILENT, baseline="N-ONS", policy={"alpha": 0.3})
        return [silence, logistic("true data", baseline="FedGLB-UCB-true")] + [
            logistic(line, baseline=name, labels=noise, wrappers={"privatizer": noise})
            for noise in ({"epsilon": epsilon} for epsilon in sweeps["epsilon"])
            for line, name in PRIVATE.items()
        ]
    return [
        *map(logistic, both),
        logistic(SHARED, baseline="UCB-GLM-shared"),
        logistic(f"{SHARED}, {LITTLE}", baseline="UCB-GLM-shared", policy=tenth),
        logistic(ALONE, baseline="UCB-GLM"),
        logistic(f"{ALONE}, {LITTLE}", baseline="UCB-GLM", policy=tenth),
        logistic("N-ONS"),
        logistic(f"{SHARED}, as if linear", baseline="OFUL-shared"),
        logistic("random", baseline="random-arm"),
    ]


def _linear(plan: Plan) -> Runs:
    """Returns the runs of DisLinUCB in two problems of linear bandits."""
    runs = []
    # He et al.'s distribution, with all agents in every round.
    for problem, env in {"FedLinear-v0": {}, "hypercube": REGISTRY["FedLinearAsync-v0"].kwargs}.items():
        labels = {"problem": problem, "dim": env.get("dim", DIM)}
        linear = partial(plan.run, env_id="FedLinear-v0", env=env, labels=labels)
        runs += [
            linear(ALONE, baseline="LinUCB"),
            linear("DisLinUCB"),
            linear("DisLinUCB, small D", baseline="DisLinUCB", policy={"threshold": "li"}),
            linear(SHARED, baseline="OFUL-shared", policy={"alpha": None}),
        ]
    return runs


def _fixed(plan: Plan) -> Runs:
    """Returns the runs of Fed-PE, for each number of agents."""
    lines = {name: name for name in ("Fed-PE", "Fed-PE-enhanced", "Fed-PE-collaborative")}
    lines |= {ALONE: "Local-UCB", SHARED: "OFUL-disjoint-shared"}
    return [
        plan.run(line, "FedFixed-v0", name, env={"num_agents": int(agents)}, labels={"agents": agents})
        for agents in plan.scale.sweeps["agents"]
        for line, name in lines.items()
    ]


def sent(result: RunResult) -> tuple[Array, Array]:
    """Returns messages of all agents, up and down, and the numbers of 64 bits that they hold, each ``(seeds,)``.

    Messages of sums of x x^T and y x count as d^2 + d numbers each, for contexts of the dimension d that is the label
    ``dim``: ours also hold the second sum again and that of y^2.
    """
    if not result.traffic:
        nothing = np.zeros(result.regret.shape[1])
        return nothing, nothing
    messages, size = (np.asarray(result.traffic[name].sum(axis=1)) for name in ("messages", "bytes"))
    dim = result.labels.get("dim")
    return messages, messages * dim * (dim + 1) if dim else (size - HEADER_BYTES * messages) / 8


RIVAL = {"regret": SHARED, "linear": SHARED, "threshold": "FedGLB-UCB", "all": ALONE, "privacy": SILENT}
"""The line by whose regret the others' regret is divided, by panel."""


def _costs(runs: PanelRuns) -> list[Row]:
    """Returns a row for each run: regret of all agents, also over a rival's, and what is sent, or the claim."""
    rival = RIVAL[runs.plan.panel]

    def over_rival(result: RunResult) -> Ratio:
        known = result.labels
        return ratio(result, runs.one(rival, **{of: known[of] for of in ("factor", "agents") if of in known}))

    columns: dict[str, Any] = {"regret [95 %]": stats.of_all_agents, f"/ {rival}": over_rival}
    if runs.plan.panel == "privacy":
        columns["claim against a fellow agent"] = against_fellow
    else:
        columns["messages"] = lambda result: mean_of(sent(result)[0], ",.0f")
        columns["numbers sent"] = lambda result: mean_of(sent(result)[1], ",.0f")
    return runs.table("algorithm", columns, "factor", "epsilon", "agents")


def _regret_verdicts(runs: PanelRuns) -> list[Row]:
    fed, newton = "FedGLB-UCB", "FedGLB-UCB-quasi-newton"
    (of_fed, size), (of_newton, small) = sent(runs[fed]), sent(runs[newton])
    of_shared, large = sent(runs[SHARED])
    asked = {
        "regret, FedGLB-UCB / all shared": (runs.ratio(fed, SHARED), 1.5),
        "regret, FedGLB-UCB / alone": (runs.ratio(fed, ALONE), 1 / 30),
        f"regret, FedGLB-UCB / alone, {LITTLE}": (runs.ratio(fed, f"{ALONE}, {LITTLE}"), None),
        f"regret, all shared, {LITTLE} / FedGLB-UCB": (runs.ratio(f"{SHARED}, {LITTLE}", fed), None),
        "numbers sent, quasi-Newton / FedGLB-UCB": (compare(small, size), 0.1),
        "messages, quasi-Newton / FedGLB-UCB": (compare(of_newton, of_fed), None),
        "regret, quasi-Newton / FedGLB-UCB": (runs.ratio(newton, fed), None),
        "messages, FedGLB-UCB / all shared": (compare(of_fed, of_shared), None),
        "numbers sent, FedGLB-UCB / all shared": (compare(size, large), None),
    }
    return [bounded("ratio", what, value, bound) for what, (value, bound) in asked.items()]


def _report_generalised(section: Section, runs: PanelRuns) -> None:
    """Reports verdicts, regret and what is sent, over rounds or over the quantity that the panel varies."""
    if runs.plan.panel == "privacy":
        curves = stats.over_line(runs.lines("epsilon"), SILENT)
        below = {"below silence at epsilon": {name: stats.pays_at(own) for name, own in curves.items()}}
        section.table("verdicts", stats.by_x(below, "line", "{}"))
        section.draw(curves)
    elif runs.plan.panel == "threshold":
        section.draw(stats.each(runs.lines("factor"), stats.final_regret))
    else:
        for labels, result in runs.rows:
            section.draw({named(labels, "problem"): stats.curve_of(result, result.regret.sum(axis=2))})
    if runs.plan.panel == "regret":
        section.table("verdicts", _regret_verdicts(runs))
    if runs.plan.panel != "linear":
        section.table("regret", _costs(runs))
    for problem, at in runs.groups("problem").items():
        section.table(f"verdicts-{problem}", [
            bounded("regret", "DisLinUCB, small D / all shared", at.ratio("DisLinUCB, small D", SHARED), 1.2),
            bounded("regret", "DisLinUCB / alone", at.ratio("DisLinUCB", ALONE), 1),
        ])  # fmt: skip
        section.table(f"regret-{problem}", _costs(at))


def _report_fixed(section: Section, runs: PanelRuns) -> None:
    """Reports verdicts, regret and what is sent for each number of agents."""
    for agents, at in runs.groups("agents").items():
        messages = compare(sent(at[SHARED])[0], sent(at["Fed-PE"])[0]).value
        section.table(f"verdicts{agents:g}", [
            bounded("ratio", "regret, Fed-PE / alone", at.ratio("Fed-PE", ALONE), 1),
            bounded("ratio", "regret, enhanced / Fed-PE", at.ratio("Fed-PE-enhanced", "Fed-PE")),
            bounded("ratio", "regret, collaborative / Fed-PE", at.ratio("Fed-PE-collaborative", "Fed-PE")),
            bounded("ratio", "regret, all shared / Fed-PE", at.ratio(SHARED, "Fed-PE")),
            bounded("ratio", "messages, all shared / Fed-PE", f"{messages:,.0f}"),
        ])  # fmt: skip
    section.table("regret", _costs(runs))
    section.draw(stats.each(runs.lines("agents"), stats.final_regret))


_SWEEPS = {"agents": (200.0,), "factor": (0.1, 1.0, 10.0, 100.0), "epsilon": (1.0, 3.0, 10.0, 30.0, 100.0)}
_TINY = {"agents": (5.0,), "factor": (1.0,), "epsilon": (10.0,)}
_FED_PE = Scale(131_072, 20, {"agents": (10.0, 30.0, 100.0)})

EXPERIMENTS = {
    "fedglb": Experiment(
        "FedGLB-UCB: a server that asks for gradients",
        "What a server that asks for gradients gains, sends and gives away; an hour.",
        {"x": "round", "y": "regret of all agents"},
        {"tiny": Scale(40, 2, _TINY), "small": Scale(2_000, 20, _SWEEPS), "paper": Scale(2_000, 20, _SWEEPS)},
        _generalised, _report_generalised,
        {
            "regret": "What is sent for what it saves",
            "threshold": "The threshold D",
            "privacy": "Privacy of all data of an agent",
            "linear": "DisLinUCB in linear bandits",
        },
        panel_axes={
            "threshold": {"x": "D over the default", "y": "regret per agent"},
            "privacy": {"x": "epsilon", "y": "regret / silence's"},
        },
    ),
    "fed-pe": Experiment(
        "Fed-PE: a server that plans what agents explore",
        "What a server gains that plans what agents explore; 20 minutes.",
        {"x": "number of agents", "y": "regret per agent"},
        {"tiny": Scale(300, 2, {"agents": (4.0,)}), "small": _FED_PE, "paper": _FED_PE},
        _fixed, _report_fixed,
    ),
}  # fmt: skip
