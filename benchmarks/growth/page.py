"""The page on growth: exponents, a table, a CSV file and a picture."""

import csv
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.growth.series import SERIES, Measurement, Series

NAMES = {
    "rounds": "rounds T", "replicas": "replicas", "num_agents": "agents", "num_producers": "producers",
    "num_arms": "arms", "dim": "dimensions", "releases": "releases",
}  # fmt: skip
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#444444")
PANELS = {
    "procurement": ("SS-UCB", "P-FCB"),
    "linear and arms": ("LinUCB", "UCB1"),
    "one server": ("Fed-UCB1-server", "FedLinUCB"),
    "continual release": ("tree", "honaker", "sqrt_toeplitz", "blt"),
}


LARGEST = 4
"""How many of the largest sizes exponents are fitted to: small ones pay what a round costs whatever its size."""

WIDEST = 1.0
"""The widest 95 % interval with which an exponent is printed: a wider one cannot tell 1 from 0 or from 2."""


class Exponent(NamedTuple):
    """The slope of a straight line through logarithms, with its 95 % interval (Student, least squares)."""

    slope: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether the sizes are enough for an exponent: its interval is at most :data:`WIDEST` wide."""
        return self.high - self.low <= WIDEST

    def __str__(self) -> str:
        if not self.is_known:
            return "-"
        # Adding 0 turns -0.00 into 0.00.
        return "{:.2f} [{:.2f}, {:.2f}]".format(*(round(number, 2) + 0.0 for number in self))


def exponent(sizes: Sequence[float], values: Sequence[float]) -> Exponent:
    """Fits values = c sizes^slope to the :data:`LARGEST` sizes, rising; three at least."""
    sizes, values = sizes[-LARGEST:], values[-LARGEST:]
    if np.ptp(values) == 0:
        return Exponent(0.0, 0.0, 0.0)
    fit = stats.linregress(np.log(sizes), np.log(values))
    half = stats.t.ppf(0.975, len(sizes) - 2) * fit.stderr
    return Exponent(float(fit.slope), float(fit.slope - half), float(fit.slope + half))


def group(points: Sequence[Measurement]) -> list[tuple[Series, list[Measurement]]]:
    """Puts each series with its points, which lie together."""
    known = {(name, series.size): series for name, all_of in SERIES.items() for series in all_of}
    return [
        (known[key], list(some)) for key, some in groupby(points, key=lambda point: (point.run, point.size))
    ]


def write_csv(points: Sequence[Measurement], path: Path) -> None:
    """Writes all points."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Measurement._fields)
        writer.writerows(
            (*point[:3], *(f"{number:.6g}" for number in point[3:6]), f"{point.kilobytes:.1f}")
            for point in points
        )


def read_csv(path: Path) -> list[Measurement]:
    """Reads what :func:`write_csv` has written."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = Measurement._fields[3:]
    return [
        Measurement(row["run"], row["size"], int(row["value"]), *(float(row[name]) for name in numbers))
        for row in rows
    ]


def table(points: Sequence[Measurement]) -> str:
    """Returns the table in Markdown."""
    lines = [
        "| run | size | from | to | CPU seconds | exponent | theory | kB | exponent | theory |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|---|",
    ]
    for series, some in group(points):
        sizes = [point.value for point in some]
        first, last = some[0], some[-1]
        lines.append(
            f"| {first.run} | {NAMES[first.size]} | {first.value:,} | {last.value:,} "
            f"| {first.seconds:.3g} to {last.seconds:.3g} | {exponent(sizes, [point.seconds for point in some])} "
            f"| {series.time} | {first.kilobytes:,.0f} to {last.kilobytes:,.0f} "
            f"| {exponent(sizes, [point.kilobytes for point in some])} | {series.memory} |"
        )
    return "\n".join(lines)


def _known(points: Sequence[Measurement]) -> str:
    """Returns in a sentence how many exponents the intervals support."""
    fits = [
        exponent([point.value for point in some], [getattr(point, kind) for point in some])
        for _, some in group(points)
        for kind in ("seconds", "kilobytes")
    ]
    return f"That leaves {sum(fit.is_known for fit in fits)} of {len(fits)} exponents."


def _bases(points: Sequence[Measurement]) -> str:
    lines = []
    for run, some in groupby(group(points), key=lambda pair: pair[1][0].run):
        base = next(some)[0].base
        if set(base) != {"releases"}:
            lines.append(
                f"* {run}: {', '.join(f'{number:,} {NAMES[name]}' for name, number in base.items())};"
            )
    return "\n".join(lines).replace("rounds T", "rounds")


def write_page(points: Sequence[Measurement], machine: str, command: str, repeats: int, path: Path) -> None:
    """Writes the page, which names the picture and the CSV file beside it."""
    path.write_text(f"""# How seconds and memory grow

One size is changed and all others stay. Seconds are CPU seconds of whole episodes in one thread, environment and
baseline built anew: the median of {repeats}, each in a process of its own with kernels compiled. For continual release
they are those of ten agents' 11 x 11 statistics, planning and fitting included. Memory is the most that Python's
objects and NumPy's arrays came to hold at once.

Exponents are slopes of logarithms over the {LARGEST} largest sizes, in brackets 95 % intervals by Student. A dash
stands where the interval is more than {WIDEST:g} wide: the sizes are then too few, or their points too unlike a
straight line, for an exponent. {_known(points)}

The theory's exponent holds for sizes without end. At sizes like these every round also costs something, and holds
something, whatever the size, which makes measured exponents smaller. How much of a difference is due to that was not
measured.

Where a message tells who sent it, n agents hear n others, whatever the graph, and their inboxes hold n^2 arrays. A
stage that adds messages up (`Fed-UCB1-server`) and a server (`FedLinUCB`) send each agent one array instead.

{machine}. Made by `{command}`; all points are in [{path.stem}.csv]({path.stem}.csv).

![growth]({path.stem}.png)

{table(points)}

The sizes that stay:

{_bases(points)}
* continual release: one replica of ten agents.
""")


def draw(points: Sequence[Measurement], path: Path) -> None:
    """Draws seconds above and memory below, a column a panel, over sizes as multiples of each series' smallest."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16.5, 8.5), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(PANELS), squeeze=False)
    for column, (title, runs) in zip(axes.T, PANELS.items(), strict=True):
        shown = [some for _, some in group(points) if some[0].run in runs]
        for colour, some in zip(COLOURS, shown, strict=False):
            first = some[0]
            times = [point.value / first.value for point in some]
            name = first.run if first.size == "releases" else f"{first.run}, {NAMES[first.size]}"
            look = {"color": colour, "linestyle": "--" if first.run in ("P-FCB", "UCB1") else "-"}
            label = f"{name} from {first.value:,}"
            column[0].plot(times, [point.seconds for point in some], "o", markersize=4, label=label, **look)
            column[0].fill_between(
                times,
                [point.fastest for point in some],
                [point.slowest for point in some],
                color=colour,
                alpha=0.2,
            )
            column[1].plot(times, [point.kilobytes for point in some], "o", markersize=4, **look)
        for axis, label in zip(column, ("CPU seconds", "kB held at most"), strict=True):
            axis.set(yscale="log", ylabel=label)
            axis.set_xscale("log", base=2)
            axis.xaxis.set_major_formatter("{x:g}")
            axis.grid(alpha=0.3)
            (_, widest), (low, high) = axis.get_xlim(), axis.get_ylim()
            for slope in (1, 2):
                axis.plot((1, widest), (low, low * widest**slope), color="0.75", linewidth=0.8, zorder=0)
            axis.set(xlim=(None, widest), ylim=(low, high))
        column[0].set_title(title)
        column[1].set_xlabel("size over the smallest (grey: slopes 1 and 2)")
        handles = column[0].get_legend_handles_labels()
        column[1].legend(*handles, fontsize=8, loc="upper left", bbox_to_anchor=(0, -0.14), frameon=False)
    figure.savefig(path)
