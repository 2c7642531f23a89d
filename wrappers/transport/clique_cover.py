"""Clique covers: partitions of a graph into groups of agents that all reach each other."""

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array


def clique_cover(reaches: Array) -> Array:
    """Returns a partition of the agents into few cliques, from a greedy colouring of the complement graph.

    FedUCB (Dubey and Pentland 2020, Algorithm 3) takes the power graph, where agents are joined that are within
    gamma hops. The fewest cliques are hard to find; DSATUR orders agents by how many colours their neighbours
    have, and needs the fewest of networkx' deterministic orders on random, regular and line graphs.

    Args:
        reaches: Whether one agent reaches another, bool ``(agents, agents)``; only pairs that reach each other both
            ways are joined. The diagonal does not count.

    Returns:
        The number of each agent's clique, from 0, int64 ``(agents,)``. The same graph has the same cliques.
    """
    apart = ~(reaches & reaches.T)
    np.fill_diagonal(apart, False)
    colours = nx.greedy_color(nx.from_numpy_array(apart), strategy="DSATUR")
    return np.array([colours[agent] for agent in range(len(reaches))])
