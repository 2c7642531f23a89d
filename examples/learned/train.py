"""Trains an agent that learns to explore: PPO of Stable-Baselines3 on index actions, in instances drawn anew.

    python examples/learned/train.py FedProcurement-v0 --seed 0 --out PPO-procurement.npz

One recipe for all problems: horizon 500, rollouts of whole episodes, gamma 1, lambda 0.98, the scalar reward of an
agent, noise that is held for the episode and shrinks to two fifths. The result depends on the seed alone.
"""

import argparse
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import torch
from itemwise import ItemwisePolicy
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.views import to_sb3

HORIZON = 500
FIRST_SEED = 1_000_000
"""Seeds of the first episodes start here and those of later ones follow at random; policies are tuned and compared on
instances of seeds far below."""


class Task(NamedTuple):
    """What differs between problems.

    Attributes:
        action_format: In which indices are said.
        scale: See :class:`ItemwisePolicy`.
        worth: What an item worth 1 pays in a round: the mean over items of its units, at most.
        rollouts: How often all episodes are played.
        start: See :class:`ItemwisePolicy`; in linear problems it is half of LinUCB's radius before the first round.
        own_noise: See :class:`ItemwisePolicy`. Where an arm's place means nothing from round to round, noise of its own
            is drawn anew in effect, and so explores by itself: there is little of it.
        replicas: Episodes side by side, with a row for each agent.
    """

    action_format: str
    scale: float
    worth: float
    rollouts: int
    start: float = 0.0
    own_noise: float = 0.15
    replicas: int = 8


TASKS = {
    "FedProcurement-v0": Task("index", 1.0, 30 * 50, rollouts=16),
    "FedArms-v0": Task("values", 0.5, 1.0, rollouts=8),
    "FedLinear-v0": Task("values", 0.5, 1.0, rollouts=6, start=0.315, own_noise=0.03, replicas=2),
}


class Course(BaseCallback):
    """Lets the noise shrink over the training, and tells how it goes."""

    def __init__(self, narrowest: float = 0.4) -> None:
        """Sets the least noise."""
        super().__init__()
        self._narrowest = narrowest
        self._start = process_time()

    def _on_rollout_start(self) -> None:
        done = self.num_timesteps / self.model._total_timesteps
        self.model.policy.width = 1 - (1 - self._narrowest) * done

    def _on_rollout_end(self) -> None:
        rewards = self.model.rollout_buffer.rewards
        print(f"{self.num_timesteps} steps, {process_time() - self._start:.0f} CPU s, "
              f"reward a round {rewards.mean():.3f}", flush=True)  # fmt: skip

    def _on_step(self) -> bool:
        return True


def train(
    env_id: str,
    seed: int,
    *,
    replicas: int | None = None,
    rollouts: int | None = None,
    horizon: int = HORIZON,
    **changes: Any,
) -> PPO:
    """Trains on an environment.

    Args:
        env_id: One of :data:`TASKS`.
        seed: Of networks, noise and instances.
        replicas: Episodes side by side; None for the recipe's number.
        rollouts: How often all of them are played; likewise.
        horizon: Rounds of an episode.
        **changes: Of the federation.
    """
    torch.set_num_threads(1)
    task = TASKS[env_id]
    federation = make_federation(env_id, max_cycles=horizon, **changes)
    assert federation.features is not None
    features = federation.features(federation.policy_spec)
    rows = to_sb3(federation, task.action_format, replicas or task.replicas)
    steps = horizon * rows.num_envs
    unit = horizon * task.worth
    model = PPO(
        ItemwisePolicy,
        rows,
        n_steps=horizon,
        batch_size=steps // 5,
        n_epochs=4,
        gamma=1.0,
        gae_lambda=0.98,
        learning_rate=lambda left: 5e-3 * min(1.0, 1.5 * left),
        clip_range=0.2,
        use_sde=True,
        # Actor and critic share nothing: the weight of the one's loss only keeps Adam away from its epsilon.
        vf_coef=1e3 / unit**2,
        ent_coef=0.0,
        max_grad_norm=1e9,
        policy_kwargs={
            "each": features.each,
            "once": features.shared,
            "unit": unit,
            "scale": task.scale,
            "start": task.start,
            "own_noise": task.own_noise,
        },
        seed=seed,
        device="cpu",
    )
    rows.seed(FIRST_SEED * (seed + 1))
    return model.learn((rollouts or task.rollouts) * steps, callback=Course())


def main() -> None:
    """Reads the command line, trains, and writes the network."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("env_id", choices=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    model = train(arguments.env_id, arguments.seed)
    assert isinstance(model.policy, ItemwisePolicy)
    model.policy.network().save(arguments.out)


if __name__ == "__main__":
    main()
