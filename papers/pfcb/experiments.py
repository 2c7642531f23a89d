"""The P-FCB paper's experiments as data: which runs each needs (Solanki et al. 2022, section 6)."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.leaderboard.reproduction.experiment import (
    LINEAR,
    LOG_LINEAR,
    LOG_LOG,
    Experiment,
    Plan,
    Scale,
)
from fedbandit_envs.leaderboard.runs.result import Strata
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.registration import REGISTRY

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
    """Markets of one distribution, chosen among 200 by whether the quality constraint binds.

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
    """Returns the markets to play of a distribution, ``uniform`` or ``normal``."""
    env = parallel_env(num_agents=_LARGEST_FEDERATION, **REGISTRY[_ENV_IDS[law]].kwargs)
    seen = env.reset_batch(range(_SCANNED)).observation
    quality, cost, capacity = env.hidden()["quality"], seen["cost"], seen["capacity"]
    threshold, revenue = seen["quality_threshold"], seen["unit_revenue"]
    paying = np.where(revenue * quality > cost, capacity, 0)
    excess = (paying * (quality - threshold)).sum(axis=2)
    # There, policies that are optimistic about qualities violate the quality constraint in every round.
    binds = excess < 0
    slack = np.flatnonzero(~binds.any(axis=1))[:MARKETS]
    of_ten = binds[:, :10].any(axis=1)
    surplus = excess / paying.sum(axis=2)
    return Markets(
        tuple(slack.tolist()),
        tuple(np.flatnonzero(of_ten)[:MARKETS].tolist()),
        float(of_ten.mean()),
        tuple(surplus[slack, :10].min(axis=1).tolist()),
    )


PRINTED = {"FCB": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""Baselines as printed in the paper, by the corrected ones that they replace in mode ``printed``."""


def _run(
    plan: Plan,
    line: str,
    baseline: str = "",
    *,
    agents: int = 10,
    homogeneous: bool = False,
    binding: bool = False,
    epsilon: float | None = None,
    printed_rounds: bool = False,
    policy: Mapping[str, Any] = {},
    **labels: Any,
) -> RunSpec:
    """Returns one run over the five markets.

    Args:
        plan: Its panel is the distribution of markets.
        line: What the page calls the run.
        baseline: The baseline, if not called like the line.
        agents: Size of the federation.
        homogeneous: Whether agents share costs and capacities.
        binding: Whether to take the markets whose constraint binds.
        epsilon: The privatizer's, if not the baseline's.
        printed_rounds: Whether messages are sent in the rounds of the printed Algorithm 2.
        policy: Arguments of the policy, if not the baseline's.
        **labels: What tells the run from others of its line.
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
    return RunSpec(
        baseline=baseline or line,
        env_id=_ENV_IDS[plan.panel],
        rounds=plan.scale.rounds,
        seeds=len(markets) * plan.scale.trials,
        env_kwargs=env_kwargs,
        policy_kwargs=dict(policy),
        wrapper_kwargs=wrappers,
        strata=Strata(len(markets), "markets"),
        labels={"line": line, **labels},
    )


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
    "P-FCB": "corrected: powers of two from 256, guards",
    "P-FCB, printed rounds": "eight communications more, in rounds 200 to 207; guards",
    "P-FCB, no guards": "powers of two from 256, no guards",
    "P-FCB-printed": "the eight more and no guards: Algorithm 2",
    "FCB-every-round": "corrected: every round, radius of the federation's count",
    "FCB-printed": "every round, radius divided by n twice: Algorithm 1",
}


SLACK, BINDING = "slack", "binding"


def exp1(plan: Plan) -> list[RunSpec]:
    """EXP1 (Figure 3): regret over rounds; markets whose constraint binds stand apart.

    In mode printed: the printed forms, what they change one by one, and what they are changed from.
    """
    if plan.mode == "printed":
        changed: dict[str, dict[str, Any]] = {
            "P-FCB, printed rounds": {"baseline": "P-FCB", "printed_rounds": True},
            "P-FCB, no guards": {"baseline": "P-FCB", "policy": {"guards": False}},
        }
        return [_run(plan, name, **changed.get(name, {})) for name in PRINTED_FORMS]
    runs = [_run(plan, name, markets=SLACK, margin=0) for name in ALGORITHMS]
    if choose_markets(plan.panel).binding:
        margin: dict[str, Any] = {"margin": MARGIN}
        for name in ("SS-UCB", "P-FCB"):
            runs += [
                _run(plan, name, binding=True, markets=BINDING, margin=0),
                _run(plan, name, binding=True, policy=margin, markets=BINDING, **margin),
                _run(plan, name, policy=margin, markets=SLACK, **margin),
            ]
    return runs


def _form(plan: Plan, name: str) -> str:
    """Returns the printed form of an algorithm in mode printed."""
    return PRINTED.get(name, name) if plan.mode == "printed" else name


def exp2(plan: Plan) -> list[RunSpec]:
    """EXP2 (Figure 4): the ratio to the silent agents' regret against the privacy budget."""
    return [
        *(_run(plan, name, _form(plan, name)) for name in ("SS-UCB", "FCB-checked", "FCB", "P-FCB-placebo")),
        *(
            _run(
                plan, "P-FCB", _form(plan, "P-FCB"), epsilon=None if budget == 1 else budget, budget=budget
            )
            for budget in plan.scale.sweeps["epsilon"]
        ),
    ]  # fmt: skip


def exp3(plan: Plan) -> list[RunSpec]:
    """EXP3 (Figure 5): regret against the number of agents."""
    return [
        _run(plan, name, _form(plan, name), agents=agents, size=float(agents))
        for agents in map(int, plan.scale.sweeps["agents"])
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    ]


def fig2(plan: Plan) -> list[RunSpec]:
    """Figure 2: the ratio over rounds when true data is shared every round, in both settings."""
    shared = "FCB-printed" if plan.mode == "printed" else "FCB-every-round"
    return [
        _run(plan, line, baseline, homogeneous=setting == "homogeneous", setting=setting)
        for line, baseline in (("SS-UCB", "SS-UCB"), ("shared", shared))
        for setting in ("homogeneous", "heterogeneous")
    ]


def _experiment(
    title: str,
    template: str,
    runs: Callable[[Plan], list[RunSpec]],
    x: str,
    y: str,
    scales: Mapping[str, str],
) -> Experiment:
    axes = {"x": x, "y": y, **scales}
    return Experiment(f"P-FCB, {title}", axes, SCALES, PANELS, runs, template, modes=MODES)


_REGRET, _FRR = "cumulative regret per agent", "regret / SS-UCB's (FRR)"
EXPERIMENTS = {
    "pfcb-exp1": _experiment(
        "EXP1 (Figure 3): regret over rounds", "exp1.md.j2", exp1, "round", _REGRET, LOG_LOG
    ),
    "pfcb-exp2": _experiment(
        "EXP2 (Figure 4): regret against epsilon", "exp2.md.j2", exp2, "epsilon", _FRR, LOG_LINEAR
    ),
    "pfcb-exp3": _experiment(
        "EXP3 (Figure 5): regret against agents", "exp3.md.j2", exp3, "agents", "regret per agent at T",
        LINEAR,
    ),
    "pfcb-fig2": _experiment(
        "Figure 2: sharing true data every round", "fig2.md.j2", fig2, "round", _FRR, LOG_LINEAR
    ),
}  # fmt: skip
