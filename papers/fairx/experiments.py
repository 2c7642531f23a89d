"""Experiments on exposure fairness, from the thesis (Solanki 2024, section 6.5) and our own: the runs of each."""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import LINEAR, Experiment, Plan, Scale

THESIS_ROUNDS = 100_000

SILENT, FED, PRIV, WEIGHTED = "FairX-LinUCB", "Fed-FairX-LinUCB", "Priv-FairX-LinUCB", "Priv-FairX-weighted"
GREEDY = "FairX-LinUCB-greedy"
PLACEBO = ", placebo"
"""End of the name of an algorithm in whose runs the messages carry nothing but noise."""

THESIS = {
    SILENT: "silent (B0)",
    FED: "true data",
    PRIV: "noisy data, eigenvalues lifted; radius without a term for the noise",
    PRIV + PLACEBO: "the same on noise alone",
}
"""Description of each algorithm in the thesis' first experiment, by its name on the page."""
CONTROLS = {
    SILENT: THESIS[SILENT],
    PRIV: THESIS[PRIV],
    "FairX-LinUCB-0.1": "silent, radius times 0.1",
    GREEDY: "silent, radius 0",
    "Fed-FairX-LinUCB-greedy": "true data, radius 0",
    "Fed-FairX-LinUCB-listing": "true data, ridge once an agent, as listed",
    "Priv-FairX-LinUCB-on-sum": "Priv's noise, rigorous: shift on the sum, radius with its term for the noise",
    "Priv-FairX-LinUCB-printed": "printed noise, shifts and radius, rigorous",
    WEIGHTED: "ours: own data exact, few noisy messages weighed by their noise, radius 0",
    WEIGHTED + PLACEBO: THESIS[PRIV + PLACEBO],
    "best-arm": "LinUCB, all on one arm",
    "equal-shares": "all arms alike",
}
PROTOCOLS = {
    PRIV: "gaps that double up to G and stay",
    "B1": "FedUCB's determinant trigger, no claim",
    "B2": "P-FCB's doubling rounds",
}
LEARNERS = {
    "best-arm": "best arm",
    SILENT: "fair, optimistic",
    GREEDY: "fair, radius 0",
    "equal-shares": "equal",
}
SOLVERS = {"frank_wolfe": (1, 2, 3, 5, 10), "projected_gradient": (3, 10, 30), "at the estimate": (0,)}
"""Numbers of steps that are tried, by the solver that searches for the optimistic parameter.

``at the estimate`` stands for no search: the policy acts on the estimate.
"""

_SMALL: Mapping[str, tuple[float, ...]] = {
    "agents": (2, 5, 10),
    "epsilon": (0.5, 2.0, 8.0),
    "merit": (0.5, 2.0, 5.0, 10.0, 20.0, 50.0),
    "radius": (0.0, 0.01, 0.03, 0.1, 0.3, 1.0),
    **SOLVERS,
}
_PAPER: Mapping[str, tuple[float, ...]] = {
    **_SMALL,
    "agents": (2, 5, 10, 20),
    "epsilon": (0.5, 1.0, 2.0, 5.0, 10.0),
    "merit": (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
}
SCALES = {"small": Scale(5_000, 20, _SMALL), "paper": Scale(THESIS_ROUNDS, 20, _PAPER)}
"""Sizes of the experiments; an experiment uses the sweeps of those quantities that it varies."""
PRIVATE_SCALES = {
    "small": Scale(5_000, 20, {**_SMALL, "agents": (10,)}),
    "paper": Scale(THESIS_ROUNDS, 20, {**_SMALL, "agents": (10, 40)}),
}


def _grid(
    plan: Plan,
    lines: Iterable[str],
    *sweeps: str,
    env_id: str = "FedExposure-v0",
    policy: Mapping[str, Any] = {},
    **env_kwargs: Any,
) -> list[RunSpec]:
    """Returns the runs of each algorithm at each combination of the swept values.

    Args:
        plan: The panel's settings; its scale has the values of sweeps.
        lines: Names of baselines. A name that ends with :data:`PLACEBO` means the baseline with nothing but noise in
            its messages.
        *sweeps: Names of the quantities that are varied: ``agents`` (their number), ``epsilon``, ``merit`` (the scale
            of merit), ``radius`` (the factor of the confidence radius), or one of :data:`SOLVERS` (its number of
            steps). Runs have the values as labels.
        env_id: The environment.
        policy: Changes to the arguments of the policies.
        **env_kwargs: Changes to the environment's preset.
    """
    runs = []
    values = product(*(plan.scale.sweeps[name] for name in sweeps))
    points = [dict(zip(sweeps, map(float, value), strict=True)) for value in values]
    for line, point in product(lines, points):
        baseline, env, constants = line.removesuffix(PLACEBO), dict(env_kwargs), dict(policy)
        if "agents" in point:
            env["num_agents"] = int(point["agents"])
        if "merit" in point:
            env["merit"] = {"name": "exponential", "scale": point["merit"]}
        if "radius" in point:
            constants["beta_scale"] = point["radius"]
        for solver in SOLVERS.keys() & point:
            constants |= {"solver": solver, "steps": int(point[solver])} if point[solver] else {"steps": 0}
        run = RunSpec(
            baseline, env_id, plan.scale.rounds, plan.scale.trials, env_kwargs=env, policy_kwargs=constants,
            wrapper_kwargs={"privatizer": {"epsilon": point["epsilon"]}} if "epsilon" in point else {},
            stack=[("fedbandit_envs.wrappers.placebo:Placebo", {})] if line != baseline else [],
            delta=0.1, labels={"line": line, **point},
        )  # fmt: skip
        runs.append(run)
    return runs


def _exp1(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Exp 1: fairness regret over rounds, silent, federated and private."""
    return _grid(plan, THESIS if plan.panel == "thesis" else CONTROLS)


def _exp2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Exp 2: fairness regret over rounds under other protocols of communication."""
    return _grid(plan, [SILENT, *(name + end for name in PROTOCOLS for end in ("", PLACEBO))])


def _exp3(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Exp 3: fairness regret at T against the number of agents."""
    return _grid(plan, [SILENT, FED, PRIV, PRIV + PLACEBO, GREEDY, WEIGHTED], "agents")


def _exp4(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Exp 4: fairness regret at T against epsilon."""
    return _grid(plan, [PRIV, PRIV + PLACEBO, WEIGHTED], "epsilon") + _grid(plan, [SILENT, FED, GREEDY])


def _solver(plan: Plan) -> list[RunSpec]:
    """Returns the runs that vary two constants that no paper specifies: the solver's steps and the radius' scale."""
    if plan.panel == "radius":
        return _grid(plan, [SILENT, FED, PRIV], "radius")
    return [run for solver in SOLVERS for run in _grid(plan, [SILENT, FED], solver)]


def _private(plan: Plan) -> list[RunSpec]:
    """Returns the runs that show whether private federation pays.

    This project's private baseline and the thesis' one are compared with tuned agents that do not communicate.
    """
    noise_sd = float(plan.panel)
    env_id = "FedExposureNoisy-v0" if plan.panel == "0.5" else "FedExposure-v0"
    policy = {"noise_sd": noise_sd}
    weighing = {**policy, "pool": {"name": "precision", "reward_variance": noise_sd**2}}
    return [
        *_grid(plan, [GREEDY], "agents", env_id=env_id, policy=policy),
        *_grid(plan, [PRIV], "agents", "epsilon", env_id=env_id, policy=policy),
        *_grid(plan, [WEIGHTED, WEIGHTED + PLACEBO], "agents", "epsilon", env_id=env_id, policy=weighing),
    ]


def _shares(plan: Plan) -> list[RunSpec]:
    """Returns the runs that show each worker's (arm's) share of the pulls; the ten workers' contexts are fixed."""
    contexts = (np.random.default_rng(6).random((10, 5)) / np.sqrt(5)).round(3).tolist()
    return _grid(plan, LEARNERS, contexts=contexts, instance_seed=0)


def _price(plan: Plan) -> list[RunSpec]:
    """Returns the runs that measure fairness regret and reward regret at each scale of merit.

    They show how much reward a fair policy gives up, and how unfair a policy is that maximises reward.
    """
    return _grid(plan, LEARNERS, "merit")


def _experiment(
    title: str,
    x: str,
    runs: Callable[[Plan], list[RunSpec]],
    *,
    scales: Mapping[str, Scale] = SCALES,
    **others: Any,
) -> Experiment:
    """Returns an experiment whose y axis is fairness regret.

    Args:
        title: End of the experiment's title.
        x: Label of the x axis.
        runs: Returns a panel's runs.
        scales: Sizes that can be run, by name.
        **others: Other attributes of the experiment; ``axes`` are changes to the default axes.
    """
    axes = {"x": x, "y": "cumulative fairness regret per agent", **others.pop("axes", {})}
    return Experiment(f"Exposure fairness, {title}", axes, scales, runs, **others)


EXPERIMENTS = {
    "fairx-exp1": _experiment(
        "Exp 1: silent, federated, private",
        "round",
        _exp1,
        panels={"thesis": "As in the thesis", "controls": "Controls, and ours"},
    ),
    "fairx-exp2": _experiment("Exp 2: protocols of communication", "round", _exp2),
    "fairx-exp3": _experiment("Exp 3: against the number of agents", "agents", _exp3),
    "fairx-exp4": _experiment("Exp 4: against epsilon", "epsilon", _exp4),
    "fairx-solver": _experiment(
        "what the papers leave open: solver steps and radius",
        "steps of the solver",
        _solver,
        panels={
            "steps": "Against the solver's steps, radius as printed",
            "radius": "Against the radius' scale",
        },
        panel_axes={"radius": {"x": "scale of the radius"}},
    ),
    "fairx-private": _experiment(
        "whether private federation pays",
        "epsilon",
        _private,
        scales=PRIVATE_SCALES,
        panels={"0.1": "Reward noise 0.1", "0.5": "Reward noise 0.5"},
    ),
    "fairx-shares": _experiment(
        "shares of the pulls against deserved shares",
        "worker, in order of merit",
        _shares,
        axes={"y": "share of the pulls", **LINEAR},
    ),
    "fairx-price": _experiment(
        "the price of fairness over merit scales",
        "fairness regret a round",
        _price,
        axes={"y": "reward regret a round", **LINEAR},
    ),
}
