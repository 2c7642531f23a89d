"""Cliques: groups of agents in which everybody reaches everybody."""

import networkx as nx
import numpy as np

from fedbandit_envs.arrays import Array


def clique_cover(reaches: Array) -> Array:
    """Splits agents into few cliques, by greedily colouring the complement of the graph.

    FedUCB (Dubey and Pentland 2020, Algorithm 3) takes the power graph, where agents are joined that are within
    gamma hops. The fewest cliques are hard to find; DSATUR orders agents by how many colours their neighbours
    have, and needs the fewest of networkx' deterministic orders on random, regular and line graphs.

    Args:
        reaches: Who reaches whom, bool ``(agents, agents)``; only pairs that reach each other both ways are
            joined. The diagonal does not count.

    Returns:
        Each agent's clique, int64 ``(agents,)``, numbered from 0. The same graph has the same cliques.
    """
    apart = ~(reaches & reaches.T)
    np.fill_diagonal(apart, False)
    colours = nx.greedy_color(nx.from_numpy_array(apart), strategy="DSATUR")
    return np.array([colours[agent] for agent in range(len(reaches))])
