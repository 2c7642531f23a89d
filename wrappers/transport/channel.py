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

from fedbandit_envs.basics.arrays import Array, Arrays, spread
from fedbandit_envs.basics.checks import require_flag, require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel
from fedbandit_envs.basics.entry_points import by_name, checked, make_rule
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.randomness.draws import threefry
from fedbandit_envs.randomness.streams import Purpose, row_keys, stream
from fedbandit_envs.wrappers.transport.schedule import Combined, Schedule, StageSpec
from fedbandit_envs.wrappers.transport.transport import Transport, star

Where = Array | tuple[Array, ...]


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
        >>> _ = env.reset(seed=0)
        >>> observations, *_ = env.step(dict.fromkeys(env.agents, 0))
        >>> observations["agent_0"]["inbox_mask"].tolist()
        [False, True, False, True]
        >>> observations["agent_0"]["inbox_pulls"][:, 0].tolist()
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
        self._shared = delay == 0 or (time_to_live == 1 and not echo)
        graph = make_topology(topology, self.max_num_agents)
        if callable(graph):
            self._draw = graph
            return
        if len(graph) > self.max_num_agents and time_to_live == 1:
            raise ValueError("time_to_live is 1; None or at least 2 is required with a controller")
        self._graphs = [graph]
        self._explored = self._explore(self._graphs)
        # All messages of a round then arrive together, late, if no hop but the last one leads to an agent.
        _, limits, hops, _ = self._explored
        self._shared |= not echo and hops[hops > 0].min(initial=limits.max()) == limits.max()

    def _explore(self, graphs: list[Array]) -> tuple[Any, Array, Array, Array]:
        """Returns where messages arrive, see :func:`explore`; warns of graphs on which none does."""
        if graphs and not (self._echo or self.max_num_agents == 1 or any(one.any() for one in graphs)):
            warn("topology is a graph without edges: no message arrives", stacklevel=3)
        return explore(np.stack(graphs), *self._reach)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with empty inboxes and no messages in transit.

        Raises:
            ValueError: The schedule needs every agent to reach every other, and in a drawn graph some agent cannot.
                The state does not change.
        """
        graphs, explored = self._graphs, self._explored
        if self._draw is not None:
            graphs = [self._draw(stream(seed, Purpose.CHANNEL, 0)) for seed in seeds]
            explored = self._explore(graphs) if graphs else None
        reset = super().reset_batch(seeds)
        self._graphs = graphs
        if explored is not None:
            self._network, *paths = explored
            # Own messages of this round are echoed in it; those in transit arrive apart from others.
            self._selves = np.eye(self.max_num_agents, dtype=bool)
            reached = (paths[1] > 0) | (self._selves & (self._echo and not self._delay))
            limits, self._hops, self._traversals, self._reached = (
                np.broadcast_to(array, (len(seeds), *array.shape[1:])) for array in (*paths, reached)
            )
            # Numba would compile the kernel again for limits that are no plain array.
            self._limits = limits.copy()
            self._transmissions = self._traversals.sum(axis=-1)
            # Whose messages nobody receives, if none is lost.
            self._unheard = ~self._reached.any(axis=1)
            self._keys = row_keys(self._seeds, self.max_num_agents, Purpose.CHANNEL)
        # Key: the round in which a hop ends. Value: the releases, who released, where their messages then arrive for
        # the first time (None for nowhere), and the number of transmissions of the next hop, (replicas, senders).
        self._in_transit: dict[int, list[tuple[Arrays, Array, Where | None, Array]]] = {}
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
        hops, reached, traversals = self._carried(senders)
        if self._echo:
            own = senders[:, np.newaxis] & self._selves
            self._inbox["inbox_own"][...] = own
            self._inbox["sent"][..., 0] = senders
            if self._delay:
                self._deliver(statistic, senders, np.nonzero(own))
            elif reached is not self._reached:
                reached = reached | own
        if self._delay == 0:
            self._deliver(statistic, senders, reached)
            self._book(self._transmissions if traversals is self._traversals else traversals.sum(axis=-1))
            return
        self._book(traversals[..., 0])
        statistic = {name: array.copy() for name, array in statistic.items()}
        # The transmissions of a hop start, and are counted, when the hop before it ends. After the last hop there is no
        # next one, hence the zeros.
        following = np.concatenate([traversals[..., 1:], np.zeros_like(traversals[..., :1])], axis=-1)
        longest = following.shape[-1]
        places: list[Where | None] = [*[None] * (longest - 1), reached]
        if not self._shared:
            found = np.nonzero(hops)
            order = np.argsort(hops[found], kind="stable")
            ends = np.searchsorted(hops[found][order], np.arange(1, longest), side="right")
            places = list(zip(*(np.split(index[order], ends) for index in found), strict=True))
        for hop, where in enumerate(places):
            # A hop may end only at the controller of a star: then the message reaches no agent yet, but is passed on.
            due = self._in_transit.setdefault(self._round + (hop + 1) * self._delay, [])
            due.append((statistic, senders, where, following[..., hop]))

    def _carried(self, senders: Array) -> tuple[Array, Array, Array]:
        """Returns which agents receive the messages of this round, after how many hops, and the transmissions per hop.

        The replica's seed, the round, the sender and the edge decide all losses and doublings. Actions and other
        replicas change neither. The probability of doubling changes no loss.

        Returns:
            Three arrays: the hops, as :func:`_flood` returns them; which agents receive which message, bool
            ``(replicas, agents, senders)``; and the transmissions, as :func:`_flood` returns them. The hops may include
            those of agents that have not sent.
        """
        hops, reached, traversals = self._hops, self._reached, self._traversals
        if self._loss or self._duplication:
            luck = self._keys, self._round, self._loss, self._duplication
            hops, traversals = _flood(*self._network, self._limits, senders, False, *luck)
            # Flooding ignores cliques. This mask keeps only agents that the message would reach without faults.
            hops *= reached
            reached = hops > 0
        elif np.count_nonzero(senders) < senders.size:
            reached, traversals = reached & senders[:, np.newaxis], traversals * senders[..., np.newaxis]
        return hops, reached, traversals

    def _deliver(self, statistic: Arrays, senders: Array, where: Where) -> None:
        """Puts messages into the inboxes of the agents that receive them in this round.

        Args:
            statistic: The messages by name, ``(replicas, senders, ...)``.
            senders: True for agents that have sent a message, bool ``(replicas, senders)``.
            where: The receivers of each message: a mask if all inboxes share the messages, else index arrays, which may
                name agents that have not sent.
        """
        self._dirty = True
        if isinstance(where, np.ndarray):
            self._inbox["inbox_mask"] |= where
            # The channel does not store a message that no agent receives.
            unheard = self._unheard if where is self._reached else ~where.any(axis=1)
            for name, array in statistic.items():
                self._inbox[f"inbox_{name}"][...] = array
                self._inbox[f"inbox_{name}"][unheard] = 0.0
            return
        if not senders.all():
            where = tuple(index[senders[where[0], where[2]]] for index in where)
        self._inbox["inbox_mask"][where] = True
        for name, array in statistic.items():
            self._inbox[f"inbox_{name}"][where] += array[where[0], where[2]]
        self._arrived.append(where)

    def _arrive(self) -> None:
        if self._round in self._sums:
            self._give(*self._sums.pop(self._round))
        for statistic, senders, where, follows in self._in_transit.pop(self._round, ()):
            if where is not None:
                self._deliver(statistic, senders, where)
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


@allocating_kernel
def _flood(graphs, heads, starts, limits, senders, to_furthest, keys, round_, loss, duplication):
    """Floods one message of each sender through its graph, and returns arrival times and transmissions.

    A node forwards a message to all neighbours but those that it has just received it from. CPU time grows with the
    number of transmissions.

    Args:
        graphs: Adjacency matrices, bool ``(graphs, nodes, nodes)``: one a replica, or one for all.
        heads: The receiving node of each directed edge, int32 ``(edges,)``, sorted by graph and sending node.
        starts: Row pointers into ``heads``, as in a CSR matrix, int64 ``(graphs * nodes + 1,)``.
        limits: The hop limit of each sender's message, int64 ``(replicas, agents)``.
        senders: True for agents that send a message, bool ``(replicas, agents)``.
        to_furthest: Whether a message stops after the hop that reaches its last agent, even below its limit.
        keys: Keys of the draws of faults, uint32 ``(replicas, agents, 2)``.
        round_: The round.
        loss: Probability that a transmission loses the message.
        duplication: Probability that a transmission doubles a message that it has not lost.

    Returns:
        Two arrays:

        * The hop at which an agent first receives a sender's message, int32 ``(replicas, agents, senders)``. It is 0
          for the sender itself and for agents that the message never reaches.
        * The number of transmissions in each hop, int64 ``(replicas, senders, hops)``. It includes those that lose or
          double the message.
    """
    replicas, agents = limits.shape
    nodes, longest, faulty = graphs.shape[1], 1, loss > 0.0 or duplication > 0.0
    for limit in limits.flat:
        longest = max(longest, limit)
    arrival = np.zeros((replicas, agents, agents), np.int32)
    traversals = np.zeros((replicas, agents, longest), np.int64)
    seen, queue = np.full(nodes, -1), np.empty(nodes, np.int64)
    for r in range(replicas):
        number = r % graphs.shape[0]
        for s in range(agents):
            if not senders[r, s]:
                continue
            seen[s], queue[0] = 0, s
            begin, end, unheard, furthest = 0, 1, agents - 1, 0
            for hop in range(1, limits[r, s] + 1):
                if begin == end or (to_furthest and unheard == 0):
                    break
                reached = end
                for place in range(begin, end):
                    tail = queue[place]
                    for e in range(starts[number * nodes + tail], starts[number * nodes + tail + 1]):
                        head = heads[e]
                        came = hop > 1 and seen[head] == hop - 2 and graphs[number, head, tail]
                        if came and not (faulty and _fate(keys[r, s], round_, head * nodes + tail)[0] < loss):
                            continue
                        traversals[r, s, hop - 1] += 1
                        if faulty:
                            luck = _fate(keys[r, s], round_, tail * nodes + head)
                            if luck[0] < loss:
                                continue
                            if luck[1] < duplication:
                                traversals[r, s, hop - 1] += 1
                        if seen[head] < 0:
                            seen[head] = hop
                            queue[reached] = head
                            reached += 1
                            if head < agents:
                                arrival[r, head, s] = hop
                                unheard -= 1
                                furthest = hop
                begin, end = end, reached
            for hop in range(furthest if to_furthest else longest, longest):
                traversals[r, s, hop] = 0
            for place in range(end):
                seen[queue[place]] = -1
    return arrival, traversals


@inlined_kernel
def _fate(key, round_, edge):
    """Returns two uniform numbers for a transmission: whether it loses the message, and whether it doubles it."""
    x, y = threefry(key[0], key[1], np.uint32(round_), np.uint32(edge))
    return np.float64(x) * 2.0**-32, np.float64(y) * 2.0**-32


def explore(
    graphs: Array, agents: int, time_to_live: int | None, cliques: bool, all_connected: bool
) -> tuple[tuple[Array, ...], Array, Array, Array]:
    """Floods each graph without faults, and returns which messages reach which agents.

    Args:
        graphs: The adjacency matrices, bool ``(graphs, nodes, nodes)``.
        agents: Number of agents. They are the first nodes of a graph.
        time_to_live: The hop limit of a message. With None it travels until it has reached every agent that it can.
        cliques: Whether agents receive messages of their own clique only. This requires a ``time_to_live``.
        all_connected: Whether to raise an error if some agent cannot reach another.

    Returns:
        ``graphs``, ``heads`` and ``starts`` for :func:`_flood`, and three arrays with one entry for each graph:

        * The hop limit of each sender's message, int64 ``(graphs, senders)``.
        * The hop at which an agent first receives a sender's message, int32 ``(graphs, agents, senders)``; 0 if the
          message never reaches the agent.
        * The number of transmissions in each hop of a sender's message, int64 ``(graphs, senders, hops)``.

    Raises:
        ValueError: ``all_connected`` is true and some agent cannot reach another.
    """
    heads = np.flatnonzero(graphs).astype(np.int32) % graphs.shape[1]
    network = graphs, heads, np.append(0, np.cumsum(graphs.sum(axis=2)))
    nodes = graphs.shape[1]
    limits = np.full((len(graphs), agents), nodes if time_to_live is None else min(time_to_live, nodes))
    everyone, keys = np.ones(limits.shape, np.bool_), np.zeros((*limits.shape, 2), np.uint32)
    hops, traversals = _flood(*network, limits, everyone, time_to_live is None, keys, 0, 0.0, 0.0)
    missing = (hops == 0) & ~np.eye(agents, dtype=bool)
    if all_connected and missing.any():
        _, receiver, sender = np.argwhere(missing)[0]
        raise ValueError(
            f"topology and time_to_live, which is {time_to_live}, do not let agent {sender} reach agent {receiver}; a "
            "connected topology and enough hops are required, since a request must reach every agent"
        )
    if time_to_live is None:
        # A message stops once it has reached the furthest agent that it can reach.
        limits = hops.max(axis=1).astype(np.int64)
        traversals = traversals[..., : max(int(limits.max(initial=0)), 1)].copy()
    if cliques:
        for own, found in zip(hops, missing, strict=True):
            clique = clique_cover(~found)
            own *= clique[:, np.newaxis] == clique
    return network, limits, hops, traversals


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
