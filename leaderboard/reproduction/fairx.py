"""The experiments of the thesis on exposure fairness (Solanki 2024, section 6.5), and ours: which runs each needs."""

from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.comparison import about_intervals
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run

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
_STEPS = {"frank_wolfe": (1, 2, 3, 5, 10), "projected_gradient": (3, 10, 30)}
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


def describe(scale: Scale, mode: str) -> str:
    """Describes what all experiments have in common."""
    beside = "" if scale.rounds == THESIS_ROUNDS else (
        f" (the thesis has {THESIS_ROUNDS:,}: what is said of its sentences is said of this horizon alone)"
    )  # fmt: skip
    return (
        f"T = {scale.rounds:,}{beside}, {scale.trials} runs (the thesis: 5); as in the thesis, unless they vary, 10 "
        "agents, d = 5, f(mu) = exp(10 mu), epsilon = 2, delta = 0.1. What its text does not say is ours: 10 arms a "
        "round; contexts uniform on [0, 1]^5 divided by sqrt(5), so that norms are at most 1, as its theorems ask; a "
        "theta* a run, uniform on [0, 1]^5 and scaled to norm 1; reward noise N(0, 0.1^2); lambda = 1; delta' = 0.05; "
        "the numbers of agents and the epsilons that are tried; the adjacency, `one-observation` (replaced). What we "
        "changed: the optimistic parameter is found by 3 steps of Frank and Wolfe, where the thesis has projected "
        "gradient descent and does not say how many steps (`fairx-solver` sets both beside each other); "
        "Priv-FairX-LinUCB adds buffered linear Toeplitz noise, for (epsilon, delta) over all its releases (the square "
        "root's where 64 or fewer are planned), where the thesis has a tree's for each single one, lifts eigenvalues, "
        "and has no term for the noise in its radius (Exp 1's controls have what is printed). Regret is fairness "
        "regret of an agent, sum_i |deserved share - share|, from 0 to 2 a round. All algorithms meet the same "
        "contexts and the same luck. "
        f"{about_intervals(scale.trials, 'runs')} The thesis draws curves and prints no numbers, so that its sentences "
        "are what can be compared; where one names no measure, the page says what was found, and gives no verdict."
    )


def _cell(
    plan: Plan,
    run: str,
    *,
    env_id: str = "FedExposure-v0",
    policy: dict[str, Any] | None = None,
    epsilon: float | None = None,
    **env_kwargs: Any,
) -> Run:
    baseline = run.removesuffix(PLACEBO)
    settings = Settings(
        baseline=baseline,
        env_id=env_id,
        rounds=plan.scale.rounds,
        seeds=plan.scale.trials,
        env_kwargs=env_kwargs,
        policy_kwargs=policy or {},
        wrapper_kwargs={} if epsilon is None else {"privatizer": {"epsilon": epsilon}},
        stack=_PLACEBO if run.endswith(PLACEBO) else [],
    )
    return Run(settings, delta=DELTA)


def exp1(plan: Plan) -> dict[str, Run]:
    """Exp 1: fairness regret over rounds, silent, federated and private."""
    return {name: _cell(plan, name) for name in (THESIS if plan.panel == "thesis" else CONTROLS)}


def exp2(plan: Plan) -> dict[str, Run]:
    """Exp 2: fairness regret over rounds under other protocols of communication."""
    return {SILENT: _cell(plan, SILENT)} | {
        name + end: _cell(plan, name + end) for name in PROTOCOLS for end in ("", PLACEBO)
    }


def exp3(plan: Plan) -> dict[str, Run]:
    """Exp 3: fairness regret at T against the number of agents."""
    names = (SILENT, FED, PRIV, PRIV + PLACEBO, GREEDY, WEIGHTED)
    return {
        f"{name} {agents}": _cell(plan, name, num_agents=agents)
        for agents in map(int, plan.scale.sweeps["agents"])
        for name in names
    }


def exp4(plan: Plan) -> dict[str, Run]:
    """Exp 4: fairness regret at T against epsilon."""
    runs = {name: _cell(plan, name) for name in (SILENT, FED, GREEDY)}
    for epsilon in plan.scale.sweeps["epsilon"]:
        for name in (PRIV, PRIV + PLACEBO, WEIGHTED):
            runs[f"{name} {epsilon:g}"] = _cell(plan, name, epsilon=epsilon)
    return runs


def solver(plan: Plan) -> dict[str, Run]:
    """How fairness regret moves with what no paper says: the solver's steps, and the radius' scale."""
    if plan.panel == "radius":
        return {
            f"{name} {radius:g}": _cell(plan, name, policy={"beta_scale": radius})
            for name in (SILENT, FED, PRIV)
            for radius in RADII
        }
    runs = {
        f"{name}, {method} {steps}": _cell(plan, name, policy={"solver": method, "steps": steps})
        for name in (SILENT, FED)
        for method, numbers in _STEPS.items()
        for steps in numbers
    }
    return runs | {f"{name}, 0 steps": _cell(plan, name, policy={"steps": 0}) for name in (SILENT, FED)}


def private(plan: Plan) -> dict[str, Run]:
    """Whether private federation pays: ours and Priv against tuned silence, over epsilon and agents."""
    noisy = plan.panel == "0.5"
    env_id = "FedExposureNoisy-v0" if noisy else "FedExposure-v0"
    noise_sd = 0.5 if noisy else 0.1
    policy: dict[str, Any] = {"noise_sd": noise_sd}
    weighing = {**policy, "pool": {"name": "precision", "reward_variance": noise_sd**2}}
    runs = {}
    for agents in map(int, plan.scale.sweeps["agents"]):
        runs[f"{GREEDY} {agents}"] = _cell(plan, GREEDY, env_id=env_id, policy=policy, num_agents=agents)
        for epsilon in plan.scale.sweeps["epsilon"]:
            for name in (PRIV, WEIGHTED, WEIGHTED + PLACEBO):
                runs[f"{name} {agents} {epsilon:g}"] = _cell(
                    plan,
                    name,
                    env_id=env_id,
                    policy=policy if name == PRIV else weighing,
                    epsilon=epsilon,
                    num_agents=agents,
                )
    return runs


def shares(plan: Plan) -> dict[str, Run]:
    """Which share of the pulls each of ten workers gets who are the same in every round, and what they deserve."""
    return {name: _cell(plan, name, contexts=_WORKERS, instance_seed=0) for name in LEARNERS}


def price(plan: Plan) -> dict[str, Run]:
    """What fairness costs in reward, and unfairness in exposure, over merit scales."""
    return {
        f"{name} {scale:g}": _cell(plan, name, merit={"name": "exponential", "scale": scale})
        for name in LEARNERS
        for scale in plan.scale.sweeps["merit"]
    }
