"""How a paper's script is written, and what all scripts have in common.

A script is read from top to bottom:

1. **Settings as data**: names of algorithms, values that the paper prints, scales.
2. **The sweep**: a function that maps a :class:`Plan` (the panel and its scale) to a list of runs. ``plan.run(name,
   env_id, ...)`` returns the run of one line of a table; it has the plan's horizon and number of trials, and labels
   that name it.
3. **The analysis**: a function that gets a page's section and :class:`PanelRuns`, the results by their labels. It
   chooses results (``runs["P-FCB"]``, ``runs.where(margin=0)``, ``runs.lines("epsilon")``), computes figures by
   :mod:`.stats`, and writes ``page.table``, ``page.verdicts``, ``page.say`` and ``page.draw``. A table with a row for
   each run is ``runs.table(head, {column: function of the result})``. A sentence of the paper is judged by a row of
   ``page.verdicts``: what was measured, the figures, and the verdict that :func:`.stats.judged` gives on them.
4. **EXPERIMENTS**: titles, scales, axes and panels.

The page is written by hand around the tables.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from numbers import Real
from time import process_time
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import source_digest
from fedbandit_envs.papers.stats import Curves, Mean, Ratio, Row, Verdict, each_judged, over_rounds, ratio

LINEAR = {"xscale": "linear", "yscale": "linear"}
COLUMNS = ("panel", "name", "quantity", "x", "value", "low", "high", "instances", "printed")
"""Columns of a paper's table of numbers, after those of the experiment and its settings.

A row is a ratio (``quantity`` is "ratio"), a point of a curve ("drawn"), a value in a sentence ("in the text") or a
cell of a table. For a cell, ``name`` is the first cell of its line and ``quantity`` the head of its column. ``x`` is
the quantity that is varied. ``printed`` is the text as it is on the page.
"""

_QUASI_NEWTON = {"name": "logistic", "solver": "quasi_newton"}
_TRIGGER = {"channel": {"schedule": "synchronise"}}
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Mapping[str, Any]]]] = {
    "FCB-checked": ("FCB", {"check": True}, {}),
    "FairX-LinUCB-0.1": ("FairX-LinUCB", {"beta_scale": 0.1}, {}),
    "FairX-LinUCB-greedy": ("FairX-LinUCB", {"beta_scale": 0.0}, {}),
    "Fed-FairX-LinUCB-every-round": ("Fed-FairX-LinUCB", {}, {"channel": {"schedule": "every_round"}}),
    "Fed-FairX-LinUCB-greedy": ("Fed-FairX-LinUCB", {"beta_scale": 0.0}, {}),
    "FedGLB-UCB-at-server": ("FedGLB-UCB-private", {}, {"server": {"stage": "server"}}),
    "FedGLB-UCB-quasi-newton": ("FedGLB-UCB", {}, {"server": {"policy": _QUASI_NEWTON}}),
    "FedLinUCB-theory": ("FedLinUCB", {"alpha": None, "beta": None}, {}),
    "FedUCB-every-round": ("FedUCB-nonprivate", {}, {"channel": {"schedule": "every_round"}}),
    "FedUCB-floor": ("FedUCB", {"shift": "floor", "bias": "euclidean"}, {}),
    "FedUCB-min-trimmed": ("FedUCB-min", {"pool": {"name": "trimmed_senders", "share": 0.4}}, {}),
    "FedUCB-nonprivate-trigger": ("FedUCB-nonprivate", {}, _TRIGGER),
    "FedUCB-printed-trigger": ("FedUCB-printed", {}, {**_TRIGGER, "privatizer": {"releases": None}}),
    "FedUCB-trimmed": ("FedUCB-nonprivate", {"pool": {"name": "trimmed_senders", "share": 0.4}}, {}),
    "FedUCB-trimmed-mean": ("FedUCB-nonprivate", {"pool": {"name": "trimmed_mean", "share": 0.25}}, {}),
    "LinUCB-0.3": ("LinUCB", {"beta_scale": 0.3}, {}),
    "LinUCB-0.5": ("LinUCB", {"beta_scale": 0.5}, {}),
    "PF-UCB-1.2": ("PF-UCB", {}, {"server": {"policy": {"name": "personal", "growth": 1.2}}}),
    "Priv-FairX-LinUCB-on-sum": ("Priv-FairX-LinUCB", {"shift": "on_sum", "bias": "root_m"}, {}),
    "SS-UCB-0.5": ("SS-UCB", {"radius_scale": 0.5}, {}),
    "SS-UCB-0.8": ("SS-UCB", {"radius_scale": 0.8}, {}),
}  # fmt: skip
"""Lines of tables and figures that vary one setting of a baseline: its name, and changes to policy and wrappers."""


def baseline_of(name: str) -> Baseline:
    """Returns the baseline that a line of a table names, with the settings of :data:`VARIANTS`."""
    known, policy, changes = VARIANTS.get(name, (name, {}, {}))
    baseline = BASELINES[known]
    wrappers = {
        part: one._replace(kwargs={**one.kwargs, **changes.get(part, {})})
        for part, one in baseline.wrappers.items()
    }
    return replace(baseline, policy_kwargs={**baseline.policy_kwargs, **policy}, wrappers=wrappers)


class Scale(NamedTuple):
    """The size of a reproduction: horizon, runs and values of sweeps.

    Attributes:
        rounds: Horizon T.
        trials: Runs of each problem instance, each on a seed of its own; at least two.
        sweeps: Values of each quantity that is varied, by the quantity's name.
        lean: Whether costly runs are left out, which other scales have.
    """

    rounds: int
    trials: int
    sweeps: Mapping[str, tuple[float, ...]] = {}
    lean: bool = False


class Plan(NamedTuple):
    """The settings of one panel that the user has chosen.

    Attributes:
        panel: Name of the panel, a part of the experiment.
        scale: Horizon, number of trials and values of sweeps.
        mode: One of the experiment's modes, that is, variants of the algorithms.
        data: The user's own data, for panels that need them, as a specification of :func:`.basics.config.make`.
    """

    panel: str
    scale: Scale
    mode: str = "default"
    data: Mapping[str, Any] | None = None

    def run(
        self, line: str, env_id: str, baseline: str = "", *,
        env: Mapping[str, Any] = {},
        policy: Mapping[str, Any] = {},
        wrappers: Mapping[str, Mapping[str, Any]] = {},
        labels: Mapping[str, Any] = {},
        **spec: Any,
    ) -> RunSpec:  # fmt: skip
        """Returns the run of a line of a table.

        Args:
            line: Name of the line, which is the run's label ``line``.
            env_id: Id of the environment.
            baseline: Name of the baseline, or of one of :data:`VARIANTS`; by default ``line``.
            env: Changes to the arguments of the environment.
            policy: Changes to the arguments of the policy.
            wrappers: Changes to the arguments of the wrappers, by part.
            labels: Further labels.
            **spec: Other arguments of :class:`RunSpec`; ``rounds`` and ``seeds`` are those of the scale by default.
        """
        known, fixed, own = VARIANTS.get(baseline or line, (baseline or line, {}, {}))
        changes = {part: {**own.get(part, {}), **wrappers.get(part, {})} for part in {**own, **wrappers}}
        return RunSpec(
            known,
            env_id,
            **{"rounds": self.scale.rounds, "seeds": self.scale.trials, **spec},
            env_kwargs={**env},
            policy_kwargs={**fixed, **policy},
            wrapper_kwargs=changes,
            labels={"line": line, **labels},
        )


class Measurement(NamedTuple):
    """A call of a measuring function, which can be played in shards and stored like a run of a baseline.

    It is a :class:`~fedbandit_envs.experiments.store.Cell`.

    Attributes:
        measure: The function, called as ``measure(seeds, **arguments)``. It returns, by name, arrays whose first axis
            has the length of ``seeds``, and JSON values that are the same for all seeds.
        arguments: Further arguments of the function, JSON values.
        seeds: Seeds of all shards together.
        per_shard: Largest number of seeds in one shard.
        work: Work for each seed, in agent-rounds (rounds of one agent) or what takes about as long.
        labels: Values by which the measurement differs from other runs of its panel; not a part of the key.
    """

    measure: Callable[..., Mapping[str, Any]]
    arguments: Mapping[str, Any]
    seeds: range
    per_shard: int
    work: float
    labels: Mapping[str, Any] = {}

    @property
    def key(self) -> list[Any]:
        """Everything on which the result depends, as JSON values, so that shards with the same key can be reused."""
        # The store itself adds a digest of the package's source without the papers' modules. So the digest of the
        # function's module is added here.
        module = self.measure.__module__
        seeds = [self.seeds.start, self.seeds.stop]
        return [module, self.measure.__name__, dict(self.arguments), seeds, source_digest(module)]

    @property
    def size(self) -> float:
        """Work of all seeds, in agent-rounds or what takes about as long."""
        return float(self.work * len(self.seeds))

    def split(self) -> list["Measurement"]:
        """Returns the measurement split into shards with at most ``per_shard`` seeds each."""
        starts = range(0, len(self.seeds), self.per_shard)
        return [self._replace(seeds=self.seeds[start : start + self.per_shard]) for start in starts]

    def play(self) -> Arrays:
        """Calls the function and returns the arrays that are written to the shard's file.

        Returns:
            The function's arrays by name, ``others`` (its other values as JSON text) and ``cpu_seconds``.
        """
        start = process_time()
        found = self.measure(self.seeds, **self.arguments)
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        others = {name: value for name, value in found.items() if name not in arrays}
        written = np.array(json.dumps(others))
        return {**arrays, "others": written, "cpu_seconds": np.array(process_time() - start)}

    def join(self, parts: Sequence[Arrays]) -> SimpleNamespace:
        """Returns the result of the whole measurement, put together from its shards.

        Args:
            parts: Contents of the shards' files, in the order of seeds.

        Returns:
            An object whose attributes are the function's values by name, with arrays for all seeds, and
            ``cpu_seconds``, the sum over shards.
        """
        names = parts[0].keys() - {"others", "cpu_seconds"}
        return SimpleNamespace(
            **{name: np.concatenate([part[name] for part in parts]) for name in names},
            **json.loads(str(parts[0]["others"])),
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )


Runs = Sequence[RunSpec | Measurement]


def named(labels: Mapping[str, Any], *shown: str) -> str:
    """Returns a run's name: its line and its labels in the columns ``shown``, such as ``"FedUCB, epsilon 1"``."""
    known = {column: labels[column] for column in shown if labels.get(column) is not None}
    others = [at if isinstance(at, str) else f"{column} {at:g}" for column, at in known.items()]
    return ", ".join([labels["line"], *others])


@dataclass(frozen=True)
class PanelRuns:
    """The results of one panel, as rows of a table whose columns are the labels of the runs.

    Attributes:
        plan: Panel, scale and mode that the user has chosen.
        rows: The results with their labels, in the order in which the experiment lists its runs.
    """

    plan: Plan
    rows: Sequence[tuple[Mapping[str, Any], Any]]

    def where(self, **labels: Any) -> "PanelRuns":
        """Returns the results that have all of the given labels.

        Args:
            **labels: Required values by column; None selects results that lack the column.
        """
        wanted = labels.items()
        rows = [row for row in self.rows if all(row[0].get(name) == value for name, value in wanted)]
        return PanelRuns(self.plan, rows)

    def values(self, column: str) -> list[Any]:
        """Returns the distinct values of a column of labels, in the order of the rows; rows without it are skipped."""
        return list(dict.fromkeys(labels[column] for labels, _ in self.rows if column in labels))

    def groups(self, column: str) -> dict[Any, "PanelRuns"]:
        """Returns for each value of a column of labels the results that have it."""
        return {value: self.where(**{column: value}) for value in self.values(column)}

    def one(self, line: str, **labels: Any) -> Any:
        """Returns the only result with the given labels.

        Args:
            line: Required label ``line``, the algorithm's name on the page.
            **labels: Required values of other columns. Columns that are not named may have any value.

        Raises:
            ValueError: No result has these labels, or several have.
        """
        ((_, result),) = self.where(line=line, **labels).rows
        return result

    __getitem__ = one

    def ratio(self, above: str, below: str) -> Ratio:
        """Returns the ratio of two algorithms' regret."""
        return ratio(self[above], self[below])

    def by(self, column: str = "line", **labels: Any) -> dict[Any, Any]:
        """Returns the results with the given labels, by the value of a column.

        Args:
            column: Column of labels whose values are the keys; results that lack the column are left out.
            **labels: Required values of other columns.
        """
        return {own[column]: result for own, result in self.where(**labels).rows if column in own}

    def lines(self, column: str, *shown: str) -> dict[str, dict[Any, Any]]:
        """Returns the results by the run's name and by the value of a column.

        A result that lacks the column is repeated for all values that the column has, so that it is drawn as a
        horizontal line.

        Args:
            column: Column of labels that is varied.
            *shown: Columns of labels that are a part of a run's name, see :func:`named`.
        """
        found: dict[str, dict[Any, Any]] = {}
        for labels, result in self.rows:
            others = {key: value for key, value in labels.items() if key != column}
            at = [labels[column]] if column in labels else self.values(column)
            found.setdefault(named(others, *shown), {}).update(dict.fromkeys(at, result))
        return found

    def table(self, head: str, columns: Mapping[str, Callable[[Any], Any]], *shown: str) -> list[Row]:
        """Returns a table with a row for each result.

        Args:
            head: Head of the first column, which has the runs' names.
            columns: For the head of each other column the function that returns a result's cell.
            *shown: Columns of labels that are a part of a run's name, see :func:`named`.
        """
        return [
            {head: named(labels, *shown)} | {column: cell(result) for column, cell in columns.items()}
            for labels, result in self.rows
        ]


Points = Mapping[Any, Any] | Sequence[tuple[Any, Any]]


class Section:
    """What the function ``report`` of an experiment writes of one panel.

    Attributes:
        plan: The panel and the other settings that the user has chosen.
        tables: Markdown tables so far, by name.
        rows: Rows of numbers so far, each a mapping with the keys :data:`COLUMNS`.
        curves: Curves of the picture so far, by name: x, y and the lengths of the error bars below and above.
        beside: Names of curves that are drawn dotted, each with the name of the curve whose colour it has.
    """

    def __init__(self, plan: Plan) -> None:
        """Starts an empty section."""
        self.plan = plan
        self.tables: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []
        self.curves: dict[str, tuple[list[Any], list[float], Array]] = {}
        self.beside: dict[str, str] = {}

    def table(self, name: str, lines: Iterable[Row]) -> None:
        """Adds a table, and its cells that contain digits to the rows.

        Args:
            name: Name of the table, by which the page has its place.
            lines: The lines, each a mapping from the heads of all columns, in order, to the line's cells.
        """
        lines = list(lines)
        text = [f"| {' | '.join(lines[0])} |", "|" + "---|" * len(lines[0])]
        for line in lines:
            first, *others = line.items()
            text.append(f"| {' | '.join(map(str, line.values()))} |")
            for column, cell in others:
                if any(letter.isdigit() for letter in str(cell)):
                    self._record(str(first[1]), column, "", cell, str(cell))
        self.tables[name] = "\n".join(text)

    def verdicts(self, lines: Iterable[Verdict], name: str = "verdicts") -> None:
        """Adds a table of verdicts.

        Args:
            lines: For each line what was measured, the figures, and the verdict; see :func:`.stats.judged`.
            name: Name of the table.
        """
        heads = ("what", "here", "verdict")
        self.table(name, [dict(zip(heads, line, strict=True)) for line in lines])

    def judge(self, values: Mapping[str, Mean], *more: Verdict) -> None:
        """Adds values to the numbers, and a table of verdicts: whether each is at most 1, then further lines."""
        self.say(values)
        self.verdicts([*each_judged(values), *more])

    def claims(self, claims: Iterable[Claim]) -> None:
        """Adds the table ``claims`` with a line for each privacy claim, such as those of a result."""
        self.table("claims", [
            {
                "adjacency": claim.adjacency,
                "composition": claim.composition,
                "epsilon": "-" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                "delta": f"{claim.delta:.3g}",
                "remark": claim.reason,
            }
            for claim in claims
        ])  # fmt: skip

    def say(self, values: Mapping[str, Any]) -> None:
        """Adds values that sentences of the page state to the rows, and to the table ``numbers``.

        Args:
            values: Each value by its name: a mean or ratio (:class:`.stats.Mean`), a number, or a text.
        """
        text = self.tables.get("numbers", "| number | here |\n|---|---|")
        for name, cell in values.items():
            self._record(name, "in the text", "", cell, str(cell))
            text += f"\n| {name} | {cell} |"
        self.tables["numbers"] = text

    def record(self, curves: Curves, name: str = "{}") -> None:
        """Adds ratios that no table has to the rows.

        Args:
            curves: Ratios by the name of their curve and by x.
            name: Format of the row's name, such as ``"{} / silent"``.
        """
        for line, ratios in curves.items():
            for x, value in ratios.items():
                self._record(name.format(line), "ratio", x, value)

    def draw(self, curves: Mapping[str, Points], beside: Mapping[str, str] = {}) -> None:
        """Adds curves to the picture, and their points to the rows.

        Args:
            curves: Points of each curve by its name in the legend: a mapping from x to y, or pairs of x and y if
                several have the same x. A y is a number, or a mean or ratio, which is drawn with its interval.
            beside: Names of curves to be drawn dotted, each with the name of the curve whose colour it gets.
        """
        self.beside |= beside
        for name, given in curves.items():
            points = list(given.items()) if isinstance(given, Mapping) else given
            known = {row["x"] for row in self.rows if (row["name"], row["quantity"]) == (name, "ratio")}
            bars = []
            for x, point in points:
                mean = point if isinstance(point, Mean) else Mean(point, point, point, 1)
                bars.append((mean.value, mean.value - mean.low, mean.high - mean.value))
                if x not in known:
                    self._record(name, "ratio" if isinstance(mean, Ratio) else "drawn", x, point)
            values, below, above = zip(*bars, strict=True)
            self.curves[name] = ([x for x, _ in points], list(values), np.array([below, above]))

    def draw_over_rounds(self, runs: PanelRuns) -> None:
        """Draws cumulative regret per agent over rounds for each algorithm (label ``line``)."""
        self.draw({labels["line"]: over_rounds(result) for labels, result in runs.rows})

    def _record(self, name: str, quantity: str, x: Any, cell: Any, printed: str = "") -> None:
        numbers: dict[str, Any] = {"value": float(cell)} if isinstance(cell, Real) else {}
        if isinstance(cell, Mean):
            numbers = {key: getattr(cell, key) for key in ("value", "low", "high", "instances")}
        row = {"panel": self.plan.panel, "name": name, "quantity": quantity, "x": x, "printed": printed}
        known = {key: number for key, number in numbers.items() if not isnan(number)}
        self.rows.append(dict.fromkeys(COLUMNS, "") | row | known)


class Experiment(NamedTuple):
    """One experiment of a paper.

    Attributes:
        title: Title of the page's section and of the picture.
        shows: What it shows, in a sentence, and about how long the scale ``small`` takes, for the list of experiments.
        axes: Axes of the picture: ``x`` and ``y`` (labels), ``xscale`` and ``yscale`` (``linear``, or ``log``, which is
            the default).
        scales: Sizes that can be run, by name: at least ``small``, and ``paper`` for the paper's size.
        runs: Function that returns the runs of a panel; each run has different ``labels``.
        report: Function that writes the tables and curves of a panel from the results of its runs.
        panels: Titles of the panels by name; each panel is a part of the picture.
        modes: Names of variants of the algorithms. The first is the default; in ``printed`` algorithms follow the paper
            letter by letter.
        panel_axes: Axes that differ from those of the picture, by the panel's name.
        needs_data: Names of the panels that need the user's own data; they are left out where none are given.
    """

    title: str
    shows: str
    axes: Mapping[str, str]
    scales: Mapping[str, Scale]
    runs: Callable[[Plan], Runs]
    report: Callable[[Section, PanelRuns], None]
    panels: Mapping[str, str] = {"all": "All runs"}
    modes: tuple[str, ...] = ("default",)
    panel_axes: Mapping[str, Mapping[str, str]] = {}
    needs_data: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """Name of the paper's module, which is the name of its page."""
        return self.runs.__module__.rpartition(".")[2]
