"""The P-FCB paper's experiments as data: which runs each needs (Solanki et al. 2022, section 6)."""

from functools import cache
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.reproduction.runs import Run, Strata
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.procurement.oracle import constraint_binds
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registration import REGISTRY

PANELS = {"uniform": "Uniform law", "normal": "Normal law"}
"""The laws that draw markets."""

MODES = ("default", "printed")
MARKETS = 5

SCALES = {
    "small": Scale(10_000, 4, {"epsilon": (0.1, 1.0, 5.0), "agents": (2, 5, 10)}),
    "paper": Scale(
        100_000,
        20,
        {"epsilon": (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0), "agents": (2, 5, 10, 20, 30, 40)},
    ),
}
"""``paper`` is the paper's: T = 1e5, 5 markets x 20 runs; ``small`` takes minutes."""

_ENV_IDS = {"uniform": "FedProcurement-v0", "normal": "FedProcurementNormal-v0"}
_LARGEST_FEDERATION = 40
_SCANNED = 200


@cache
def market_seeds(law: str) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """Chooses markets by whether the quality constraint binds.

    Returns:
        The first five market seeds whose constraint binds for none of 40 agents, the first five (or fewer) of 200 for
        which it binds for some of the first ten, and the share of such markets among the 200.
    """
    env = parallel_env(num_agents=_LARGEST_FEDERATION, **REGISTRY[_ENV_IDS[law]].kwargs)
    seen = env.reset_batch(range(_SCANNED)).observation
    binds = constraint_binds(
        env.hidden()["quality"],
        seen["cost"],
        seen["capacity"],
        seen["quality_threshold"],
        seen["unit_revenue"],
    )
    slack = np.flatnonzero(~binds.any(axis=1))[:MARKETS]
    of_ten = binds[:, :10].any(axis=1)
    return tuple(slack.tolist()), tuple(np.flatnonzero(of_ten)[:MARKETS].tolist()), float(of_ten.mean())


PRINTED = {"FCB": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""What stands in for the mended algorithms in mode printed."""


def describe(scale: Scale, mode: str) -> str:
    """Describes what all experiments have in common."""
    algorithms = "as printed" if mode == "printed" else "as mended (see `fedbandit list`)"
    return (
        f"T = {scale.rounds:,}, {MARKETS} markets x {scale.trials} runs, 30 producers; "
        f"algorithms {algorithms}. All algorithms meet the same markets and the same luck. Brackets are 95 % "
        "bootstrap intervals over runs, markets held fixed; 'markets' is the range of single markets' ratios. "
        "Markets are the first five whose quality constraint binds for none of 40 agents."
    )


def _cell(
    plan: Plan,
    baseline: str,
    *,
    agents: int = 10,
    homogeneous: bool = False,
    binding: bool = False,
    epsilon: float | None = None,
    margin: float | None = None,
) -> Run:
    """Returns one run over the five markets.

    Args:
        plan: Its panel is the market law.
        baseline: The baseline; the printed form takes its place in mode printed.
        agents: Size of the federation.
        homogeneous: Whether agents share costs and capacities.
        binding: Whether to take the markets whose constraint binds.
        epsilon: The privatizer's, if not the baseline's.
        margin: The policy's, if not the baseline's.
    """
    slack, bound, _ = market_seeds(plan.panel)
    markets = bound if binding else slack
    env_kwargs: dict[str, Any] = {"num_agents": agents, "instance_seed": list(markets)}
    if homogeneous:
        env_kwargs["market"] = {"name": plan.panel, "homogeneous": True}
    settings = Settings(
        PRINTED.get(baseline, baseline) if plan.mode == "printed" else baseline,
        _ENV_IDS[plan.panel],
        plan.scale.rounds,
        len(markets) * plan.scale.trials,
        0,
        env_kwargs,
        {} if margin is None else {"margin": margin},
        {} if epsilon is None else {"privatizer": {"epsilon": epsilon}},
    )
    return Run(settings, Strata(len(markets), "markets"))


EXP1_BASELINES = ("SS-UCB", "FCB", "P-FCB", "P-FCB-placebo", "SS-UCB-0.8", "SS-UCB-0.5")
FCB_READINGS = {
    "FCB": "in P-FCB's rounds, weight 10 (the default)",
    "FCB-every-round": "every round, weight 1",
    "FCB-printed": "every round, radius divided by n twice (Algorithm 1)",
}
MARGIN = 0.02


def exp1(plan: Plan) -> dict[str, Run]:
    """EXP1 (Figure 3): regret over rounds; markets whose constraint binds stand apart."""
    runs = {name: _cell(plan, name) for name in (*EXP1_BASELINES, *FCB_READINGS)}
    if market_seeds(plan.panel)[1]:
        for name in ("SS-UCB", "P-FCB"):
            runs[f"{name}, binding"] = _cell(plan, name, binding=True)
            runs[f"{name}, binding, margin"] = _cell(plan, name, binding=True, margin=MARGIN)
            runs[f"{name}, margin"] = _cell(plan, name, margin=MARGIN)
    return runs


def exp2(plan: Plan) -> dict[str, Run]:
    """EXP2 (Figure 4): the ratio to the silent agents' regret against the privacy budget."""
    runs = {"SS-UCB": _cell(plan, "SS-UCB"), "FCB": _cell(plan, "FCB")}
    for epsilon in plan.scale.sweeps["epsilon"]:
        runs[f"P-FCB {epsilon:g}"] = _cell(plan, "P-FCB", epsilon=None if epsilon == 1 else epsilon)
    runs["P-FCB-placebo"] = _cell(plan, "P-FCB-placebo")
    return runs


def exp3(plan: Plan) -> dict[str, Run]:
    """EXP3 (Figure 5): regret against the number of agents."""
    return {
        f"{name} {agents}": _cell(plan, name, agents=agents)
        for agents in map(int, plan.scale.sweeps["agents"])
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    }


def fig2(plan: Plan) -> dict[str, Run]:
    """Figure 2: the ratio over rounds when true data is shared every round, in both settings."""
    shared = "FCB" if plan.mode == "printed" else "FCB-every-round"
    return {
        f"{name}, {setting}": _cell(
            plan, shared if name == "shared" else "SS-UCB", homogeneous=setting == "homogeneous"
        )
        for name in ("SS-UCB", "shared")
        for setting in ("homogeneous", "heterogeneous")
    }
