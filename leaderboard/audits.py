"""Audits of mechanisms by name, as data: what is attacked, under which adjacencies and compositions.

A lower bound is too high with probability 1e-4 at most, so an honest mechanism is accused in one of 10,000 attacks.
Claims that differ in their composition only are held against one attack.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

from fedbandit_envs.checks import require_choice, require_integer, require_number
from fedbandit_envs.claim import Adjacency, Composition
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.problem import Problem
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.privacy.audit import Audit, Evidence, attack
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.laplace import LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.privacy.randomized_response import RandomizedResponsePrivatizer

# Unless told otherwise: with more the event that betrays pure mechanisms gets too rare to be seen.
_RELEASES = 2


class Mechanism(NamedTuple):
    """One mechanism under attack.

    Attributes:
        make: Wraps an environment, given ``epsilon`` and ``releases`` (and ``delta`` if it has one).
        delta: Of each release (of all, under continual release), and at which claims are attacked, unless told
            otherwise; pure mechanisms have 0.
        attacks: The adjacencies and compositions under which its claims mean something.
        problem: What it protects; it names its worst neighbouring histories.
        altered: In how many windows these differ (1 under parallel composition); None for all.
        releases: As many unless told otherwise; None for two with P-FCB's decreasing shares.
    """

    make: Callable[..., Privatizer]
    delta: float
    attacks: tuple[tuple[Adjacency, Composition], ...]
    problem: type[Problem] = ProcurementEnv
    altered: int | None = None
    releases: int | None = None


_EXACT: tuple[tuple[Adjacency, Composition], ...] = (
    ("one-quantity", "exact"),
    ("one-round", "exact"),
    ("one-observation", "exact"),
    ("one-outcome", "exact"),
)
_PURE: tuple[tuple[Adjacency, Composition], ...] = (("one-quantity", "basic"), ("one-quantity", "parallel"))
_GAUSSIAN = (*_EXACT, *_PURE, ("one-quantity", "zcdp"))


def _continual(problem: type[Problem] = LinearEnv, **kwargs: Any) -> Mechanism:
    """A mechanism of continual release; one window differs, and all that it shows in counts."""
    attacks: tuple[tuple[Adjacency, Composition], ...] = (
        ("one-observation", "exact"),
        ("one-observation-added", "exact"),
    )
    make = partial(ContinualPrivatizer, **kwargs)
    return Mechanism(make, 0.1, attacks, problem, altered=1, releases=6)


MECHANISMS: dict[str, Mechanism] = {
    "gaussian": Mechanism(GaussianPrivatizer, 0.01, _GAUSSIAN),
    "gaussian-analytic": Mechanism(partial(GaussianPrivatizer, calibration="analytic"), 0.01, _GAUSSIAN),
    "gaussian-good-and-defective": Mechanism(
        partial(GaussianPrivatizer, pair="good_and_defective"), 0.01, _GAUSSIAN
    ),
    "laplace": Mechanism(LaplacePrivatizer, 0.0, (*_EXACT, *_PURE)),
    "randomized-response": Mechanism(
        RandomizedResponsePrivatizer,
        0.0,
        (("one-outcome", "exact"), ("one-outcome", "basic"), ("one-outcome", "parallel")),
    ),
    "sqrt-toeplitz": _continual(mechanism="sqrt_toeplitz"),
    "blt": _continual(mechanism="blt"),
    "tree": _continual(mechanism="tree"),
    "tree-printed": _continual(mechanism="tree", sigma="printed"),
    "honaker": _continual(mechanism="honaker"),
    "blt-exposure": _continual(ExposureEnv, mechanism="blt"),
}
"""Every mechanism that ``fedbandit audit`` knows."""


@dataclass(frozen=True)
class AuditSettings:
    """All that determines a series of audits.

    Attributes:
        mechanism: Name in :data:`MECHANISMS`, or ``"all"``.
        epsilon: Shared out over the releases, for one value; of all releases under continual release.
        delta: Of each release that has one (of all, under continual release), and at which claims are attacked; basic
            composition is attacked at the promised deltas' sum. None for each mechanism's own.
        releases: That many releases with equal shares of epsilon; None for each mechanism's own number.
        samples: Of each of the two histories.
        seed: Of the noise.
    """

    mechanism: str = "all"
    epsilon: float = 1.0
    delta: float | None = None
    releases: int | None = None
    samples: int = 50_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuses unknown names and numbers out of range.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: Names the parameter, its value and what is allowed.
        """
        require_choice("mechanism", self.mechanism, ("all", *MECHANISMS))
        require_number("epsilon", self.epsilon, 0, float("inf"), open_below=True)
        if self.delta is not None:
            require_number("delta", self.delta, 0, 1)
        if self.releases is not None:
            require_integer("releases", self.releases, 1)
        require_integer("samples", self.samples, 1)
        require_integer("seed", self.seed, 0)

    @property
    def attacks(self) -> list[tuple[str, Adjacency, Composition]]:
        """The attacks there will be: mechanism, adjacency and composition."""
        names = list(MECHANISMS) if self.mechanism == "all" else [self.mechanism]
        return [(name, *attack) for name in names for attack in MECHANISMS[name].attacks]


class Audited(NamedTuple):
    """One attack's outcome; the audit's claim names adjacency and composition."""

    mechanism: str
    audit: Audit

    def as_json(self) -> dict[str, Any]:
        """Returns the row; JSON knows neither infinity nor NaN, which become null."""
        claim, bound, tightness = self.audit.claim, self.audit.lower_bound, self.audit.tightness
        return {
            "mechanism": self.mechanism,
            "lower_bound": bound if isfinite(bound) else None,
            "claim": claim.as_json(),
            "tightness": tightness if isfinite(tightness) else None,
            "holds": self.audit.holds,
        }


def run_audits(
    settings: AuditSettings, advance: Callable[[int], None] = lambda attacks: None
) -> list[Audited]:
    """Runs audits.

    Args:
        settings: What to attack.
        advance: Told of attacks done, for progress bars.

    Returns:
        One row an attack, in the order of :data:`MECHANISMS`.

    Raises:
        ValueError: A mechanism refuses a parameter.
    """
    rows = []
    evidence: dict[tuple[str, Adjacency, int | None], Evidence] = {}
    for name, adjacency, composition in settings.attacks:
        mechanism = MECHANISMS[name]
        delta = mechanism.delta if settings.delta is None else settings.delta
        altered = 1 if composition == "parallel" else mechanism.altered
        seen = name, adjacency, altered
        if seen not in evidence:
            arguments = {"delta": delta} if mechanism.delta else {}
            releases = mechanism.releases if settings.releases is None else settings.releases
            evidence[seen] = attack(
                partial(mechanism.make, epsilon=settings.epsilon, releases=releases, **arguments),
                mechanism.problem,
                adjacency,
                releases=_RELEASES if releases is None else releases,
                altered=altered,
                samples=settings.samples,
                seed=settings.seed,
            )
        at = None if composition == "basic" else delta
        rows.append(Audited(name, evidence[seen].against(at, composition)))
        advance(1)
    return rows
