"""The results of one panel of an experiment, found by their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fedbandit_envs.leaderboard.reproduction.experiment import Plan


class LabelledResult(NamedTuple):
    """One result of a panel.

    Attributes:
        labels: Values by which it differs from the panel's other results, by column: ``line``, ``epsilon`` ...
        result: The result of the run, such as a :class:`~fedbandit_envs.leaderboard.runs.result.RunResult`.
    """

    labels: Mapping[str, Any]
    result: Any


@dataclass(frozen=True)
class PanelRuns:
    """The results of one panel, as rows of a table whose columns are the labels of the runs.

    Attributes:
        plan: What the user has chosen for the panel.
        rows: The results, in the order in which the experiment lists its runs.
    """

    plan: Plan
    rows: Sequence[LabelledResult]

    @property
    def panel(self) -> str:
        """Name of the panel."""
        return self.plan.panel

    def where(self, **labels: Any) -> "PanelRuns":
        """Returns the rows that have all of these labels; the label None selects rows without that column."""
        wanted = labels.items()
        rows = [row for row in self.rows if all(row.labels.get(name) == value for name, value in wanted)]
        return PanelRuns(self.plan, rows)

    def values(self, column: str) -> list[Any]:
        """Returns the distinct values of a column, in the order of the rows; rows without it do not count."""
        return list(dict.fromkeys(row.labels[column] for row in self.rows if column in row.labels))

    def __contains__(self, line: str) -> bool:
        return line in self.values("line")

    def one(self, line: str, **labels: Any) -> Any:
        """Returns the one result with these labels.

        Args:
            line: Its label ``line``.
            **labels: Its other labels. Columns that are not named may have any value.

        Raises:
            KeyError: There is no such row, or there are several.
        """
        found = self.where(line=line, **labels).rows
        if len(found) != 1:
            raise KeyError(
                f"{len(found)} runs of panel {self.panel!r} have line {line!r} and labels {labels}"
            )
        return found[0].result

    __getitem__ = one

    def by_at_most(self, column: str, most: float, **labels: Any) -> dict[Any, Any]:
        """Returns :meth:`by` for values of the column up to some value."""
        return {x: result for x, result in self.by(column, **labels).items() if x <= most}

    def by_at_least(self, column: str, least: float, **labels: Any) -> dict[Any, Any]:
        """Returns :meth:`by` for values of the column from some value on."""
        return {x: result for x, result in self.by(column, **labels).items() if x >= least}

    def by(self, column: str, **labels: Any) -> dict[Any, Any]:
        """Returns the results with these labels by their value of another column; rows without it are left out."""
        return {row.labels[column]: row.result for row in self.where(**labels).rows if column in row.labels}
