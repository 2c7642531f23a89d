"""Figures and tables of the lab, as HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from io import StringIO
from math import inf, isfinite, isnan
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.experiments.plots import regret_figure
from fedbandit_envs.experiments.statistics import mean_and_half_width
from fedbandit_envs.lab.federation import Outcome
from fedbandit_envs.lab.samba import SambaOutcome
from fedbandit_envs.registry.problems import Panel
from fedbandit_envs.samba.messages import sightings

MOST_OUTCOMES = 7
"""The largest number of runs shown together, so that each has a colour of its own."""

MOST_SIGHTINGS = 40
"""The largest number of a role's messages that are shown.

If there are more, they are the first messages and the last three.
"""


def regret_svg(outcomes: Sequence[Outcome], log: bool) -> str:
    """Returns a figure of mean cumulative regret per agent over rounds, with its 95 % interval over seeds.

    Args:
        outcomes: The runs that are drawn, at most :data:`MOST_OUTCOMES`.
        log: Whether both axes are logarithmic.
    """
    figure = regret_figure({name: one.result for name, one in _named(outcomes).items()}, "")
    scale = "log" if log else "linear"
    figure.axes[0].set(xscale=scale, yscale=scale)
    return _svg(figure, "Regret over rounds")


def panel_svg(panel: Panel, outcome: Outcome) -> str:
    """Returns as SVG the bar chart of one of a problem's panels: the arms' shares of the rounds, by rank."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.subplots()
    bars = panel_bars(panel, outcome)
    width = 0.8 / len(bars)
    for place, (label, values) in enumerate(bars.items()):
        axes.bar(1 + np.arange(len(values)) + place * width, values, width, label=label)
    axes.set(xlabel=panel.arms, ylabel="share of rounds")
    axes.legend()
    return _svg(figure, panel.title)


def panel_table(panel: Panel, outcome: Outcome) -> str:
    """Returns as an HTML table the numbers of a panel's bar chart: the arms' shares of the rounds, by rank."""
    bars = panel_bars(panel, outcome)
    heads = ("arm by rank", *bars)
    shares = enumerate(zip(*bars.values(), strict=True), 1)
    rows = [dict(zip(heads, (rank, *(f"{one:.3f}" for one in own)), strict=True)) for rank, own in shares]
    return table(panel.title, rows)


def panel_bars(panel: Panel, outcome: Outcome) -> dict[str, Array]:
    """Returns the heights of a panel's bars by the label of the series: float64 ``(arms,)``, arms by rank.

    A height is a total of the environment (such as pulls) divided by the number of rounds, the mean over agents and
    seeds. Arms are ranked by the panel's first series, largest first, for each seed and agent.
    """
    totals, rounds = outcome.result.totals, outcome.result.rounds[-1]
    # The best arm is not the same for all agents and seeds, so that means over them are taken rank by rank.
    order = np.argsort(-totals[next(iter(panel.series.values()))], axis=-1, kind="stable")
    return {
        label: np.take_along_axis(totals[name], order, axis=-1).mean(axis=(0, 1)) / rounds
        for label, name in panel.series.items()
    }


def table(caption: str, rows: Sequence[Mapping[str, object]]) -> str:
    """Returns an HTML table that scrolls sideways if it is too wide.

    Args:
        caption: The table's caption.
        rows: Cells by the head of their column; all rows have the same heads.
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row.values()) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table><caption>'
        f"{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def number(value: float | None) -> str:
    """Returns a number as text with four digits; the infinity sign, ``-`` for NaN, or ``unknown`` for None."""
    if value is None:
        return "unknown"
    if isnan(value):
        return "-"
    return "\u221e" if value == inf else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def regret_table(outcomes: Sequence[Outcome]) -> str:
    """Returns an HTML table of regret and traffic with a line for each run, and for each of its groups of agents."""
    rows = []
    for name, one in _named(outcomes).items():
        for group in ("all", *one.result.groups):
            result = one.result if group == "all" else one.result.of(group)
            mean, half = map(float, mean_and_half_width(result.regret[-1].mean(axis=1)))
            traffic = {kind: values.mean() for kind, values in result.traffic.items()}
            rows.append({
                "run": name, "problem": one.choice.problem, "rounds": f"{one.choice.rounds:,}",
                "agents": f"{group} ({result.regret.shape[2]})", "regret per agent": number(mean),
                "95 % interval": f"{number(mean - half)} .. {number(mean + half)}" if isfinite(half) else "-",
                "messages per agent": number(traffic.get("messages", 0)),
                "bytes per agent": number(traffic.get("bytes", 0)), "CPU seconds": f"{one.result.cpu_seconds:.2f}",
            })  # fmt: skip
    return table("Regret and traffic at the last round", rows)


def claims_table(outcome: Outcome) -> str:
    """Returns an HTML table of the privacy claims of a run.

    The first line is the claim that the environment states; then there is one for each adjacency and composition.
    """
    claims = (outcome.result.privacy, *outcome.result.claims)
    rows = [{**asdict(one), "epsilon": number(one.epsilon), "delta": number(one.delta)} for one in claims]
    return table("Privacy of the agent that has spent most", rows)


def samba_table(outcome: SambaOutcome) -> str:
    """Returns an HTML table of a SAMBA run: reward with and without encryption, counts of operations, and times."""
    result = outcome.result
    same = "the same" if result["cumulative_reward"] == outcome.open_reward else "ANOTHER"
    numbers = {
        "cumulative reward, encrypted": f"{result['cumulative_reward']:,}",
        "cumulative reward, without encryption": f"{outcome.open_reward:,} ({same})",
        **{name.replace("_", " "): f"{count:,}" for name, count in result["operations"].items()},
        "bytes": f"{result['bytes']:,}",
        "seconds": f"{result['wall_seconds']:.2f}",
        **{f"CPU seconds of {role}": f"{seconds:.3f}" for role, seconds in outcome.seconds.items()},
    }
    return table("The run", [{"quantity": name, "value": value} for name, value in numbers.items()])


def sightings_table(outcome: SambaOutcome, role: str) -> str:
    """Returns an HTML table of the messages that a role received.

    Of more than :data:`MOST_SIGHTINGS` messages it has the first ones and the last three.
    """
    rows = sightings(role, outcome.transcripts[role])
    left_out = max(0, len(rows) - MOST_SIGHTINGS)
    shown = rows if not left_out else [*rows[: MOST_SIGHTINGS - 3], *rows[-3:]]
    without = f", {left_out:,} of them left out" if left_out else ""
    return table(f"What {role} saw: {len(rows):,} messages{without}", shown)


def _named(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    return {f"{place}: {one.choice.label}": one for place, one in enumerate(outcomes, 1)}


def _svg(figure: Any, description: str) -> str:
    """Returns a figure as SVG in HTML, with a description for screen readers."""
    # Names in the legend contain text typed by users, in which Matplotlib would read dollar signs as formulas.
    for text in figure.axes[0].get_legend().get_texts():
        text.set_parse_math(False)
    figure.savefig(file := StringIO(), format="svg")
    svg = file.getvalue()
    return (
        f'<div class="figure" role="img" aria-label="{escape(description)}">{svg[svg.index("<svg") :]}</div>'
    )
