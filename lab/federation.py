"""Runs of a federation in the lab: the options of its menus, the run that a choice of options defines, its outcome."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter
from json import dumps
from typing import Any, NamedTuple
from warnings import catch_warnings

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.wrapper import Layer
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec, SettingsError, arguments, refusing
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers import ContinualPrivatizer
from fedbandit_envs.wrappers.byzantine import ATTACKS
from fedbandit_envs.wrappers.participation import LAWS
from fedbandit_envs.wrappers.transport.network import TOPOLOGIES
from fedbandit_envs.wrappers.transport.schedule import SCHEDULES, make_schedule

AS_REGISTERED = "as registered"

PARTS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "schedule": SCHEDULES, "topology": TOPOLOGIES, "participation": LAWS, "attack": ATTACKS,
}  # fmt: skip
"""The parts of a run that the lab's menus change, each with its options by name."""

_SUGGESTED = {"gap": 100, "limit": 100, "count": 8, "probability": 0.5, "degree": 4, "rounds": [0, 1]}
_FOLLOWING = {"num_agents", "generator", "horizon", "t", "total", "symmetric"}  # set by the environment


def suggestion(part: str, option: str) -> dict[str, Any]:
    """Returns initial values for the form's field with the required arguments of a menu's option.

    Args:
        part: One of :data:`PARTS`, such as ``schedule``.
        option: Name of one of the part's options.

    Returns:
        Values by the argument's name, without arguments that the environment sets.
    """
    required = (
        name for name, default in arguments(PARTS[part][option]).items() if default is Parameter.empty
    )
    return {name: _SUGGESTED.get(name) for name in required if name not in _FOLLOWING}


def baselines(env_id: str) -> list[str]:
    """Returns the names of the baselines that can play a problem.

    Baselines with a privatizer are first, so that the lab's default run has a privacy claim to show.
    """
    federation = resolve(REGISTRY[env_id].federation)
    names = [name for name, one in BASELINES.items() if one.fits(federation, env_id)]
    return sorted(names, key=lambda name: _part_of(name, "noise") is None)


def known_settings(env_id: str, baseline: str) -> list[str]:
    """Returns every argument that can be set, as ``part.name=default``; required arguments lack the default."""
    return [
        f"{part}.{name}" + ("" if value is Parameter.empty else f"={dumps(value, default=str)}")
        for part, values in RunSpec(baseline, env_id, 1, 1).known_settings.items()
        for name, value in values.items()
    ]


class Outcome(NamedTuple):
    """A run in the lab: what was chosen, its result, and the warnings raised meanwhile."""

    choice: "Choice"
    result: RunResult
    warned: Sequence[str] = ()


@dataclass(frozen=True)
class Choice:
    """The configuration of a run that the user has chosen in the lab.

    Attributes:
        problem: An environment's id.
        baseline: A baseline.
        rounds: Horizon.
        seeds: Number of seeds, from 0 on.
        epsilon: Epsilon of the baseline's privatizer; None for the registered one.
        parts: Those of the :data:`PARTS` that differ from the registered ones, by part: ``name`` of the option, and
            its arguments.
        liars: Share of the agents that send false messages; used only if ``parts`` has an attack.
        faults: ``delay`` (rounds for each edge), ``loss`` and ``duplication`` (shares of messages) of the baseline's
            transport.
        switches: Labels of those of the problem's ``lab_choices`` that are switched on.
        assignments: Other settings, each as ``key=value`` like ``--set`` of the command line.
        delta: Delta of the privacy claims.
    """

    problem: str
    baseline: str
    rounds: int = 1000
    seeds: int = 5
    epsilon: float | None = None
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    liars: float = 0.2
    faults: Mapping[str, float] = field(default_factory=dict)
    switches: Sequence[str] = ()
    assignments: Sequence[str] = ()
    delta: float = 1e-5

    @property
    def label(self) -> str:
        """Name of the run in legends: the baseline and all settings that differ from the registered ones."""
        specifications = (" ".join(map(str, spec.values())) for spec in self.parts.values())
        numbers = {"epsilon": self.epsilon, **self.faults}
        changed = (f"{name} {value:g}" for name, value in numbers.items() if value)
        return ", ".join([self.baseline, *specifications, *changed, *self.switches, *self.assignments])

    def play(self, advance: Callable[[int], None] = lambda rounds: None) -> Outcome:
        """Runs the federation that the user has configured in the lab and returns its result.

        Args:
            advance: Called with the number of rounds played since its last call, for progress bars.

        Raises:
            SettingsError: A name is unknown, an argument is wrong, or a part does not fit the others.
            BudgetExhaustedError: A privatizer refuses a release, since its privacy budget is used up.
        """
        spec = self.spec()
        rows = spec.seeds * spec.agents
        with catch_warnings(record=True, action="always") as warned:
            result = spec.run(lambda played: advance(round(played / rows)))
        return Outcome(self, result, [str(one.message) for one in warned])

    def spec(self) -> RunSpec:
        """Returns the lab's configuration as a run specification.

        Raises:
            SettingsError: A name is unknown, or a setting does not fit the baseline. Some other errors show only when
                the run is played, see :meth:`play`.
        """
        parts = {name: dict(spec) for name, spec in self.parts.items()}
        stack = []
        if law := parts.pop("participation", None):
            stack.append(["fedbandit_envs.wrappers:Participation", {"law": law}])
        if attack := parts.pop("attack", None):
            stack.append(["fedbandit_envs.wrappers:Byzantine", {"agents": self.liars, "attack": attack}])
        spec = RunSpec(self.baseline, self.problem, self.rounds, self.seeds, stack=stack)
        spec = spec.assigned(self.assignments)
        schedule = parts.get("schedule")
        if schedule and schedule["name"] == "geometric":
            schedule.setdefault("horizon", self.rounds)
        values: dict[Layer, dict[str, Any]] = {
            "transport": {**{name: value for name, value in self.faults.items() if value}, **parts},
            "noise": {} if self.epsilon is None else {"epsilon": self.epsilon},
        }
        for layer, given in values.items():
            part = _part_of(self.baseline, layer)
            if part is not None:
                # The user's text settings (``assignments``) override those of the menus.
                spec.wrapper_kwargs[part] = {**given, **spec.wrapper_kwargs.get(part, {})}
            elif given:
                raise SettingsError(
                    f"{', '.join(given)} cannot be set: {self.baseline} has no {layer} layer; a baseline that has one "
                    "is required"
                )
        noise = _part_of(self.baseline, "noise")
        if schedule and noise is not None:
            # Continual release plans its noise for given rounds of release, so it needs the schedule that was changed.
            with refusing(TypeError, ValueError):
                fixed = make_schedule(schedule).fixed_in_advance
            if fixed and BASELINES[self.baseline].wrappers[noise].make is ContinualPrivatizer:
                spec.wrapper_kwargs[noise].setdefault("releases", schedule)
        switches = REGISTRY[self.problem].problem.lab_choices
        switched = {name: value for label in self.switches for name, value in switches[label].items()}
        return replace(spec, env_kwargs={**switched, **spec.env_kwargs}, delta=self.delta)


def example() -> list[Outcome]:
    """Returns the runs on which the lab opens: agents without messages, with true data, and with noisy data.

    All three pull arms by UCB1 with the same constants, so that they differ in what agents share alone.
    """
    names = ("UCB1-tuned", "UCB1-weighted-true", "UCB1-weighted")
    return [Choice("FedArms-v0", name).play() for name in names]


def _part_of(baseline: str, layer: Layer) -> str | None:
    """Returns the name of the baseline's wrapper that has a given layer, such as ``noise``; None if there is none."""
    parts = BASELINES[baseline].wrappers.items()
    return next((part for part, spec in parts if getattr(spec.make, "layer", None) == layer), None)
