"""Plays a federation through PettingZoo's interface, one function an agent: `python examples/pettingzoo_loop.py`.

The same functions are then scored side by side with a baseline, on the batch API, and give the same regret.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedbandit_envs import procurement_v0
from fedbandit_envs.baselines.adapters import AgentFunctions
from fedbandit_envs.baselines.procurement import SSUCB
from fedbandit_envs.experiments import simulate

AGENTS = 4


def optimist(doubt: float) -> Callable[[Mapping[str, Any]], Any]:
    """Makes an agent that states Laplace's estimate of each quality, and a bonus where it knows little."""

    def act(observation: Mapping[str, Any]) -> Any:
        bought, good = observation["total_delivered"], observation["total_good"]
        estimate = (good + 1) / (bought + 2) + doubt / np.sqrt(bought + 1)
        return np.clip(estimate, 0.0, 1.0).astype(np.float32)

    return act


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Plays and scores; returns regret by agent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    market = {"num_agents": AGENTS, "num_producers": 10, "max_cycles": options.rounds}
    # Agents differ in how curious they are.
    agents = {f"agent_{j}": optimist(0.3 * j) for j in range(AGENTS)}

    env = procurement_v0.parallel_env(action_format="index", **market)
    observations, _ = env.reset(seed=options.seed)
    regret = dict.fromkeys(env.agents, 0.0)
    while env.agents:
        actions = {agent: agents[agent](observations[agent]) for agent in env.agents}
        observations, _, _, _, infos = env.step(actions)
        for agent, info in infos.items():
            regret[agent] += info["regret"]

    federation = procurement_v0.parallel_env(**market)
    scored = simulate(federation, AgentFunctions(agents, action_format="index"), [options.seed])
    baseline = simulate(federation, SSUCB(), [options.seed])
    for j, (agent, total) in enumerate(regret.items()):
        print(
            f"{agent}: regret {total:.0f} in the loop, {scored.regret[-1, 0, j]:.0f} when scored; SS-UCB has "
            f"{baseline.regret[-1, 0, j]:.0f}"
        )
    return regret


if __name__ == "__main__":
    main()
