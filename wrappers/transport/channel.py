"""The channel: a transport that carries messages between agents, along the edges of a graph.

Graphs are fixed, drawn anew in each episode, or a star with a controller.

A graph is an adjacency matrix, bool ``(nodes, nodes)``: entry (u, v) is true if v receives messages from u. Agents come
first, in their order; nodes after them only pass messages on. Specifications can be written as JSON, except networkx
graphs:

* a name, ``"ring"``, or a mapping of the name and the argument, ``{"name": "erdos_renyi", "probability": 0.3}``, see
  below;
* ``{"edges": [[0, 1], [1, 2]]}``: pairs of agents that receive messages from each other;
* a networkx graph, undirected or directed, whose nodes are the agents' numbers or names.

| name | argument | the graph |
|---|---|---|
| `complete` | | each agent receives messages from every other |
| `star` | | all agents are joined to a controller, which is no agent and passes messages on between them |
| `line` | | each agent receives messages from the agent before and the agent after it |
| `ring` | | a line whose ends receive messages from each other |
| `erdos_renyi` | `probability` | drawn: each pair of agents is joined with that probability, independently |

Messages flood the network: every node that receives a message for the first time passes it on. The compiled kernel
floods one message of every agent through every replica's graph at once. All hops take equally long, so where and after
how many hops a message arrives depends on the graph and on the lost transmissions only, not on the duration of a hop.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from warnings import warn

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.basics.entry_points import by_name, checked, make_rule
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.randomness.streams import Purpose, stream
from fedbandit_envs.wrappers.transport.schedule import Combined, Schedule, StageSpec, spread
from fedbandit_envs.wrappers.transport.transport import Transport, star


class Channel(Transport):
    """A transport that carries each agent's releases to other agents' inboxes; see :class:`Transport`.

    A release is one message, which floods the graph: a node that receives a message for the first time passes it on
    along all its outgoing edges, except back to the node from which it came. Messages are numbered (by sender and
    round), so that no agent adds the same message twice.

    The senders' axis of an inbox has one entry for each agent, in their order; with a ``stage`` it has a single one.
    Agents do not receive their own
    messages, except with ``echo``: then observations gain ``sent``, bool ``(1,)``, whether the agent has received its
    own message in this round, and ``inbox_own``, bool ``(senders,)``, true at the agent's own place if so.

    Each transmission along an edge counts as one message, whether it is lost or not; a doubled one counts as two. It is
    counted for the agent that released the data, whichever node passes them on.

    A ``stage`` (:mod:`.schedule`) replaces the releases of a round by their sum before anybody receives them. It needs
    the complete graph, and one message to each other agent is counted for a release. Loss hits a release on its way to
    the stage, for all agents, and the sum on its way to each agent; ``delay`` is that of the sum. With ``echo`` the sum
    contains the agent's own release, and ``inbox_own`` is always false.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Channel(parallel_env(num_agents=4), topology="ring", schedule="every_round", time_to_live=1)
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.zeros((1, 4), np.int64))
        >>> step.observation["inbox_mask"][0, 0].tolist()
        [False, True, False, True]
        >>> step.observation["inbox_pulls"][0, 0, :, 0].tolist()
        [0.0, 1.0, 0.0, 1.0]
    """

    examples = (
        {},
        {"topology": "star", "schedule": {"name": "fixed_gap", "gap": 2}, "delay": 1, "loss": 0.1},
        {"topology": "ring", "schedule": "on_request", "echo": True, "duplication": 0.1},
        {"stage": "shuffler", "loss": 0.2},
        {"stage": {"name": "aggregator", "honest": 2}, "schedule": "every_round", "delay": 1},
        {"stage": "server", "echo": True, "duplication": 0.1},
    )

    def __init__(
        self,
        env: FederatedEnv,
        topology: str | Mapping[str, Any] | nx.Graph = "complete",
        schedule: Schedule | str | Mapping[str, Any] = "every_round",
        delay: int = 0,
        time_to_live: int | None = None,
        loss: float = 0.0,
        duplication: float = 0.0,
        echo: bool = False,
        cliques: bool = False,
        stage: StageSpec = None,
    ) -> None:
        """Wraps ``env``; a privatizer, if any, must be inside.

        Args:
            env: The environment, without a transport.
            topology: The graph, see this module.
            schedule: When messages are sent, see :mod:`fedbandit_envs.wrappers.transport.schedule`.
            delay: Rounds that each hop takes; with 0, a message arrives in the observation of the round in which it is
                sent.
            time_to_live: The largest number of hops of a message; 1 reaches neighbours only. None lets each message
                travel as far as the agent that is furthest from its sender.
            loss: Probability, in [0, 1), that a transmission along an edge loses the message. It may still arrive along
                another path.
            duplication: Probability, in [0, 1), that a transmission which does not lose the message doubles it.
            echo: Whether agents receive their own messages as well: in the round in which they are sent, whatever the
                delay and loss, and without being counted as traffic. With the topology ``{"edges": []}`` they receive
                nothing else: each agent then learns from its own (noisy) releases alone.
            cliques: Whether agents receive messages of their own clique only (FedUCB; Dubey and Pentland 2020,
                Algorithm 3). Agents that reach each other, both ways, within ``time_to_live`` hops are joined,
                and the resulting graph is partitioned into few cliques, see
                :func:`clique_cover`. Messages still flood the whole graph
                and are counted as without cliques.
            stage: Who adds up the releases of a round before anybody receives them, see
                :mod:`fedbandit_envs.wrappers.transport.schedule`; None for nobody.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: An argument is out of its range, ``env`` has a transport already, a stage is given and the
                topology is not complete, or the schedule needs
                every agent to reach every other and one does not (where graphs are drawn, ``reset_batch`` raises this
                error).
        """
        require_flag("cliques", cliques)
        if time_to_live is not None:
            require_integer("time_to_live", time_to_live, 1)
        elif cliques:
            raise ValueError("time_to_live is None; an integer >= 1, the reach of a clique, is required")
        super().__init__(env, schedule, echo, delay, loss, duplication, stage=stage)
        if self._schedule.announced:
            raise ValueError("schedule is 'announced'; a Server with a policy is required for it")
        self.hub = "relay" if self._stage is None else self._stage.trust
        # _draw: the function that draws a replica's graph. _explored: where messages arrive in a graph that is fixed.
        # With a stage, whose sums all agents receive, there is no graph.
        self._draw, self._explored = None, None
        self._graphs: list[Array] = []
        if self._stage is not None:
            if topology != "complete":
                raise ValueError(f"topology is {topology!r}; 'complete' is required with a stage")
            return
        self._reach = self.max_num_agents, time_to_live, cliques, self._schedule.needs_all_connected
        graph = make_topology(topology, self.max_num_agents)
        if callable(graph):
            self._draw = graph
            return
        if len(graph) > self.max_num_agents and time_to_live == 1:
            raise ValueError("time_to_live is 1; None or at least 2 is required with a controller")
        self._graphs = [graph]
        self._explored = self._explore(self._graphs)

    def _explore(self, graphs: list[Array]) -> tuple[Array, Array, Array, Array]:
        """Returns where messages arrive, see :func:`explore`; warns of graphs on which none does."""
        if graphs and not (self._echo or self.max_num_agents == 1 or any(one.any() for one in graphs)):
            warn("topology is a graph without edges: no message arrives", stacklevel=3)
        return explore(graphs, *self._reach)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with empty inboxes and no messages in transit.

        Raises:
            ValueError: The schedule needs every agent to reach every other, and in a drawn graph some agent cannot.
                The state does not change.
        """
        graphs, explored = self._graphs, self._explored
        if self._draw is not None:
            graphs = [self._draw(stream(seed, Purpose.CHANNEL, 0)) for seed in seeds]
            explored = self._explore(graphs)
        reset = super().reset_batch(seeds)
        self._graphs = graphs
        if explored is not None:
            self._edges, *paths = explored
            self._limits, self._hops, self._traversals = (
                np.repeat(array, len(seeds) // len(array), axis=0) for array in paths
            )
        # Key: the round in which a hop ends. Value: the releases, the agents at which they then arrive for the first
        # time, bool (replicas, agents, senders), and the number of transmissions of the next hop, (replicas, senders).
        self._in_transit: dict[int, list[tuple[Arrays, Array, Array]]] = {}
        self._sums: dict[int, tuple[Array, Arrays, Array]] = {}
        return reset

    def graph(self, replica: int) -> Array:
        """Returns the graph of a replica's nodes; with a stage all agents are joined to it; see :class:`Transport`."""
        return self._graphs[replica % len(self._graphs)] if self._graphs else super().graph(replica)

    def _send_sum(self, combined: Combined, messages: Array, lost: Array) -> None:
        self._book(messages * (self.max_num_agents - 1))
        everyone = combined.went[:, np.newaxis] & self._everyone
        received = everyone & ~self._faults(everyone, upwards=False)[0]
        own = {name: 0.0 if self._echo else array for name, array in combined.content.items()}
        content = {
            name: np.where(spread(received, total[:, np.newaxis]), total[:, np.newaxis] - own[name], 0.0)
            for name, total in combined.total.items()
        }
        self._sums[self._round + self._delay] = received, content, combined.arrived & received

    def _send(self, statistic: Arrays, senders: Array) -> None:
        hops, traversals = self._carried(senders)
        at_once = np.zeros_like(hops, np.bool_) if self._delay else hops > 0
        if self._echo:
            self.inbox["inbox_own"][...] = senders[:, np.newaxis] & np.eye(self.max_num_agents, dtype=bool)
            self.inbox["sent"][..., 0] = senders
            at_once |= self.inbox["inbox_own"]
        self._deliver(statistic, at_once)
        if self._delay == 0:
            self._book(traversals.sum(axis=-1))
            return
        self._book(traversals[..., 0])
        # The transmissions of a hop start, and are counted, when the hop before it ends. After the last hop there is no
        # next one, hence the zeros.
        following = np.concatenate([traversals[..., 1:], np.zeros_like(traversals[..., :1])], axis=-1)
        for hop in range(1, traversals.shape[-1] + 1):
            arrives, follows = hops == hop, following[..., hop - 1]
            # A hop may end only at the controller of a star: then the message reaches no agent yet, but is passed on.
            if arrives.any() or follows.any():
                due = self._in_transit.setdefault(self._round + hop * self._delay, [])
                due.append((statistic, arrives, follows))

    def _carried(self, senders: Array) -> tuple[Array, Array]:
        """Returns where the messages of this round arrive, and how many transmissions each of their hops takes.

        Both are 0 for agents that do not send; see :func:`.explore`. Losses and doublings are drawn for all agents,
        whichever of them send. So random numbers depend neither on actions nor on other replicas, and losses do not
        depend on the probability of doubling.
        """
        hops, traversals = self._hops, self._traversals
        if self._loss or self._duplication:
            faults = np.ones((2, *senders.shape, self._edges.shape[1]))
            for replica in np.flatnonzero(senders.any(axis=1)):
                # Lists of edges are padded to the longest in the batch. Faults are drawn for the replica's own edges
                # only, so that they do not depend on other replicas.
                own = int((self._edges[replica % len(self._edges), :, 0] >= 0).sum())
                generator = stream(self._seeds[replica], Purpose.CHANNEL, self._round)
                faults[:, replica, :, :own] = generator.random((2, senders.shape[1], own))
            lost, duplicated = faults[0] < self._loss, faults[1] < self._duplication
            arrival, traversals = flood(self._edges, lost, duplicated, self._limits, len(self._graphs[0]))
            # Only agents that a message reaches without faults may receive it: flooding ignores cliques, the mask does
            # not.
            hops = arrival[:, : senders.shape[1]] * (self._hops > 0)
        if senders.all():
            return hops, traversals
        return hops * senders[:, np.newaxis], traversals * senders[..., np.newaxis]

    def _arrive(self) -> None:
        if self._round in self._sums:
            self._give(*self._sums.pop(self._round))
        for statistic, arrives, follows in self._in_transit.pop(self._round, ()):
            self._deliver(statistic, arrives)
            self._book(follows)


def _complete(num_agents: int, generator: np.random.Generator) -> Array:
    return ~np.eye(num_agents, dtype=np.bool_)


def _line(num_agents: int, generator: np.random.Generator) -> Array:
    return np.eye(num_agents, k=1, dtype=np.bool_) | np.eye(num_agents, k=-1, dtype=np.bool_)


def _ring(num_agents: int, generator: np.random.Generator) -> Array:
    adjacency = _line(num_agents, generator)
    if num_agents > 1:
        adjacency[0, -1] = adjacency[-1, 0] = True
    return adjacency


@checked(lambda probability: require_number("probability", probability, 0, 1))
def _erdos_renyi(num_agents: int, generator: np.random.Generator, *, probability: float) -> Array:
    upper = np.triu(generator.random((num_agents, num_agents)) < probability, k=1)
    return upper | upper.T


TOPOLOGIES = by_name(_complete, star, _ring, _line, _erdos_renyi)
"""Functions that return a graph, given the number of agents and a random generator, by the name in a specification.

Functions with a further keyword argument draw a graph; the others always return the same graph."""


def make_topology(
    spec: str | Mapping[str, Any] | nx.Graph, num_agents: int
) -> Array | Callable[[np.random.Generator], Array]:
    """Returns the graph of a specification, or the function that draws it anew in each replica and episode.

    Args:
        spec: The specification; the module's docstring lists its forms.
        num_agents: Number of agents.

    Raises:
        TypeError: The specification has the wrong type, or an argument that the graph does not have.
        ValueError: The name is unknown, an argument is out of range, or the graph does not fit the agents.

    Example:
        >>> make_topology("ring", 4).astype(int).tolist()
        [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    if isinstance(spec, Mapping) and list(spec) == ["edges"]:
        graph = nx.empty_graph(num_agents)
        graph.add_edges_from(spec["edges"])
        spec = graph
    if isinstance(spec, nx.Graph):
        return _from_networkx(spec, num_agents)
    rule = make_rule("topology", spec, TOPOLOGIES, ", or a mapping of 'edges',")
    draw = partial(rule, num_agents)
    return draw if rule.keywords else draw(np.random.default_rng(0))


def _from_networkx(graph: nx.Graph, num_agents: int) -> Array:
    numbers = list(range(num_agents))
    for nodes in (numbers, [f"agent_{number}" for number in numbers]):
        if set(graph.nodes) == set(nodes):
            break
    else:
        raise ValueError(
            f"topology is a graph of {len(graph)} nodes, {sorted(map(repr, graph.nodes))[:5]} and so on; exactly the "
            f"agents, 0 to {num_agents - 1} or 'agent_0' to 'agent_{num_agents - 1}', are required "
            "(networkx.convert_node_labels_to_integers numbers nodes)"
        )
    # Weights are ignored, since an edge of weight 0 is still an edge.
    adjacency: Array = nx.to_numpy_array(graph, nodelist=nodes, weight=None) > 0
    for agent in np.flatnonzero(adjacency.diagonal()):
        raise ValueError(f"topology has a self-loop at agent {agent}; edges between two agents are required")
    return adjacency


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


@allocating_kernel
def flood(
    edges: Array, lost: Array, duplicated: Array, time_to_live: Array, nodes: int
) -> tuple[Array, Array]:
    """Returns when one message of every sender reaches each node, and how many transmissions that takes.

    No node passes a message back to the node that it has just received it from.

    Args:
        edges: As :func:`edge_lists` returns them, int32 ``(graphs, edges, 3)``: one graph a replica, or one
            for all.
        lost: Whether a transmission of a sender's message along an edge loses it, bool ``(replicas, senders, edges)``;
            with 0 for ``edges`` no transmission is lost or doubled.
        duplicated: Whether the transmission doubles the message, if it does not lose it, same shape.
        time_to_live: The largest number of hops of a message, int64 ``(replicas, senders)``.
        nodes: Number of nodes of each graph.

    Returns:
        Two arrays:

        * The number of hops after which each node first receives the message, int64 ``(replicas, nodes, senders)``: 0
          for the sender itself, -1 for nodes that it never reaches.
        * The number of transmissions in each hop, lost and doubled ones included, int64 ``(replicas, senders, hops)``.
    """
    replicas, senders, faults = lost.shape
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
                for e in range(edges.shape[1]):
                    tail, head, back = graph[e, 0], graph[e, 1], graph[e, 2]
                    if tail < 0:
                        break
                    if seen[tail] != hop - 1:
                        continue
                    from_head = hop > 1 and back >= 0 and seen[head] == hop - 2
                    if from_head and not (faults and lost[r, s, back]):
                        continue
                    traversals[r, s, hop - 1] += 1
                    if faults and lost[r, s, e]:
                        continue
                    if faults and duplicated[r, s, e]:
                        traversals[r, s, hop - 1] += 1
                    if seen[head] < 0:
                        seen[head] = hop
                        spreads = True
                if not spreads:
                    break
    return arrival, traversals


def explore(
    graphs: list[Array], agents: int, time_to_live: int | None, cliques: bool, all_connected: bool
) -> tuple[Array, Array, Array, Array]:
    """Returns where messages arrive in each graph, by flooding it without loss or doubling.

    Args:
        graphs: The adjacency matrices, bool ``(nodes, nodes)``.
        agents: Number of agents, which are the first nodes.
        time_to_live: The largest number of hops of a message; None for as many as the furthest agent needs.
        cliques: Whether agents receive messages of their own clique only; ``time_to_live`` is then given.
        all_connected: Whether graphs in which some agent cannot reach some other raise an error.

    Returns:
        Four arrays, with one row for each graph:

        * The edges, see :func:`edge_lists`.
        * The largest number of hops of each sender's message, int64 ``(graphs, senders)``.
        * The number of hops after which an agent first receives a sender's message, int64 ``(graphs, agents,
          senders)``; 0 or less where it does not.
        * The number of transmissions in each hop of a sender's message, int64 ``(graphs, senders, hops)``.

    Raises:
        ValueError: Not all agents are connected, and they must be.
    """
    edges, nodes = edge_lists(graphs), max(map(len, graphs), default=agents)
    none = np.zeros((len(graphs), agents, 0), np.bool_)
    limits = np.full(none.shape[:2], nodes if time_to_live is None else min(time_to_live, nodes))
    arrival, traversals = flood(edges, none, none, limits, nodes)
    hops = arrival[:, :agents]
    if all_connected and (hops < 0).any():
        _, receiver, sender = np.argwhere(hops < 0)[0]
        raise ValueError(
            f"topology and time_to_live, which is {time_to_live}, do not let agent {sender} reach agent {receiver}; a "
            "connected topology and enough hops are required, since a request must reach every agent"
        )
    if time_to_live is None:
        # No message travels further than to the furthest agent.
        limits = hops.max(axis=1)
        _, traversals = flood(edges, none, none, limits, nodes)
    if cliques:
        for own, reached in zip(hops, hops >= 0, strict=True):
            clique = clique_cover(reached)
            own *= clique[:, np.newaxis] == clique
    return edges, limits, hops, traversals


def clique_cover(reaches: Array) -> Array:
    """Returns a partition of the agents into few cliques, from a greedy colouring of the complement graph.

    FedUCB (Dubey and Pentland 2020, Algorithm 3) takes the power graph, in which two agents are joined if they are
    within gamma hops of each other. Finding the smallest number of cliques is a hard problem. The greedy colouring
    takes agents in DSATUR order (first those whose neighbours already have most colours), which on random, regular and
    line graphs needs fewer cliques than the other deterministic orders of networkx.

    Args:
        reaches: Whether one agent reaches another, bool ``(agents, agents)``; two agents are joined if both reach each
            other. The diagonal is ignored.

    Returns:
        The number of each agent's clique, from 0, int64 ``(agents,)``. The same graph has the same cliques.
    """
    apart = ~(reaches & reaches.T)
    np.fill_diagonal(apart, False)
    colours = nx.greedy_color(nx.from_numpy_array(apart), strategy="DSATUR")
    return np.array([colours[agent] for agent in range(len(reaches))])
