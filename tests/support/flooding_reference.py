"""A slow, independent simulation of a channel: one Python object a message, nothing vectorised."""

from collections import defaultdict
from typing import NamedTuple

import networkx as nx
from threefry_reference import threefry

from fedbandit_envs.randomness.streams import Purpose, row_keys


class Message(NamedTuple):
    sender: int
    sequence_number: int


class Copy(NamedTuple):
    message: Message
    came_from: int
    goes_to: int
    hops_left: int


class SlowNetwork:
    """One replica's network; :meth:`play` takes what is released and returns what is delivered and sent."""

    def __init__(self, graph, num_agents, seed, delay=0, time_to_live=None, loss=0.0, duplication=0.0):
        self.graph = nx.DiGraph(graph)
        self.num_agents = num_agents
        self.seed = seed
        self.delay, self.time_to_live, self.loss, self.duplication = delay, time_to_live, loss, duplication
        self.arriving = defaultdict(list)
        self.content, self.faults = {}, {}
        self.seen = set()

    def limit(self, sender):
        if self.time_to_live is not None:
            return self.time_to_live
        away = nx.single_source_shortest_path_length(self.graph, sender)
        return max(hops for node, hops in away.items() if node < self.num_agents)

    def luck(self, t):
        """The faults of round t by sender and edge, from the draws that are documented."""
        found = {}
        for sender, key in enumerate(row_keys([self.seed], self.num_agents, Purpose.CHANNEL)[0]):
            for tail, head in self.graph.edges:
                e, edge = tail * len(self.graph) + head, (tail, head)
                lost, doubled = (word / 2**32 for word in threefry(tuple(map(int, key)), (t, e)))
                found[sender, edge] = lost < self.loss, doubled < self.duplication
        return found

    def pass_on(self, message, node, not_to, hops_left, now, sent):
        if hops_left == 0:
            return
        for neighbour in self.graph.successors(node):
            if neighbour in not_to:
                continue
            lost, doubled = self.faults[message.sequence_number][message.sender, (node, neighbour)]
            copies = 0 if lost else 1 + doubled
            sent[message.sender] += max(copies, 1)
            for _ in range(copies):
                copy = Copy(message, node, neighbour, hops_left - 1)
                self.arriving[now + self.delay].append(copy)

    def play(self, t, released):
        """One round: ``released`` maps senders to vectors. Returns arrivals, and traffic by sender."""
        sent = defaultdict(int)
        delivered = []
        if released:
            self.faults[t] = self.luck(t)
        for sender, vector in released.items():
            message = Message(sender, t)
            self.content[message] = vector
            self.seen.add((sender, message))
            self.pass_on(message, sender, (), self.limit(sender), t, sent)
        while self.arriving[t]:
            wave = defaultdict(list)
            for copy in self.arriving.pop(t):
                wave[copy.goes_to, copy.message].append(copy)
            for (node, message), copies in wave.items():
                if (node, message) in self.seen:
                    continue
                self.seen.add((node, message))
                if node < self.num_agents:
                    delivered.append((node, message.sender, self.content[message]))
                came_from = {copy.came_from for copy in copies}
                self.pass_on(message, node, came_from, copies[0].hops_left, t, sent)
        return delivered, sent
