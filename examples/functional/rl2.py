"""Trains agents that learn to explore, on whole episodes of the functional twin.

    python examples/functional/rl2.py arms --seed 0 --out RL2-arms.npz

What is learned is an algorithm (RL^2; Duan et al., arXiv 1611.02779): the network is the same for all agents and
episodes, and within an episode an agent changes by what it remembers alone. That is no hidden state of a recurrent unit
but the statistics of its history, which are all there is to know of outcomes that may come in any order.

The aim is the regret of an episode in expectation over outcomes, which the environment tells, of the policy as it is
played, without random actions. Its slope is estimated by pairs of opposite changes of all weights, which meet the same
instances and outcomes (an evolution strategy: Salimans et al., arXiv 1703.03864). The result depends on the seed alone.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from fedbandit_envs.baselines.learned.rl2 import RIDGE, of_contexts, of_counts, of_market, of_messages
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.functional import Environment, PureLinUCB, PurePolicy, make
from fedbandit_envs.functional.procurement import procure
from fedbandit_envs.functional.rollouts import play_round, started

FIRST_SEED = 1_000_000
"""Instances of training are those of seeds from here on; policies are compared on seeds far below."""
WIDTH = 0.1
"""Standard deviation of a change of a weight."""
FIRST_OUTPUTS = {"index": 1.0, "sure": -3.0, "weight": 0.0}
"""What networks put out before training, nearly: a bonus, a margin for the constraint, and no change."""
_FROM_ONE = {"name": "doubling", "start": 1, "stop": None}
_PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "mechanism": "independent", "releases": _FROM_ONE}
_REGRESSION = PureLinUCB(ridge=RIDGE, alpha=0.0)


class Task(NamedTuple):
    """What differs between problems.

    Attributes:
        envs: Ids of environments and their arguments, which generations play in turn.
        inputs: Numbers of inputs of each network, of items and of agents as a whole.
        horizons: Rounds of an episode, which generations play in turn, each in all environments.
        stack: Wrappers of the environments.
        instances: Episodes of all agents in a generation.
        generations: Number of steps.
    """

    envs: dict[str, dict[str, Any]]
    inputs: dict[str, tuple[int, int]]
    horizons: tuple[int, ...] = (500, 1_000, 2_000)
    stack: Any = ()
    instances: int = 8
    generations: int = 96


TASKS = {
    "arms": Task({"FedArms-v0": {}, "FedArmsMovieLens-v1": {"num_arms": 10}}, {"index": (5, 2)}),
    "procurement": Task(
        {"FedProcurement-v0": {"num_agents": 2}, "FedProcurementNormal-v0": {"num_agents": 2}},
        {"index": (8, 2), "sure": (8, 2)},
        horizons=(500, 2_000),
        instances=4,
        generations=100,
    ),
    # The twin has no beta rewards. Normal ones of nearly their variance take their place; practically none is clipped.
    "linear": Task(
        {
            "FedLinear-v0": {"reward": "normal", "reward_sd": 0.34, "reward_bound": 3.0, "num_agents": 4},
            "FedLinearBall-v0": {"num_agents": 4},
        },
        {"index": (5, 3)},
        horizons=(500, 1_000),
        instances=1,
        generations=200,
    ),
    "private arms": Task(
        {"FedArms-v0": {}},
        {"index": (5, 2), "weight": (10, 2)},
        horizons=(500,),
        stack=[["ContinualPrivatizer", _PRIVATE], ["Channel", {"schedule": _FROM_ONE}]],
        generations=100,
    ),
}


def network(layers: Any, each: Array, once: Array) -> Array:
    """Returns a number for each item, ``(items,)``; see :class:`fedbandit_envs.baselines.learned.ItemNetwork`."""
    common = each.mean(axis=0) @ layers["pooled"] + once @ layers["shared"] + layers["first_bias"]
    first = jax.nn.relu(each @ layers["own"] + common)
    second = jax.nn.relu(first @ layers["middle"] + layers["middle_bias"])
    return second @ layers["last"] + layers["last_bias"][0]


def first_weights(generator: np.random.Generator, inputs: dict[str, tuple[int, int]], hidden: int) -> Any:
    """Returns weights at random, with which outputs are about :data:`FIRST_OUTPUTS`."""

    def normal(*shape: int) -> np.ndarray:
        return generator.normal(size=shape) / np.sqrt(shape[0])

    return {
        name: {
            "own": normal(each, hidden),
            "pooled": 0.5 * normal(each, hidden),
            "shared": 0.5 * normal(once, hidden),
            "first_bias": np.zeros(hidden),
            "middle": 2**0.5 * normal(hidden, hidden),
            "middle_bias": np.zeros(hidden),
            "last": 0.1 * normal(hidden),
            "last_bias": np.array([FIRST_OUTPUTS[name]]),
        }
        for name, (each, once) in inputs.items()
    }


@dataclass(frozen=True)
class PureRL2(PurePolicy):
    """The twin of :class:`fedbandit_envs.baselines.learned.rl2.RL2`; its parameters are the networks' weights.

    Attributes:
        problem: One of :data:`TASKS`.
        horizon: Number of rounds of an episode.
    """

    problem: str
    horizon: int

    def start(self, env: Environment, params: Any, key: Array) -> Any:
        """Returns a memory of no messages, or a regression without data; see :meth:`PurePolicy.start`."""
        if self.problem == "linear":
            return _REGRESSION.start(env, params, key)
        if self.problem == "private arms":
            return {"received": jnp.zeros((2, *env.released["pulls"]), env.dtype)}
        return {}

    def act(self, params: Any, carry: Any, observation: Any) -> tuple[Any, Array]:
        """Returns the action that would be best if the indices were the true values; see :meth:`PurePolicy.act`."""
        left = jnp.asarray(self.horizon - observation["round"], float)[None]

        def index(seen: Any, name: str = "index") -> Array:
            return seen.estimate + seen.width * network(params[name], seen.each, seen.once)

        if self.problem == "linear":
            carry = _REGRESSION.learn(_REGRESSION.params(), carry, observation)
            x, inverse = observation["contexts"].T, carry["shrinkage"] / RIDGE
            estimate = (inverse @ carry["moment"]) @ x
            # One product for all rivals, since contexts are the same; (inverse @ x) * x would be one for each of them.
            form = jnp.maximum(inverse.reshape(-1) @ (x[:, None] * x).reshape(-1, x.shape[1]), 0.0)
            noise = jnp.sqrt(carry["reward_variance"])
            return carry, index(
                of_contexts(jnp, estimate, jnp.sqrt(form), noise, left, self.horizon)
            ).argmax()
        if self.problem == "procurement":
            counts = (observation[name].astype(left.dtype) for name in ("total_delivered", "total_good"))
            seen, sure = of_market(jnp, observation, *counts, left, self.horizon)
            return carry, procure(jnp.clip(index(seen), 0.0, 1.0), index(sure, "sure"), observation)
        known = jnp.stack([observation[f"total_{name}"] for name in ("pulls", "successes")]).astype(
            left.dtype
        )
        if self.problem == "private arms":
            carry = self._listen(params, carry, known, observation, left)
            known += carry["received"]
        return carry, index(of_counts(jnp, *known, left, self.horizon)).argmax()

    def _listen(self, params: Any, carry: Any, own: Array, observation: Any, left: Array) -> Any:
        """Returns the carry with what the messages of a round are worth."""
        names = ("inbox_pulls", "inbox_successes")
        message = [observation[name] for name in (*names, *map(variance_of, names))]
        worth, ratio, seen = of_messages(jnp, own + carry["received"], message, left, self.horizon)
        worth *= 2.0 * jax.nn.sigmoid(network(params["weight"], seen.each, seen.once))
        news = jnp.where(observation["inbox_mask"], jnp.stack([worth, worth * ratio]), 0.0)
        return {"received": carry["received"] + news}


def regret(env: Environment, policy: PureRL2, weights: Any, params: Any, keys: Array) -> Array:
    """Returns the mean regret of an agent over an episode, ``(replicas,)``."""

    def play(loop: Any, round_: Array) -> tuple[Any, None]:
        state, memory, total = loop
        state, memory, happened = play_round(env, policy, params, weights, state, memory, round_)
        return (state, memory, total + happened["info"]["regret"]), None

    first = *started(env, policy, params, keys), jnp.zeros(keys.shape[:2], env.dtype)
    (_, _, total), _ = lax.scan(play, first, jnp.arange(env.max_cycles, dtype=jnp.int32))
    return total.mean(axis=1)


def train(
    problem: str,
    seed: int,
    hidden: int = 8,
    pairs: int = 12,
    start: Any = None,
    **changes: Any,
) -> Any:
    """Returns weights of the networks by name.

    Args:
        problem: One of :data:`TASKS`.
        seed: Of first weights, changes and instances.
        hidden: Number of units in each of two layers.
        pairs: Number of pairs of opposite changes in a generation.
        start: First weights; None to draw them.
        **changes: Fields of the task that replace those of :data:`TASKS`.
    """
    task = TASKS[problem]._replace(**changes)
    generator = np.random.default_rng(seed)
    envs = [
        make(env_id, task.stack, jnp.float32, max_cycles=horizon, **env_kwargs)
        for horizon in task.horizons
        for env_id, env_kwargs in task.envs.items()
    ]
    weights, unravel = ravel_pytree(start or first_weights(generator, task.inputs, hidden))
    weights = np.asarray(weights, np.float64)

    @partial(jax.jit, static_argnums=0)
    def regrets(env: Environment, rivals: Array, params: Any, keys: Array) -> Array:
        policy = PureRL2(problem, env.max_cycles)
        # All at once, so that what they have in common, such as contexts, is drawn once.
        return jax.vmap(lambda flat: regret(env, policy, unravel(flat), params, keys).mean())(rivals)

    first, second, began = np.zeros(weights.size), np.zeros(weights.size), process_time()
    for generation in range(task.generations):
        env = envs[generation % len(envs)]
        seeds = (generator.choice(2**31 - FIRST_SEED, task.instances, replace=False) + FIRST_SEED).tolist()
        # The noise of an epsilon between a third and three times that of the stack: the agent sees how large it is.
        scale = jnp.asarray(3.0 ** generator.uniform(-1, 1, (task.instances, 1, 1)), jnp.float32)
        params = env.params(seeds)
        params = {name: array * scale if "scale_" in name else array for name, array in params.items()}
        changed = WIDTH * generator.normal(size=(pairs, weights.size))
        rivals = np.concatenate([weights + changed, weights - changed]).astype(np.float32)
        cost = np.asarray(regrets(env, rivals, params, env.keys(seeds)), np.float64).reshape(2, pairs)
        slope = (cost[0] - cost[1]) @ changed / (np.std(cost[0] - cost[1]) + 1e-9)
        # Adam (Kingma and Ba, ICLR 2015), with steps that fall to a tenth.
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        size = 0.02 * (1.0 - 0.9 * generation / task.generations)
        means = first / (1.0 - 0.9 ** (generation + 1)), second / (1.0 - 0.99 ** (generation + 1))
        weights = weights - size * means[0] / (np.sqrt(means[1]) + 1e-12)
        print(f"{generation}: regret {cost.mean():.2f}, {process_time() - began:.0f} CPU s", flush=True)
    return jax.tree.map(np.asarray, unravel(weights.astype(np.float32)))


def save(path: str | Path, problem: str, weights: Any) -> None:
    """Writes weights to an ``.npz`` file that :class:`fedbandit_envs.baselines.learned.rl2.RL2` plays."""
    arrays = {f"{name}/{key}": layer for name, layers in weights.items() for key, layer in layers.items()}
    np.savez(path, problem=np.array(problem), **arrays)


def main() -> None:
    """Reads the command line, trains, and writes the networks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("problem", choices=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    save(arguments.out, arguments.problem, train(arguments.problem, arguments.seed))


if __name__ == "__main__":
    main()
