"""Flooding: every node that receives a message for the first time passes it on.

The compiled kernel floods one message of every agent through every replica's graph at once. Hops are synchronous, so
where and after how many hops a message arrives follows from the graph and from the transmissions that are lost, not
from how long a hop takes.
"""

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.compiled import kernel


def edge_lists(graphs: list[Array]) -> Array:
    """Returns the lists of directed edges of graphs.

    Args:
        graphs: Adjacency matrices, bool ``(nodes, nodes)``.

    Returns:
        int32 ``(graphs, edges, 3)``: tail, head, and the index of the edge from head to tail, -1 if there is none.
        Shorter lists end with rows of -1.
    """
    edges = np.full((len(graphs), max((int(graph.sum()) for graph in graphs), default=0), 3), -1, np.int32)
    for listed, graph in zip(edges, graphs, strict=True):
        number = np.full(graph.shape, -1, np.int32)
        count = int(graph.sum())
        number[graph] = np.arange(count)
        listed[:count, 0], listed[:count, 1] = np.nonzero(graph)
        listed[:count, 2] = number.T[graph]
    return edges


@kernel
def flood(
    edges: Array, lost: Array, duplicated: Array, time_to_live: Array, nodes: int
) -> tuple[Array, Array]:
    """Returns when one message of every sender reaches each node, and how many transmissions that takes.

    No node passes a message back to the node that it has just received it from.

    Args:
        edges: As :func:`edge_lists` returns them, int32 ``(graphs, edges, 3)``: one graph a replica, or one
            for all.
        lost: Whether a transmission along the edge loses the message, bool ``(replicas, senders, edges)``.
        duplicated: Whether it doubles the message, if it does not lose it, same shape.
        time_to_live: The largest number of hops of a message, int64 ``(replicas, senders)``.
        nodes: Number of nodes of each graph.

    Returns:
        Two arrays:

        * The number of hops after which each node first receives the message, int64 ``(replicas, nodes, senders)``: 0
          for the sender itself, -1 for nodes that it never reaches.
        * The number of transmissions in each hop, lost and doubled ones included, int64 ``(replicas, senders, hops)``.
    """
    replicas, senders, num_edges = lost.shape
    longest = 1
    for limit in time_to_live.flat:
        longest = max(longest, limit)
    arrival = np.full((replicas, nodes, senders), -1)
    traversals = np.zeros((replicas, senders, longest), np.int64)
    for r in range(replicas):
        graph = edges[r % edges.shape[0]]
        for s in range(senders):
            seen = arrival[r, :, s]
            seen[s] = 0
            for hop in range(1, time_to_live[r, s] + 1):
                spreads = False
                for e in range(num_edges):
                    tail, head, back = graph[e, 0], graph[e, 1], graph[e, 2]
                    if tail < 0:
                        break
                    if seen[tail] != hop - 1:
                        continue
                    if hop > 1 and back >= 0 and seen[head] == hop - 2 and not lost[r, s, back]:
                        continue
                    traversals[r, s, hop - 1] += 1
                    if lost[r, s, e]:
                        continue
                    if duplicated[r, s, e]:
                        traversals[r, s, hop - 1] += 1
                    if seen[head] < 0:
                        seen[head] = hop
                        spreads = True
                if not spreads:
                    break
    return arrival, traversals
