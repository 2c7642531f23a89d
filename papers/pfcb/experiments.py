"""The P-FCB paper's experiments as data: the runs of each (Solanki et al. 2022, section 6)."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import LINEAR, Experiment, Plan, Scale
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.registry.registration import REGISTRY

PROTOCOL, MANY = 5, 20
"""Numbers of markets: of the paper's protocol, and of the panels from which verdicts follow."""

SAMPLES = {
    "uniform": ("uniform", PROTOCOL),
    "normal": ("normal", PROTOCOL),
    "uniform-20": ("uniform", MANY),
    "normal-20": ("normal", MANY),
}
"""Each panel's distribution of markets, and their number.

In the paper's protocol each market has the number of runs that the scale sets, in the other panels one: verdicts are
over markets, and markets differ more than the runs of one do.
"""

PANELS = {
    name: f"{law.title()} law, {number} markets{' as in the paper' * (number == PROTOCOL)}"
    for name, (law, number) in SAMPLES.items()
}
"""Titles of the panels."""

_PAPER_BUDGETS, _PAPER_SIZES = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0), (2, 5, 10, 20, 30, 40)
SCALES = {
    "small": Scale(10_000, 4, {"epsilon": (0.1, 1.0, 5.0), "agents": (2, 5, 10)}),
    "paper": Scale(100_000, 20, {"epsilon": _PAPER_BUDGETS, "agents": _PAPER_SIZES}),
}
"""``paper`` is the size of the paper's experiments: T = 1e5, 5 markets with 20 runs each; ``small`` takes minutes."""

_ENV_IDS = {"uniform": "FedProcurement-v0", "normal": "FedProcurementNormal-v0"}


DRAWN = 400
"""Number of candidate markets, drawn by the seeds from 0 on, among which those of a panel are chosen."""


class Markets(NamedTuple):
    """Markets of one panel, chosen among the first seeds by whether the quality constraint binds.

    The constraint binds for an agent if buying all profitable units would violate it. Markets in which it binds only
    for agents after the first ten are in neither list.

    Attributes:
        slack: Seeds of the first markets in which the constraint binds for none of 40 agents.
        binding: Seeds of the first markets (at most as many) in which it binds for at least one of the first ten
            agents.
        share: Share of the :data:`DRAWN` markets in which it binds for at least one of the first ten agents.
        surplus: For each market of ``slack``, the smallest over the first ten agents of the mean quality of all
            profitable units less the threshold. At 0 the constraint begins to bind.
    """

    slack: tuple[int, ...]
    binding: tuple[int, ...]
    share: float
    surplus: tuple[float, ...]


@cache
def choose_markets(panel: str) -> Markets:
    """Returns the markets that are played in a panel."""
    distribution, number = SAMPLES[panel]
    env = parallel_env(num_agents=40, **REGISTRY[_ENV_IDS[distribution]].kwargs)
    seen = env.reset_batch(range(DRAWN)).observation
    quality, threshold = env.hidden()["quality"], seen["quality_threshold"]
    paying = np.where(seen["unit_revenue"] * quality > seen["cost"], seen["capacity"], 0)
    excess = (paying * (quality - threshold)).sum(axis=2)
    # Where an agent's excess is negative, a policy that is optimistic about qualities buys everything profitable, and
    # so violates the quality constraint in every round.
    slack = np.flatnonzero((excess >= 0).all(axis=1))[:number]
    of_ten = (excess < 0)[:, :10].any(axis=1)
    binding = np.flatnonzero(of_ten)[:number]
    surplus = (excess / paying.sum(axis=2))[slack, :10].min(axis=1)
    return Markets(tuple(slack.tolist()), tuple(binding.tolist()), of_ten.mean(), tuple(surplus.tolist()))


PRINTED = {"FCB": "FCB-printed", "FCB-every-round": "FCB-printed", "P-FCB": "P-FCB-printed"}
"""Baselines as the paper prints them, by the corrected baseline that each replaces in mode ``printed``."""


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
    """Returns one run over the panel's markets; ``line``, ``markets`` and ``margin`` are among its labels.

    Args:
        plan: The panel's settings.
        line: Name of the run on the page.
        baseline: Name of the corrected baseline; by default ``line``.
        markets: Kind of the markets: ``slack`` (the quality constraint does not bind) or ``binding``.
        margin: Amount that the policy adds to the quality threshold.
        env: Arguments of the environment that extend or override ten agents and the markets.
        policy: Arguments of the policy that differ from the baseline's, besides ``margin``.
        wrappers: Arguments of the wrappers that differ from the baseline's, by the wrapper's role.
        **labels: Further labels.
    """
    name, (distribution, number) = baseline or line, SAMPLES[plan.panel]
    seeds = getattr(choose_markets(plan.panel), markets)
    return RunSpec(
        baseline=PRINTED.get(name, name) if plan.mode == "printed" else name,
        env_id=_ENV_IDS[distribution],
        rounds=plan.scale.rounds,
        seeds=len(seeds) * (plan.scale.trials if number == PROTOCOL else 1),
        env_kwargs={"num_agents": 10, "instance_seed": list(seeds), **env},
        policy_kwargs={"margin": margin, **policy} if margin else {**policy},
        wrapper_kwargs={**wrappers},
        instances=len(seeds),
        labels={"line": line, "markets": markets, "margin": margin, **labels},
    )


_FCB_READINGS = ("FCB-checked", "FCB", "FCB-every-round", "FCB-printed")
_ALGORITHMS = ("SS-UCB", "P-FCB", "P-FCB-placebo", *_FCB_READINGS, "SS-UCB-0.8", "SS-UCB-0.5")
MARGIN = 0.02


def _exp1(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP1 (Figure 3): regret over rounds, also in markets in which the quality constraint binds.

    Mode ``printed`` has the algorithms as the paper prints them, the corrected ones, and algorithms that differ from
    the corrected ones in one printed detail each.
    """
    if plan.mode == "printed":
        rounds = {"channel": {"schedule": {"name": "doubling", "mode": "printed"}}}
        # In mode "printed" `_run` would replace corrected baselines by printed ones; here both are wanted.
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
    """Returns the runs of EXP2 (Figure 4): regret relative to agents who do not communicate, against epsilon."""
    runs = []
    for epsilon in plan.scale.sweeps["epsilon"]:
        # The baseline is registered with epsilon 1. At 1 the argument is left out, so that the run is the same as one
        # of another experiment and is played only once.
        wrappers = {} if epsilon == 1 else {"privatizer": {"epsilon": epsilon}}
        runs.append(_run(plan, "P-FCB", wrappers=wrappers, budget=epsilon))
    return runs + [_run(plan, name) for name in ("SS-UCB", "FCB-checked", "FCB", "P-FCB-placebo")]


def _exp3(plan: Plan) -> list[RunSpec]:
    """Returns the runs of EXP3 (Figure 5): regret against the number of agents."""
    return [
        _run(plan, name, env={"num_agents": int(agents)}, size=float(agents))
        for agents in plan.scale.sweeps["agents"]
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    ]


def _fig2(plan: Plan) -> list[RunSpec]:
    """Returns the runs of Figure 2: agents who share true data in every round, and agents who do not communicate.

    Both are played in a homogeneous setting (all agents have the same costs and capacities) and a heterogeneous one.
    """
    settings = {
        "homogeneous": {"market": {"name": SAMPLES[plan.panel][0], "homogeneous": True}},
        "heterogeneous": {},
    }
    return [
        _run(plan, line, baseline, env=env, setting=setting)
        for line, baseline in (("SS-UCB", ""), ("shared", "FCB-every-round"))
        for setting, env in settings.items()
    ]


_REGRET, _FRR = "cumulative regret per agent", "regret / SS-UCB's (FRR)"
EXPERIMENTS = {
    f"pfcb-{name}": Experiment(
        f"P-FCB, {title}", {"x": x, "y": y, **scales}, SCALES, runs, PANELS, modes=("default", "printed")
    )
    for name, title, runs, x, y, scales in (
        ("exp1", "EXP1 (Figure 3): regret over rounds", _exp1, "round", _REGRET, {}),
        ("exp2", "EXP2 (Figure 4): regret against epsilon", _exp2, "epsilon", _FRR, {"yscale": "linear"}),
        ("exp3", "EXP3 (Figure 5): regret against agents", _exp3, "agents", "regret per agent at T", LINEAR),
        ("fig2", "Figure 2: sharing true data every round", _fig2, "round", _FRR, {"yscale": "linear"}),
    )
}  # fmt: skip
