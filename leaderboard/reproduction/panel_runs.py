"""The results of the runs of one panel of an experiment, which can be selected by their labels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from fedbandit_envs.leaderboard.reproduction.experiment import Plan


class LabelledResult(NamedTuple):
    """The result of one run of a panel, with the labels that identify the run.

    Attributes:
        labels: Values by which the run differs from the panel's other runs, by column: ``line`` (the algorithm's name
            on the page), ``epsilon`` ...
        result: The result of the run, such as a :class:`~fedbandit_envs.leaderboard.runs.result.RunResult`.
    """

    labels: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class PanelRuns:
    """The results of one panel, as rows of a table whose columns are the labels of the runs.

    Attributes:
        plan: Panel, scale and mode that the user has chosen.
        rows: The results with their labels, in the order in which the experiment lists its runs.
    """

    plan: Plan
    rows: Sequence[LabelledResult]

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
        rows = [row for row in self.rows if all(row.labels.get(name) == value for name, value in wanted)]
        return PanelRuns(self.plan, rows)

    def values(self, column: str) -> list[Any]:
        """Returns the distinct values of a column of labels, in the order of the rows; rows without it are skipped."""
        return list(dict.fromkeys(row.labels[column] for row in self.rows if column in row.labels))

    def __contains__(self, line: str) -> bool:
        return line in self.values("line")

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
        return found[0].result

    __getitem__ = one

    def by(self, column: str, **labels: Any) -> dict[Any, Any]:
        """Returns the results with the given labels, by the value of a column.

        Args:
            column: Column of labels whose values are the keys; results that lack the column are left out.
            **labels: Required values of other columns.
        """
        return {row.labels[column]: row.result for row in self.where(**labels).rows if column in row.labels}

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
