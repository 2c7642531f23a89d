"""Rendering of a federation: agents, messages under way with their noise, privacy spent, and regret.

The picture is the same for every problem. It is drawn from what a transport records while ``render_mode`` is
``"rgb_array"``; recording and drawing use no random numbers and change nothing that agents see.
"""

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np

from fedbandit_envs.basics.arrays import Array
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


def noise_share(released: Mapping[str, Array]) -> Array:
    """Returns the share of noise in arrays that are released or received, between 0 and 1, ``(replicas, agents)``.

    It is the standard deviation of the noise divided by the root mean square of the values, averaged over arrays.
    """
    shares = [np.zeros(next(iter(released.values())).shape[:2])]
    for name, array in released.items():
        if variance_of(name) in released:
            rest = tuple(range(2, array.ndim))
            square = np.square(array, dtype=np.float64).sum(axis=rest)
            variance = np.maximum(released[variance_of(name)].sum(axis=rest), 0.0)
            shares.append(np.sqrt(np.clip(variance / np.where(square > 0, square, 1.0), 0.0, 1.0)))
    return np.mean(shares[1:] or shares, axis=0)


def learned(regret: Array, window: int) -> Array:
    """Returns the relative reduction of each agent's regret, from its worst rounds to its last ones.

    Args:
        regret: The regret of each round, ``(rounds, agents)``.
        window: Number of successive rounds over which regret is averaged.

    Returns:
        1 - recent / worst, between 0 and 1, ``(agents,)``; 0 before ``window`` rounds have been played.
    """
    if len(regret) < window:
        return np.zeros(regret.shape[1])
    sums = np.cumsum(np.vstack([np.zeros_like(regret[:1]), regret]), axis=0)
    means = np.maximum(sums[window:] - sums[:-window], 0.0)
    worst = means.max(axis=0)
    # Sums of small numbers are not exactly 0 where there is no regret any more.
    return np.clip(1 - means[-1] / np.where(worst > 0, worst, 1.0), 0.0, 1.0)


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
        ValueError: ``env`` has no transport, was made or reset without ``render_mode="rgb_array"``, or ``progress`` is
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
    if transport is None or transport.regrets is None:
        raise ValueError(
            f"env is {env}; a stack with a transport, made with render_mode='rgb_array' and then reset, is required"
        )
    require_number("progress", progress, 0, 1)
    inbox = {
        name.removeprefix("inbox_"): array[replica, np.newaxis] for name, array in transport.inbox.items()
    }
    received = inbox["mask" if "mask" in inbox else "server_mask"][0]
    sent, sent_noise = transport.sent[replica], transport.sent_noise[replica]
    received_noise = noise_share(inbox)[0]
    regret = np.array([each[replica] for each in transport.regrets]).reshape(-1, len(sent))
    graph = transport.graph(replica)
    figure = blank_figure()
    figure.set_layout_engine("none")
    # Upright, so that its text can be read on a phone.
    figure.set_size_inches(6.0, 7.5)
    title = f"{env.unwrapped.metadata['name']}: round {len(regret):,} of {env.max_cycles:,}"
    figure.text(0.03, 0.957, title, size=17, color=COLOURS["ink"])
    axes = figure.add_axes((0.0, 0.46, 0.66, 0.49))
    place = _draw_network(axes, graph, learned(regret, max(10, env.max_cycles // 20)), transport.hub)
    routes = _routes(graph, sent, received, sent_noise, received_noise)
    _draw_messages(axes, *_under_way(routes, place, progress), min(60.0, 1500 / max(len(routes), 1)) + 6)
    _draw_epsilon(figure.add_axes((0.8, 0.54, 0.06, 0.32)), env.privacy())
    _draw_key(figure.add_axes((0.03, 0.31, 0.96, 0.15)), float(max(sent_noise.max(), received_noise.max())))
    _draw_regret(figure.add_axes((0.14, 0.085, 0.8, 0.175)), regret, silent_regret, env.max_cycles)
    return pixels(figure)


def _draw_network(axes: Any, graph: Array, shares: Array, hub: str) -> Array:
    """Draws agents on a circle, in its middle a node named ``hub`` if there is one; returns the nodes' places."""
    from matplotlib.collections import LineCollection

    agents, nodes = len(shares), len(graph)
    angle = np.pi / 2 - 2 * np.pi * np.arange(agents) / agents
    place = np.zeros((nodes, 2))
    if nodes > 1:
        place[:agents] = np.column_stack([np.cos(angle), np.sin(angle)])
    axes.set(xlim=(-1.33, 1.33), ylim=(-1.22, 1.22), aspect="equal")
    axes.axis("off")
    pairs = np.argwhere(np.triu(graph | graph.T))
    width = min(2.0, 30 / max(len(pairs), 1)) + 0.3
    axes.add_collection(LineCollection(list(place[pairs]), color=COLOURS["edge"], linewidth=width, zorder=1))
    centred = {"ha": "center", "va": "center", "size": _SMALL, "color": COLOURS["ink"], "zorder": 4}
    for number, share in enumerate(shares):
        _draw_agent(axes, place[number], min(0.17, 2.2 / agents), share)
        if agents <= 20:
            axes.text(*place[number], str(number), **centred)
    if nodes > agents:
        box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": COLOURS["ink"]}
        axes.text(0, 0, hub, bbox=box, **centred)
    return place


def _draw_agent(axes: Any, place: Any, radius: float, share: float) -> None:
    """Draws an agent as a disc that is filled clockwise, from the top, by a share between 0 and 1."""
    from matplotlib.patches import Circle, Wedge

    ring = {"facecolor": "white", "edgecolor": COLOURS["ink"], "linewidth": 1.5}
    x, y = place
    axes.add_patch(Circle((x, y), radius, zorder=2, **ring))
    end = 90 - 360 * share
    axes.add_patch(Wedge((x, y), radius * 0.93, end, 90, facecolor=COLOURS["learned"], zorder=3))


def _draw_messages(axes: Any, where: Array, noise: Array, size: float) -> None:
    """Draws messages at places ``(messages, 2)`` as dots with a halo for their share of noise, ``(messages,)``."""
    for layer in (0.33, 0.66, 1.0):
        halo = size * (1 + 16 * layer * noise)
        axes.scatter(*where.T, s=halo, color=COLOURS["noise"], alpha=0.2, linewidth=0, zorder=1.5)
    axes.scatter(*where.T, s=size, color=COLOURS["message"], edgecolor="white", linewidth=0.7, zorder=6)


def _routes(
    graph: Array, sent: Array, received: Array, sent_noise: Array, received_noise: Array
) -> list[tuple[list[int], float]]:
    """Returns the nodes that each message of the last round passes, and its share of noise."""
    agents, senders = received.shape
    if senders < agents or len(graph) > agents == 1:
        # Through a server, which is the last node.
        up = [([j, agents], sent_noise[j]) for j in np.flatnonzero(sent).tolist()]
        down = [([agents, i], received_noise[i]) for i in np.flatnonzero(received).tolist()]
        return up + down
    network = nx.from_numpy_array(graph, create_using=nx.DiGraph)
    return [
        (nx.shortest_path(network, sender, receiver), sent_noise[sender])
        for receiver, sender in np.argwhere(received).tolist()
        if receiver != sender
    ]


def _under_way(routes: list[tuple[list[int], float]], place: Array, progress: float) -> tuple[Array, Array]:
    """Returns the places of messages under way, ``(messages, 2)``, and their share of noise, ``(messages,)``."""
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
    _draw_messages(axes, np.array([[0.3, 0.97], [0.3, 0.35]]), np.array([0.0, 0.6]), 50)
    share = f"{noise:.0%} of what was sent last" if noise else "none"
    for height, text in (
        (1.6, "filled: share of its worst regret it now avoids"),
        (0.97, "message under way"),
        (0.35, f"its noise: {share}"),
    ):
        axes.text(0.75, height, text, size=_SMALL, va="center", color=COLOURS["ink"])


def _draw_epsilon(axes: Any, claim: Claim) -> None:
    """Draws the gauge of the epsilon that has been spent, on a logarithmic scale."""
    epsilon = claim.epsilon
    if epsilon is None:
        spent, below = "", "no claim"
    elif np.isinf(epsilon):
        spent, below = " = ∞", "no noise"
    else:
        spent, below = f" = {epsilon:.3g}", f"δ = {claim.delta:g}" if epsilon else "nothing sent"
    axes.set(yscale="log", ylim=(0.01, 100), xlim=(-0.5, 0.5), xticks=[])
    axes.bar(0, min(epsilon or 0.01, 100), width=1, color=COLOURS["spent"])
    axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"], size=_SMALL)
    axes.minorticks_off()
    axes.set_title(f"privacy spent\nε{spent}", size=_SMALL, pad=10, color=COLOURS["ink"])
    axes.set_xlabel(below, size=_SMALL, labelpad=9, color=COLOURS["ink"])


def _draw_regret(axes: Any, regret: Array, silent: Array | None, horizon: int) -> None:
    """Draws cumulative regret, averaged over agents, beside that of a federation without communication."""
    curve = np.append(0.0, regret.mean(axis=1).cumsum())
    axes.plot(curve, color=COLOURS["together"], linewidth=2.5, label="together")
    highest, title = max(curve), "regret per agent so far"
    if silent is not None:
        alone = np.append(0.0, np.mean(silent, axis=1).cumsum())
        highest, title = max(highest, *alone), f"{title} (dashed: no messages)"
        shown = alone[: len(curve)]
        axes.plot(shown, "--", color=COLOURS["alone"], linewidth=2, label="alone", zorder=3)
        axes.legend(loc="upper left", fontsize=_SMALL, frameon=False)
    else:
        # The axis grows in few steps, so that successive pictures can be compared.
        highest = 2.0 ** np.ceil(np.log2(max(highest, 1e-3)))
    axes.set(xlim=(0, horizon), ylim=(min(curve), 1.1 * max(highest, 1e-3)))
    axes.set_title(title, size=_SMALL, loc="left", color=COLOURS["ink"])
    axes.set_xlabel("round", size=_SMALL, color=COLOURS["ink"])
    axes.tick_params(labelsize=_SMALL)
    axes.locator_params(axis="y", nbins=3)
    axes.spines[["top", "right"]].set_visible(False)
