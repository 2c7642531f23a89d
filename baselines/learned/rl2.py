"""Policies whose networks were trained over whole episodes of the functional twin (``docs/learned-twin.md``).

Their inputs are functions here that take the array module, NumPy or ``jax.numpy``, as their first argument, so that
training and playing compute the same. Arrays may have any leading axes, such as ``(replicas, agents)``.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.aggregators import reward_variance
from fedbandit_envs.baselines.learned import LAYERS, ItemNetwork, read_layers
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays, everyone
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.procurement.oracle import buy

SUMMARY = (
    "a neural network, trained on episodes of the functional twin, computes the exploration bonus",
    "`examples/functional`, seed 0",
)
"""Summary and reference of the baselines whose networks were trained with ``docs/learned-twin.md``."""

RIDGE = 0.1
"""The ridge of the regression in linear problems."""


class Seen(NamedTuple):
    """What a network is given, and the estimates that its outputs correct.

    Attributes:
        estimate: Estimated value of each item (an arm or a producer), ``(..., items)``.
        width: Standard deviation of the estimate, same shape.
        each: The network's inputs for each item, ``(..., items, inputs)``.
        once: Its inputs that belong to the agent as a whole, ``(..., shared inputs)``.
    """

    estimate: Any
    width: Any
    each: Any
    once: Any


def of_counts(
    xp: Any, trials: Any, good: Any, left: Any, horizon: int, worth: Any = None, more: Any = ()
) -> Seen:
    """Returns what is known of items with Bernoulli outcomes, under uniform priors.

    Args:
        xp: NumPy or ``jax.numpy``.
        trials: Numbers of known outcomes, ``(..., items)``.
        good: Numbers of successes among them, same shape.
        left: Number of rounds left, the coming one included, ``(..., 1)``.
        horizon: Number of rounds of the episode.
        worth: The value that an item competes with, same shape as ``trials``; None for the largest estimate.
        more: Further inputs of each item, same shape.
    """
    mean = (good + 1.0) / (trials + 2.0)
    deviation = xp.sqrt(mean * (1.0 - mean) / (trials + 3.0))
    worth = mean.max(-1, keepdims=True) if worth is None else worth
    known, remaining = xp.log(trials + 2.0), xp.log(left)
    each = (2.0 * mean - 1.0, known / 3.0 - 1.0, (remaining - known) / 3.0, 4.0 * deviation)
    each = (*each, xp.tanh((worth - mean) / deviation / 4.0), *more)
    once = xp.concatenate([remaining / 3.0 - 1.0, left / horizon], -1)
    return Seen(mean, deviation, xp.stack(each, -1), once)


def of_market(xp: Any, seen: Arrays, units: Any, good: Any, left: Any, horizon: int) -> tuple[Seen, Seen]:
    """Returns what is known of producers, for their indices and for the quality constraint; see :func:`of_counts`.

    The width for the constraint is the standard deviation of the mean quality of the last round's units, as for the
    margin of :class:`fedbandit_envs.baselines.procurement.QualityIndex`; before any it is 0.

    Args:
        xp: NumPy or ``jax.numpy``.
        seen: The agent's observation.
        units: Numbers of known units, ``(..., producers)``.
        good: Numbers of good units among them, same shape.
        left: Number of rounds left, ``(..., 1)``.
        horizon: Number of rounds of the episode.
    """
    cost, threshold, revenue = (
        seen[name].reshape(*units.shape[:-1], -1) for name in ("cost", "quality_threshold", "unit_revenue")
    )
    even, capacity = cost / revenue, xp.log(seen["capacity"] + 1.0) / 2.0 - 1.0
    above = 2.0 * ((good + 1.0) / (units + 2.0) - threshold)
    known = of_counts(xp, units, good, left, horizon, even, (capacity, above, 2.0 * even - 1.0))
    bought = 1.0 * seen["delivered"]
    deviation = xp.sqrt(((bought * known.width) ** 2).sum(-1, keepdims=True))
    return known, known._replace(width=deviation / xp.maximum(bought.sum(-1, keepdims=True), 1.0))


def of_contexts(xp: Any, estimate: Any, width: Any, noise: Any, left: Any, horizon: int) -> Seen:
    """Returns what is known of arms with contexts, from ridge regression.

    Args:
        xp: NumPy or ``jax.numpy``.
        estimate: Estimated rewards, ``(..., arms)``.
        width: Their widths sqrt(x^T V^-1 x), same shape; the one that is used is three times this and the noise.
        noise: Standard deviation of a reward around its mean.
        left: Number of rounds left, ``(..., 1)``.
        horizon: Number of rounds of the episode.
    """
    best, remaining, width = estimate.max(-1, keepdims=True), xp.log(left), 3.0 * noise * width
    gap = xp.tanh((best - estimate) / (width + 1e-6))
    each = (2.0 * estimate - 1.0, xp.log(width + 1e-6) / 2.0 + 1.0, 2.0 * (best - estimate), gap, 2.0 * width)
    loudness = xp.full_like(left, xp.log(noise) + 2.0)
    once = xp.concatenate([remaining / 3.0 - 1.0, left / horizon, loudness], -1)
    return Seen(estimate, width, xp.stack(each, -1), once)


def of_messages(xp: Any, known: Any, message: Any, left: Any, horizon: int) -> tuple[Any, Any, Any]:
    """Returns what a message is worth by its noise alone, and a network's inputs for a factor of that worth.

    Args:
        xp: NumPy or ``jax.numpy``.
        known: Numbers of known outcomes and of successes, ``(..., arms)`` each.
        message: Numbers of received outcomes and of successes with noise, and the variances of the noise, likewise.
        left: Number of rounds left, ``(..., 1)``.
        horizon: Number of rounds of the episode.

    Returns:
        The number of exact outcomes that the message is worth and the mean of outcomes in it, ``(..., arms)`` each,
        and the inputs.
    """
    trials, good, of_trials, of_good = message
    seen = of_counts(xp, known[0], known[1], left, horizon)
    number, deviation = xp.maximum(trials, 1.0), xp.sqrt(of_trials + 1.0)
    ratio = xp.clip(good / number, 0.0, 1.0)
    spread = xp.maximum(seen.estimate * (1.0 - seen.estimate), 0.02)
    noise = of_good + ratio * ratio * of_trials
    worth = number * (spread * number / (noise + spread * number))
    surprise = xp.tanh((ratio - seen.estimate) / xp.sqrt(spread / (worth + 1.0) + seen.width**2) / 3.0)
    certain = xp.tanh(trials / deviation / 4.0)
    more = (xp.log(deviation) / 3.0, certain, surprise, xp.log(worth + 1.0) / 3.0, 2.0 * ratio - 1.0)
    return worth, ratio, seen._replace(each=xp.concatenate([seen.each, xp.stack(more, -1)], -1))


_NEEDED = {
    "arms": "total_pulls",
    "private arms": variance_of("inbox_pulls"),
    "linear": "contexts",
    "procurement": "capacity",
}
"""What agents must observe in each problem that there are networks for."""

_HEADS = {"private arms": ("index", "weight"), "procurement": ("index", "sure")}


class RL2:
    """A policy of networks that saw whole episodes in training: indices of arms or producers, from own data.

    The index is ``estimate + width * network(inputs)``. The network ``index`` is always there; in procurement the
    quality constraint is kept for the index of a second one, ``sure``. With a third, ``weight``, an agent uses noisy
    counts of others, too: a message then counts as the exact outcomes that are as informative (``precision`` in
    :mod:`~fedbandit_envs.baselines.aggregators`) times ``2 / (1 + exp(-network(inputs)))``, whose inputs include the
    size of the noise, and so the epsilon of a release.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.baselines.learned.rl2 import RL2
        >>> env = arms_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = RL2("RL2-arms")
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, weights: str | Path) -> None:
        """Reads the networks.

        Args:
            weights: Path of the ``.npz`` file, or the name of a packaged one, such as ``"RL2-arms"``. Its arrays are
                named ``network/layer``, with the layers of :data:`~fedbandit_envs.baselines.learned.LAYERS`.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file holds no such networks.
        """
        arrays = read_layers(weights)
        self._problem = str(arrays.pop("problem", ""))
        require_choice("problem of the networks", self._problem, tuple(_NEEDED))
        self._networks = {}
        for name in _HEADS.get(self._problem, ("index",)):
            layers = {key: arrays[f"{name}/{key}"] for key in LAYERS if f"{name}/{key}" in arrays}
            each, once = (tuple(map(str, range(len(layers.get(key, ()))))) for key in ("own", "shared"))
            self._networks[name] = ItemNetwork(each, once, layers)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The networks are for another problem, or for noisy messages that agents do not receive.
        """
        needed, there = _NEEDED[self._problem], spec.observation.spaces
        if needed not in there:
            raise UnfitError(f"the networks are for {self._problem}, with {needed!r}; there are {[*there]}")
        self._horizon, self._noise = int(spec.horizon), reward_variance(spec) ** 0.5
        if self._problem != "procurement":
            self._values = spec.action_formats["values"]
        else:
            self._quantity = np.zeros((*seeds.shape, *(there[needed].shape or ())), np.int32)
            self._everyone = everyone(*seeds.shape, 1)
        if self._problem == "private arms":
            self._received = np.zeros((2, *seeds.shape, *(there["total_pulls"].shape or ())))

    def act(self, observation: Arrays) -> Array:
        """Returns the actions that would be best if the indices were the true values; see :meth:`Policy.act`."""
        left = self._horizon - observation["round"].astype(np.float64)
        if self._problem == "linear":
            contexts, statistic = observation["contexts"], observation["total_statistic"]
            dim = contexts.shape[-1]
            inverse = np.linalg.inv(RIDGE * np.eye(dim) + statistic[..., :dim, :dim])
            parameter = (inverse @ statistic[..., :dim, dim:])[..., 0]
            estimate = np.einsum("rjkd,rjd->rjk", contexts, parameter)
            form = np.einsum("rjkd,rjkd->rjk", contexts @ inverse, contexts)
            seen = of_contexts(np, estimate, np.sqrt(form), self._noise, left, self._horizon)
            return self._values.to_action(self._index(seen), observation)
        if self._problem == "procurement":
            units, good = observation["total_delivered"], observation["total_good"]
            seen, sure = of_market(np, observation, units, good, left, self._horizon)
            quality = np.clip(self._index(seen), 0.0, 1.0)
            rows = observation.get("active", self._everyone)[..., 0].copy()
            buy(
                rows, quality, self._index(sure, "sure"), observation["cost"], observation["capacity"],
                observation["quality_threshold"], observation["unit_revenue"], False, self._quantity,
            )  # fmt: skip
            return self._quantity
        known = np.stack([observation[f"total_{name}"] for name in ("pulls", "successes")]).astype(np.float64)
        if self._problem == "private arms":
            self._listen(known, observation, left)
            known += self._received
        seen = of_counts(np, known[0], known[1], left, self._horizon)
        return self._values.to_action(self._index(seen), observation)

    def _index(self, seen: Seen, network: str = "index") -> Array:
        """Returns the index of each item, float64 ``(replicas, agents, items)``."""
        return seen.estimate + seen.width * self._networks[network](seen.each, seen.once)

    def _listen(self, own: Array, observation: Arrays, left: Array) -> None:
        """Adds what the messages of a round are worth to the received outcomes and successes."""
        names = ("inbox_pulls", "inbox_successes")
        arrived = observation["inbox_mask"]
        message = [
            np.where(arrived[..., np.newaxis], observation[name], 0.0).sum(axis=2)
            for name in (*names, *map(variance_of, names))
        ]
        worth, ratio, seen = of_messages(np, own + self._received, message, left, self._horizon)
        worth *= 2.0 / (1.0 + np.exp(-self._networks["weight"](seen.each, seen.once)))
        self._received += np.where(arrived.any(axis=-1, keepdims=True), (worth, worth * ratio), 0.0)
