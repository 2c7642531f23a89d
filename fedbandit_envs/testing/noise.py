"""Checks of noise layers: sampled noise is compared with the variance that releases announce, and mechanisms attacked.

Two noise layers play the same episode in many replicas, and one releases what is there before its noise, so that the
difference of their releases is the noise. Every test statistic below has mean 0 if the noise is as announced. It is
averaged within each replica, and replicas are independent: so its mean over n replicas, divided by its standard error,
is nearly standard normal. A mean beyond 7 standard errors fails the check. For a correct layer that has probability
2.6e-12, multiplied by exp(7^3 skewness/(3 sqrt(n))) at most on one side of a skewed statistic (the first term of
Cramer's series). Squares of Laplace noise, of skewness 6.6, are averaged over so many replicas, agents and numbers that
this factor is at most exp(11.9). So a single statistic fails a correct layer with probability 2e-7 at most, and all
statistics of a layer together, few of which are skewed, with probability 1e-6 at most. This holds for noise with tails
like those of Laplace noise or lighter.
"""

from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import HANDED_DOWN
from fedbandit_envs.core.privacy import AGENT, COVARIANCE, independent, variance_of
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import require
from fedbandit_envs.testing.episodes import Make, Trial, Wrap, copied

STANDARD_ERRORS = 7.0
"""The largest accepted distance of a statistic's mean from 0, in standard errors; see this module's docstring."""

REPLICAS, VALUES = 512, 4096
"""The smallest number of replicas, and the smallest number of noisy numbers that are sampled in one release."""

RELEASES = 3
"""The number of releases of each agent that are sampled; two rounds are played before each of them."""


def check_noise(wrap: Wrap, make: Make) -> None:
    """Checks that noise has the announced variance and is independent, and that an attack does not refute the claim.

    Args:
        wrap: A function that puts the noise layer, and perhaps other wrappers, around a federation.
        make: A function that makes the federation inside.

    Raises:
        AssertionError: A requirement does not hold.
    """
    layer, released, plain = noisy_and_plain(wrap, make)
    epsilon, sensitivity = layer.privacy().epsilon, layer.sensitivity()
    each = independent(layer.single_release_space)
    standardised = []
    for name, data in plain.items():
        announced = variance_of(name)
        if announced not in released:
            require(epsilon in (None, np.inf), f"release has no {announced!r}, but privacy() is finite")
            continue
        # Of noise that is correlated over releases, only the variances of sums are known.
        parts = released[name] - data, released[announced], data
        noise, variance, data = parts if each else (part.cumsum(axis=0) for part in parts)
        standardised.append(_standardised(name, noise, variance, data))
    if standardised:
        x = np.concatenate([unit.reshape(*unit.shape[:3], -1) for unit in standardised], axis=-1)
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
    mechanism = getattr(layer, "mechanism", None)
    # The package's own mechanisms are attacked by its tests.
    if mechanism is not None and not type(mechanism).__module__.startswith("fedbandit_envs."):
        _require_audit(wrap, make, [*sensitivity.changes])


def noisy_and_plain(wrap: Wrap, make: Make) -> tuple[Any, Arrays, Arrays]:
    """Plays one episode with noise and once more without.

    Returns:
        The noise layer after the episode, the releases with noise, and those without: arrays by name, with a leading
        axis for the releases.
    """

    def noisy_env() -> Any:
        return find_layer(wrap(make()), "noise")

    values = sum(int(np.prod(space.shape or ())) for space in make().single_release_space.values())
    seeds = range(max(REPLICAS, -(-VALUES // (make().max_num_agents * values))))
    noisy = Trial(noisy_env, seeds, 2 * RELEASES)
    clear = Trial(noisy_env, seeds, 2 * RELEASES)
    # A privatizer clips before it adds noise; of other noise layers the noise is what differs from the layer inside.
    before_noise = getattr(clear.env, "_clear_release", clear.env.env.release)
    samples: tuple[list[Arrays], list[Arrays]] = [], []
    for trial in (noisy, clear):
        trial.env.reset_batch(trial.seeds)
    for t, action in enumerate(noisy.actions):
        for trial in (noisy, clear):
            trial.env.step_batch(action)
        if t % 2:
            sends = noisy.env.allowed_senders(noisy.everyone)
            for release, kept in zip((noisy.env.release, before_noise), samples, strict=True):
                kept.append(copied(release(sends)))
    released, plain = ({name: np.stack([one[name] for one in kept]) for name in kept[0]} for kept in samples)
    return noisy.env, released, plain


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
    unit: Array = np.divide(noise, np.sqrt(np.abs(variance)), out=np.zeros_like(noise), where=~silent)
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


def _require_audit(wrap: Wrap, make: Make, adjacencies: list[str]) -> None:
    """Requires that an attack on the noise layer, around the problem alone, does not refute its claim.

    The claim is that of one release by basic composition.
    """
    problem: Any = type(list(layers(make()))[-1])
    protected = [each for each in adjacencies if each == AGENT or problem.neighbours(each)]

    settings = {"samples": 2000, "error": 1e-6 / max(len(protected), 1), "horizon": 2 * RELEASES}
    attack = partial(HANDED_DOWN["attack"](), lambda env: find_layer(wrap(env), "noise"), problem, **settings)
    for adjacency in protected:
        audit = attack(adjacency=adjacency).against(None, "basic")
        proven = f"an attack on one release proves an epsilon of at least {audit.lower_bound:.4g}"
        require(audit.holds, f"{proven}, but the booked events claim {audit.claim}")
