"""Agent-rounds a second of the functional twin: ``python -m benchmarks.functional`` prints a table, in some minutes.

Instances of 100 seeds are drawn by the package and repeated, each time with other keys, so that rows have outcomes of
their own. On a GPU there are as many rows as it needs to be busy; on a CPU as many as fit into its cache.
"""

import argparse
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from fedbandit_envs.functional import PureLinUCB, PureSSUCB, PureUCB1, make
from fedbandit_envs.functional.rollouts import _played

TOLD = [
    ["GaussianPrivatizer", {"noise_multiplier": 5.0}],
    ["Server", {"answers": "every_round", "echo": False}],
]
TOLD[1][1]["schedule"] = {"name": "fixed_gap", "gap": 10}

# Label, id, arguments, wrappers, policy; rows on a CPU and on a GPU; rounds.
SETTINGS = (
    ("UCB1, 10 arms", "FedArms-v0", {}, [], PureUCB1(), 2_000, 1_000_000, 500),
    (
        "UCB1, 100 agents, server, noise",
        "FedArms-v0",
        {"num_agents": 100},
        TOLD,
        PureUCB1(),
        2_000,
        1_000_000,
        500,
    ),
    (
        "LinUCB, 100 arms, 10 dimensions",
        "FedLinear-v0",
        {"reward": "bernoulli"},
        [],
        PureLinUCB(),
        500,
        100_000,
        100,
    ),
    ("SS-UCB, 30 producers", "FedProcurement-v0", {}, [], PureSSUCB(), 500, 1_000_000, 100),
)


def rate(env, policy, rows, rounds):
    """Agent-rounds a second of the faster of two runs, and the seconds of the first call, which compiles."""
    replicas = max(rows // env.num_agents, 1)
    rng = np.random.default_rng(0)
    params = env.params(range(min(100, replicas)))
    with env.precision():
        for name, array in params.items():
            params[name] = array = jnp.resize(array, (replicas, *array.shape[1:]))
            if "key" in name:
                params[name] = array ^ rng.integers(0, 2**32, array.shape, np.uint32)
        keys = jnp.asarray(rng.integers(0, 2**32, (replicas, env.num_agents, 2), np.uint32))
        seconds = []
        for _ in range(3):
            start = perf_counter()
            jax.block_until_ready(_played(env, policy, rounds, params, policy.params(), keys))
            seconds.append(perf_counter() - start)
    return replicas * env.num_agents * rounds / min(seconds[1:]), seconds[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=("float32", "float64"), nargs="*", default=["float32", "float64"])
    dtypes = parser.parse_args().dtype
    device = jax.devices()[0]
    print(f"{device.device_kind}, jax {jax.__version__}\n")
    print("| | dtype | rows | million agent-rounds a second | first call, s |\n|---|---|---|---|---|")
    for label, env_id, kwargs, stack, policy, *rows, rounds in SETTINGS:
        for dtype in dtypes:
            env = make(env_id, stack, dtype, max_cycles=rounds, **kwargs)
            many = rows[device.platform != "cpu"]
            fast, first = rate(env, policy, many, rounds)
            print(f"| {label} | {dtype} | {many:,} | {fast / 1e6:,.2f} | {first:.1f} |", flush=True)


if __name__ == "__main__":
    main()
