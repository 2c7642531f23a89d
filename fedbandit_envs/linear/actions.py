"""How linear arms are chosen and seen: action formats, features by ridge regression, pictures."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import allocating_kernel
from fedbandit_envs.core.actions import require_finite
from fedbandit_envs.core.policy_spec import Features, PolicySpec, highest
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.core.rendering import Picture
from fedbandit_envs.linear.ridge import arms_last, expected_rewards, factorise, lies_below


def arm_by_parameter(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arm with the largest <x, estimate>, of equal ones the first, int64 ``(replicas, agents)``.

    Args:
        choice: Estimates of theta*, ``(replicas, agents, dim)``; only their direction matters.
        observation: The agents' observations.

    Raises:
        ValueError: An entry of an estimate is not finite.
    """
    require_finite("parameter", choice)
    return expected_rewards(observation["contexts"], choice).argmax(axis=-1)


def arm_by_values(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the arm with the largest estimate, of equal ones the first, int64 ``(replicas, agents)``.

    Args:
        choice: Estimates of the offered arms' mean rewards, ``(replicas, agents, arms)``; only their order matters.
        observation: The agents' observations.

    Raises:
        ValueError: An estimate is not finite.
    """
    require_finite("value", choice)
    return choice.argmax(axis=-1)


def weighed(statistic: Array, variance: Array, reward_variance: float) -> Array:
    """Returns sums of [x; y][x; y]^T over fictitious exact observations that are as informative as given noisy sums.

    Let v > 0 be an eigenvalue of the noisy Gram matrix. Noise alone has eigenvalues up to about sqrt(2 dim nu). So v is
    shrunk to g, the root of v^2 - 2 (dim + 1) nu, and to 0 where this is negative. In the direction of the eigenvector
    the statistic is worth g^2 / (g + nu / R^2) observations, whose mean reward is that of the noisy statistic.

    Args:
        statistic: Noisy sums of [x; y][x; y]^T, which contain the noisy Gram matrix of the contexts and the noisy sum
            of y x (the moment), ``(some, ..., dim + 1, dim + 1)``.
        variance: Variance nu of the noise in an entry, ``(some,)``.
        reward_variance: Variance R^2 > 0 of a reward.

    Returns:
        The statistic with the Gram matrix and moment of the fictitious observations, symmetric, same shape.
    """
    received = 0.5 * (statistic + np.swapaxes(statistic, -1, -2))
    values, vectors = np.linalg.eigh(received[..., :-1, :-1])
    values = np.maximum(values, 0.0)
    noise = variance.reshape(-1, *(1,) * (values.ndim - 1))
    kept = np.sqrt(np.maximum(values**2 - 2 * (values.shape[-1] + 1) * noise, 0.0))
    # Without data and noise the quotients would be 0 / 0; the tiny number makes them 0.
    tiny = np.finfo(np.float64).tiny
    share = kept / np.maximum(kept + noise / reward_variance, tiny)
    of_moment = share * (kept / np.maximum(values, tiny))
    across = np.swapaxes(vectors, -1, -2)
    moment = (vectors * of_moment[..., np.newaxis, :]) @ (across @ received[..., :-1, -1:])
    received[..., :-1, :-1] = (vectors * (share * kept)[..., np.newaxis, :]) @ across
    received[..., :-1, -1] = received[..., -1, :-1] = moment[..., 0]
    return received


class LinearFeatures(Features):
    """Features of each offered arm by ridge regression: estimates of its mean reward and how uncertain they are.

    Contexts x are scaled to z = x / L, where L is the largest norm of a context. From the agent's own data,
    V = I + sum z z^T and b = sum y z, where y are rewards.

    | of each arm | meaning |
    |---|---|
    | `estimate` | <z, V^-1 b>, the ridge estimate of the arm's mean reward; clipped to [-1, 1] |
    | `width` | sqrt(z^T V^-1 z), the uncertainty of the estimate: 0 to 1 |
    | `length` | 2 (norm of z) - 1 |
    | `pooled_estimate` | as `estimate`, from own and received data; only where agents receive messages |
    | `pooled_width` | as `width`, from own and received data |

    | once for all arms | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |

    Received sums with noise are replaced by equally informative exact observations
    (:func:`~fedbandit_envs.linear.actions.weighed`), for a reward variance of B^2 / 4, the largest of rewards in [0,
    B]. A server's answers with `echo` contain the agent's own data, which then counts twice.
    """

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the names of the features, the number of arms and the bounds L and B, from the environment's spaces."""
        contexts = spec.observation.spaces["contexts"]
        self.items, dim = contexts.shape or (0, 0)
        self._noise = variance_of("statistic")
        super().__init__(spec, dict.fromkeys(("statistic", self._noise), (dim + 1, dim + 1)))
        self._longest = highest(contexts)
        # Multiplying by _units turns sums of [x; y][x; y]^T into sums of [z; y][z; y]^T.
        unit = np.append(np.full(dim, 1.0 / self._longest), 1.0)
        self._units = np.outer(unit, unit)
        self._reward_variance = highest(spec.observation["last_reward"]) ** 2 / 4.0
        of_messages = ("pooled_estimate", "pooled_width") if self._inbox.exists else ()
        self.each = ("estimate", "width", "length", *of_messages)

    def reset(self, rows: tuple[int, int]) -> None:
        """Starts an episode with an empty history; see :meth:`.Features.reset`."""
        super().reset(rows)
        self._worth = self._inbox.totals["statistic"]

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        own = observation["total_statistic"] * self._units
        contexts = arms_last(observation["contexts"]) / self._longest
        each[..., 0], each[..., 1], length = self._judged(contexts, own)
        each[..., 2] = 2.0 * np.minimum(length, 1.0) - 1.0
        if self._inbox.exists:
            if observation["inbox_mask"].any():
                self._worth = self._weighed()
            each[..., 3], each[..., 4], _ = self._judged(contexts, own + self._worth)

    def _weighed(self) -> Array:
        """Returns the statistic of exact observations as informative as the received sums, in the units of z."""
        received = self._inbox.totals["statistic"] * self._units
        noise = np.diagonal(self._inbox.totals[self._noise], axis1=-2, axis2=-1).max(axis=-1)
        # Sums without noise stay as they are, which is faster. An exception are sums that are not positive
        # semidefinite, which only a Byzantine agent can send: their negative eigenvalues must be removed.
        flat = received.reshape(-1, *received.shape[2:])
        none = lies_below(flat, np.full(noise.size, -_SLACK)).reshape(noise.shape) | (noise > 0.0)
        if none.any():
            variance = np.maximum(noise[none], 0.0) / self._longest**2
            received[none] = weighed(received[none], variance, self._reward_variance)
        return received

    def _judged(self, contexts: Array, statistic: Array) -> tuple[Array, Array, Array]:
        """Returns estimates, widths and norms of arms, ``(replicas, agents, arms)``."""
        judged = np.empty((3, *contexts.shape[:2], contexts.shape[3]))
        _judge(contexts, statistic, *judged)
        return np.clip(judged[0], -1.0, 1.0), np.minimum(judged[1], 1.0), judged[2]


_SLACK = 1e-6
"""Slack for rounding when a sum of z z^T is tested for being positive semidefinite."""


@allocating_kernel
def _judge(contexts, statistic, estimate, width, length):
    """Computes estimates and widths of arms by ridge regression.

    With the Cholesky factor L of V = I + sum z z^T = L L^T, the estimate is <z, V^-1 b> = <L^-1 z, L^-1 b>.

    Args:
        contexts: Scaled contexts z, ``(replicas, agents, dim, arms)``.
        statistic: Sum of [z; y][z; y]^T, ``(replicas, agents, dim + 1, dim + 1)``.
        estimate: Output: the estimated mean rewards <z, V^-1 b>, ``(replicas, agents, arms)``.
        width: Output: their uncertainties ||L^-1 z|| = sqrt(z^T V^-1 z), ``(replicas, agents, arms)``.
        length: Output: the norms ||z||, ``(replicas, agents, arms)``.
    """
    replicas, agents, dim, arms = contexts.shape
    factor, moment, white = np.empty((dim, dim)), np.empty(dim), np.empty((dim, arms))
    for r in range(replicas):
        for j in range(agents):
            factorise(statistic[r, j], 1.0, factor)
            mean, square, own = estimate[r, j], width[r, j], length[r, j]
            for k in range(arms):
                mean[k] = square[k] = own[k] = 0.0
            for i in range(dim):
                scale = 1.0 / factor[i, i]
                value = statistic[r, j, i, dim]
                for h in range(i):
                    value -= factor[i, h] * moment[h]
                moment[i] = value * scale
                row = white[i]
                for k in range(arms):
                    z = contexts[r, j, i, k]
                    own[k] += z * z
                    row[k] = z
                for h in range(i):
                    weight, above = factor[i, h], white[h]
                    for k in range(arms):
                        row[k] -= weight * above[k]
                for k in range(arms):
                    row[k] *= scale
                    mean[k] += row[k] * moment[i]
                    square[k] += row[k] * row[k]
            for k in range(arms):
                square[k] = np.sqrt(square[k])
                own[k] = np.sqrt(own[k])


def picture(scene: Arrays) -> Picture:
    """Returns the expected rewards of the offered arms, and theta* and its estimate from all agents' data together.

    Args:
        scene: The replica's observation and info, the ``means`` of the arms offered now and the ``parameter`` theta*,
            arrays that lead with the agents' axis.
    """
    total, parameter = scene["total_statistic"].sum(axis=0), scene["parameter"][0]
    dim = len(total) - 1
    estimate = np.linalg.solve(total[:dim, :dim] + np.eye(dim), total[:dim, dim])
    values = {"theta*": parameter, "ridge estimate": estimate}
    return Picture(scene["means"], "expected reward", "arm", values, "dimension")
