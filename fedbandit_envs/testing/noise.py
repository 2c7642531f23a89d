"""Checks of noise layers: sampled noise is compared with what is announced and booked, and mechanisms are attacked.

Two noise layers play the same episode in many replicas, and one releases what is there before its noise, so that the
difference of their releases is the noise. A third one has other noise on equal data. Every test statistic below has
mean 0 if the noise is as announced. It is averaged within each replica, and replicas are independent: so its mean over
n replicas, divided by its standard error, is nearly standard normal. A mean beyond 7 standard errors fails the check.
For a correct layer that has probability 2.6e-12, multiplied by exp(7^3 skewness/(3 sqrt(n))) at most on one side of a
skewed statistic (the first term of Cramer's series). Squares of Laplace noise, of skewness 6.6, are averaged over so
many replicas, agents and numbers that this factor is at most exp(11.9). So a single statistic fails a correct layer
with probability 2e-7 at most, and all statistics of a layer together, few of which are skewed, with probability 1e-6 at
most. This holds for noise with tails like those of Laplace noise or lighter.

No check of samples finds noise that differs from what is booked in rare cases or by little: values of the distribution
function are compared to about 0.03, repeated values of noise to one in a thousand. Nor does it find what begins after
the sampled releases, is meant for a certain seed, or behaves while it is checked.
"""

from functools import partial
from typing import Any
from warnings import warn

import numpy as np
from scipy.special import ndtr

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import handed_down
from fedbandit_envs.core.privacy import AGENT, COVARIANCE, Sensitivity, independent, variance_of
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import require, require_same
from fedbandit_envs.testing.episodes import Make, Trial, Wrap, copied

STANDARD_ERRORS = 7.0
"""The largest accepted distance of a statistic's mean from 0, in standard errors; see this module's docstring."""

REPLICAS, VALUES = 512, 4096
"""The smallest number of replicas, and the smallest number of noisy numbers that are sampled in one release."""

RELEASES = 3
"""The number of releases of each agent that are sampled; two rounds are played before each of them."""

_BOOKED = {
    "gaussian": lambda loss: 1 / loss**2,
    "laplace": lambda loss: 2 / loss**2,
    "randomised_response": lambda loss: 1 / (4 * np.sinh(min(loss, 700.0) / 2) ** 2),
}
"""For each kind of event the variance of the noise by its loss: at scale 1, or of one binary outcome."""

_DISTRIBUTIONS = {
    "gaussian": ndtr,
    "laplace": lambda x: 0.5 - np.sign(x) * np.expm1(-np.sqrt(2) * np.abs(x)) / 2,
}
"""The distribution functions of noise of variance 1, by the kind of the booked event."""

_LEVELS = np.array([0.01, 0.1, 0.25, 0.4, 0.6, 0.75, 0.9, 0.99])
"""The quantiles at which the distribution of noise is compared with the booked one."""


def check_noise(wrap: Wrap, make: Make) -> None:
    """Checks that noise has the announced variance and the booked distribution, and does not depend on data.

    Mechanisms of other packages are attacked, too.

    Args:
        wrap: A function that puts the noise layer around a federation. Wrappers outside of the layer are left out.
        make: A function that makes the federation inside.

    Raises:
        AssertionError: A requirement does not hold.
    """
    layer, (released, others, plain, altered), booked = _sampled(wrap, make)
    epsilon, sensitivity = layer.privacy().epsilon, layer.sensitivity()
    each = independent(layer.single_release_space)
    kinds = {event.kind for events in booked for event in events}
    noise = {name: released[name] - data for name, data in plain.items()}
    if kinds <= _DISTRIBUTIONS.keys():
        first, second = ({name: of[name] for name in of.keys() - plain.keys()} for of in (released, altered))
        what = "what the noise layer adds to a release beside the data's arrays"
        require_same(what, second, first, "it must be the same where agents act otherwise")
    if kinds and kinds <= _BOOKED.keys():
        for adjacency in sensitivity.changes:
            promised = layer.accountant.epsilon(adjacency=adjacency)
            lost = layer.accountant.epsilon(promised.delta, composition="exact", adjacency=adjacency).epsilon
            kept = None in (promised.epsilon, lost) or lost <= promised.epsilon * (1 + 1e-6)
            less = "booked events promise more than their loss gives"
            require(kept, f"{less}: epsilon is {lost} at {promised}")
    standardised = []
    for name, data in plain.items():
        announced = variance_of(name)
        if announced not in released:
            require(epsilon in (None, np.inf), f"release has no {announced!r}, but privacy() is finite")
            continue
        # Of noise that is correlated over releases, only the variances of sums are known.
        parts = [noise[name], released[announced], data, others[name] - data]
        each_noise, variance, data, other = parts if each else (part.cumsum(axis=0) for part in parts)
        units = _standardised(name, each_noise, variance, data), _in_units(other, variance)
        standardised.append([unit.reshape(*unit.shape[:3], -1) for unit in units])
    if standardised:
        x, y = (np.concatenate(parts, axis=-1) for parts in zip(*standardised, strict=True))
        pairs = x[:, : x.shape[1] // 2 * 2].reshape(len(x), -1, 2, *x.shape[2:])
        dependence = {"two replicas": pairs[-1].swapaxes(0, 1), "two agents": x[-1].swapaxes(0, 1)}
        if each:
            dependence["two releases of an agent"] = x
        if not (COVARIANCE in released or sensitivity.symmetric):
            dependence["two values of a release"] = np.moveaxis(x[-1], -1, 0)
        for what, of in dependence.items():
            # Half of (sum of all)^2 - (sum of squares) is the sum of the products of all pairs.
            products = of.sum(axis=0) ** 2 - (of**2).sum(axis=0)
            _require_mean_0(f"the noise in {what} is correlated", products[np.newaxis])
        if hasattr(layer, "_noise_seed"):
            _require_mean_0("noise of two seeds on equal data is correlated: it depends on the data", x * y)
        if len(kinds) == 1 and (each or kinds == {"gaussian"}) and kinds <= _DISTRIBUTIONS.keys():
            _require_distribution(kinds.pop(), x, y, sensitivity.symmetric)
    _require_booked(booked, sensitivity, noise, plain)
    mechanism = getattr(layer, "mechanism", None)
    # The package's own mechanisms are attacked by its tests.
    if mechanism is not None and not type(mechanism).__module__.startswith("fedbandit_envs."):
        _require_audit(wrap, make, [*sensitivity.changes])


def _sampled(wrap: Wrap, make: Make) -> tuple[Any, list[Arrays], list[dict[Any, Array]]]:
    """Plays an episode four times: with noise, with other noise, without, and with noise where agents act otherwise.

    In the last one a single agent of each replica does so, and noise has the seed of the first.

    Returns:
        The noise layer after the first episode; the releases of all four, arrays by name with a leading axis for the
        releases; and for each release of the first one the booked events, each with the agents that it applies to.
    """
    values = sum(int(np.prod(space.shape or ())) for space in make().single_release_space.values())
    seeds = range(max(REPLICAS, -(-VALUES // (make().max_num_agents * values))))

    def noise_layer() -> Any:
        return find_layer(wrap(make()), "noise")

    trials: list[Any] = [Trial(noise_layer, seeds, 2 * RELEASES) for _ in range(3)]
    trials.append(trials[0].altered(np.ones((2 * RELEASES, 1), np.bool_)))
    noisy, other, clear, altered = (trial.env for trial in trials)
    if hasattr(other, "_noise_seed"):
        other._noise_seed = 2**64 + 1
    samples: list[list[Arrays]] = [[], [], [], []]
    booked: list[dict[Any, Array]] = []
    before: dict[Any, Array] = {}
    for trial in trials:
        trial.env.reset_batch(trial.seeds)
    releases = noisy.release, other.release, clear.env.release, altered.release
    for t in range(2 * RELEASES):
        for trial in trials:
            trial.env.step_batch(trial.actions[t])
        if t % 2:
            sends = noisy.allowed_senders(trials[0].everyone)
            for release, kept in zip(releases, samples, strict=True):
                kept.append(copied(release(sends)))
            accounts = getattr(noisy, "accountant", None)
            now = dict(zip(accounts.events, accounts.counts, strict=True)) if accounts else {}
            booked.append({event: times > before.get(event, 0) for event, times in now.items()})
            before = now
    stacked = [{name: np.stack([one[name] for one in kept]) for name in kept[0]} for kept in samples]
    return noisy, stacked, booked


def _in_units(noise: Array, variance: Array) -> Array:
    """Returns noise in units of its standard deviation; 0 where it has none."""
    return np.divide(noise, np.sqrt(np.abs(variance)), out=np.zeros_like(noise), where=variance > 0)


def _standardised(name: str, noise: Array, variance: Array, data: Array) -> Array:
    """Returns noise in units of its standard deviation, after requiring that it is as announced in each release.

    Args:
        name: Name of the released array.
        noise: The noise in it, with the leading axes ``(releases, replicas)``.
        variance: The announced variance of the noise.
        data: The array without noise.
    """
    silent = variance <= 0
    exact = np.abs(noise[silent]) <= 1e-9 * (1 + np.abs(data[silent]))
    require(exact.all(), f"release of {name!r} has noise where {variance_of(name)!r} announces none")
    unit = _in_units(noise, variance)
    excess = np.where(silent, 0.0, unit**2 - 1)
    high = np.where(data > data.mean(axis=1, keepdims=True), 1.0, -1.0)
    what = f"noise on {name!r} in release {{release}}"
    ratio = f"the {what} has {{ratio:.3g}} times the variance that {variance_of(name)!r} announces"
    _require_mean_0(ratio, excess)
    _require_mean_0(f"the {what} has a mean that is not 0: what is released is changed besides", unit)
    _require_mean_0(f"the mean of the {what} depends on the data", unit * high)
    _require_mean_0(f"the size of the {what} depends on the data", excess * high)
    return unit


def _require_mean_0(accusation: str, statistic: Array) -> None:
    """Requires that the mean of a statistic over replicas is 0, up to a multiple of its standard error.

    The axes of the statistic are releases, replicas, and others, over which it is averaged first. The accusation, the
    fault that another mean shows, may contain the places ``release`` and ``ratio``, 1 more than the mean.
    """
    by_replica = statistic.reshape(*statistic.shape[:2], -1).mean(axis=2)
    errors = by_replica.std(axis=1, ddof=1) / np.sqrt(by_replica.shape[1])
    for release, (mean, error) in enumerate(zip(by_replica.mean(axis=1), errors, strict=True), 1):
        found = accusation.format(release=release, ratio=1 + mean)
        wrong = f"{found} (by {mean:.3g}, with a standard error of {error:.3g})"
        advice = "draw fresh noise for every value, release, agent and replica, and announce its variance"
        require(abs(mean) <= STANDARD_ERRORS * error + 1e-9, f"{wrong}; {advice}")


def _require_distribution(kind: str, x: Array, y: Array, symmetric: bool) -> None:
    """Requires that noise of variance 1 has the booked distribution, and the same one whatever the data are.

    Args:
        kind: The kind of the booked event.
        x: The noise, ``(releases, replicas, agents, values)``.
        y: Other noise on the same data.
        symmetric: Whether values are entries of symmetric matrices, in which they are repeated.
    """
    noisy = (x != 0).any(axis=(0, 1, 2))
    share = _DISTRIBUTIONS[kind]
    below_x, below_y = ((share(part[..., noisy])[..., np.newaxis] < _LEVELS) - _LEVELS for part in (x, y))
    other = f"the noise is not {kind}, as its event says"
    for place, level in enumerate(_LEVELS):
        what = f"{other}: the share of noise below its {level:g} quantile is off"
        _require_mean_0(what, np.moveaxis(below_x[..., place], 0, 2)[np.newaxis])
    what = "the distribution of the noise depends on the data"
    _require_mean_0(what, np.moveaxis((below_x * below_y).sum(axis=-1), 0, 2)[np.newaxis])
    for release in () if symmetric else x[..., noisy].reshape(len(x), -1):
        repeated = release.size - np.unique(release.round(10)).size
        found = f"{other}: {repeated} of {release.size} numbers repeat others"
        require(repeated <= 4 + release.size / 1000, f"{found}; a continuous distribution is required")


def _require_booked(
    booked: list[dict[Any, Array]], sensitivity: Sensitivity, noise: Arrays, plain: Arrays
) -> None:
    """Requires that sampled noise loses no more privacy than each booked event says, single or joint.

    Noise of variance v, in units of sensitivity, has the precision 1/v. For joint noise of several releases it is on
    the diagonal of the inverse of the covariance matrix, for a change in one release; for one in all it is the sum.
    An event that states a smaller change than the sensitivity needs noise that loses as much less.
    """
    pair = sensitivity.pair
    told = [sensitivity.changes, *([pair.changes] if pair else [])]
    for z, events in enumerate(booked, 1):
        for event, who in events.items():
            # Events of other kinds are attacked; events without noise guarantee nothing.
            if event.kind not in _BOOKED or not np.isfinite(event.loss) or not who.any():
                continue
            units, gaussian = sensitivity.scale, event.kind == "gaussian"
            if event.kind == "randomised_response" and pair:
                units = {pair.good: np.sqrt(plain[pair.total][z - 1])}
            for name, scale in units.items():
                # A change off the diagonal of a symmetric matrix appears twice, so half the variance suffices.
                half = ~np.eye(scale.shape[-1], dtype=bool) if sensitivity.symmetric else False
                unit = (scale * np.where(half, np.sqrt(0.5), 1.0))[who]
                sample = noise[name][z - event.releases : z, who][:, unit > 0] / unit[unit > 0]
                precision = np.linalg.inv(sample @ sample.T / sample.shape[1] + 1e-12 * np.eye(len(sample)))
                slack = 1 + STANDARD_ERRORS * np.sqrt(5 * (1 + sensitivity.symmetric) / sample.shape[1])
                for adjacency, change in event.changes:
                    # All noise but Gaussian noise depends on the sum of the differences, at most sqrt(values) norm.
                    known = [changes[adjacency] for changes in told if adjacency in changes]
                    least = min((c.norm * (1 if gaussian else np.sqrt(c.values)) for c in known), default=0.0)
                    if least == 0:
                        continue
                    loss = event.loss * (change.norm if gaussian else change.values) / least
                    found = precision.sum() if adjacency == AGENT else precision.diagonal().max()
                    claimed = 1 / _BOOKED[event.kind](loss)
                    what = f"the noise on {name!r} up to release {z} has the precision {found:.4g}"
                    claims = f"the booked event {event.kind!r} of loss {event.loss:.4g} claims {claimed:.4g}"
                    but = f"in units of sensitivity, but under {adjacency!r}"
                    require(found <= claimed * slack, f"{what} {but} {claims}")


def _require_audit(wrap: Wrap, make: Make, adjacencies: list[str]) -> None:
    """Requires that an attack on the noise layer, around the problem alone, does not refute its claim.

    The claim is that of one release by basic composition.
    """
    problem: Any = type(list(layers(make()))[-1])
    try:
        wrap(problem(num_agents=1))
    except ValueError as error:
        warn(f"mechanisms are attacked by what one agent releases, which is refused: {error}", stacklevel=4)
        return
    protected = [each for each in adjacencies if each == AGENT or problem.neighbours(each)]

    settings = {"samples": 2000, "error": 1e-6 / max(len(protected), 1), "horizon": 2 * RELEASES}
    attack = partial(handed_down("attack"), lambda env: find_layer(wrap(env), "noise"), problem, **settings)
    for adjacency in protected:
        audit = attack(adjacency=adjacency).against(None, "basic")
        proven = f"an attack on one release proves an epsilon of at least {audit.lower_bound:.4g}"
        require(audit.holds, f"{proven}, but the booked events claim {audit.claim}")
