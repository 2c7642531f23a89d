"""Linear contextual bandits in the twin, with LinUCB on own and received data."""

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.baselines.aggregators import reward_variance
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.functional.draws import (
    exponentials,
    fraction,
    normal_pair,
    normals,
    threefry,
    uniform,
    words,
)
from fedbandit_envs.functional.environment import Environment, Played, RowProblem
from fedbandit_envs.functional.federation import Arrays, lacks
from fedbandit_envs.functional.policies import Indexed, PurePolicy
from fedbandit_envs.linear import contexts as laws
from fedbandit_envs.linear.rounds import RewardName


class LinearArms(RowProblem):
    """Agents pull one of K arms with contexts; see :class:`~fedbandit_envs.linear.env.LinearEnv`.

    Contexts are drawn from the band, the ball, the cubes, the sphere with a bias, or a pool; rewards are Bernoulli,
    normal or logistic. In states contexts are ``(arms, dim)`` as in the package, and computed with arms last.
    """

    seen: ClassVar[tuple[str, ...]] = ("contexts",)
    shared = ("pool",)

    def __init__(self, host: Any, dtype: Any) -> None:
        """Takes the package's environment; see :class:`RowProblem`."""
        super().__init__(host, dtype)
        self._reward = get_args(RewardName)[host._law]
        if self._reward == "beta":
            raise lacks("reward='beta'", "'bernoulli', 'normal' or 'logistic'")
        if host._parameter is not None and host._parameter.ndim == 2:
            raise lacks("a parameter for each arm", "one parameter (dim,) for all")
        draw = {
            laws._Band: self._band,
            laws._Ball: self._round,
            laws._SphereAndBias: self._round,
            laws._Cube: self._cube,
            laws.PoolContexts: self._pool,
        }.get(type(host._distribution))
        if draw is None:
            kinds = "a band, a ball, a cube, a sphere with a bias or a pool"
            raise lacks(f"contexts of {type(host._distribution).__name__}", kinds)
        self._draw = draw
        host.reset_batch([0])
        # What the package gives its kernels, as Python's numbers, whose dtype does not spread; and an agent's contexts,
        # of which some may never change.
        data = host._distribution.data
        self._data = [each.item() if isinstance(each, np.generic) else each for each in data]
        self._first = host._across[0, 0].copy()
        self._sd, self._bound, self._offset = host._sd, host._reward_bound, host._offset
        self._squares = host._squares

    def params(self, host: Any) -> dict[str, np.ndarray]:
        """Returns theta*, keys of contexts and rewards, and of the band the reflection, of a pool its vectors."""
        law, rows = host._distribution, host._reward.shape
        keys, more = [law._draws.key], {}
        if isinstance(law, laws._Band):
            keys += law.data[:2]
            more = {"mirror": np.broadcast_to(law.data[2][:, np.newaxis], (*rows, host._theta.shape[1]))}
        elif isinstance(law, laws.PoolContexts):
            more = {"pool": law.data[0]}
        theta = np.broadcast_to(host._theta[:, np.newaxis], (*rows, host._theta.shape[1]))
        return {"theta": theta, "contexts_keys": np.stack(keys, axis=2), "key": host._outcomes.key, **more}

    def offer(self, params: Arrays, round_: Array) -> Arrays:
        """Returns contexts ``(arms, dim)`` and means of rewards ``(arms,)``; see :meth:`RowProblem.offer`."""
        contexts, means = self._draw(params, round_)
        means = params["theta"] @ contexts if means is None else means
        return {
            "contexts": contexts.T,
            "mean": jax.nn.sigmoid(means) if self._reward == "logistic" else means,
        }

    def _band(self, params: Arrays, round_: Array) -> tuple[Array, Array]:
        """Returns contexts ``(dim, arms)`` of the FedUCB paper and <x, theta*>; see ``_Band`` of the package."""
        keys, v, (dim, arms) = params["contexts_keys"], params["mirror"], self._first.shape
        bound, best_low = self._data[3:5]
        g = normals(keys[0], round_, arms * (dim - 1)).reshape(dim - 1, arms).astype(self.dtype)
        fractions = fraction(words(keys[2], round_, arms + 1), self.dtype)
        best = (fractions[arms] * arms).astype(jnp.int32)
        mean = (
            laws.LOW
            + laws.WIDTH * fractions[:arms]
            + jnp.where(jnp.arange(arms) == best, best_low - laws.LOW, 0.0)
        )
        length = (g * g).sum(axis=0) + 2.0 * exponentials(keys[1], round_, arms).astype(self.dtype)
        shrink = jnp.sqrt(jnp.maximum(bound * bound - mean * mean, 0.0) / length)
        turn = 2.0 * (shrink * (v[1:] @ g) + mean * v[0])
        return jnp.concatenate([mean[None], shrink * g]) - turn * v[:, None], mean

    def _round(self, params: Arrays, round_: Array) -> tuple[Array, None]:
        """Returns contexts ``(dim, arms)`` in a ball, or on a sphere beside arms that never change."""
        radius, first, used, drawn = self._data
        some = self._first.shape[1] - first
        if not some:
            return jnp.asarray(self._first, self.dtype), None
        g = normals(params["contexts_keys"][0], round_, some * drawn).reshape(drawn, some).astype(self.dtype)
        x = radius / jnp.sqrt((g * g).sum(axis=0)) * g[:used]
        return jnp.asarray(self._first, self.dtype).at[:used, first:].set(x), None

    def _cube(self, params: Arrays, round_: Array) -> tuple[Array, None]:
        """Returns contexts ``(dim, arms)`` in a cube."""
        low, side, _ = self._data
        drawn = words(params["contexts_keys"][0], round_, self._first.size).reshape(self._first.shape)
        return low + side * fraction(drawn, self.dtype), None

    def _pool(self, params: Arrays, round_: Array) -> tuple[Array, None]:
        """Returns vectors of the pool, ``(dim, arms)``."""
        drawn = fraction(words(params["contexts_keys"][0], round_, self._first.shape[1]), self.dtype)
        return params["pool"][(drawn * len(params["pool"])).astype(jnp.int32)].T, None

    def best(self, params: Arrays, offered: Arrays) -> Array:
        """Returns the arm with the largest mean, int32; see :meth:`RowProblem.best`."""
        return jnp.argmax(offered["mean"]).astype(jnp.int32)

    def begin(self, params: Arrays) -> Arrays:
        """Returns a statistic ``(dim + 1, dim + 1)`` of no observation, and a last context and reward of 0."""
        dim = params["theta"].size
        nothing = jnp.zeros((dim + 1, dim + 1), self.dtype)
        return {"total_statistic": nothing, "pulled_context": nothing[0, :dim], "last_reward": nothing[0, 0]}

    def play(self, params: Arrays, offered: Arrays, totals: Arrays, action: Array, round_: Array) -> Played:
        """Pulls the arm ``action``; see :meth:`RowProblem.play`."""
        # Transposed as everywhere else, so that compilers see two transpositions which undo each other.
        mean, x = offered["mean"][action], offered["contexts"].T[:, action]
        first, second = threefry(params["key"], round_, 0)
        if self._reward == "normal":
            paid = mean + self._sd * normal_pair(first, second)[0].astype(self.dtype)
        else:
            paid = (uniform(first, second, self.dtype) >= 1.0 - mean).astype(self.dtype)
        reward = jnp.clip(paid + self._offset, -self._bound, self._bound)
        seen = jnp.append(x, reward)
        square = jnp.outer(seen, seen)
        if not self._squares:
            square = square.at[-1, -1].set(0.0)
        totals = {
            "total_statistic": totals["total_statistic"] + square,
            "pulled_context": x,
            "last_reward": reward,
        }
        info = {"regret": offered["mean"].max() - mean, "clipped": jnp.abs(paid + self._offset) > self._bound}
        return totals, reward, info


@dataclass(frozen=True)
class OnRidge(PurePolicy):
    """The base class of policies with one ridge regression on own and received data, as LinUCB and FedUCB have it.

    Received sums with noise are replaced by those of as many exact observations as are equally informative
    (``precision`` in :mod:`fedbandit_envs.baselines.aggregators`).

    Attributes:
        ridge: Multiple of I in V = ridge I + sum x x^T.
        noise_sd: R, the sub-Gaussian constant of rewards; None for the environment's.
        parameter_bound: S, an upper bound of the norm of theta*.
        failure: Probability that the confidence bounds fail in some round.
        beta_scale: Factor of the radius.
        reward_variance: Variance of a reward, by which noise is compared; None for the environment's.
    """

    needs: ClassVar[tuple[str, ...]] = ("statistic",)
    ridge: float = 1.0
    noise_sd: float | None = None
    parameter_bound: float = 1.0
    failure: float = 0.01
    beta_scale: float = 1.0
    reward_variance: float | None = None

    def start(self, env: Environment, params: Arrays, key: Array) -> Arrays:
        """Returns a regression without data; see :meth:`PurePolicy.start`."""
        dim, _ = shape = env.released["statistic"]
        zero = jnp.zeros(shape, env.dtype)
        one = jnp.eye(dim - 1, dtype=env.dtype)
        spec = env.host.policy_spec
        public = {"noise_sd": spec.public["noise_sd"], "reward_variance": reward_variance(spec)}
        memory = {"shrinkage": one, "moment": zero[0, 1:], "log_growth": zero[0, 0]}
        memory |= {name: jnp.asarray(value, env.dtype) for name, value in public.items()}
        return {**memory, "received": zero, "noise": zero[0]} if env.federation.exists else memory

    def learn(self, params: Arrays, carry: Arrays, observation: Arrays) -> Arrays:
        """Returns the carry after the last round's observation and messages.

        ``shrinkage`` is ridge V^-1, ``moment`` is sum y x, and ``log_growth`` is log det V - dim ln ridge.
        """
        x, y, ridge = observation["pulled_context"], observation["last_reward"], params["ridge"]
        product = carry["shrinkage"] @ x
        form = product @ x
        carry = {
            **carry,
            "shrinkage": carry["shrinkage"] - jnp.outer(product, product) / (ridge + form),
            "moment": carry["moment"] + y * x,
            "log_growth": carry["log_growth"] + jnp.log1p(form / ridge),
        }
        if "received" not in carry:
            return carry
        return lax.cond(
            observation["inbox_mask"], lambda: self._listen(params, carry, observation), lambda: carry
        )

    def _listen(self, params: Arrays, carry: Arrays, observation: Arrays) -> Arrays:
        """Returns the carry after the messages of a round: the regression is computed anew."""
        received, noise = carry["received"] + observation["inbox_statistic"], carry["noise"]
        others = 0.5 * (received + received.T)
        if (announced := variance_of("inbox_statistic")) in observation:
            noise += jnp.diagonal(observation[announced])
            known = {**carry, **params}["reward_variance"]
            others = weighed(others, jnp.maximum(noise.max(), 0.0), known)
        total = observation["total_statistic"] + others
        dim = total.shape[0] - 1
        one = jnp.eye(dim, dtype=total.dtype)
        factor = jnp.linalg.cholesky(total[:dim, :dim] / params["ridge"] + one)
        return {
            **carry,
            "shrinkage": jax.scipy.linalg.cho_solve((factor, True), one),
            "moment": total[:dim, dim],
            "log_growth": 2.0 * jnp.log(jnp.diagonal(factor)).sum(),
            "received": received,
            "noise": noise,
        }

    def radius(self, params: Arrays, carry: Arrays) -> Array:
        """Returns the radius of the confidence ellipsoid, in the norm of V (Abbasi-Yadkori et al. 2011, Theorem 2)."""
        deviations = jnp.sqrt(-2.0 * jnp.log(params["failure"]) + jnp.maximum(carry["log_growth"], 0.0))
        bias = jnp.sqrt(params["ridge"]) * params["parameter_bound"]
        return params["beta_scale"] * ({**carry, **params}["noise_sd"] * deviations + bias)


def weighed(statistic: Array, variance: Array, reward_variance: Array) -> Array:
    """Returns a sum of [x; y][x; y]^T over exact observations as informative as a noisy one; see :func:`.weighed`.

    Args:
        statistic: The noisy sum, symmetric, ``(dim + 1, dim + 1)``.
        variance: Variance of the noise in an entry.
        reward_variance: Variance of a reward.
    """
    values, vectors = jnp.linalg.eigh(statistic[:-1, :-1])
    values, tiny = jnp.maximum(values, 0.0), jnp.finfo(statistic.dtype).tiny
    kept = jnp.sqrt(jnp.maximum(values**2 - 2 * (len(values) + 1) * variance, 0.0))
    share = kept / jnp.maximum(kept + variance / reward_variance, tiny)
    gram = (vectors * (share * kept)) @ vectors.T
    moment = (vectors * (share * (kept / jnp.maximum(values, tiny)))) @ (vectors.T @ statistic[:-1, -1])
    return jnp.block([[gram, moment[:, None]], [moment[None], statistic[-1:, -1:]]])


@dataclass(frozen=True)
class PureLinUCB(OnRidge, Indexed):
    """LinUCB, and with messages FedUCB; see :class:`fedbandit_envs.baselines.linear.LinUCB`.

    Attributes:
        alpha: A constant radius in place of the formula; None for the formula.

    Example:
        >>> from fedbandit_envs.functional import PureLinUCB, make, rollout
        >>> env = make("FedLinearBall-v0", num_agents=2, num_arms=5, dim=3, max_cycles=50)
        >>> rollout(env, PureLinUCB(beta_scale=0.3), seeds=range(3)).regret[-1].shape
        (3, 2)
    """

    alpha: float | None = None

    def index(self, params: Arrays, carry: Arrays, observation: Arrays) -> tuple[Arrays, Array]:
        """Returns the upper confidence bounds of all arms; see :meth:`Indexed.index`."""
        carry = self.learn(params, carry, observation)
        radius = self.radius(params, carry) if self.alpha is None else params["alpha"]
        x = observation["contexts"].T
        inverse = carry["shrinkage"] / params["ridge"]
        form = ((inverse @ x) * x).sum(axis=0)
        mean = (inverse @ carry["moment"]) @ x
        return carry, mean + radius * jnp.sqrt(jnp.maximum(form, 0.0))
