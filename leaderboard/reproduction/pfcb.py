"""The P-FCB paper's experiments as data: which runs each needs (Solanki et al. 2022, section 6)."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run, Strata
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


class Markets(NamedTuple):
    """Markets of a law, chosen among 200 by whether the quality constraint binds.

    Attributes:
        slack: Seeds of the first five whose constraint binds for none of 40 agents.
        binding: Seeds of the first five (or fewer) whose constraint binds for some of the first ten agents.
        share: Share of the latter among the 200.
        surplus: For each of ``slack``, by how much the mean quality of all that pays exceeds the threshold, the least
            of the first ten agents; at 0 the constraint begins to bind.
    """

    slack: tuple[int, ...]
    binding: tuple[int, ...]
    share: float
    surplus: tuple[float, ...]


@cache
def choose_markets(law: str) -> Markets:
    """Chooses the markets of a law."""
    env = parallel_env(num_agents=_LARGEST_FEDERATION, **REGISTRY[_ENV_IDS[law]].kwargs)
    seen = env.reset_batch(range(_SCANNED)).observation
    quality, cost, capacity = env.hidden()["quality"], seen["cost"], seen["capacity"]
    threshold, revenue = seen["quality_threshold"], seen["unit_revenue"]
    binds = constraint_binds(quality, cost, capacity, threshold, revenue)
    slack = np.flatnonzero(~binds.any(axis=1))[:MARKETS]
    of_ten = binds[:, :10].any(axis=1)
    paying = np.where(revenue * quality > cost, capacity, 0)
    surplus = (paying * (quality - threshold)).sum(axis=2) / paying.sum(axis=2)
    return Markets(
        tuple(slack.tolist()),
        tuple(np.flatnonzero(of_ten)[:MARKETS].tolist()),
        float(of_ten.mean()),
        tuple(surplus[slack, :10].min(axis=1).tolist()),
    )


PRINTED = {"FCB": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""What stands in for the mended algorithms in mode printed."""


def _cell(
    plan: Plan,
    baseline: str,
    *,
    agents: int = 10,
    homogeneous: bool = False,
    binding: bool = False,
    epsilon: float | None = None,
    printed_rounds: bool = False,
    policy: Mapping[str, Any] = {},
) -> Run:
    """Returns one run over the five markets.

    Args:
        plan: Its panel is the market law.
        baseline: The baseline.
        agents: Size of the federation.
        homogeneous: Whether agents share costs and capacities.
        binding: Whether to take the markets whose constraint binds.
        epsilon: The privatizer's, if not the baseline's.
        printed_rounds: Whether messages are sent in the rounds of the printed Algorithm 2.
        policy: Arguments of the policy, if not the baseline's.
    """
    chosen = choose_markets(plan.panel)
    markets = chosen.binding if binding else chosen.slack
    env_kwargs: dict[str, Any] = {"num_agents": agents, "instance_seed": list(markets)}
    if homogeneous:
        env_kwargs["market"] = {"name": plan.panel, "homogeneous": True}
    wrappers: dict[str, dict[str, Any]] = {}
    if epsilon is not None:
        wrappers["privatizer"] = {"epsilon": epsilon}
    if printed_rounds:
        wrappers["channel"] = {"schedule": {"name": "doubling", "mode": "printed"}}
    settings = Settings(
        baseline=baseline,
        env_id=_ENV_IDS[plan.panel],
        rounds=plan.scale.rounds,
        seeds=len(markets) * plan.scale.trials,
        env_kwargs=env_kwargs,
        policy_kwargs=dict(policy),
        wrapper_kwargs=wrappers,
    )
    return Run(settings, Strata(len(markets), "markets"))


FCB_READINGS = {
    "FCB-checked": "as the paper defines it: P-FCB on true values, its check kept",
    "FCB": "the same unchecked: in P-FCB's rounds, weight 10",
    "FCB-every-round": "every round, weight 1, unchecked",
    "FCB-printed": "every round, radius divided by n twice (Algorithm 1)",
}
ALGORITHMS = {
    "SS-UCB": "silent, the paper's Non-Federated",
    "P-FCB": "noisy values, epsilon 1",
    "P-FCB-placebo": "P-FCB on noise alone",
    **FCB_READINGS,
    "SS-UCB-0.8": "silent, radius times 0.8",
    "SS-UCB-0.5": "silent, radius times 0.5",
}
MARGIN = 0.02
PRINTED_FORMS = {
    "SS-UCB": "silent",
    "P-FCB": "mended: powers of two from 256, guards",
    "P-FCB, printed rounds": "eight communications more, in rounds 200 to 207; guards",
    "P-FCB, no guards": "powers of two from 256, no guards",
    "P-FCB-printed": "the eight more and no guards: Algorithm 2",
    "FCB-every-round": "mended: every round, radius of the federation's count",
    "FCB-printed": "every round, radius divided by n twice: Algorithm 1",
}


def exp1(plan: Plan) -> dict[str, Run]:
    """EXP1 (Figure 3): regret over rounds; markets whose constraint binds stand apart.

    In mode printed: the printed forms, what they change one by one, and what they are changed from.
    """
    if plan.mode == "printed":
        return {
            "P-FCB, printed rounds": _cell(plan, "P-FCB", printed_rounds=True),
            "P-FCB, no guards": _cell(plan, "P-FCB", policy={"guards": False}),
            **{name: _cell(plan, name) for name in PRINTED_FORMS if "," not in name},
        }
    runs = {name: _cell(plan, name) for name in ALGORITHMS}
    if choose_markets(plan.panel).binding:
        margin = {"margin": MARGIN}
        for name in ("SS-UCB", "P-FCB"):
            runs[f"{name}, binding"] = _cell(plan, name, binding=True)
            runs[f"{name}, binding, margin"] = _cell(plan, name, binding=True, policy=margin)
            runs[f"{name}, margin"] = _cell(plan, name, policy=margin)
    return runs


def _form(plan: Plan, name: str) -> str:
    """Returns the printed form of an algorithm in mode printed."""
    return PRINTED.get(name, name) if plan.mode == "printed" else name


def exp2(plan: Plan) -> dict[str, Run]:
    """EXP2 (Figure 4): the ratio to the silent agents' regret against the privacy budget."""
    runs = {name: _cell(plan, _form(plan, name)) for name in ("SS-UCB", "FCB-checked", "FCB")}
    for epsilon in plan.scale.sweeps["epsilon"]:
        budget = None if epsilon == 1 else epsilon
        runs[f"P-FCB {epsilon:g}"] = _cell(plan, _form(plan, "P-FCB"), epsilon=budget)
    runs["P-FCB-placebo"] = _cell(plan, "P-FCB-placebo")
    return runs


def exp3(plan: Plan) -> dict[str, Run]:
    """EXP3 (Figure 5): regret against the number of agents."""
    return {
        f"{name} {agents}": _cell(plan, _form(plan, name), agents=agents)
        for agents in map(int, plan.scale.sweeps["agents"])
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    }


def fig2(plan: Plan) -> dict[str, Run]:
    """Figure 2: the ratio over rounds when true data is shared every round, in both settings."""
    shared = "FCB-printed" if plan.mode == "printed" else "FCB-every-round"
    return {
        f"{name}, {setting}": _cell(
            plan, shared if name == "shared" else "SS-UCB", homogeneous=setting == "homogeneous"
        )
        for name in ("SS-UCB", "shared")
        for setting in ("homogeneous", "heterogeneous")
    }
