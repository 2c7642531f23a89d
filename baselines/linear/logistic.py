"""Logistic bandits: UCB-GLM, and the agents' side of FedGLB-UCB with its messages.

UCB-GLM has confidence bounds around the likeliest model. FedGLB-UCB takes online Newton steps between synchronisations,
and asks to synchronise when data have grown; agents tell the server Gram matrices and, when it asks at a model,
gradients.

The kernels maximise the likelihood with a ridge by Newton's method, or take online Newton steps, which end with a
projection on a ball or the probability simplex.
"""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.policy import UnfitError, require_around, require_pool
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_flag, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inner_kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.linear.ridge import dot, estimate, factorise, last_of, observe, rank_one, solve

_NEWTON_STEPS = 100


def unknown_pool(spec: PolicySpec, replicas: int) -> Array:
    """Returns zeros for the vectors of each replica's pool, ``(replicas, size, dim)``, as long as none is known.

    Raises:
        UnfitError: Contexts do not come from a pool.
    """
    require_pool(spec)
    shapes = (spec.observation[name].shape or (0,) for name in ("pool_pulls", "pulled_context"))
    return np.zeros((replicas, *(shape[0] for shape in shapes)))


def get_to_know(known: Array, observation: Arrays) -> None:
    """Adds the vectors that agents see to the ``known`` ones, ``(replicas, size, dim)``, by their numbers in the pool.

    Vectors of zeros are left out: those are shown to agents that have not acted yet.

    Raises:
        UnfitError: Agents have other vectors under the same number.
    """
    for pool, numbers, offered in zip(known, observation["pool_index"], observation["contexts"], strict=True):
        shown = offered.any(axis=-1)
        place, vectors = numbers[shown], offered[shown]
        pool[place] = vectors
        if not np.array_equal(pool[place], vectors):
            raise UnfitError("contexts of one number differ between agents; one pool for all is required")


@allocating_kernel
def maximise(features, pulls, rewards, ridge, model):
    """Replaces models by the minimisers of sum (ln(1 + e^z) - y z) + ridge |w|^2 / 2 with z = <x, w>.

    Newton's method starts from the models given, and halves a step that makes the norm of the gradient larger.

    Args:
        features: Vectors x of the pool, ``(replicas, size, dim)``.
        pulls: Number of observations of each vector, ``(replicas, rows, size)``.
        rewards: Sum of their rewards y, same shape.
        ridge: The ridge, > 0.
        model: Models w, ``(replicas, rows, dim)``.
    """
    dim = model.shape[2]
    gradient, hessian, factor, step = np.empty(dim), np.empty((dim, dim)), np.zeros((dim, dim)), np.empty(dim)
    for r in range(model.shape[0]):
        for j in range(model.shape[1]):
            w = model[r, j]
            step[:] = 0.0
            before, size = np.inf, 1.0
            for _ in range(_NEWTON_STEPS):
                for i in range(dim):
                    gradient[i] = ridge * w[i]
                    hessian[i] = 0.0
                    hessian[i, i] = ridge
                _add_data(features[r], pulls[r, j], rewards[r, j], w, gradient, hessian)
                norm = np.sqrt(dot(gradient, gradient))
                if norm > before:
                    size *= 0.5
                    for i in range(dim):
                        w[i] -= size * step[i]
                    continue
                if norm <= 1e-10:
                    break
                before, size = norm, 1.0
                factorise(hessian, 0.0, factor)
                solve(factor, gradient, step)
                for i in range(dim):
                    step[i] = -step[i]
                    w[i] += step[i]


@allocating_kernel
def derive(features, pulls, rewards, model, gradient):
    """Computes gradients of sum (ln(1 + e^z) - y z) with z = <x, w>.

    Args:
        features: Vectors x of the pool, ``(replicas, size, dim)``.
        pulls: Number of observations of each vector, ``(replicas, rows, size)``.
        rewards: Sum of their rewards y, same shape.
        model: Models w, ``(replicas, rows, dim)``.
        gradient: Output: gradients, ``(replicas, rows, dim)``.
    """
    no_hessian = np.empty((0, 0))
    for r in range(model.shape[0]):
        for j in range(model.shape[1]):
            gradient[r, j] = 0.0
            _add_data(features[r], pulls[r, j], rewards[r, j], model[r, j], gradient[r, j], no_hessian)


@inner_kernel
def _add_data(features, pulls, rewards, w, gradient, hessian):
    """Adds one row's data to a gradient at the model w and to the lower triangle of a Hessian, which may be empty."""
    for p in range(pulls.shape[0]):
        if pulls[p] == 0:
            continue
        z = dot(features[p], w)
        chance = 1.0 / (1.0 + np.exp(-z))
        error, slope = pulls[p] * chance - rewards[p], pulls[p] * chance * (1.0 - chance)
        for i in range(w.shape[0]):
            gradient[i] += error * features[p, i]
        for i in range(hessian.shape[0]):
            for h in range(i + 1):
                hessian[i, h] += slope * features[p, i] * features[p, h]


_MOST_STEPS, _EXACT = 500, 1e-13


@allocating_kernel
def learn(
    pulled, reward, inverse, moment, log_det, matrix, model, squares, losses, slope, largest, on_simplex
):
    """Takes each agent's last observation in: A, b, and the online model w.

    Args:
        pulled: Contexts x of the last round, ``(replicas, agents, dim)``; 0 for agents that did not act.
        reward: Rewards y, ``(replicas, agents, 1)``.
        inverse: A^-1, ``(replicas, agents, 1, dim, dim)``.
        moment: b, to which <x, w> x is added, ``(replicas, agents, 1, dim)``.
        log_det: log det A, ``(replicas, agents, 1)``.
        matrix: A, ``(replicas, agents, dim, dim)``.
        model: w, ``(replicas, agents, dim)``.
        squares: Sum of <x, w>^2, ``(replicas, agents)``.
        losses: Bound of the losses, to which (1 / (1 + exp(-<x, w>)) - y)^2 ||x||^2_{A^-1} / (2 slope) is added.
        slope: A lower bound of the logistic function's slope.
        largest: The largest norm of a model.
        on_simplex: Whether models are projected on the probability simplex in place of the ball.
    """
    dim = pulled.shape[2]
    product, factor, moved = np.empty(dim), np.zeros((dim, dim)), np.empty((4, dim))
    for r in range(pulled.shape[0]):
        for j in range(pulled.shape[1]):
            x, w = pulled[r, j], model[r, j]
            form = rank_one(inverse[r, j, 0], x, product)
            if form == 0.0:
                continue
            log_det[r, j, 0] += np.log1p(form)
            z = dot(x, w)
            squares[r, j] += z * z
            error = 1.0 / (1.0 + np.exp(-z)) - reward[r, j, 0]
            losses[r, j] += error * error * form / (1.0 + form) / (2.0 * slope)
            size = 0.0
            for i in range(dim):
                moment[r, j, 0, i] += z * x[i]
                for h in range(dim):
                    matrix[r, j, i, h] += x[i] * x[h]
                # A^-1 x with x counted in A.
                w[i] -= error / slope * product[i] / (1.0 + form)
                size += w[i] * w[i]
            if on_simplex:
                _into_simplex(matrix[r, j], w, moved)
            elif size > largest * largest:
                _into_ball(matrix[r, j], w, largest, factor, moved)


@inner_kernel
def _into_ball(matrix, w, largest, factor, vectors):
    """Replaces w, longer than ``largest``, by the nearest vector of that norm, in the norm of the matrix A.

    It is (A + m I)^-1 A w for the multiplier m > 0 that gives it the norm; Newton's method on 1 / norm finds m.
    """
    dim = w.shape[0]
    target, found, half = vectors[0], vectors[1], vectors[2]
    estimate(matrix, w, target)
    multiplier = 0.0
    for _ in range(_MOST_STEPS):
        factorise(matrix, multiplier, factor)
        solve(factor, target, found)
        norm, weighted = 0.0, 0.0
        for i in range(dim):
            value = found[i]
            for h in range(i):
                value -= factor[i, h] * half[h]
            half[i] = value / factor[i, i]
            norm += found[i] ** 2
            weighted += half[i] ** 2
        norm = np.sqrt(norm)
        if norm <= largest * (1.0 + _EXACT):
            break
        multiplier += norm * norm / weighted * (norm - largest) / largest
    for i in range(dim):
        w[i] = found[i]


@inner_kernel
def _into_simplex(matrix, w, vectors):
    """Replaces w by the nearest vector on the probability simplex, in the norm of the matrix A.

    In each step mass goes from the entry with the largest slope to the one with the smallest, as much as is best.
    """
    dim = w.shape[0]
    point, slope, target = vectors[0], vectors[1], vectors[2]
    estimate(matrix, w, target)
    scale = 0.0
    for i in range(dim):
        scale = max(scale, matrix[i, i])
        point[i] = 1.0 / dim
    for i in range(dim):
        slope[i] = -target[i]
        for h in range(dim):
            slope[i] += matrix[i, h] * point[h]
    for _ in range(_MOST_STEPS * dim):
        low, high = 0, -1
        for i in range(dim):
            if slope[i] < slope[low]:
                low = i
            if point[i] > 0.0 and (high < 0 or slope[i] > slope[high]):
                high = i
        if slope[high] - slope[low] <= _EXACT * scale:
            break
        curve = matrix[low, low] + matrix[high, high] - 2.0 * matrix[low, high]
        mass = min((slope[high] - slope[low]) / curve, point[high])
        point[low] += mass
        point[high] -= mass
        for i in range(dim):
            slope[i] += mass * (matrix[i, low] - matrix[i, high])
    for i in range(dim):
        w[i] = point[i]


def slope_of(spec: PolicySpec, slope: float | None) -> float:
    """Returns the lower bound of the logistic function's slope that a policy has been given, or else the environment's.

    Raises:
        UnfitError: Rewards are not logistic.
    """
    if spec.public.get("reward") != "logistic":
        raise UnfitError(f"reward is {spec.public.get('reward')!r}; 'logistic' is required")
    return float(spec.public["least_slope"]) if slope is None else slope


class UCBGLM(LinUCB):
    r"""UCB-GLM on own data, or on all data that a server is told (Li, Lu and Zhou 2017).

    It pulls the arm whose context $x$ has the largest $\langle x, w \rangle + \beta \sqrt{x^\top V^{-1} x}$. Here $w$
    maximises the likelihood with a ridge penalty, $V = \lambda I + \sum_s x_s x_s^\top$ with the ridge $\lambda$, and

    $$\beta = a \, \frac{R}{c} \sqrt{(d / 2) \ln(1 + 2 n / d) + \ln(1 / \delta)}$$

    with $a$ for ``beta_scale``, $R$ for ``noise_sd``, $c$ for ``slope``, $\delta$ for ``failure``, and $n$ the number
    of observations at the end of the episode. With ``Server(policy="glm")`` and a
    :class:`~fedbandit_envs.baselines.linear.TellingReporter` around the environment, w and V come from the server.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> policy = UCBGLM()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, ridge: float = 2.0, slope: float | None = None, **linucb: Any) -> None:
        """Sets the policy's constants.

        Args:
            ridge: The ridge, > 0.
            slope: c, a lower bound of the logistic function's slope, in (0, 1/4]; None for the environment's.
            **linucb: Other arguments of :class:`LinUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(ridge, **linucb)
        self._slope = None if slope is None else require_number("slope", slope, 0, 0.25, open_below=True)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Rewards are not logistic, contexts do not come from a pool, or there is another server.
        """
        super().reset(spec, seeds)
        self._pool = unknown_pool(spec, len(seeds))
        dim, seen = self._dim, spec.observation.spaces
        self._served = "server_moment" in seen
        if "server_mask" in seen and not self._served:
            raise UnfitError(f"observed are {sorted(seen)}; a Server with policy='glm', or none, is required")
        observations = spec.horizon * (spec.agents if self._served else 1)
        inside = dim / 2 * log(1 + 2 * observations / dim) - log(self._failure)
        self._confidence.bias[...] = self._noise_sd / slope_of(spec, self._slope) * sqrt(inside)
        self._confidence.inflation[...] = 0.0
        self._model = np.zeros((*seeds.shape, dim))

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        if self._served:
            new = observation["server_mask"][..., 0]
            self._ridges.inverse[new, 0] = observation["server_inverse"][new]
            self._ridges.moment[new, 0] = observation["server_moment"][new]
        else:
            observe(*last_of(observation), np.empty(self._dim), *self._ridges)
            get_to_know(self._pool, observation)
            played = observation["pool_pulls"], observation["pool_rewards"]
            maximise(self._pool, *played, self._ridge, self._model)
            # The centre of the bounds is V^-1 times the moment.
            gram = observation["total_statistic"][..., :-1, :-1] + self._ridge * np.eye(self._dim)
            self._ridges.moment[...] = (gram @ self._model[..., np.newaxis]).swapaxes(-1, -2)
        return self._choose(observation, -log(self._failure))


class FedGLB(LinUCB):
    r"""LinUCB on the products <x, w> of an online model w in place of rewards (Li and Wang 2022, FedGLB-UCB).

    An agent pulls the arm whose context $x$ has the largest
    $\langle x, A^{-1} b \rangle + \alpha \sqrt{x^\top A^{-1} x}$ with $A = \kappa I + \sum x x^\top$ over all agents'
    contexts before the last synchronisation and its own since, $\kappa = \lambda / c$ for the ridge $\lambda$, and $c$
    a lower bound of the logistic function's slope. With each observation $(x, y)$ it adds $z x$ to $b$ for
    $z = \langle x, w \rangle$, and takes the step

    $$w' = w - \frac{1}{c} \left( \frac{1}{1 + e^{-z}} - y \right) A^{-1} x$$

    which is moved to the nearest point of the ball of radius $S$ in the norm of $A$. At
    a synchronisation the server (:class:`~fedbandit_envs.baselines.servers.LogisticServer`) sends G = sum x x^T, a
    model, which becomes w, beta_server (0 before) and B; b becomes G times the model. Where messages are noisy, agents
    keep their own data: they add G and G times the model to A and b, and w becomes A^-1 b.

    alpha = beta_scale sqrt(kappa S^2 + beta_own + beta_server - sum z^2 + b^T A^-1 b), where sum z^2 is over all data
    that A contains, beta_own = 1 + 4 B / c + (8 R^2 / c^2) ln((M / failure) sqrt(4 + 8 B / c + 16 R^4 / (c^4
    failure^2))) for M agents and noise_sd R, and B a bound of the model's losses: at first c ridge S^2 / 2, with each
    own step (1 / (1 + exp(-z)) - y)^2 ||x||^2_{A^-1} / (2 c) more.

    An agent asks to synchronise when the number of its observations since the last time, with the coming one, times the
    growth of log det A reaches D. Without a server the agent never does (N-ONS).

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["FedGLB-UCB"].wrap(make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2))
        >>> policy = FedGLB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["action"].shape
        (1, 3)
    """

    def __init__(
        self,
        ridge: float = 2.0,
        slope: float | None = 0.1966,
        threshold: float | None = None,
        beta_scale: float = 0.1,
        released: bool = False,
        **linucb: Any,
    ) -> None:
        """Sets the policy's constants.

        Args:
            ridge: The ridge of the logistic model, > 0.
            slope: c, in (0, 1/4]; the default is the slope at 1, as in the paper's experiment; None for the
                environment's.
            threshold: D; None for T / (M d ln(M T)) with the horizon T, M agents and contexts of dimension d.
            beta_scale: Factor of the radius; 1 is the theory's.
            released: Whether, as in the released program, models are projected on the probability simplex in place of
                the ball, and beta_own is B until the first own step after a synchronisation, and 0 before the first.
            **linucb: Other arguments of :class:`LinUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        super().__init__(ridge, beta_scale=beta_scale, **linucb)
        self._slope = None if slope is None else require_number("slope", slope, 0, 0.25, open_below=True)
        self._threshold = None if threshold is None else require_number("threshold", threshold, 0, np.inf)
        self._released = require_flag("released", released)
        self._penalty = self._ridge

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Rewards are not logistic, or there is a server that does not send models.
        """
        seen, rows = spec.observation.spaces, seeds.shape
        self._hears = "server_model" in seen
        fits = self._hears or not ("server_mask" in seen or spec.chooses_sending)
        require_around(
            spec, fits, "a Server with policy='logistic' inside of a GradientReporter's Messages, or none,"
        )
        self._c = slope_of(spec, self._slope)
        self._ridge = self._penalty / self._c
        super().reset(spec, seeds)
        dim = self._dim
        self._confidence.inflation[...] = 0.0
        self._matrix = np.zeros((*rows, dim, dim)) + self._ridge * np.eye(dim)
        self._model = np.zeros((*rows, dim))
        self._noisy = variance_of("gram") in spec.release.spaces
        self._received = np.zeros((*rows, dim, dim)), np.zeros((*rows, dim))
        self._shared, self._squares = np.zeros((2, *rows))
        self._losses = np.full(rows, self._c * self._penalty * self._parameter_bound**2 / 2)
        default = spec.horizon / (spec.agents * dim * log(max(spec.agents * spec.horizon, 2)))
        self._due = default if self._threshold is None else self._threshold
        self._union = spec.agents / self._failure

    def act(self, observation: Arrays) -> Any:
        """Returns arms and, where agents choose when to send, which of them ask to synchronise.

        See :meth:`Policy.act`.
        """
        learn(
            observation["pulled_context"], observation["last_reward"], self._ridges.inverse, self._ridges.moment,
            self._ridges.log_det, self._matrix, self._model, self._squares, self._losses, self._c,
            self._parameter_bound, self._released,
        )  # fmt: skip
        self._waited += (observation["pulled_context"] != 0).any(axis=-1)
        if self._hears and observation["server_mask"].any():
            self._synchronise(observation, observation["server_mask"][..., 0])
        # The radius alpha, without its factor, goes into the bounds of the estimates.
        c, noise = self._c, self._noise_sd**2
        root = np.sqrt(4 + 8 * self._losses / c + 16 * noise**2 / (c**4 * self._failure**2))
        own = 1 + 4 * self._losses / c + 8 * noise / c**2 * np.log(self._union * root)
        if self._released:
            own = np.where(self._waited > 0, own, np.where(self._shared > 0, self._losses, 0.0))
        moment = self._ridges.moment[:, :, 0]
        form = (moment * (self._ridges.inverse[:, :, 0] @ moment[..., np.newaxis])[..., 0]).sum(axis=-1)
        square = self._ridge * self._parameter_bound**2 + own + self._shared - self._squares + form
        self._confidence.bias[..., 0] = np.sqrt(np.maximum(square, 0.0))
        return self._with_requests(observation, self._choose(observation, -log(self._failure)))

    def _synchronise(self, observation: Arrays, new: Array) -> None:
        gram, model = observation["server_gram"][new], observation["server_model"][new]
        pulled = (gram @ model[..., np.newaxis])[..., 0]
        kept = self._ridge * np.eye(model.shape[-1])
        if self._noisy:
            # Noise may have left little of what others have sent, so that own data stay.
            kept = self._matrix[new] - self._received[0][new]
            own = self._ridges.moment[new, 0] - self._received[1][new]
            self._received[0][new], self._received[1][new] = gram, pulled
            pulled = pulled + own
            model = np.linalg.solve(gram + kept, pulled[..., np.newaxis])[..., 0]
        matrix = gram + kept
        self._matrix[new], self._model[new] = matrix, model
        self._ridges.inverse[new, 0] = np.linalg.inv(matrix)
        self._ridges.log_det[new, 0] = np.linalg.slogdet(matrix)[1]
        self._ridges.moment[new, 0] = pulled
        self._squares[new] = (pulled * model).sum(axis=-1)
        self._shared[new], self._losses[new] = observation["server_radius"][new].T
        self._synchronised[new], self._waited[new] = self._ridges.log_det[new], 0.0


class GradientReporter:
    """Reports sums over all of an agent's observations (x, y) so far.

    These are ``gram``, sum x x^T, and ``count``, the number of observations; and, when the server asks with a ``model``
    w, ``gradient``, weight times sum (1 / (1 + exp(-<x, w>)) - y) x.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> reporter = GradientReporter()
        >>> reporter.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["gram"].shape
        (1, 3, 2, 2)
    """

    def __init__(self, gradient_weight: float = 1.0) -> None:
        """Sets the weight of gradients, by which a server divides.

        Args:
            gradient_weight: The weight, > 0. Gradients near the best model are small beside the other sums. Where a
                clip bounds all messages and noise is in proportion to it, a weight above 1 lets gradients fill it.

        Raises:
            TypeError: It is no number.
            ValueError: It is not positive, or not finite.
        """
        self._weight = require_number("gradient_weight", gradient_weight, 0, np.inf, open_below=True)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all observations; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        self._pool = unknown_pool(spec, len(seeds))

    def observe(self, observation: Arrays) -> None:
        """Keeps the agents' data, and what they see of the pool; see :meth:`.Reporter.observe`."""
        get_to_know(self._pool, observation)
        self._seen = observation

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns sums over observations; see :meth:`.Reporter.report`.

        Args:
            question: ``model``, ``(replicas, agents, dim)``. None for a report that has 0 in place of gradients.
        """
        seen, dim = self._seen, self._pool.shape[-1]
        gradient = np.zeros((*seen["round"].shape[:2], dim))
        if question is not None:
            derive(self._pool, seen["pool_pulls"], seen["pool_rewards"], question["model"], gradient)
        return {
            "gram": seen["total_statistic"][..., :dim, :dim],
            "count": seen["pool_pulls"].sum(axis=-1, dtype=np.float64),
            "gradient": self._weight * gradient,
        }
