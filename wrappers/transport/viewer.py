"""Rendering of a federation: agents, messages under way with their noise, privacy spent, and regret.

The picture is the same for every problem. It is drawn from what a transport records while ``render_mode`` is
``"rgb_array"``; recording and drawing use no random numbers and change nothing that agents see.
"""

from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Claim, variance_of
from fedbandit_envs.core.rendering import blank_figure, pixels
from fedbandit_envs.core.wrapper import find_layer

COLOURS = {
    "learned": "#35b5a0",
    "message": "#b8450f",
    "noise": "#f0923a",
    "spent": "#5470b8",
    "together": "#0b7a68",
    "alone": "#6b6b6b",
    "edge": "#c9ced6",
    "ink": "#222222",
}
"""Colours of the picture, as RGB in hexadecimal, by what they show."""

_SMALL = 15.0
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "size": _SMALL}
_HALO: dict[str, Any] = {"color": COLOURS["noise"], "alpha": 0.2, "linewidth": 0}


class Recording:
    """The record of an episode that :func:`render_federation` draws.

    Attributes:
        regret: The regret of each round, a list of arrays ``(replicas, agents)``.
        sent: Which agents have released data in the last round, bool ``(replicas, agents)``.
        received: From whom each agent has received a message in the last round, bool ``(replicas, agents, senders)``,
            where senders are all agents, or one if messages come from a server.
        sent_noise: Share of noise in all that an agent has released so far, between 0 and 1, ``(replicas, agents)``:
            the standard deviation of the noise divided by the root mean square of the released values, averaged over
            arrays.
        received_noise: The same share in all that an agent has received so far.
    """

    def __init__(self, rows: tuple[int, int]) -> None:
        """Starts the record of an episode with ``rows = (replicas, agents)``."""
        self.regret: list[Array] = []
        self.sent = np.zeros(rows, np.bool_)
        self.received = np.zeros((*rows, 1), np.bool_)
        self.sent_noise, self.received_noise = np.zeros((2, *rows))
        self._uploads = np.zeros(rows, np.bool_)
        self._released: Arrays = {}
        self._inbox: Arrays = {}

    def release(self, released: Arrays, senders: Array) -> None:
        """Records a release of the senders, bool ``(replicas, agents)``: arrays ``(replicas, agents, ...)`` by name."""
        self._uploads |= senders
        self.sent_noise = _noise_share(self._released, released)

    def end_round(self, regret: Array, inbox: Arrays) -> None:
        """Records the round's regret, ``(replicas, agents)``, and the transport's part of the observation."""
        self.regret.append(regret.copy())
        self.sent, self._uploads = self._uploads, np.zeros_like(self._uploads)
        self.received = (inbox["inbox_mask"] if "inbox_mask" in inbox else inbox["server_mask"]).copy()
        arrived = {name.removeprefix("inbox_"): array for name, array in inbox.items()}
        self.received_noise = _noise_share(self._inbox, arrived)

    def learned(self, replica: int, window: int) -> Array:
        """Returns the relative reduction of each agent's regret, from its worst rounds to its last ones.

        Args:
            replica: The replica.
            window: Number of successive rounds over which regret is averaged.

        Returns:
            1 - recent / worst, between 0 and 1, ``(agents,)``; 0 before ``window`` rounds have been played.
        """
        regret = np.array([each[replica] for each in self.regret]).reshape(-1, self.sent.shape[1])
        if len(regret) < window:
            return np.zeros(regret.shape[1])
        sums = np.cumsum(np.vstack([np.zeros_like(regret[:1]), regret]), axis=0)
        means = np.maximum(sums[window:] - sums[:-window], 0.0)
        worst = means.max(axis=0)
        # Sums of small numbers are not exactly 0 where there is no regret any more.
        return np.clip(1 - means[-1] / np.where(worst > 0, worst, 1.0), 0.0, 1.0)


def _noise_share(totals: Arrays, news: Arrays) -> Array:
    """Adds arrays to their sums so far, and returns the share of noise in these, ``(replicas, agents)``."""
    for name, array in news.items():
        totals[name] = totals[name] + array if name in totals else array.astype(np.float64)
    shares = [np.zeros(next(iter(news.values())).shape[:2])]
    for name, total in totals.items():
        if variance_of(name) in totals:
            rest = tuple(range(2, total.ndim))
            square = (total**2).sum(axis=rest)
            variance = np.maximum(totals[variance_of(name)].sum(axis=rest), 0.0)
            shares.append(np.sqrt(np.clip(variance / np.where(square > 0, square, 1.0), 0.0, 1.0)))
    return np.mean(shares[1:] or shares, axis=0)


def render_federation(
    env: FederatedEnv, replica: int = 0, progress: float = 0.5, silent_regret: Array | None = None
) -> Array:
    """Renders a federation with a transport after a round as an image; ``env.render()`` calls it with its defaults.

    The image shows the agents around a circle, or around the server; the messages of the last round, with a halo for
    their noise; the epsilon that has been spent; and the cumulative regret, averaged over agents. The filled part of an
    agent is the share of its worst regret that it now avoids.

    Args:
        env: A stack with a transport, made with ``render_mode="rgb_array"``.
        replica: The replica.
        progress: How far messages have travelled, from 0 (just sent) to 1 (arrived). A message that takes several
            rounds is drawn in the round in which it arrives.
        silent_regret: The regret of a federation without communication that is drawn beside it, ``(rounds, agents)``:
            its ``info["regret"]`` in each round; None for none.

    Returns:
        uint8 ``(600, 480, 3)``.

    Raises:
        ValueError: ``env`` has no transport, was made or reset without ``render_mode="rgb_array"``, or an argument is
            out of its range.
        gymnasium.error.DependencyNotInstalled: matplotlib is missing.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = Channel(parallel_env(num_agents=4, render_mode="rgb_array"), topology="ring")
        >>> _ = env.reset_batch([0])
        >>> _ = env.step_batch(np.zeros((1, 4), np.int64))
        >>> render_federation(env, progress=0.25).shape
        (600, 480, 3)
    """
    transport: Any = find_layer(env, "transport")
    history: Recording | None = getattr(transport, "history", None)
    if history is None:
        raise ValueError(
            f"env is {env}; a stack with a transport, made with render_mode='rgb_array' and then reset, is required"
        )
    require_number("progress", progress, 0, 1)
    agents = env.max_num_agents
    if silent_regret is not None and (np.ndim(silent_regret) != 2 or np.shape(silent_regret)[1] != agents):
        raise ValueError(
            f"silent_regret has shape {np.shape(silent_regret)}; (rounds, agents) with {agents} agents is required"
        )
    figure = blank_figure()
    figure.set_layout_engine("none")
    # Upright, so that its text can be read on a phone.
    figure.set_size_inches(6.0, 7.5)
    rounds, horizon = len(history.regret), env.max_cycles
    window = max(10, horizon // 20)
    title = f"{env.unwrapped.metadata['name']}: round {rounds:,} of {horizon:,}"
    figure.text(0.03, 0.957, title, size=17, color=COLOURS["ink"])
    graph = transport.graph(replica)
    _draw_network(
        figure.add_axes((0.0, 0.46, 0.66, 0.49)), history, graph, transport.hub, replica, progress, window
    )
    _draw_epsilon(figure.add_axes((0.8, 0.54, 0.06, 0.32)), env.privacy())
    noise = max(float(array[replica].max()) for array in (history.sent_noise, history.received_noise))
    _draw_key(figure.add_axes((0.03, 0.31, 0.96, 0.15)), noise)
    curve = np.array([each[replica].mean() for each in history.regret]).cumsum()
    alone = None if silent_regret is None else np.mean(silent_regret, axis=1).cumsum()
    _draw_regret(figure.add_axes((0.14, 0.085, 0.84, 0.175)), curve, alone, horizon)
    return pixels(figure)


def _draw_network(
    axes: Any, history: Recording, graph: Array, hub: str, replica: int, progress: float, window: int
) -> None:
    """Draws agents on a circle, in its middle a node named ``hub`` if there is one, and the messages under way."""
    from matplotlib.collections import LineCollection

    agents, nodes = history.sent.shape[1], len(graph)
    angle = np.pi / 2 - 2 * np.pi * np.arange(agents) / agents
    place = np.column_stack([np.cos(angle), np.sin(angle)]) * (agents > 1 or nodes > agents)
    place = np.vstack([place, np.zeros((nodes - agents, 2))])
    radius = min(0.17, 2.2 / max(agents, 1))
    axes.set(xlim=(-1.33, 1.33), ylim=(-1.22, 1.22), aspect="equal")
    axes.axis("off")
    pairs = np.argwhere(np.triu(graph | graph.T))
    width = min(2.0, 30 / max(len(pairs), 1)) + 0.3
    axes.add_collection(LineCollection(list(place[pairs]), color=COLOURS["edge"], linewidth=width, zorder=1))
    for number, share in enumerate(history.learned(replica, window)):
        _draw_agent(axes, place[number], radius, share)
        if agents <= 20:
            axes.text(
                *place[number],
                str(number),
                ha="center",
                va="center",
                size=_SMALL,
                color=COLOURS["ink"],
                zorder=4,
            )
    if nodes > agents:
        axes.text(
            0, 0, hub, color=COLOURS["ink"], zorder=4, **_CENTRED,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": COLOURS["ink"]},
        )  # fmt: skip

    where, noise = _under_way(history, graph, place, replica, progress)
    if len(where):
        dot = min(60.0, 1500 / len(where)) + 6
        for layer in (0.33, 0.66, 1.0):
            axes.scatter(
                *where.T,
                s=dot * (1 + 16 * layer * noise),
                color=COLOURS["noise"],
                alpha=0.2,
                linewidth=0,
                zorder=1.5,
            )
        axes.scatter(*where.T, s=dot, color=COLOURS["message"], edgecolor="white", linewidth=0.7, zorder=6)


def _draw_agent(axes: Any, place: Any, radius: float, share: float) -> None:
    """Draws an agent as a disc that is filled clockwise, from the top, by a share between 0 and 1."""
    from matplotlib.patches import Circle, Wedge

    axes.add_patch(
        Circle(place, radius, facecolor="white", edgecolor=COLOURS["ink"], linewidth=1.5, zorder=2)
    )
    if share > 0:
        axes.add_patch(
            Wedge(place, radius * 0.93, 90 - 360 * share, 90, facecolor=COLOURS["learned"], zorder=3)
        )


def _under_way(
    history: Recording, graph: Array, place: Array, replica: int, progress: float
) -> tuple[Array, Array]:
    """Returns the places of the messages under way, ``(messages, 2)``, and their share of noise, ``(messages,)``."""
    received = history.received[replica]
    agents, senders = received.shape
    routes: list[tuple[list[int], float]] = []
    if senders == agents > 1 or len(graph) == agents:
        network = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        for sender in np.flatnonzero(received.any(axis=0)):
            paths = nx.single_source_shortest_path(network, int(sender))
            routes += [
                (paths[int(receiver)], history.sent_noise[replica, sender])
                for receiver in np.flatnonzero(received[:, sender])
                if receiver != sender
            ]
    else:
        server = agents
        routes += [
            ([j, server], history.sent_noise[replica, j])
            for j in np.flatnonzero(history.sent[replica]).tolist()
        ]
        routes += [
            ([server, i], history.received_noise[replica, i])
            for i in np.flatnonzero(received.any(axis=1)).tolist()
        ]
    where = []
    for route, _ in routes:
        done = min(progress * (len(route) - 1), len(route) - 1 - 1e-9)
        start, end = place[route[int(done)]], place[route[int(done) + 1]]
        along = (end - start) * (0.14 + 0.72 * (done % 1))
        aside = np.array([along[1], -along[0]]) / max(float(np.linalg.norm(along)), 1e-9)
        # Messages keep to the right, so that those in opposite directions pass each other.
        where.append(start + along + 0.035 * aside)
    return np.array(where).reshape(-1, 2), np.array([share for _, share in routes])


def _draw_key(axes: Any, noise: float) -> None:
    """Explains the marks: an agent, a message, and its halo of noise."""
    axes.set(xlim=(0, 9.6), ylim=(0, 1.875), aspect="equal")
    axes.axis("off")
    _draw_agent(axes, np.array([0.3, 1.6]), 0.24, 0.7)
    axes.scatter([0.3], [0.97], s=60, color=COLOURS["message"], edgecolor="white", linewidth=0.7)
    for layer in (0.33, 0.66, 1.0):
        axes.scatter([0.3], [0.35], s=40 * (1 + 16 * layer * 0.6), **_HALO)
    share = f"{noise:.0%} of all that was sent" if noise else "none"
    for height, text in (
        (1.6, "filled: share of its worst regret it now avoids"),
        (0.97, "message under way"),
        (0.35, f"its noise: {share}"),
    ):
        axes.text(0.75, height, text, size=_SMALL, va="center", color=COLOURS["ink"])


def _draw_epsilon(axes: Any, claim: Claim) -> None:
    """Draws the gauge of the epsilon that has been spent, on a logarithmic scale."""
    epsilon, least, most = claim.epsilon, -2.0, 2.0
    if epsilon is None:
        spent, below, filled = "", "no claim", least
    elif np.isinf(epsilon):
        spent, below, filled = " = ∞", "no noise", most
    elif epsilon == 0:
        spent, below, filled = " = 0", "nothing sent", least
    else:
        spent, filled = f" = {epsilon:.3g}", float(np.clip(np.log10(epsilon), least, most))
        below = f"δ = {claim.delta:g}"
    axes.bar(0, filled - least, bottom=least, width=1, color=COLOURS["spent"])
    axes.set(ylim=(least, most), xlim=(-0.5, 0.5), xticks=[])
    axes.set_yticks([-2, -1, 0, 1, 2], ["0.01", "0.1", "1", "10", "100"], size=_SMALL)
    axes.set_title(f"privacy spent\nε{spent}", size=_SMALL, pad=10, color=COLOURS["ink"])
    axes.set_xlabel(below, size=_SMALL, labelpad=9, color=COLOURS["ink"])


def _draw_regret(axes: Any, curve: Array, alone: Array | None, horizon: int) -> None:
    """Draws cumulative regret, averaged over agents, beside that of a federation without communication."""
    rounds = len(curve)
    highest = max([0.0, *curve, *(alone if alone is not None else ())])
    # Without another curve the axis grows in few steps, so that successive pictures can be compared.
    top = highest if alone is not None and len(alone) else 2.0 ** np.ceil(np.log2(max(highest, 1e-3)))
    axes.set(xlim=(0, horizon * 1.27), ylim=(min([0.0, *curve]), 1.1 * max(top, 1e-3)))
    ends = []
    if alone is not None:
        shown = alone[:rounds]
        axes.plot(np.arange(len(shown) + 1), [0, *shown], "--", color=COLOURS["alone"], linewidth=2, zorder=3)
        ends.append((len(shown), [0, *shown][-1], "alone", COLOURS["alone"]))
    axes.plot(np.arange(rounds + 1), [0, *curve], color=COLOURS["together"], linewidth=2.5)
    ends.append((rounds, [0, *curve][-1], "together" if alone is not None else "", COLOURS["together"]))
    low, high = axes.get_ylim()
    ends.sort(key=lambda end: end[1])
    # Labels of lines that are close together are moved apart, and none stands below the axis, or in the title.
    lacking = max(0.0, 0.18 * (high - low) - (ends[-1][1] - ends[0][1])) / 2
    raised = max(0.0, low + 0.08 * (high - low) + lacking - ends[0][1])
    raised += min(0.0, high - 0.1 * (high - low) - lacking - ends[-1][1] - raised)
    for (x, y, text, colour), aside in zip(ends, (-lacking, lacking), strict=False):
        axes.text(x + horizon * 0.01, y + aside + raised, text, color=colour, size=_SMALL, va="center")
    beside = "" if alone is None else " (dashed: no messages)"
    axes.set_title(f"regret per agent so far{beside}", size=_SMALL, loc="left", color=COLOURS["ink"])
    axes.set_xlabel("round", size=_SMALL, color=COLOURS["ink"])
    axes.tick_params(labelsize=_SMALL)
    axes.locator_params(axis="y", nbins=3)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= horizon])
    axes.spines[["top", "right"]].set_visible(False)
