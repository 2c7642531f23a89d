"""The experiments of the thesis on exposure fairness (Solanki 2024, section 6.5), and ours: which runs each needs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.experiment import LINEAR, LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec

DELTA = 0.1
THESIS_ROUNDS = 100_000

SILENT, FED, PRIV, WEIGHTED = "FairX-LinUCB", "Fed-FairX-LinUCB", "Priv-FairX-LinUCB", "Priv-FairX-weighted"
GREEDY = "FairX-LinUCB-greedy"
PLACEBO = ", placebo"
"""Ends the names of runs whose messages carry nothing but noise."""

THESIS = {
    SILENT: "silent (B0)",
    FED: "true data",
    PRIV: "noisy data, eigenvalues lifted; radius without a term for the noise",
    PRIV + PLACEBO: "the same on noise alone",
}
CONTROLS = {
    SILENT: "silent (B0)",
    PRIV: THESIS[PRIV],
    "FairX-LinUCB-0.1": "silent, radius times 0.1",
    GREEDY: "silent, radius 0",
    "Fed-FairX-LinUCB-greedy": "true data, radius 0",
    "Fed-FairX-LinUCB-listing": "true data, ridge once an agent, as listed",
    "Priv-FairX-LinUCB-on-sum": "Priv's noise, rigorous: shift on the sum, radius with its term for the noise",
    "Priv-FairX-LinUCB-printed": "printed noise, shifts and radius, rigorous",
    WEIGHTED: "ours: own data exact, few noisy messages weighed by their noise, radius 0",
    WEIGHTED + PLACEBO: "the same on noise alone",
    "best-arm": "LinUCB, all on one arm",
    "equal-shares": "all arms alike",
}
PROTOCOLS = {
    PRIV: "gaps that double up to G and stay",
    "B1": "FedUCB's determinant trigger, no claim",
    "B2": "P-FCB's doubling rounds",
}

EXP1_PANELS = {"thesis": "As in the thesis", "controls": "Controls, and ours"}
ONE_PANEL = {"all": "All runs"}
SCALES = {"small": Scale(5_000, 5), "paper": Scale(THESIS_ROUNDS, 5)}
EXP3_SCALES = {
    "small": Scale(5_000, 5, {"agents": (2, 5, 10)}),
    "paper": Scale(THESIS_ROUNDS, 5, {"agents": (2, 5, 10, 20)}),
}
EXP4_SCALES = {
    "small": Scale(5_000, 5, {"epsilon": (0.5, 2.0, 8.0)}),
    "paper": Scale(THESIS_ROUNDS, 5, {"epsilon": (0.5, 1.0, 2.0, 5.0, 10.0)}),
}

SOLVER_PANELS = {
    "steps": "Against the solver's steps, radius as printed",
    "radius": "Against the radius' scale",
}
STEPS = {"frank_wolfe": (1, 2, 3, 5, 10), "projected_gradient": (3, 10, 30)}
RADII = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)

PRIVATE_PANELS = {"0.1": "Reward noise 0.1", "0.5": "Reward noise 0.5"}
PRIVATE_SCALES = {
    "small": Scale(5_000, 5, {"epsilon": (0.5, 2.0, 8.0), "agents": (10,)}),
    "paper": Scale(THESIS_ROUNDS, 5, {"epsilon": (0.5, 2.0, 8.0), "agents": (10, 40)}),
}

LEARNERS = {
    "best-arm": "best arm",
    SILENT: "fair, optimistic",
    GREEDY: "fair, radius 0",
    "equal-shares": "equal",
}
PRICE_SCALES = {
    "small": Scale(5_000, 5, {"merit": (0.5, 2.0, 5.0, 10.0, 20.0, 50.0)}),
    "paper": Scale(THESIS_ROUNDS, 5, {"merit": (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)}),
}

_PLACEBO: list[tuple[str, dict[str, Any]]] = [("fedbandit_envs.wrappers.placebo:Placebo", {})]
# Ten workers who are the same in every round, and what they are like.
_WORKERS = (np.random.default_rng(6).random((10, 5)) / np.sqrt(5)).round(3).tolist()


def _run(
    plan: Plan,
    baseline: str,
    *,
    placebo: bool = False,
    env_id: str = "FedExposure-v0",
    policy: dict[str, Any] | None = None,
    epsilon: float | None = None,
    labels: Mapping[str, Any] = {},
    **env_kwargs: Any,
) -> RunSpec:
    """Returns one run, whose line is the baseline or its placebo."""
    line = baseline + PLACEBO if placebo else baseline
    return RunSpec(
        baseline=baseline,
        env_id=env_id,
        rounds=plan.scale.rounds,
        seeds=plan.scale.trials,
        env_kwargs=env_kwargs,
        policy_kwargs=policy or {},
        wrapper_kwargs={} if epsilon is None else {"privatizer": {"epsilon": epsilon}},
        stack=_PLACEBO if placebo else [],
        delta=DELTA,
        labels={"line": line, "baseline": baseline, **labels},
    )


def _with_placebos(names: Iterable[str]) -> list[tuple[str, bool]]:
    """Returns pairs of a baseline and whether its placebo is meant."""
    return [(name, placebo) for name in names for placebo in (False, True)]


def exp1(plan: Plan) -> list[RunSpec]:
    """Exp 1: fairness regret over rounds, silent, federated and private."""
    lines = THESIS if plan.panel == "thesis" else CONTROLS
    placebos = {name + PLACEBO: name for name in (PRIV, WEIGHTED)}
    return [_run(plan, placebos.get(line, line), placebo=line in placebos) for line in lines]


def exp2(plan: Plan) -> list[RunSpec]:
    """Exp 2: fairness regret over rounds under other protocols of communication."""
    protocols = [_run(plan, name, placebo=placebo) for name, placebo in _with_placebos(PROTOCOLS)]
    return [_run(plan, SILENT), *protocols]


def exp3(plan: Plan) -> list[RunSpec]:
    """Exp 3: fairness regret at T against the number of agents."""
    lines = [(SILENT, False), (FED, False), *_with_placebos([PRIV]), (GREEDY, False), (WEIGHTED, False)]
    return [
        _run(plan, name, placebo=placebo, num_agents=agents, labels={"agents": float(agents)})
        for agents in map(int, plan.scale.sweeps["agents"])
        for name, placebo in lines
    ]


def exp4(plan: Plan) -> list[RunSpec]:
    """Exp 4: fairness regret at T against epsilon."""
    return [_run(plan, name) for name in (SILENT, FED, GREEDY)] + [
        _run(plan, name, placebo=placebo, epsilon=epsilon, labels={"epsilon": epsilon})
        for epsilon in plan.scale.sweeps["epsilon"]
        for name, placebo in (*_with_placebos([PRIV]), (WEIGHTED, False))
    ]


def solver(plan: Plan) -> list[RunSpec]:
    """Returns the runs that vary what no paper specifies: the solver's steps, and the scale of the radius."""
    if plan.panel == "radius":
        return [
            _run(plan, name, policy={"beta_scale": radius}, labels={"radius": radius})
            for name in (SILENT, FED, PRIV)
            for radius in RADII
        ]
    at_the_estimate = [
        _run(plan, name, policy={"steps": 0}, labels={"solver": None, "steps": 0}) for name in (SILENT, FED)
    ]
    return at_the_estimate + [
        _run(
            plan, name, policy={"solver": method, "steps": steps}, labels={"solver": method, "steps": steps}
        )
        for name in (SILENT, FED)
        for method, numbers in STEPS.items()
        for steps in numbers
    ]  # fmt: skip


def private(plan: Plan) -> list[RunSpec]:
    """Whether private federation pays: ours and Priv against tuned silence, over epsilon and agents."""
    noisy = plan.panel == "0.5"
    env_id = "FedExposureNoisy-v0" if noisy else "FedExposure-v0"
    noise_sd = 0.5 if noisy else 0.1
    policy: dict[str, Any] = {"noise_sd": noise_sd}
    weighing = {**policy, "pool": {"name": "precision", "reward_variance": noise_sd**2}}
    runs = []
    for agents in map(int, plan.scale.sweeps["agents"]):
        labels = {"agents": agents}
        runs.append(_run(plan, GREEDY, env_id=env_id, policy=policy, num_agents=agents, labels=labels))
        runs += [
            _run(
                plan, name, placebo=placebo, env_id=env_id, policy=policy if name == PRIV else weighing,
                epsilon=epsilon, num_agents=agents, labels={**labels, "epsilon": epsilon},
            )
            for epsilon in plan.scale.sweeps["epsilon"]
            for name, placebo in ((PRIV, False), *_with_placebos([WEIGHTED]))
        ]  # fmt: skip
    return runs


def shares(plan: Plan) -> list[RunSpec]:
    """Which share of the pulls each of ten workers gets who are the same in every round, and what they deserve."""
    return [_run(plan, name, contexts=_WORKERS, instance_seed=0) for name in LEARNERS]


def price(plan: Plan) -> list[RunSpec]:
    """Returns the runs that measure what fairness costs in reward and unfairness in exposure, over merit scales."""
    return [
        _run(plan, name, merit={"name": "exponential", "scale": scale}, labels={"scale": scale})
        for name in LEARNERS
        for scale in plan.scale.sweeps["merit"]
    ]


def _experiment(
    title: str,
    x: str,
    runs: Callable[[Plan], list[RunSpec]],
    scales: Mapping[str, Scale] = SCALES,
    panels: Mapping[str, str] = ONE_PANEL,
    panel_axes: Mapping[str, Mapping[str, str]] = {},
    axes: Mapping[str, str] = {"y": "cumulative fairness regret per agent", **LOG_LOG},
) -> Experiment:
    return Experiment(
        f"Exposure fairness, {title}", {"x": x, **axes}, scales, panels, runs, f"{runs.__name__}.md.j2",
        panel_axes=panel_axes,
    )  # fmt: skip


EXPERIMENTS = {
    "fairx-exp1": _experiment("Exp 1: silent, federated, private", "round", exp1, panels=EXP1_PANELS),
    "fairx-exp2": _experiment("Exp 2: protocols of communication", "round", exp2),
    "fairx-exp3": _experiment("Exp 3: against the number of agents", "agents", exp3, EXP3_SCALES),
    "fairx-exp4": _experiment("Exp 4: against epsilon", "epsilon", exp4, EXP4_SCALES),
    "fairx-solver": _experiment(
        "what the papers leave open: solver steps and radius",
        "steps of the solver",
        solver,
        panels=SOLVER_PANELS,
        panel_axes={"radius": {"x": "scale of the radius"}},
    ),
    "fairx-private": _experiment(
        "whether private federation pays", "epsilon", private, PRIVATE_SCALES, PRIVATE_PANELS
    ),
    "fairx-shares": _experiment(
        "shares of the pulls against deserved shares",
        "worker, in order of merit",
        shares,
        axes={"y": "share of the pulls", **LINEAR},
    ),
    "fairx-price": _experiment(
        "the price of fairness over merit scales",
        "fairness regret a round",
        price,
        PRICE_SCALES,
        axes={"y": "reward regret a round", **LINEAR},
    ),
}
