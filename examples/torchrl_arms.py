"""Trains agents that share a network with TorchRL's PPO, through PettingZoo: `python examples/torchrl_arms.py`.

Rollouts hold each agent's regret under ("next", "agent", "info", "regret"); the trained module is then scored as a
policy.
"""

import argparse
from collections.abc import Sequence

import torch
from tensordict.nn import InteractionType, TensorDictModule
from torchrl.envs import PettingZooWrapper
from torchrl.modules import MultiAgentMLP, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from fedbandit_envs import arms_v0, make_federation
from fedbandit_envs.baselines.adapters import TorchRLPolicy
from fedbandit_envs.baselines.arms import UniformArms
from fedbandit_envs.experiments import simulate

AGENTS, ARMS, ROUNDS = 4, 5, 100
HELD_OUT = range(1_000_000, 1_000_020)


def make_modules(inputs: int) -> tuple[ProbabilisticActor, TensorDictModule]:
    """Makes actor and critic: each agent is seen by itself, and all share their parameters."""

    def network(outputs: int) -> MultiAgentMLP:
        return MultiAgentMLP(
            inputs, outputs, AGENTS, centralized=False, share_params=True, depth=2, num_cells=64
        )

    shown = [("agent", "observation")]
    actor = ProbabilisticActor(
        TensorDictModule(network(ARMS), in_keys=shown, out_keys=[("agent", "logits")]),
        in_keys=[("agent", "logits")],
        out_keys=[("agent", "action")],
        distribution_class=torch.distributions.Categorical,
        # TorchRL's own default is to play what is likeliest, in rollouts too.
        default_interaction_type=InteractionType.RANDOM,
        return_log_prob=True,
        log_prob_key=("agent", "sample_log_prob"),
    )
    critic = TensorDictModule(network(1), in_keys=shown, out_keys=[("agent", "state_value")])
    return actor, critic


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Trains and scores; returns regret per agent by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)

    parallel = arms_v0.parallel_env(num_agents=AGENTS, num_arms=ARMS, max_cycles=ROUNDS, features=True)
    env = PettingZooWrapper(parallel)
    env.set_seed(0)
    actor, critic = make_modules(env.observation_spec["agent", "observation"].shape[-1])
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    loss.set_keys(
        reward=("agent", "reward"), action=("agent", "action"), value=("agent", "state_value"),
        sample_log_prob=("agent", "sample_log_prob"), done=("agent", "done"),
        terminated=("agent", "terminated"),
    )  # fmt: skip
    # Horizons truncate and never terminate: the estimator looks beyond them.
    loss.make_value_estimator(ValueEstimators.GAE, gamma=0.99, lmbda=0.9)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    for episode in range(options.episodes):
        with torch.no_grad():
            rollout = env.rollout(ROUNDS, actor)
        loss.value_estimator(
            rollout, params=loss.critic_network_params, target_params=loss.target_critic_network_params
        )
        for _ in range(4):
            terms = loss(rollout)
            total = sum(value for name, value in terms.items() if name.startswith("loss_"))
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
        if episode % 20 == 0:
            regret = rollout["next", "agent", "info", "regret"].sum(dim=0).mean()
            print(f"episode {episode}: regret per agent {regret:.1f}")

    federation = make_federation("FedArms-v0", num_agents=AGENTS, num_arms=ARMS, max_cycles=ROUNDS)
    regrets = {
        name: float(simulate(federation, policy, HELD_OUT).regret[-1].mean())
        for name, policy in {"TorchRL": TorchRLPolicy(actor), "uniform": UniformArms()}.items()
    }
    for name, mean in regrets.items():
        print(f"regret per agent of {name} after {ROUNDS} rounds: {mean:.1f}")
    return regrets


if __name__ == "__main__":
    main()
