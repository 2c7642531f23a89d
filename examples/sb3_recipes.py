"""Trains an agent of Stable-Baselines3 in each problem: `python examples/sb3_recipes.py FedArms-v0`.

PPO chooses one number in every round: how much doubt counts. The index of an item (a producer, an arm) is its estimate
plus twice that number times its doubt, and the environment plays the items with the largest indices. One network plays
all agents of all replicas. `--episodes` says for how long it trains.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from fedbandit_envs import make_federation
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.adapters import PredictPolicy
from fedbandit_envs.experiments import simulate
from fedbandit_envs.experiments.measures import mean_with_interval
from fedbandit_envs.views import to_sb3

ROUNDS = 200
# Training draws its seeds from here on. Those of the evaluation are elsewhere.
FIRST_SEED = 1_000_000
HELD_OUT = range(20)


class Recipe(NamedTuple):
    """What differs between problems.

    Attributes:
        action_format: The format in which indices are actions.
        offset: Added to an index, so that all of them fit the box of the action format.
        slope: Multiplies an index, likewise.
        scale: Multiplies regret, so that a round costs about 1 at first.
        controls: A baseline that acts at random, and best silence or a tuned silent baseline.
        replicas: Episodes side by side, with a row for each agent.
    """

    action_format: str
    offset: float
    slope: float
    scale: float
    controls: tuple[str, str]
    replicas: int = 8


RECIPES = {
    "FedProcurement-v0": Recipe("index", 0.5, 0.5, 0.01, ("uniform-random", "SS-UCB-tuned")),
    "FedArms-v0": Recipe("values", 0.25, 0.25, 1.0, ("uniform-arms", "UCB1-tuned")),
    "FedMixed-v0": Recipe("values", 0.25, 0.25, 1.0, ("uniform-gaussian", "Gaussian-UCB-tuned")),
    "FedLinear-v0": Recipe("values", 0.0, 0.25, 1.0, ("random-arm", "LinUCB-tuned"), replicas=2),
    "FedExposure-v0": Recipe("logits", 0.0, 1.0, 1.0, ("equal-shares", "FairX-tuned")),
}


class DoubtAction(VecEnvWrapper):
    """Rows whose action is one number in [-1, 1]; 0 is greed, and 1 adds twice the doubt to each estimate.

    The reward is minus the regret. No agent observes regret, but the simulation knows it during training. Unlike
    rewards, it does not depend on random outcomes.
    """

    def __init__(self, rows: VecEnv, index: Callable[[Any, Any], Any], scale: float) -> None:
        """Takes rows with features, the function from features and actions to indices, and the scale of regret."""
        super().__init__(rows, action_space=spaces.Box(-1, 1, (1,), np.float32))
        self._index, self._scale = index, scale

    def reset(self) -> Any:
        """Starts episodes in all rows."""
        self._features = self.venv.reset()
        return self._features

    def step_async(self, actions: Any) -> None:
        """Sends the rows' indices."""
        self.venv.step_async(self._index(self._features, actions))

    def step_wait(self) -> Any:
        """Plays a round."""
        self._features, _, done, infos = self.venv.step_wait()
        return self._features, np.array([-self._scale * info["regret"] for info in infos]), done, infos


class Trained:
    """What `PredictPolicy` plays: features go in, indices come out."""

    def __init__(self, model: PPO, index: Callable[[Any, Any], Any]) -> None:
        """Takes the model, and the function from features and actions to indices."""
        self._model, self._index = model, index

    def predict(self, features: Any) -> Any:
        """Returns the indices of rows of features."""
        action, _ = self._model.predict(features, deterministic=True)
        return self._index(features, action)


def train(env_id: str, episodes: int, seed: int = 0) -> Trained:
    """Trains an agent; returns what `PredictPolicy` plays."""
    torch.set_num_threads(1)
    recipe = RECIPES[env_id]
    federation = make_federation(env_id, max_cycles=ROUNDS)
    assert federation.features is not None
    features = federation.features(federation.policy_spec)
    items, each = features.items, len(features.each)

    def index(shown: Any, action: Any) -> Any:
        own = shown[:, : items * each].reshape(-1, items, each)
        value = own[..., 0] + 2 * action * own[..., 1]
        return np.clip(recipe.offset + recipe.slope * value, box.low, box.high)

    rows = to_sb3(federation, recipe.action_format, recipe.replicas)
    box = rows.action_space
    rows = DoubtAction(rows, index, recipe.scale)
    rows.seed(FIRST_SEED * (seed + 1))
    # Noise is held for a rollout, which is an episode: then PPO sees what a number is worth in the end.
    model = PPO(
        "MlpPolicy",
        rows,
        n_steps=ROUNDS,
        batch_size=ROUNDS * rows.num_envs // 4,
        gamma=1.0,
        gae_lambda=0.98,
        learning_rate=0.003,
        use_sde=True,
        policy_kwargs={"net_arch": [16], "log_std_init": -1.0},
        seed=seed,
        device="cpu",
    )
    return Trained(model.learn(episodes * ROUNDS * rows.num_envs), index)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Trains and scores; returns regret per agent by name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("env_id", choices=RECIPES)
    parser.add_argument("--episodes", type=int, default=8, help="of all rows, side by side")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    recipe = RECIPES[options.env_id]
    policies: dict[str, Any] = {name: BASELINES[name].make_policy() for name in recipe.controls}
    for name, episodes in (("untrained", 0), ("PPO", options.episodes)):
        policies[name] = PredictPolicy(train(options.env_id, episodes, options.seed), recipe.action_format)
    federation = make_federation(options.env_id, max_cycles=ROUNDS)
    regret = {
        name: simulate(federation, policy, HELD_OUT).regret[-1].mean(axis=1)
        for name, policy in policies.items()
    }
    silent = recipe.controls[1]
    for name, values in {**regret, f"PPO less {silent}": regret["PPO"] - regret[silent]}.items():
        print("regret of {}: {:.1f} [{:.1f}, {:.1f}]".format(name, *mean_with_interval(values)))
    return {name: float(values.mean()) for name, values in regret.items()}


if __name__ == "__main__":
    main()
