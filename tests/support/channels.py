"""Small channels over procurement, and what they observe: for the channel's tests."""

import networkx as nx
import numpy as np

from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.transport.channel import make_topology
from fedbandit_envs.wrappers.transport.transport import HEADER_BYTES

PRODUCERS = 3
NAMES = ("delivered", "good")
BYTES = HEADER_BYTES + 8 * 2 * PRODUCERS


def small(num_agents: int = 4, **kwargs) -> ProcurementEnv:
    return ProcurementEnv(
        num_agents=num_agents, num_producers=PRODUCERS, instance_seed=1, **{"max_cycles": 60, **kwargs}
    )


def private(env, epsilon: float = 0.9, **kwargs) -> GaussianPrivatizer:
    return GaussianPrivatizer(env, epsilon_per_release=epsilon, **kwargs)


def buying(env, replicas: int = 1) -> np.ndarray:
    return np.ones((replicas, env.max_num_agents, PRODUCERS), np.int64)


def assert_same(a, b):
    assert not difference(a, b)


def seen(arrays: dict) -> dict:
    """Copies of arrays of a batch, with inboxes as agents by themselves see them."""
    return {name: array.copy() for name, array in arrays.items()} | concealed(arrays)


def run_of(env, seeds, rounds: int) -> list[dict]:
    """Everything that is observed and told in each round, copied."""
    env.reset_batch(seeds)
    kept = []
    for _ in range(rounds):
        step = env.step_batch(buying(env, len(seeds)))
        kept.append(seen(step.observation | step.info))
    return kept


GRAPHS = {
    "complete": (5, "complete", nx.complete_graph(5)),
    "star": (4, "star", nx.star_graph([4, 0, 1, 2, 3])),
    "ring of 5": (5, "ring", nx.cycle_graph(5)),
    "ring of 6": (6, "ring", nx.cycle_graph(6)),
    "line": (5, "line", nx.path_graph(5)),
    "one way": (4, nx.cycle_graph(4, nx.DiGraph), nx.cycle_graph(4, nx.DiGraph)),
    # A triangle, in which messages stop after one hop, and a line, in which they go on.
    "two parts": (
        6,
        {"edges": [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5]]},
        nx.Graph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5)]),
    ),
    "edgeless": (3, {"edges": []}, nx.empty_graph(3)),
    "random": (6, {"name": "erdos_renyi", "probability": 0.4}, None),
    "random edgeless": (3, {"name": "erdos_renyi", "probability": 0.0}, None),
}


def graph_of(topology, reference, num_agents, seed):
    if reference is not None:
        return reference
    adjacency = make_topology(topology, num_agents)(stream(seed, Purpose.CHANNEL, 0))
    return nx.from_numpy_array(adjacency.astype(int))
