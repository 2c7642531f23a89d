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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from time import process_time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.basics.arrays import Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import source_digest
from fedbandit_envs.papers.stats import Ratio, Row, ratio

if TYPE_CHECKING:
    from fedbandit_envs.papers.page import Section

LINEAR = {"xscale": "linear", "yscale": "linear"}

VARIANTS: Mapping[str, tuple[str, Mapping[str, Mapping[str, Any]]]] = {
    "FCB-checked": ("FCB", {"policy": {"check": True}}),
    "FairX-LinUCB-0.1": ("FairX-LinUCB", {"policy": {"beta_scale": 0.1}}),
    "FairX-LinUCB-greedy": ("FairX-LinUCB", {"policy": {"beta_scale": 0.0}}),
    "Fed-FairX-LinUCB-greedy": ("Fed-FairX-LinUCB", {"policy": {"beta_scale": 0.0}}),
    "FedGLB-UCB-quasi-newton": (
        "FedGLB-UCB",
        {"server": {"policy": {"name": "logistic", "solver": "quasi_newton"}}},
    ),
    "FedLinUCB-theory": ("FedLinUCB", {"policy": {"alpha": None, "beta": None}}),
    "FedUCB-floor": ("FedUCB", {"policy": {"shift": "floor", "bias": "euclidean"}}),
    "FedUCB-min-trimmed": ("FedUCB-min", {"policy": {"pool": {"name": "trimmed_senders", "share": 0.4}}}),
    "FedUCB-nonprivate-trigger": ("FedUCB-nonprivate", {"channel": {"schedule": "synchronise"}}),
    "FedUCB-printed-trigger": (
        "FedUCB-printed",
        {"privatizer": {"releases": None}, "channel": {"schedule": "synchronise"}},
    ),
    "FedUCB-trimmed": ("FedUCB-nonprivate", {"policy": {"pool": {"name": "trimmed_senders", "share": 0.4}}}),
    "FedUCB-trimmed-mean": (
        "FedUCB-nonprivate",
        {"policy": {"pool": {"name": "trimmed_mean", "share": 0.25}}},
    ),
    "LinUCB-0.3": ("LinUCB", {"policy": {"beta_scale": 0.3}}),
    "LinUCB-0.5": ("LinUCB", {"policy": {"beta_scale": 0.5}}),
    "PF-UCB-1.2": ("PF-UCB", {"server": {"policy": {"name": "personal", "growth": 1.2}}}),
    "Priv-FairX-LinUCB-on-sum": ("Priv-FairX-LinUCB", {"policy": {"shift": "on_sum", "bias": "root_m"}}),
    "SS-UCB-0.5": ("SS-UCB", {"policy": {"radius_scale": 0.5}}),
    "SS-UCB-0.8": ("SS-UCB", {"policy": {"radius_scale": 0.8}}),
}
"""Lines of tables and figures that vary one setting of a baseline: the baseline, and the arguments by part."""


def baseline_of(name: str) -> Baseline:
    """Returns the baseline that a line of a table names, with the settings of :data:`VARIANTS`."""
    known, settings = VARIANTS.get(name, (name, {}))
    baseline = BASELINES[known]
    wrappers = {
        part: one._replace(kwargs={**one.kwargs, **settings.get(part, {})})
        for part, one in baseline.wrappers.items()
    }
    return replace(
        baseline, policy_kwargs={**baseline.policy_kwargs, **settings.get("policy", {})}, wrappers=wrappers
    )


@dataclass(frozen=True)
class Scale:
    """The size of a reproduction: horizon, runs and values of sweeps.

    Attributes:
        rounds: Horizon T.
        trials: Runs of each problem instance, each on a seed of its own; at least two.
        sweeps: Values of each quantity that is varied, by the quantity's name.
        lean: Whether costly runs are left out, which other scales have.
    """

    rounds: int
    trials: int
    sweeps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lean: bool = False

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: ``rounds`` or ``trials`` is too small.
        """
        require_integer("rounds", self.rounds, 1)
        require_integer("trials", self.trials, 2)


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
        known, own = VARIANTS.get(baseline or line, (baseline or line, {}))
        parts = {part: {**own.get(part, {}), **wrappers.get(part, {})} for part in {**own, **wrappers}}
        return RunSpec(
            known,
            env_id,
            **{"rounds": self.scale.rounds, "seeds": self.scale.trials, **spec},
            env_kwargs={**env},
            policy_kwargs={**parts.pop("policy", {}), **policy},
            wrapper_kwargs=parts,
            labels={"line": line, **labels},
        )


@dataclass(frozen=True)
class Measurement:
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
    labels: Mapping[str, Any] = field(default_factory=dict)

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
        return [replace(self, seeds=self.seeds[start : start + self.per_shard]) for start in starts]

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


@dataclass(frozen=True)
class PanelRuns:
    """The results of one panel, as rows of a table whose columns are the labels of the runs.

    Attributes:
        plan: Panel, scale and mode that the user has chosen.
        rows: The results with their labels, in the order in which the experiment lists its runs.
    """

    plan: Plan
    rows: Sequence[tuple[Mapping[str, Any], Any]]

    @property
    def panel(self) -> str:
        """Name of the panel."""
        return self.plan.panel

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

    def one(self, line: str, **labels: Any) -> Any:
        """Returns the only result with the given labels.

        Args:
            line: Required label ``line``, the algorithm's name on the page.
            **labels: Required values of other columns. Columns that are not named may have any value.

        Raises:
            KeyError: No result has these labels, or several have.
        """
        found = self.where(line=line, **labels).rows
        if len(found) != 1:
            raise KeyError(
                f"{len(found)} runs of panel {self.panel!r} have line {line!r} and labels {labels}"
            )
        return found[0][1]

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

    def lines(
        self, column: str, name: Callable[[Mapping[str, Any]], str] = itemgetter("line")
    ) -> dict[str, dict[Any, Any]]:
        """Returns the results by the run's name and by the value of a column.

        A result that lacks the column is repeated for all values that the column has, so that it is drawn as a
        horizontal line.

        Args:
            column: Column of labels that is varied.
            name: Function that returns a run's name from its other labels; by default the label ``line``.
        """
        found: dict[str, dict[Any, Any]] = {}
        for labels, result in self.rows:
            others = {key: value for key, value in labels.items() if key != column}
            at = [labels[column]] if column in labels else self.values(column)
            found.setdefault(name(others), {}).update(dict.fromkeys(at, result))
        return found

    def table(
        self,
        head: str,
        columns: Mapping[str, Callable[[Any], Any]],
        name: Callable[[Mapping[str, Any]], str] = itemgetter("line"),
    ) -> list[Row]:
        """Returns a table with a row for each result.

        Args:
            head: Head of the first column, which has the runs' names.
            columns: For the head of each other column the function that returns a result's cell.
            name: Function that returns a run's name from its labels; by default the label ``line``.
        """
        return [
            {head: name(labels)} | {column: cell(result) for column, cell in columns.items()}
            for labels, result in self.rows
        ]


@dataclass(frozen=True)
class Experiment:
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
    runs: Callable[[Plan], Sequence[RunSpec | Measurement]]
    report: "Callable[[Section, PanelRuns], None]"
    panels: Mapping[str, str] = field(default_factory=lambda: {"all": "All runs"})
    modes: tuple[str, ...] = ("default",)
    panel_axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    needs_data: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """Name of the paper's module, which is the name of its page."""
        return self.runs.__module__.rpartition(".")[2]
