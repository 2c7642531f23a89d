"""What the lab shows of what has been played: Plotly figures, and tables as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from json import dumps
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array
from fedbandit_envs.leaderboard.figures import styles
from fedbandit_envs.leaderboard.lab.federation import Outcome
from fedbandit_envs.leaderboard.lab.samba import KNOWS, SambaOutcome, kind_of, sightings
from fedbandit_envs.leaderboard.statistics import mean_and_half_width

Figure = dict[str, Any]
"""``data`` and ``layout``, as plotly.js takes them."""

MOST_OUTCOMES = 7
"""As many runs are shown together: each has a colour of its own."""

MOST_SIGHTINGS = 40
"""As many messages of a role are shown, the last three of them from the end."""

_LAST = 3


def regret_figure(outcomes: Sequence[Outcome], log: bool) -> Figure:
    """Draws mean regret per agent over rounds, with its 95 % band over seeds.

    Args:
        outcomes: At most :data:`MOST_OUTCOMES`.
        log: Whether axes are logarithmic.
    """
    curves = {
        name: (one.simulation.rounds, one.simulation.regret.mean(axis=2))
        for name, one in _named(outcomes).items()
    }
    return _curves(curves, "cumulative regret per agent", log)


def messages_figure(outcomes: Sequence[Outcome], log: bool) -> Figure:
    """Draws messages per agent over rounds, of those runs in which something is carried; see :func:`regret_figure`."""
    curves = {
        name: (one.simulation.rounds, one.simulation.messages.mean(axis=2))
        for name, one in _named(outcomes).items()
        if one.simulation.messages is not None
    }
    return _curves(curves, "messages per agent", log)


def _named(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {f"{number}: {one.choice.label}": one for number, one in enumerate(outcomes, 1)}


def _curves(curves: Mapping[str, tuple[Array, Array]], title: str, log: bool) -> Figure:
    data: list[dict[str, Any]] = []
    for name, (colour, _) in styles(curves).items():
        rounds, values = curves[name]
        mean, half = mean_and_half_width(values)
        common = {"type": "scatter", "x": rounds.tolist(), "mode": "lines", "legendgroup": name}
        edge = {**common, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        if np.isfinite(half).all():
            # A logarithmic axis has no place for what is not above 0.
            low = np.where(mean > half, mean - half, mean if log else mean - half)
            data += [
                {**edge, "y": low.tolist()},
                {**edge, "y": (mean + half).tolist(), "fill": "tonexty", "fillcolor": f"{colour}33"},
            ]
        data.append({**common, "y": mean.tolist(), "name": name, "line": {"color": colour, "width": 2}})
    return {"data": data, "layout": _layout("round", title, log)}


def drawn(figure: Figure, words: str) -> str:
    """Returns the element that draws a figure; see ``figure.js``.

    Args:
        figure: What to draw.
        words: What it is, for who does not see it; the table beside it has the numbers.
    """
    text = escape(dumps(figure, allow_nan=False))
    return f'<lab-figure role="img" aria-label="{escape(words)}" figure="{text}"></lab-figure>'


def _layout(x: str, y: str, log: bool) -> dict[str, Any]:
    kind = {"type": "log", "dtick": 1} if log else {"type": "linear"}
    return {
        "xaxis": {"title": {"text": x}, "automargin": True, **kind},
        "yaxis": {"title": {"text": y}, "automargin": True, **kind},
        "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"},
        "showlegend": True,
        "margin": {"l": 50, "r": 10, "t": 20, "b": 40},
        "height": 380,
    }


def shares_figure(outcome: Outcome) -> Figure | None:
    """Draws the shares of pulls that arms got beside those that they deserved, the most deserving first.

    Returns:
        None where the problem does not say what arms deserve.
    """
    found = shares(outcome)
    if found is None:
        return None
    deserved, got = found
    places = list(range(1, len(got) + 1))
    bars = {"type": "bar", "x": places}
    layout = _layout("arm, the most deserving first", "share of pulls", log=False)
    return {
        "data": [
            {**bars, "y": deserved.tolist(), "name": "deserved"},
            {**bars, "y": got.tolist(), "name": "got"},
        ],
        "layout": {**layout, "barmode": "group", "height": 320},
    }


def shares(outcome: Outcome) -> tuple[Array, Array] | None:
    """Returns what arms deserved and got, ``(arms,)`` each, means over agents and seeds; None where nobody says."""
    totals = outcome.simulation.totals
    if not {"deserved", "pulls"} <= totals.keys():
        return None
    rounds = outcome.simulation.rounds[-1]
    # Which arm deserves most differs between agents' offers and seeds: ranks are what they have in common.
    order = np.argsort(-totals["deserved"], axis=-1, kind="stable")
    deserved, got = (
        np.take_along_axis(totals[name], order, axis=-1).mean(axis=(0, 1)) / rounds
        for name in ("deserved", "pulls")
    )
    return deserved, got


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns an HTML table that scrolls sideways where it is too wide; texts are escaped."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table><caption>'
        f"{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def number(value: float | None) -> str:
    """Returns four digits of a number, in words where it is none."""
    if value is None:
        return "unknown"
    if value == inf:
        return "\u221e"
    return "-" if isnan(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def regret_table(outcomes: Sequence[Outcome]) -> str:
    """Returns what every run came to, those of its groups beside it where there are any."""
    rows = []
    for name, one in _named(outcomes).items():
        groups = {"all": range(one.simulation.regret.shape[2]), **one.groups}
        for group, agents in groups.items():
            estimate = mean_and_half_width(one.simulation.regret[-1][:, list(agents)].mean(axis=1))
            mean, half = map(float, estimate)
            interval = "-" if not isfinite(half) else f"{number(mean - half)} .. {number(mean + half)}"
            rows.append((
                name, one.choice.problem[0], f"{one.choice.rounds:,}", f"{group} ({len(agents)})", number(mean),
                interval, f"{one.cpu_seconds:.2f}",
            ))  # fmt: skip
    heads = ("run", "problem", "rounds", "agents", "regret per agent", "95 % interval", "CPU seconds")
    return table("Regret at the last round", heads, rows)


def spending_table(outcome: Outcome) -> str:
    """Returns what the releases have spent: by every adjacency and composition, or the one claim that there is."""
    claims = outcome.claims or [outcome.claim.as_json()]
    rows = [
        (
            claim["adjacency"], claim["composition"], _epsilon(claim["epsilon"]), number(claim["delta"]),
            claim["trust"], claim["noise"], claim["reason"] or "-",
        )
        for claim in claims
    ]  # fmt: skip
    heads = ("adjacency", "composition", "epsilon", "delta", "trust", "noise", "because")
    return table("What the agent that has spent most has spent", heads, rows)


def _epsilon(epsilon: Any) -> str:
    return number(inf if epsilon == "infinity" else epsilon)


def said_of_privacy(outcome: Outcome) -> str:
    """Returns the environment's own claim, as a sentence."""
    claim = outcome.claim
    under = f"under {claim.adjacency}, by {claim.composition} composition"
    if claim.epsilon is None:
        return f"Nothing can be claimed {under}: {claim.reason}."
    reason = f": {claim.reason}" if claim.reason else ""
    return f"Epsilon {number(claim.epsilon)} at delta {number(claim.delta)}, {under}{reason}."


def traffic_table(outcomes: Sequence[Outcome]) -> str:
    """Returns messages and bytes of an agent in every run, means over agents and seeds."""
    rows = [
        (name, *(number(float(one.traffic[kind].mean())) if one.traffic else "0" for kind in ("messages", "bytes")))
        for name, one in _named(outcomes).items()
    ]  # fmt: skip
    return table("Traffic of an agent", ("run", "messages", "bytes"), rows)


def shares_table(outcome: Outcome) -> str | None:
    """Returns the shares that arms deserved and got; None where the problem does not say what they deserve."""
    found = shares(outcome)
    if found is None:
        return None
    rows = [
        (place, f"{due:.3f}", f"{got:.3f}") for place, (due, got) in enumerate(zip(*found, strict=True), 1)
    ]
    return table("Shares of pulls", ("arm by rank", "deserved", "got"), rows)


def samba_table(outcome: SambaOutcome) -> str:
    """Returns reward, operations and time of a run of SAMBA."""
    result = outcome.result
    same = result["cumulative_reward"] == outcome.open_reward
    rows = [
        ("cumulative reward, encrypted", f"{result['cumulative_reward']:,}"),
        ("cumulative reward, in the open", f"{outcome.open_reward:,} ({'the same' if same else 'ANOTHER'})"),
        *((name.replace("_", " "), f"{count:,}") for name, count in result["operations"].items()),
        ("bytes", f"{result['bytes']:,}"),
        ("seconds", f"{result['wall_seconds']:.2f}"),
    ]
    return table("The run", ("what", "how much"), rows)


def time_figure(outcome: SambaOutcome) -> Figure:
    """Draws CPU seconds by role."""
    seconds = outcome.seconds
    layout = _layout("role", "CPU seconds", log=False)
    layout["xaxis"]["type"] = "category"
    bars = {"type": "bar", "x": list(seconds), "y": list(seconds.values())}
    return {"data": [bars], "layout": {**layout, "showlegend": False, "height": 300}}


def time_table(outcome: SambaOutcome) -> str:
    """Returns CPU seconds by role, and their shares."""
    total = sum(outcome.seconds.values()) or 1.0
    rows = [
        (role, f"{seconds:.3f}", f"{100 * seconds / total:.0f} %")
        for role, seconds in outcome.seconds.items()
    ]
    return table("Time by role", ("role", "CPU seconds", "share"), rows)


def said_of_role(role: str) -> str:
    """Returns what the protocol lets a role know."""
    return KNOWS[kind_of(role)]


def sightings_table(outcome: SambaOutcome, role: str) -> str:
    """Returns what a role received, the first messages and the last."""
    seen = list(sightings(role, outcome.transcripts[role]))
    left_out = max(0, len(seen) - MOST_SIGHTINGS)
    shown = seen if not left_out else [*seen[: MOST_SIGHTINGS - _LAST], *seen[-_LAST:]]
    rows = [
        (one.number, one.sender, one.read, one.kind, one.size, "yes" if one.opened else "no") for one in shown
    ]
    heads = ("message", "from", "what it could read", "kind", "bytes", "decrypted")
    without = f", {left_out:,} of them left out" if left_out else ""
    return table(f"What {role} saw: {len(seen):,} messages{without}", heads, rows)
