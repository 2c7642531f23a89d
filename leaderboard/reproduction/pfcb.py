"""The P-FCB paper's experiments as data: which runs each needs, at which scale (Solanki et al. 2022, section 6)."""

from dataclasses import dataclass
from functools import cache
from typing import get_args

import numpy as np

from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.procurement.market import LawName
from fedbandit_envs.procurement.oracle import constraint_binds
from fedbandit_envs.procurement_v0 import parallel_env

LAWS: tuple[LawName, ...] = get_args(LawName)
MARKETS = 5


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        rounds: Horizon T.
        runs: Runs of each market.
        epsilons: Privacy budgets of EXP2.
        agents: Federation sizes of EXP3.
    """

    rounds: int
    runs: int
    epsilons: tuple[float, ...]
    agents: tuple[int, ...]


SCALES = {
    "small": Scale(10_000, 4, (0.1, 1.0, 5.0), (2, 5, 10)),
    "paper": Scale(100_000, 20, (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0), (2, 5, 10, 20, 30, 40)),
}
"""``paper`` is the paper's: T = 1e5, 5 markets x 20 runs; ``small`` takes minutes."""

_LARGEST_FEDERATION = 40
_SCANNED = 200


@cache
def market_seeds(law: LawName) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """Chooses markets by whether the quality constraint binds.

    Returns:
        The first five market seeds whose constraint binds for none of 40 agents, the first five (or fewer) of 200 for
        which it binds for some of the first ten, and the share of such markets among the 200.
    """
    env = parallel_env(num_agents=_LARGEST_FEDERATION, market=law)
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
"""What stands in for the mended algorithms with ``--mode printed``."""


class Planner:
    """Makes the settings of runs for one scale and mode."""

    def __init__(self, scale: Scale, printed: bool) -> None:
        self.scale = scale
        self._printed = printed

    def run(
        self,
        baseline: str,
        law: LawName,
        *,
        agents: int = 10,
        homogeneous: bool = False,
        binding: bool = False,
        epsilon: float | None = None,
        margin: float | None = None,
    ) -> Settings:
        """Returns the settings of one run over the five markets.

        Args:
            baseline: The baseline; the printed form takes its place in mode printed.
            law: The market law.
            agents: Size of the federation.
            homogeneous: Whether agents share costs and capacities.
            binding: Whether to take the markets whose constraint binds.
            epsilon: The privatizer's, if not the baseline's.
            margin: The policy's, if not the baseline's.
        """
        slack, bound, _ = market_seeds(law)
        markets = bound if binding else slack
        env_id = "FedProcurementNormal-v0" if law == "normal" else "FedProcurement-v0"
        env_kwargs = {"num_agents": agents, "market_seed": list(markets)}
        if homogeneous:
            env_kwargs["homogeneous"] = True
        return Settings(
            PRINTED.get(baseline, baseline) if self._printed else baseline,
            env_id,
            self.scale.rounds,
            len(markets) * self.scale.runs,
            0,
            env_kwargs,
            {} if margin is None else {"margin": margin},
            {} if epsilon is None else {"privatizer": {"epsilon": epsilon}},
        )


EXP1_BASELINES = ("SS-UCB", "FCB", "P-FCB", "P-FCB-placebo", "SS-UCB-0.8", "SS-UCB-0.5")
FCB_READINGS = {
    "FCB": "in P-FCB's rounds, weight 10 (the default)",
    "FCB-every-round": "every round, weight 1",
    "FCB-printed": "every round, radius divided by n twice (Algorithm 1)",
}
MARGIN = 0.02


def exp1(planner: Planner, law: LawName) -> dict[str, Settings]:
    """EXP1 (Figure 3): regret over rounds; markets whose constraint binds stand apart."""
    runs = {name: planner.run(name, law) for name in (*EXP1_BASELINES, *FCB_READINGS)}
    if market_seeds(law)[1]:
        for name in ("SS-UCB", "P-FCB"):
            runs[f"{name}, binding"] = planner.run(name, law, binding=True)
            runs[f"{name}, binding, margin"] = planner.run(name, law, binding=True, margin=MARGIN)
            runs[f"{name}, margin"] = planner.run(name, law, margin=MARGIN)
    return runs


def exp2(planner: Planner, law: LawName) -> dict[str, Settings]:
    """EXP2 (Figure 4): the ratio to the silent agents' regret against the privacy budget."""
    runs = {"SS-UCB": planner.run("SS-UCB", law), "FCB": planner.run("FCB", law)}
    for epsilon in planner.scale.epsilons:
        runs[f"P-FCB {epsilon:g}"] = planner.run("P-FCB", law, epsilon=None if epsilon == 1 else epsilon)
    runs["P-FCB-placebo"] = planner.run("P-FCB-placebo", law)
    return runs


def exp3(planner: Planner, law: LawName) -> dict[str, Settings]:
    """EXP3 (Figure 5): regret against the number of agents."""
    return {
        f"{name} {agents}": planner.run(name, law, agents=agents)
        for agents in planner.scale.agents
        for name in ("SS-UCB", "P-FCB", "P-FCB-placebo")
    }


def fig2(planner: Planner, law: LawName) -> dict[str, Settings]:
    """Figure 2: the ratio over rounds when true data is shared every round, in both settings."""
    shared = "FCB" if planner.run("FCB", law).baseline == "FCB-printed" else "FCB-every-round"
    return {
        f"{name}, {setting}": planner.run(
            shared if name == "shared" else "SS-UCB", law, homogeneous=setting == "homogeneous"
        )
        for name in ("SS-UCB", "shared")
        for setting in ("homogeneous", "heterogeneous")
    }
