"""Checks of noise layers: sampled noise is compared with the variance that releases announce and with privacy events.

A noise layer and the same federation without it play the same episode in many replicas, so that the difference of their
releases is the noise. Every test statistic below has mean 0 if the noise is as announced. It is averaged within each
replica, and replicas are independent: so its mean over n replicas, divided by its standard error, is nearly standard
normal. A mean beyond 7 standard errors fails the check. For a correct layer that has probability 2.6e-12, multiplied
by exp(7^3 skewness/(3 sqrt(n))) at most on one side of a skewed statistic (the first term of Cramer's series). Squares
of Laplace noise, of skewness 6.6, are averaged over so many replicas, agents and numbers that this factor is at most
exp(11.9). So a single statistic fails a correct layer with probability 2e-7 at most, and all statistics of a layer
together, few of which are skewed, with probability 1e-6 at most. This holds for noise with tails like those of Laplace
noise or lighter.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import HANDED_DOWN
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, COVARIANCE, Sensitivity, independent, variance_of
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import require
from fedbandit_envs.testing.episodes import Make, Trial, Wrap, around, copied

STANDARD_ERRORS = 7.0
"""The largest accepted distance of a statistic's mean from 0, in standard errors; see this module's docstring."""

REPLICAS, VALUES = 512, 4096
"""The smallest number of replicas, and the smallest number of noisy numbers that are sampled in one release."""

RELEASES = 3
"""The number of releases of each agent that are sampled; two rounds are played before each of them."""

_KNOWN: dict[str, Callable[[float], float]] = {
    "gaussian": lambda loss: 1 / loss**2,
    "laplace": lambda loss: 2 / loss**2,
    "randomised_response": lambda loss: 1 / (4 * np.sinh(min(loss, 700.0) / 2) ** 2),
}
"""For each kind of privacy event, a function that returns the variance of the noise, given the event's loss.

For Gaussian and Laplace noise it is the variance at scale 1; for randomised response it is that of one binary outcome.
"""


def check_noise(wrap: Wrap, make: Make) -> None:
    """Checks that noise has the announced variance, is independent, and is as large as the privacy events require.

    Args:
        wrap: A function that puts the noise layer, and perhaps other wrappers, around a federation.
        make: A function that makes the federation inside.

    Raises:
        AssertionError: A requirement does not hold.
    """

    def noisy_env() -> FederatedEnv:
        return find_layer(around(wrap, make)(), "noise") or make()

    env = noisy_env()
    values = sum(int(np.prod(space.shape or ())) for space in make().single_release_space.values())
    replicas = max(REPLICAS, -(-VALUES // (env.max_num_agents * values)))
    noisy = Trial(noisy_env, range(replicas), 2 * RELEASES)
    clear = Trial(lambda: noisy_env().env, range(replicas), 2 * RELEASES)
    layer: Any = noisy.env
    for trial in (noisy, clear):
        trial.env.reset_batch(trial.seeds)
    sensitivity = layer.sensitivity()
    samples: list[tuple[Arrays, Arrays, Arrays]] = []
    booked: dict[Any, Array] = {}
    for t, action in enumerate(noisy.actions):
        for trial in (noisy, clear):
            trial.env.step_batch(action)
        if t % 2:
            sends = layer.allowed_senders(noisy.everyone)
            found = copied(layer.release(sends))
            data = {name: array.astype(float) for name, array in clear.env.release(sends).items()}
            finite = layer.privacy().epsilon not in (None, np.inf)
            samples.append(_noise(found, data, finite))
            # Only a Privatizer is known to have an accountant with events; other noise layers may count differently.
            if hasattr(layer, "accountant"):
                before, booked = (
                    booked,
                    dict(zip(layer.accountant.events, layer.accountant.counts, strict=True)),
                )
                new = {event: times > before.get(event, 0) for event, times in booked.items()}
                _require_booked(new, sensitivity, *samples[-1][1:])
    if not samples[0][0]:
        return
    together = COVARIANCE in found or sensitivity.symmetric
    _require_as_announced(samples, independent(layer.single_release_space), together)
    if {event.kind for event in booked} - {*_KNOWN}:
        _require_audit(wrap, make, sensitivity)


def _noise(found: Arrays, data: Arrays, claimed: bool) -> tuple[Arrays, Arrays, Arrays]:
    """Returns the noise in a release, its announced variance, and the release without noise.

    Args:
        found: The release with noise and with variances, by name.
        data: The release without noise, by name.
        claimed: Whether the claimed epsilon is finite; then variances must be announced.

    Returns:
        Three dicts of arrays, each by the name of the released array: noise, variances of the noise, and data.
    """
    for name in data:
        require(
            variance_of(name) in found or not claimed,
            f"release has no {variance_of(name)!r} beside {name!r}, but privacy() is finite"
            "; the variance of the noise is required",
        )
    names = [name for name in data if variance_of(name) in found]
    noise = {name: found[name] - data[name] for name in names}
    return noise, {name: found[variance_of(name)] for name in names}, {name: data[name] for name in names}


def _require_as_announced(
    samples: Sequence[tuple[Arrays, Arrays, Arrays]], each: bool, together: bool
) -> None:
    """Requires noise of mean 0 and of the announced variance, independent of data and of other noise.

    Args:
        samples: For each release the noise, its announced variances and the data without noise, by name.
        each: Whether different releases have independent noise; if not, only sums over releases have known variances.
        together: Whether the noise in different numbers of one release may be correlated.
    """
    standardised = []
    for name in samples[0][0]:
        parts = (np.stack([part[name] for part in sample]) for sample in zip(*samples, strict=True))
        noise, variance, data = (part if each else part.cumsum(axis=0) for part in parts)
        silent = variance <= 0
        exact = np.abs(noise[silent]) <= 1e-9 * (1 + np.abs(data[silent]))
        require(
            bool(exact.all()),
            f"release of {name!r} has noise of {noise[silent][~exact][:1]} where {variance_of(name)!r} announces none"
            "; the variance of the noise is required",
        )
        unit = np.divide(noise, np.sqrt(np.abs(variance)), out=np.zeros_like(noise), where=~silent)
        excess = np.where(silent, 0.0, unit**2 - 1)
        require(
            not unit.any() or not np.allclose(unit[:, ::2][:, : unit.shape[1] // 2], unit[:, 1::2]),
            f"the noise on {name!r} is the same in two replicas; draw it from the generators given to start",
        )
        high = np.where(data > data.mean(axis=1, keepdims=True), 1.0, -1.0)
        for z, arrays in enumerate(zip(unit, excess, high, strict=True)):
            bias, size, sign = arrays
            what = f"the noise on {name!r} in release {z + 1}"
            found = 1 + size[~silent[z]].mean() if (~silent[z]).any() else 1.0
            _require_mean_0(
                size, f"{what} has {found:.3g} times the variance that {variance_of(name)!r} announces"
            )
            _require_mean_0(bias, f"{what} has a mean that is not 0: what is released is changed besides")
            _require_mean_0(bias * sign, f"the mean of {what} depends on the data")
            _require_mean_0(size * sign, f"the size of {what} depends on the data")
        standardised.append(unit.reshape(*unit.shape[:3], -1))
    x = np.concatenate(standardised, axis=-1)
    pairs = x[:, : x.shape[1] // 2 * 2].reshape(len(x), -1, 2, *x.shape[2:])
    dependence = [("two replicas", pairs[-1].swapaxes(0, 1)), ("two agents", x[-1].swapaxes(0, 1))]
    if each:
        dependence.append(("two releases of an agent", x))
    if not together:
        dependence.append(("two values of a release", np.moveaxis(x[-1], -1, 0)))
    for what, of in dependence:
        # Half of (sum of all)^2 - (sum of squares) is the sum of the products of all pairs.
        _require_mean_0(of.sum(axis=0) ** 2 - (of**2).sum(axis=0), f"the noise in {what} is correlated")


def _require_mean_0(statistic: Array, accusation: str) -> None:
    """Requires that the mean of a statistic over replicas is 0, up to a multiple of its standard error.

    Args:
        statistic: Values of the statistic, whose first axis is the replicas; the other axes are averaged first.
        accusation: Description of the fault that another mean shows, for the error message.
    """
    by_replica = statistic.reshape(len(statistic), -1).mean(axis=1)
    mean, error = by_replica.mean(), by_replica.std(ddof=1) / np.sqrt(len(by_replica))
    require(
        bool(abs(mean) <= STANDARD_ERRORS * error + 1e-9),
        f"{accusation} (by {mean:.3g}, {abs(mean) / max(error, 1e-300):.3g} standard errors, of {len(by_replica)} "
        f"replicas); at most {STANDARD_ERRORS:g} standard errors are required: let randomise draw fresh noise for "
        "every value, release, agent and replica, and announce its variance",
    )


def _require_booked(new: dict[Any, Array], sensitivity: Sensitivity, variance: Arrays, data: Arrays) -> None:
    """Requires that the announced variances of a release are as large as its privacy events require.

    Args:
        new: For each event, which agents' releases it describes, bool ``(replicas, agents)``.
        sensitivity: The sensitivity of the release without noise.
        variance: The announced variances of the noise, by name of the released array.
        data: The release without noise, by name.
    """
    for event, who in new.items():
        # Skipped are events of unknown kinds, events without noise, which guarantee nothing, and events that no agent
        # had. Where one event describes several releases, single variances are not compared (below), since only those
        # of sums are known.
        if event.kind not in _KNOWN or not np.isfinite(event.loss) or not who.any():
            continue
        for adjacency, change in event.changes:
            _require_promise(event, adjacency, change, sensitivity)
        square = {name: scale**2 for name, scale in sensitivity.scale.items()}
        if event.kind == "randomised_response" and sensitivity.pair:
            square = {sensitivity.pair.good: data[sensitivity.pair.total]}
        for name in square.keys() & variance.keys() if event.releases == 1 else ():
            least = _KNOWN[event.kind](event.loss) * square[name][who]
            if _in_sum(event, sensitivity):
                agent, booked = sensitivity.changes[AGENT], event.loss * event.change(AGENT).values
                least = _KNOWN[event.kind](booked) * square[name][who] * agent.values * agent.norm**2
            if sensitivity.symmetric:
                # A change off the diagonal of a symmetric matrix appears twice, so half the variance suffices there.
                least = least * np.where(np.eye(least.shape[-1]), 1.0, 0.5)
            short = variance[name][who] < least * (1 - 1e-6)
            require(
                not short.any(),
                f"the noise on {name!r} has the variance {variance[name][who][short][:1]}, but the booked event "
                f"{event.kind!r} of loss {event.loss:.4g} claims {least[short][:1]}; at least that is required: book "
                "what is drawn, release by release",
            )


def _in_sum(event: Any, sensitivity: Sensitivity) -> bool:
    """Returns whether an event is of a clipped release, and its privacy depends on the sum of absolute differences.

    Neighbouring clipped releases of n numbers differ by a Euclidean norm of 2 C, and so by a sum of 2 C sqrt(n).
    """
    return AGENT in sensitivity.changes and event.kind != "gaussian"


def _require_promise(event: Any, adjacency: str, change: Any, sensitivity: Sensitivity) -> None:
    """Requires that an event states no smaller change than the sensitivity and promises no more than its loss gives.

    Args:
        event: The event.
        adjacency: The adjacency under which it is checked.
        change: The change that the event states for this adjacency.
        sensitivity: The sensitivity of the release without noise.
    """
    told = [sensitivity.changes] + ([sensitivity.pair.changes] if sensitivity.pair else [])
    known = [changes[adjacency] for changes in told if adjacency in changes]
    part = int(event.kind == "gaussian")
    least = 0.0 if _in_sum(event, sensitivity) else min((each[part] for each in known), default=0.0)
    require(
        change[part] >= least * (1 - 1e-9),
        f"the booked event {event.kind!r} has a change of {change[part]:.4g} under {adjacency!r}, where sensitivity "
        f"has {least:.4g}; at least that is required: pass on all changes",
    )
    epsilon, delta = event.promised(adjacency)
    if event.kind != "gaussian":
        kept = event.loss <= event.epsilon * (1 + 1e-9)
    else:
        given = HANDED_DOWN["gaussian_delta"]()
        kept = delta >= 1 or given(epsilon, event.mu(adjacency)) <= delta * (1 + 1e-6)
    require(
        bool(kept),
        f"the booked event {event.kind!r} promises epsilon {epsilon:.4g} at delta {delta:.4g} under {adjacency!r}, "
        f"more than its loss of {event.loss:.4g} gives; a promise that the noise keeps is required",
    )


def _require_audit(wrap: Wrap, make: Make, sensitivity: Sensitivity) -> None:
    """Requires that an attack on the noise layer does not refute its claim by basic composition.

    The layer is put around the problem without other wrappers. This is the only check of the size of noise whose
    privacy events are of an unknown kind.
    """
    problem: Any = type(list(layers(make()))[-1])
    attack = HANDED_DOWN["attack"]()
    protected = [each for each in sensitivity.changes if each == AGENT or problem.neighbours(each)]
    for adjacency in protected:
        audit = attack(
            lambda env: find_layer(wrap(env), "noise"),
            problem,
            adjacency,
            samples=2000,
            error=1e-6 / len(protected),
            horizon=2 * RELEASES,
        ).against(None, "basic")
        require(
            audit.holds,
            f"an attack on one release proves an epsilon of at least {audit.lower_bound:.4g}, but the booked events "
            f"claim {audit.claim}; noise that keeps the claim is required",
        )
