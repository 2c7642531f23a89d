"""An experiment of a paper: the runs that it needs as data, and the template of the page that reports on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import NamedTuple

from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.leaderboard.reproduction.measurement import Measurement
from fedbandit_envs.leaderboard.runs.spec import RunSpec
from fedbandit_envs.registry.plugins import Registry

LOG_LOG = {"xscale": "log", "yscale": "log"}
LOG_LINEAR = {"xscale": "log", "yscale": "linear"}
LINEAR = {"xscale": "linear", "yscale": "linear"}


@dataclass(frozen=True)
class Scale:
    """The size of a reproduction: horizon, runs and values of sweeps.

    Attributes:
        rounds: Horizon T.
        trials: Runs of each problem instance; at least two, since intervals need as many.
        sweeps: Values of what is varied, by name.
        lean: Whether costly runs, which other scales show as well, are left out.
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
    """The settings of one panel that the user has chosen.

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

    Two Jinja templates of the paper's folder make its page: ``setting`` once, and for each panel the one that has the
    name of the function ``runs``. They can call what the paper's module ``analysis`` defines.

    Attributes:
        title: Title of the page and of the picture.
        axes: Axes of the picture: ``x`` and ``y`` labels, ``xscale`` and ``yscale``.
        scales: Sizes that can be run, by name: at least ``small`` (minutes) and ``paper``.
        runs: Function that returns the runs of a panel, which differ in their ``labels``.
        panels: Titles of the panels by name; each is a section of the page and a part of the picture.
        setting: Name of the template that describes what is run at a scale and in a mode.
        modes: Variants of the algorithms; the first is the default, ``printed`` is as the paper prints them.
        panel_axes: Where a panel's axes are not those of the picture, by the panel's name.
    """

    title: str
    axes: Mapping[str, str]
    scales: Mapping[str, Scale]
    runs: Callable[[Plan], Sequence[RunSpec | Measurement]]
    panels: Mapping[str, str] = field(default_factory=lambda: {"all": "All runs"})
    setting: str = "setting.md.j2"
    modes: tuple[str, ...] = ("default",)
    panel_axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """Name of the template of a panel's section, which is that of the function ``runs``."""
        return f"{self.runs.__name__.strip('_')}.md.j2"

    @property
    def package(self) -> ModuleType:
        """The package that defines ``runs``, in which the templates and the module ``analysis`` lie, too."""
        return import_module(self.runs.__module__.rpartition(".")[0])


@cache
def experiments() -> Registry[Experiment]:
    """Returns all experiments by name: ``EXPERIMENTS`` of the module ``experiments`` of every folder of ``papers``.

    A plug-in of the group ``papers`` names such a module.
    """
    # By name: nothing imports the papers, which stand above all else.
    papers = import_module("fedbandit_envs.papers")
    folders = sorted(folder.name for folder in iter_modules(papers.__path__) if folder.ispkg)
    modules = [import_module(f"{papers.__name__}.{folder}.experiments") for folder in folders]
    own = {name: one for module in modules for name, one in module.EXPERIMENTS.items()}
    return Registry(own, papers=lambda plugin: dict(plugin.content.EXPERIMENTS))
