"""How messages spread: every node that sees one for the first time passes it on.

The compiled kernel floods one message of every agent through every replica's graph at once. Hops are
synchronous, so where and when a message arrives follows from the graph and from which traversals of its
edges are lost; how long a hop takes does not matter here.
"""

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.compiled import kernel


def edge_lists(graphs: list[Array]) -> Array:
    """Lists the directed edges of graphs.

    Args:
        graphs: Adjacency matrices, bool ``(nodes, nodes)``.

    Returns:
        int32 ``(graphs, edges, 3)``: from which node, to which node, and the index of the edge that leads
        back, -1 if there is none. Shorter lists end with rows of -1.
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
    """Floods one message of every sender through every replica's graph.

    Nobody passes a message back to whom it has just been heard from.

    Args:
        edges: As :func:`edge_lists` returns them, int32 ``(graphs, edges, 3)``: one graph a replica, or one
            for all.
        lost: Whether a traversal of the edge loses the message, bool ``(replicas, senders, edges)``.
        duplicated: Whether it doubles the message, if it does not lose it, same shape.
        time_to_live: Most hops of a message, int64 ``(replicas, senders)``.
        nodes: Number of nodes of each graph.

    Returns:
        Two arrays:

        * After how many hops each node sees the message first, int64 ``(replicas, nodes, senders)``: 0 for
          the sender itself, -1 for those it never reaches.
        * How many edge traversals make the first hop, the second and so on, lost ones and doubles included,
          int64 ``(replicas, senders, hops)``.
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
