"""What faces cost in CPU time: `OMP_NUM_THREADS=1 pytest benchmarks/bench_faces.py --benchmark-only`.

Each benchmark prints steps per CPU-second and their ratio to those of Gymnasium's CartPole, timed right before on the
same processor; a vector environment's steps are those of all its copies, a federation's are rounds of all its agents.
"""

import time

import gymnasium as gym
import numpy as np
import pytest

from fedbandit_envs.registry.registration import make_federation, make_parallel

FOREVER = 10**9
STEPS = 200
DOUBLING = [["fedbandit_envs.wrappers:Channel", {"schedule": "doubling"}]]
SINGLE = {
    "procurement": ("FedProcurement-v0", {}),
    "procurement, portions": ("FedProcurement-v0", {"action_format": "portions"}),
    "procurement, index": ("FedProcurement-v0", {"action_format": "index"}),
    "procurement, features": ("FedProcurement-v0", {"features": True}),
    "procurement, joint": ("FedProcurement-v0", {"joint": True}),
    "procurement, channel": ("FedProcurement-v0", {"stack": DOUBLING}),
    "linear": ("FedLinear-v0", {}),
    "linear, features": ("FedLinear-v0", {"features": True}),
    "linear, channel": ("FedLinear-v0", {"stack": DOUBLING}),
    "arms": ("FedArms-v0", {}),
    "exposure": ("FedExposure-v0", {}),
}
KEYED = {
    "procurement": ("FedProcurement-v0", {}),
    "procurement, index": ("FedProcurement-v0", {"action_format": "index"}),
    "procurement, features": ("FedProcurement-v0", {"action_format": "index", "features": True}),
    "linear": ("FedLinear-v0", {}),
    "arms": ("FedArms-v0", {}),
}
cpu_time = pytest.mark.benchmark(timer=time.process_time, min_rounds=5, warmup=True, warmup_iterations=1)


@cpu_time
@pytest.mark.parametrize("name", SINGLE)
def test_one_learning_agent(benchmark, name):
    """`gym.make`, with Gymnasium's own wrappers around it."""
    env_id, arguments = SINGLE[name]
    env = gym.make(env_id, max_cycles=FOREVER, **arguments)
    env.reset(seed=0)
    measure(benchmark, env.step, samples(env.action_space))


@cpu_time
@pytest.mark.parametrize("copies", [1, 8, 64])
@pytest.mark.parametrize("env_id", ["FedProcurement-v0", "FedLinear-v0"])
def test_the_native_vector_environment(benchmark, env_id, copies):
    env = gym.make_vec(env_id, num_envs=copies, vectorization_mode="vector_entry_point", max_cycles=FOREVER)
    env.reset(seed=0)
    measure(benchmark, env.step, samples(env.action_space), copies)


@cpu_time
@pytest.mark.parametrize("name", KEYED)
def test_the_keyed_face(benchmark, name):
    """Ten agents in dicts."""
    env_id, arguments = KEYED[name]
    env = make_parallel(env_id, max_cycles=FOREVER, **arguments)
    env.reset(seed=0)
    choices = samples(env.action_space("agent_0"))
    actions = [
        {agent: choices[(place + j) % STEPS] for j, agent in enumerate(env.possible_agents)}
        for place in range(STEPS)
    ]
    measure(benchmark, env.step, actions)


@cpu_time
@pytest.mark.parametrize(
    ("env_id", "action_format"), [("FedProcurement-v0", "index"), ("FedLinear-v0", "arm")]
)
def test_stable_baselines(benchmark, env_id, action_format):
    """Four replicas of ten agents; a step is one of all 40 rows."""
    pytest.importorskip("stable_baselines3")
    from fedbandit_envs.views import to_sb3

    env = to_sb3(make_federation(env_id, max_cycles=FOREVER), action_format)
    env.reset()
    choices = samples(env.action_space)
    actions = [
        np.stack([choices[(place + row) % STEPS] for row in range(env.num_envs)]) for place in range(STEPS)
    ]
    measure(benchmark, env.step, actions)


def samples(space):
    space.seed(0)
    return [space.sample() for _ in range(STEPS)]


def measure(benchmark, step, actions, copies=1):
    cart_pole = cart_poles_steps()

    def play():
        for action in actions:
            step(action)

    benchmark(play)
    steps = copies * len(actions) / benchmark.stats["median"]
    benchmark.extra_info["steps per CPU-second"] = round(steps)
    benchmark.extra_info["to CartPole's"] = round(steps / cart_pole, 3)


def cart_poles_steps():
    """Steps per CPU-second of CartPole, the median of five."""
    env = gym.make("CartPole-v1")
    env.reset(seed=0)
    spent = []
    for _ in range(5):
        start = time.process_time()
        for place in range(2000):
            _, _, terminated, truncated, _ = env.step(place % 2)
            if terminated or truncated:
                env.reset()
        spent.append(time.process_time() - start)
    return 2000 / sorted(spent)[2]
