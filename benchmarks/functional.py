"""Agent-rounds a second of the functional twin: ``python -m benchmarks.functional`` prints a table within four minutes.

Some instances are drawn by the package and repeated, each time with other keys, so that rows have outcomes of their
own. On a GPU there are as many rows as it needs to be busy, and seconds are those of a clock. On a CPU there are as
many rows as fit into its cache, and seconds are those of the processor. The last lines show the twin and, where it is
installed, gymnax's own Bernoulli bandit in the same loop of gymnax's steps, with two arms and random actions.
"""

import argparse
from functools import partial
from importlib.util import find_spec
from time import perf_counter, process_time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

from fedbandit_envs.functional import PureLinUCB, PureRandom, PureSSUCB, PureUCB1, make
from fedbandit_envs.functional.adapters import Gymnax
from fedbandit_envs.functional.rollouts import _played

GAP = {"name": "fixed_gap", "gap": 10}
TOLD = [
    ["GaussianPrivatizer", {"noise_multiplier": 5.0}],
    ["Server", {"schedule": GAP, "answers": "every_round", "echo": False}],
]
"""Every tenth round all agents send noisy sums to a server, which answers at once."""

# Label, id, arguments, policy; rows on a CPU and on a GPU; rounds.
SETTINGS = (
    ("UCB1, 10 arms", "FedArms-v0", {}, PureUCB1(), 2_000, 1_000_000, 500),
    (
        "LinUCB, 100 arms, 10 dimensions",
        "FedLinear-v0",
        {"reward": "bernoulli"},
        PureLinUCB(),
        *(500, 100_000, 100),
    ),
    ("SS-UCB, 30 producers", "FedProcurement-v0", {}, PureSSUCB(), 500, 1_000_000, 100),
    ("random, 2 arms", "FedArms-v0", {"num_arms": 2}, PureRandom(), 2_000, 1_000_000, 500),
)


def rate(function, *arguments):
    """Runs a second of the faster of two runs, and the seconds that it takes to compile."""
    clock = process_time if jax.devices()[0].platform == "cpu" else perf_counter
    start = clock()
    compiled = function.lower(*arguments).compile()
    compilation, seconds = clock() - start, []
    # What is not static is given again.
    given = [one for one in arguments if isinstance(one, dict | jax.Array)]
    for _ in range(3):
        start = clock()
        jax.block_until_ready(compiled(*given))
        seconds.append(clock() - start)
    return 1 / min(seconds[1:]), compilation


def twin_rate(env, policy, rows, rounds):
    """Agent-rounds a second of rollouts, and the seconds to compile them."""
    replicas = max(rows // env.num_agents, 1)
    rng = np.random.default_rng(0)
    params = env.params(range(min(-(-100 // env.num_agents), replicas)))
    with env.precision():
        for name, array in params.items():
            params[name] = array = jnp.resize(array, (replicas, *array.shape[1:]))
            if "key" in name:
                params[name] = array ^ rng.integers(0, 2**32, array.shape, np.uint32)
        keys = jnp.asarray(rng.integers(0, 2**32, (replicas, env.num_agents, 2), np.uint32))
        fast, compilation = rate(_played, env, policy, rounds, params, policy.params(), keys)
    return fast * replicas * env.num_agents * rounds, compilation


@partial(jax.jit, static_argnames=("env", "rounds"))
def gymnax_loop(env, rounds, keys):
    """Rewards of random actions in an environment with gymnax's API."""

    def episode(key):
        def play(state, key):
            action = random.randint(key, (), 0, 2)
            _, state, reward, *_ = env.step(key, state, action, env.default_params)
            return state, reward

        start, key = random.split(key)
        state = env.reset(start, env.default_params)[1]
        return lax.scan(play, state, random.split(key, rounds))[1].sum()

    return jax.vmap(episode)(keys)


def gymnax_settings():
    """Labels and environments that have gymnax's API; gymnax's own where it is installed."""
    yield "random, 2 arms, the twin by gymnax's API", Gymnax(make("FedArms-v0", num_agents=1, num_arms=2))
    if find_spec("gymnax"):
        from gymnax.environments.misc.bernoulli_bandit import BernoulliBandit

        yield "random, 2 arms, gymnax's own", BernoulliBandit()
    else:
        print("gymnax is not installed", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("float32", "float64"), nargs="*", default=["float32", "float64"])
    parser.add_argument("--share", type=float, default=1.0, help="Share of the rows that are played.")
    parser.add_argument("--seconds", type=float, default=220, help="After them no other row is begun.")
    given, began = parser.parse_args(), perf_counter()
    device = jax.devices()[0]
    on_cpu = device.platform == "cpu"
    print(f"{device.device_kind}, jax {jax.__version__}\n")
    print("| | dtype | rows | million agent-rounds a second | compilation, s |\n|---|---|---|---|---|")

    def show(label, dtype, rows, play):
        if perf_counter() - began > given.seconds:
            print(f"| {label} | {dtype} | not in time | | |", flush=True)
            return
        fast, compilation = play()
        print(f"| {label} | {dtype} | {rows:,} | {fast / 1e6:,.2f} | {compilation:.1f} |", flush=True)

    for told in (False, True):
        for label, env_id, kwargs, policy, on_one, on_gpu, rounds in SETTINGS:
            if told and isinstance(policy, PureRandom):
                continue
            agents = 100 if told else 1
            rows = max(int((on_one if on_cpu else on_gpu) * given.share), agents)
            label += ", 100 agents, server, noise" if told else ""
            for dtype in given.dtype:
                options = {**kwargs, "num_agents": agents, "max_cycles": rounds}
                env = make(env_id, TOLD if told else [], dtype, **options)
                show(label, dtype, rows, partial(twin_rate, env, policy, rows, rounds))
    rows = max(int((2_000 if on_cpu else 1_000_000) * given.share), 1)
    keys = random.split(random.key(0), rows)
    for label, env in gymnax_settings():

        def play(env=env):
            fast, compilation = rate(gymnax_loop, env, 500, keys)
            return fast * rows * 500, compilation

        show(label, "float32", rows, play)


if __name__ == "__main__":
    main()
