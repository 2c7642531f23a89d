"""The P-FCB paper's experiments as data: the runs of each (Solanki et al. 2022, section 6)."""

from collections.abc import Mapping
from functools import cache, partial
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
"""Titles of the panels, one for each distribution from which markets are drawn."""

MARKETS = 5

_PAPER_BUDGETS, _PAPER_SIZES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0), (2, 5, 10, 20, 30, 40)
SCALES = {
    "small": Scale(10_000, 4, {"epsilon": (0.1, 1.0, 5.0), "agents": (2, 5, 10)}),
    "paper": Scale(100_000, 20, {"epsilon": _PAPER_BUDGETS, "agents": _PAPER_SIZES}),
}
"""``paper`` is the paper's: T = 1e5, 5 markets x 20 runs; ``small`` takes minutes."""

_ENV_IDS = {"uniform": "FedProcurement-v0", "normal": "FedProcurementNormal-v0"}


class Markets(NamedTuple):
    """Markets of one distribution, chosen among 200 by whether the quality constraint binds.

    Attributes:
        slack: Seeds of the first five in which the constraint binds for none of 40 agents.
        binding: Seeds of the first five (or fewer) in which the constraint binds for some of the first ten agents.
        share: Share of the latter among the 200.
        surplus: For each of ``slack``, by how much the mean quality of all that pays exceeds the threshold, the least
            of the first ten agents; at 0 the constraint begins to bind.
    """

    slack: tuple[int, ...]
    binding: tuple[int, ...]
    share: float
    surplus: tuple[float, ...]


@cache
def choose_markets(distribution: str) -> Markets:
    """Returns the markets that are played of a distribution, ``uniform`` or ``normal``."""
    env = parallel_env(num_agents=40, **REGISTRY[_ENV_IDS[distribution]].kwargs)
    seen = env.reset_batch(range(200)).observation
    quality, threshold = env.hidden()["quality"], seen["quality_threshold"]
    paying = np.where(seen["unit_revenue"] * quality > seen["cost"], seen["capacity"], 0)
    excess = (paying * (quality - threshold)).sum(axis=2)
    # Where it is negative, policies that are optimistic about qualities violate the quality constraint in every round.
    slack = np.flatnonzero((excess >= 0).all(axis=1))[:MARKETS]
    of_ten = (excess < 0)[:, :10].any(axis=1)
    binding = np.flatnonzero(of_ten)[:MARKETS]
    surplus = (excess / paying.sum(axis=2))[slack, :10].min(axis=1)
    return Markets(tuple(slack.tolist()), tuple(binding.tolist()), of_ten.mean(), tuple(surplus.tolist()))


PRINTED = {"FCB": "FCB-printed", "FCB-every-round": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""The baseline as the paper prints it that mode ``printed`` plays, by the corrected one that it replaces."""


def _run(
    plan: Plan,
    line: str,
    baseline: str = "",
    *,
    markets: str = "slack",
    margin: float = 0,
    env: Mapping[str, Any] = {},
    policy: Mapping[str, Any] = {},
    wrappers: Mapping[str, dict[str, Any]] = {},
    **labels: Any,
) -> RunSpec:
    """Returns one run over five markets; ``line``, ``markets`` and ``margin`` are among its labels.

    Args:
        plan: Its panel is the distribution of markets.
        line: Name of the run on the page.
        baseline: Name of the corrected baseline; by default the line's.
        markets: Which markets, ``slack`` or ``binding``.
        margin: Amount that the policy adds to the threshold on quality.
        env: Arguments of the environment besides ten agents and the markets, or in place of them.
        policy: Other arguments of the policy, if not the baseline's.
        wrappers: Arguments of the wrappers, if not the baseline's.
        **labels: Other labels.
    """
    name = baseline or line
    seeds = getattr(choose_markets(plan.panel), markets)
    return RunSpec(
        baseline=PRINTED.get(name, name) if plan.mode == "printed" else name,
        env_id=_ENV_IDS[plan.panel],
        rounds=plan.scale.rounds,
        seeds=len(seeds) * plan.scale.trials,
        env_kwargs={"num_agents": 10, "instance_seed": list(seeds), **env},
        policy_kwargs={"margin": margin, **policy} if margin else {**policy},
        wrapper_kwargs={**wrappers},
        strata=Strata(len(seeds), "markets"),
        labels={"line": line, "markets": markets, "margin": margin, **labels},
    )


_FCB_READINGS = ("FCB-checked", "FCB", "FCB-every-round", "FCB-printed")
_ALGORITHMS = ("SS-UCB", "P-FCB", "P-FCB-placebo", *_FCB_READINGS, "SS-UCB-0.8", "SS-UCB-0.5")
MARGIN = 0.02
CONTROLS = ("FCB-checked", "FCB", "P-FCB-placebo")
"""What EXP2 sets beside P-FCB at several epsilons."""


def _exp1(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP1 (Figure 3), regret over rounds, also in markets in which the constraint binds.

    In mode printed: the printed forms, what they change one by one, and the corrected forms.
    """
    if plan.mode == "printed":
        rounds = {"channel": {"schedule": {"name": "doubling", "mode": "printed"}}}
        # Each form is played as it is named.
        named = partial(_run, plan._replace(mode="default"))
        return [
            *(named(name) for name in ("SS-UCB", "P-FCB")),
            named("P-FCB, printed rounds", "P-FCB", wrappers=rounds),
            named("P-FCB, no guards", "P-FCB", policy={"guards": False}),
            *(named(name) for name in ("P-FCB-printed", "FCB-every-round", "FCB-printed")),
        ]
    kinds = [("binding", 0), ("binding", MARGIN), ("slack", MARGIN)]
    return [_run(plan, name) for name in _ALGORITHMS] + [
        _run(plan, name, markets=markets, margin=margin)
        for name in ("SS-UCB", "P-FCB")
        for markets, margin in kinds
        if choose_markets(plan.panel).binding
    ]


def _exp2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP2 (Figure 4): the ratio to the silent agents' regret against the privacy budget."""
    runs = [_run(plan, name) for name in ("SS-UCB", *CONTROLS)]
    for epsilon in plan.scale.sweeps["epsilon"]:
        # The baseline is registered with epsilon 1: left unchanged, that run is shared with other experiments.
        wrappers = {} if epsilon == 1 else {"privatizer": {"epsilon": epsilon}}
        runs.append(_run(plan, "P-FCB", wrappers=wrappers, budget=epsilon))
    return runs


def _exp3(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP3 (Figure 5): regret against the number of agents."""
    return [
        _run(plan, name, env={"num_agents": int(agents)}, size=float(agents))
        for agents in plan.scale.sweeps["agents"]
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    ]


def _fig2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 2: the ratio over rounds when true data is shared every round, in both settings."""
    settings = {"homogeneous": {"market": {"name": plan.panel, "homogeneous": True}}, "heterogeneous": {}}
    return [
        _run(plan, line, baseline, env=env, setting=setting)
        for line, baseline in (("SS-UCB", ""), ("shared", "FCB-every-round"))
        for setting, env in settings.items()
    ]


_REGRET, _FRR = "cumulative regret per agent", "regret / SS-UCB's (FRR)"
EXPERIMENTS = {
    f"pfcb-{name}": Experiment(
        f"P-FCB, {title}", {"x": x, "y": y, **scales}, SCALES, PANELS, runs, f"{name}.md.j2",
        modes=("default", "printed"),
    )
    for name, title, runs, x, y, scales in (
        ("exp1", "EXP1 (Figure 3): regret over rounds", _exp1, "round", _REGRET, LOG_LOG),
        ("exp2", "EXP2 (Figure 4): regret against epsilon", _exp2, "epsilon", _FRR, LOG_LINEAR),
        ("exp3", "EXP3 (Figure 5): regret against agents", _exp3, "agents", "regret per agent at T", LINEAR),
        ("fig2", "Figure 2: sharing true data every round", _fig2, "round", _FRR, LOG_LINEAR),
    )
}  # fmt: skip
