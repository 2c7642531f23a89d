"""What an experiment of a paper is: data that says what runs, and a function that reports on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fedbandit_envs.checks import require_integer
from fedbandit_envs.leaderboard.reproduction.page import Section
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.leaderboard.sweep.runs import Result

Results = Mapping[str, Result]
"""Of runs of a federation, by name."""


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        rounds: Horizon T.
        trials: Runs of each problem instance; at least two, since intervals need as many.
        sweeps: What is varied, by name.
        lean: Whether runs that other scales show besides are left out, where they cost too much.
    """

    rounds: int
    trials: int
    sweeps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    lean: bool = False

    def __post_init__(self) -> None:
        """Refuses numbers out of range.

        Raises:
            ValueError: Names the parameter, its value and what is allowed.
        """
        require_integer("rounds", self.rounds, 1)
        require_integer("trials", self.trials, 2)


class Plan(NamedTuple):
    """What the user has chosen for one panel.

    Attributes:
        panel: The panel's name.
        scale: How much is run.
        mode: One of the experiment's modes.
    """

    panel: str
    scale: Scale
    mode: str


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper.

    Attributes:
        title: What it shows.
        axes: Of the picture: ``x`` and ``y`` labels, ``xscale`` and ``yscale``.
        scales: How much can be run, by name: at least ``small`` (minutes) and ``paper``.
        panels: Titles of the panels by name; each is a section of the page and a part of the picture.
        setting: Describes, in a sentence or several, what runs at a scale and in a mode.
        cells: Names and settings of a panel's runs.
        report: Writes a panel's section from the results of its cells.
        modes: What the algorithms can be; the first is the default, ``printed`` is as the paper prints them.
        panel_axes: Where a panel's axes are not those of the picture, by the panel's name.
    """

    title: str
    axes: Mapping[str, str]
    scales: Mapping[str, Scale]
    panels: Mapping[str, str]
    setting: Callable[[Scale, str], str]
    cells: Callable[[Plan], Mapping[str, Cell]]
    report: Callable[[Section, Any], None]
    modes: tuple[str, ...] = ("default",)
    panel_axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
