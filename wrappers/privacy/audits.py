"""Audits of privacy mechanisms by name: attacks that test each mechanism's claims, by adjacency and composition.

An attack gives a lower bound on epsilon, which is too high with probability 1e-4 at most: so at most one of 10,000
attacks on correct mechanisms refutes a true claim. Claims that differ in their composition only are tested by the same
attack.
"""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from fedbandit_envs.arms.env import ArmsEnv
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, Adjacency, Composition
from fedbandit_envs.core.problem import Problem
from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.linear.env import LinearEnv
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.registry.registration import Registry
from fedbandit_envs.wrappers import (
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    Privatizer,
    RandomizedResponsePrivatizer,
)
from fedbandit_envs.wrappers.privacy.audit import Audit, Evidence, Observer, attack, attack_stage
from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Mechanism
from fedbandit_envs.wrappers.transport.schedule import StageSpec

# Number of releases under attack if a target gives none. With more releases, the alarm that best reveals a mechanism of
# pure differential privacy (delta 0) would be too rare to be observed.
_RELEASES = 2
# With more, an attack would take days. Memory grows with their product.
_MOST_RELEASES, _MOST_SAMPLES = 10_000, 10_000_000


Attacks = tuple[tuple[Adjacency, Composition], ...]
"""Adjacencies and compositions under which claims are attacked."""


class AuditTarget(NamedTuple):
    """A privatizer to be attacked, and the parameters of the attack.

    A window is the time between two releases of an agent.

    Attributes:
        make: A function that wraps an environment in the privatizer, given the environment, ``epsilon``, ``releases``
            and, if ``delta`` is not 0, ``delta``.
        delta: Default delta of each release (under continual release, of all releases), at which claims are tested; 0
            for mechanisms of pure differential privacy.
        attacks: Pairs of an adjacency and a composition for which the privatizer's claims are tested.
        problem: Class of the environment inside of the privatizer; it defines the worst neighbouring histories.
        altered: Number of windows in which these histories differ (always 1 for parallel composition); None for all.
        releases: Default number of releases; None for two releases with P-FCB's decreasing shares of epsilon.
        view: The stage of a transport and the observer whose view of it is attacked, as :func:`.attack_stage` takes
            them; None attacks single releases.
    """

    make: Callable[..., Privatizer]
    delta: float
    attacks: Attacks
    problem: type[Problem] = ProcurementEnv
    altered: int | None = None
    releases: int | None = None
    view: tuple[StageSpec, Observer] | None = None


_EXACT: Attacks = tuple(
    (adjacency, "exact") for adjacency in ("one-quantity", "one-round", "one-observation", "one-outcome")
)
_PURE: Attacks = (("one-quantity", "basic"), ("one-quantity", "parallel"))
_OUTCOME: Attacks = (("one-outcome", "exact"), ("one-outcome", "basic"), ("one-outcome", "parallel"))
_AGENT: Attacks = ((AGENT, "exact"), (AGENT, "basic"), (AGENT, "zcdp"))
_GAUSSIAN = (*_EXACT, *_PURE, ("one-quantity", "zcdp"))


def _continual(problem: type[Problem] = LinearEnv, **kwargs: Any) -> AuditTarget:
    """Returns the target for a mechanism of continual release: 6 releases of histories that differ in one window.

    Args:
        problem: Class of the environment.
        **kwargs: Further arguments of :class:`ContinualPrivatizer`.
    """
    make = partial(ContinualPrivatizer, **kwargs)
    attacks: Attacks = (("one-observation", "exact"), ("one-observation-added", "exact"))
    return AuditTarget(make, 0.1, attacks, problem, altered=1, releases=6)


def _divided(make: Callable[..., Privatizer], **kwargs: Any) -> Callable[..., Privatizer]:
    """Returns a maker of privatizers that divides epsilon among the releases, for one number of each."""

    def made(env: FederatedEnv, epsilon: float, releases: int | None, **own: Any) -> Privatizer:
        each = epsilon / (releases or 1)
        return make(env, epsilon_per_release=each, releases=releases, **kwargs, **own)

    return made


def _staged(stage: StageSpec, observer: Observer) -> AuditTarget:
    """Returns the target for an observer's view of a stage: two clipped releases of each of three agents."""
    make = _divided(GaussianPrivatizer, calibration="analytic", clip=1.0)
    return AuditTarget(make, 0.01, _AGENT[:1], ArmsEnv, releases=_RELEASES, view=(stage, observer))


_OWN = {
    "gaussian": AuditTarget(_divided(GaussianPrivatizer), 0.01, _GAUSSIAN),
    "gaussian-analytic": AuditTarget(_divided(GaussianPrivatizer, calibration="analytic"), 0.01, _GAUSSIAN),
    "gaussian-good-and-defective": AuditTarget(
        _divided(GaussianPrivatizer, pair="good_and_defective"), 0.01, _GAUSSIAN
    ),
    "laplace": AuditTarget(_divided(LaplacePrivatizer), 0.0, (*_EXACT, *_PURE)),
    "randomized-response": AuditTarget(_divided(RandomizedResponsePrivatizer), 0.0, _OUTCOME),
    "sqrt-toeplitz": _continual(mechanism="sqrt_toeplitz"),
    "blt": _continual(mechanism="blt"),
    "tree": _continual(mechanism="tree"),
    "tree-printed": _continual(mechanism="tree", sigma="printed"),
    "honaker": _continual(mechanism="honaker"),
    "blt-exposure": _continual(ExposureEnv, mechanism="blt"),
    "gaussian-agent": AuditTarget(_divided(GaussianPrivatizer, clip=1.0), 0.01, _AGENT, releases=_RELEASES),
    "sqrt-toeplitz-agent": _continual(mechanism="sqrt_toeplitz", adjacency=AGENT, clip=1.0)._replace(
        attacks=_AGENT[:1], altered=None
    ),
    "shuffler-server": _staged("shuffler", "server"),
    "shuffler-fellow": _staged("shuffler", "fellow"),
    "aggregator-server": _staged({"name": "aggregator", "honest": 3}, "server"),
    "aggregator-fellow": _staged({"name": "aggregator", "honest": 2}, "fellow"),
    "aggregator-public": _staged({"name": "aggregator", "honest": 3}, "public"),
    "server-fellow": _staged("server", "fellow"),
}


def target_of(mechanism: type[Mechanism]) -> AuditTarget:
    """Returns the target for attacks on a mechanism in the procurement problem.

    Args:
        mechanism: Class of the mechanism. Its constructor must take ``epsilon`` and ``releases`` by name, and may take
            ``delta``. Attacks use delta 0.01 if it does, and 0 otherwise.

    Raises:
        TypeError: ``mechanism`` cannot be called.
    """

    def make(env: FederatedEnv, **arguments: Any) -> Privatizer:
        return Privatizer(env, mechanism(**arguments))

    delta = 0.01 if "delta" in signature(mechanism).parameters else 0.0
    return AuditTarget(make, delta, (*_EXACT, *_PURE), releases=_RELEASES)


TARGETS: Registry[AuditTarget] = Registry(
    _OWN, mechanisms=lambda plugin: {plugin.name: target_of(MECHANISMS[plugin.name])}
)
"""The targets of ``fedbandit audit`` by name: this project's privatizers in several forms, and plug-ins' mechanisms."""


def attacks_of(mechanism: str) -> list[tuple[str, AuditTarget, Adjacency, Composition]]:
    """Returns the claims that :func:`run_audits` tests: of each the name, target, adjacency and composition.

    Args:
        mechanism: A name in :data:`TARGETS`, ``"all"``, or the entry point ``"module:Class"`` of a mechanism.

    Raises:
        ValueError: The mechanism's name is unknown.
        ImportError: There is no such module.
        AttributeError: The module has no such class.
    """
    if ":" in mechanism:
        targets = {mechanism: target_of(resolve(mechanism))}
    else:
        require_choice("mechanism", mechanism, ("all", *TARGETS))
        targets = {name: TARGETS[name] for name in (TARGETS if mechanism == "all" else [mechanism])}
    return [(name, target, *attack) for name, target in targets.items() for attack in target.attacks]


def run_audits(
    mechanism: str = "all",
    epsilon: float = 1.0,
    delta: float | None = None,
    releases: int | None = None,
    samples: int = 50_000,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> list[tuple[str, Audit]]:
    """Attacks mechanisms and compares the lower bounds on epsilon that are found with the mechanisms' claims.

    Args:
        mechanism: Name in :data:`TARGETS`, ``"all"``, or the entry point of a mechanism.
        epsilon: Epsilon of all releases together if neighbours differ in one number of each release; it is divided
            among the releases. Under continual release it is the epsilon of all releases together.
        delta: Delta of each release, for mechanisms that have one (under continual release, of all releases), and the
            delta at which claims are tested. Claims by basic composition are tested at the sum of the releases' deltas.
            None takes each mechanism's default.
        releases: Number of releases, at most 10,000, which get equal shares of epsilon; None takes each mechanism's
            default.
        samples: Number of samples of each of the two histories, at most 10,000,000.
        seed: Seed of the noise.
        advance: A function for progress bars; called after each audit.

    Returns:
        For each claim the mechanism's name and the audit, in the order of :data:`TARGETS`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or a mechanism refuses it.
    """
    require_number("epsilon", epsilon, 0, float("inf"), open_below=True)
    if releases is not None:
        require_integer("releases", releases, 1, _MOST_RELEASES)
    require_integer("samples", samples, 1, _MOST_SAMPLES)
    require_integer("seed", seed, 0)
    rows = []
    evidence: dict[tuple[str, Adjacency, int | None], Evidence] = {}
    for name, target, adjacency, composition in attacks_of(mechanism):
        at = target.delta if delta is None else delta
        altered = 1 if composition == "parallel" else target.altered
        seen = name, adjacency, altered
        if seen not in evidence:
            number = target.releases if releases is None else releases
            own = {"delta": at} if target.delta else {}
            make = partial(target.make, epsilon=epsilon, releases=number, **own)
            attacked = (
                partial(attack, make, target.problem, adjacency, altered=altered)
                if target.view is None
                else partial(attack_stage, make, target.problem, *target.view)
            )
            evidence[seen] = attacked(releases=number or _RELEASES, samples=samples, seed=seed)
        rows.append((name, evidence[seen].against(None if composition == "basic" else at, composition)))
        advance()
    return rows
