"""Server policies that average uploads, or solve one regression on the data of all agents.

The logistic regression of FedGLB-UCB is solved by asking agents for gradients (C. Li, H. Wang: Communication Efficient
Federated Learning for Generalized Linear Bandits, NeurIPS 2022).
"""

from math import log, sqrt
from typing import Literal, get_args

import numpy as np

from fedbandit_envs.baselines.aggregators import GRAM
from fedbandit_envs.baselines.linear.logistic import maximise, slope_of, unknown_pool
from fedbandit_envs.baselines.linear.served import told
from fedbandit_envs.baselines.policy import UnfitError, downloads_of, require_fixed, require_uploads
from fedbandit_envs.basics.arrays import Array, Arrays, zeros
from fedbandit_envs.basics.checks import require_choice, require_flag, require_integer, require_number
from fedbandit_envs.core.policy_spec import PolicySpec, highest
from fedbandit_envs.core.privacy import COVARIANCE, variance_of
from fedbandit_envs.wrappers.transport.server_policy import Ask


class AverageServer:
    """Answers the mean of the agents' latest uploads, over all agents that have uploaded (federated averaging).

    With models as messages (:class:`~fedbandit_envs.wrappers.Messages`) this is the server of federated averaging
    (McMahan et al. 2017) with equal weights, and no message may be lost. With statistics it is the mean of their latest
    growth. Where uploads announce the variance of independent noise, the answer announces that of the mean.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(arms_v0.parallel_env(num_agents=4), schedule="every_round", policy="average")
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.array([[0, 0, 0, 1]]))
        >>> step.observation["server_pulls"][0, 0, :2].tolist()
        [0.75, 0.25]
    """

    needs_every_message = False

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shape of each array that agents release."""
        # A lost upload is added to the next one, as suits the growth of statistics and no models.
        totals = {f"total_{name}" for name in spec.release}
        self.needs_every_message = totals.isdisjoint(spec.observation.spaces)
        return downloads_of("float64", **{name: list(box.shape or ()) for name, box in spec.release.items()})

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all uploads."""
        rows = len(seeds), spec.agents
        self._last = zeros(spec.release, rows, np.float64)
        self._seen = np.zeros(rows, np.bool_)

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Returns the means by name, ``(replicas, ...)``; 0 where nobody has uploaded yet."""
        self._seen |= mask
        number = np.maximum(self._seen.sum(axis=1), 1)
        means = {}
        for name, last in self._last.items():
            last[mask] = uploads[name][mask]
            # The variance of a mean of independent noises is the sum of their variances over the number squared.
            divisor = number**2 if name == COVARIANCE or name.endswith(variance_of("")) else number
            means[name] = last.sum(axis=1) / divisor.reshape(-1, *(1,) * (last.ndim - 2))
        return means


class RidgeServer:
    """Answers the ridge estimate from all uploads, and the inverse of its regularised Gram matrix.

    Agents upload sums of [x; y][x; y]^T over contexts x and rewards y, which contain G = sum x x^T and b = sum y x. The
    server answers ``theta`` = V^-1 b and ``inverse`` = V^-1 with V = ridge I + G, so that no agent has to factorise a
    matrix. Noise in uploads can give G negative eigenvalues, which are replaced by 0.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="every_round", policy={"name": "ridge", "ridge": 0.5})
        >>> {name: space.shape for name, space in env.single_observation_space.items() if "server" in name}
        {'server_inverse': (2, 2), 'server_mask': (1,), 'server_theta': (2,)}
    """

    def __init__(self, ridge: float = 1.0) -> None:
        """Sets the multiple of I that is added to the Gram matrix.

        Args:
            ridge: The multiple, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of ``theta``, ``(dim,)``, and of ``inverse``, ``(dim, dim)``.

        Raises:
            UnfitError: Agents do not release sums of [x; y][x; y]^T.
        """
        require_uploads(spec, GRAM)
        dim = (spec.release[GRAM].shape or (0,))[0] - 1
        return downloads_of("float64", theta=[dim], inverse=[dim, dim])

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all uploads."""
        self._total = np.zeros((len(seeds), *(spec.release[GRAM].shape or ())))

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Returns ``theta``, ``(replicas, dim)``, and ``inverse``, ``(replicas, dim, dim)``."""
        self._total += uploads[GRAM].sum(axis=1)
        values, vectors = np.linalg.eigh(self._total[:, :-1, :-1])
        scaled = vectors / (np.maximum(values, 0.0) + self._ridge)[:, np.newaxis]
        inverse = scaled @ vectors.swapaxes(1, 2)
        return {"theta": (inverse @ self._total[:, :-1, -1:])[..., 0], "inverse": inverse}


class DisjointServer:
    """Answers the ridge estimate ``theta`` = V_a^-1 sum y x and ``inverse`` = V_a^-1 for each arm a.

    Here V_a = ridge I + sum x x^T over all pulls of arm a, with contexts x and rewards y. Agents tell the server every
    observation (:class:`~fedbandit_envs.baselines.linear.served.TellingReporter`); so
    that contexts must be fixed: numbers in the pool are arms. No message may be lost.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["OFUL-disjoint-shared"].wrap(make_federation("FedFixed-v0"))
        >>> env.reset_batch([0]).observation["server_theta"].shape
        (1, 100, 10, 3)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, ridge: float = 1.0) -> None:
        """Sets the multiple of I in V_a, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of ``theta``, ``(arms, dim)``, and of ``inverse``, ``(arms, dim, dim)``.

        Raises:
            UnfitError: Agents do not tell their observations, or arms do not stay the same.
        """
        require_uploads(spec, "context", "index", "reward")
        require_fixed(spec)
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        return downloads_of("float64", theta=[arms, dim], inverse=[arms, dim, dim])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Forgets all observations; see :meth:`.ServerPolicy.reset`."""
        arms, dim = spec.observation["contexts"].shape or (0, 0)
        self._gram = np.zeros((len(seeds), arms, dim, dim)) + self._ridge * np.eye(dim)
        self._moment = np.zeros((len(seeds), arms, dim))
        return self._solved()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes observations in and solves the regressions; see :meth:`.ServerPolicy.answer`."""
        replica, x, arm, y = told(uploads, mask, self._gram.shape[1])
        np.add.at(self._gram, (replica, arm), x[:, :, np.newaxis] * x[:, np.newaxis])
        np.add.at(self._moment, (replica, arm), y[:, np.newaxis] * x)
        return self._solved()

    def _solved(self) -> Arrays:
        inverse = np.linalg.inv(self._gram)
        return {"theta": np.einsum("rade,rae->rad", inverse, self._moment), "inverse": inverse}


class GLMServer:
    """Answers V^-1 and V w: w maximises the likelihood with a ridge penalty, and V = ridge I + sum x x^T of all data.

    Agents tell the server every observation (:class:`~fedbandit_envs.baselines.linear.served.TellingReporter`). No
    message may be lost.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["UCB-GLM-shared"].wrap(make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2))
        >>> env.reset_batch([0]).observation["server_moment"].shape
        (1, 3, 2)
    """

    needs_every_message = needs_single_uploads = True

    def __init__(self, ridge: float = 2.0) -> None:
        """Sets the ridge, > 0.

        Raises:
            TypeError: ``ridge`` is no number.
            ValueError: ``ridge`` is not positive.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of ``inverse``, ``(dim, dim)``, and ``moment``, ``(dim,)``.

        Raises:
            UnfitError: Agents do not tell their observations.
        """
        require_uploads(spec, "context", "index", "reward")
        (dim,) = spec.observation["pulled_context"].shape or (0,)
        return downloads_of("float64", inverse=[dim, dim], moment=[dim])

    def reset(self, spec: PolicySpec, seeds: Array) -> Arrays:
        """Forgets all observations; see :meth:`.ServerPolicy.reset`."""
        self._pool = unknown_pool(spec, len(seeds))
        rows, size, dim = self._pool.shape
        self._pulls, self._rewards = np.zeros((rows, 1, size), np.int64), np.zeros((rows, 1, size))
        self._gram = np.zeros((rows, dim, dim)) + self._ridge * np.eye(dim)
        self._model = np.zeros((rows, 1, dim))
        return self._solved()

    def answer(self, uploads: Arrays, mask: Array) -> Arrays:
        """Takes observations in and maximises the likelihood; see :meth:`.ServerPolicy.answer`."""
        replica, x, index, y = told(uploads, mask, self._pulls.shape[2])
        self._pool[replica, index] = x
        np.add.at(self._pulls[:, 0], (replica, index), 1)
        np.add.at(self._rewards[:, 0], (replica, index), y)
        np.add.at(self._gram, replica, x[:, :, np.newaxis] * x[:, np.newaxis])
        maximise(self._pool, self._pulls, self._rewards, self._ridge, self._model)
        return self._solved()

    def _solved(self) -> Arrays:
        moment = (self._gram @ self._model[:, 0, :, np.newaxis])[..., 0]
        return {"inverse": np.linalg.inv(self._gram), "moment": moment}


SolverName = Literal["accelerated", "quasi_newton"]


class LogisticServer:
    """At each synchronisation minimises f(w) = (sum of all agents' logistic losses + ridge ||w||^2 / 2) / n.

    n is the number of observations. Agents upload their Gram matrices sum x x^T and are asked for the gradients of
    their losses at one model after another, until the norm of f's gradient is at most sqrt(2 ridge / n^3), so that f is
    within 1 / n^2 of its minimum. The solver is

    * ``"accelerated"``: y_{k+1} = w_k - step grad f(w_k) and w_{k+1} = (1 - g_k) y_{k+1} + g_k y_k, with the step 1 /
      (L^2 / 4 + ridge / n) for contexts of norm at most L; g_0 = 0, g_{k+1} = (1 - l_k) / l_{k+1}, l_0 = 1 and l_{k+1}
      = (1 + sqrt(1 + 4 l_k^2)) / 2;
    * ``"quasi_newton"``, which is this project's: w_{k+1} = w_k - n (G / 4 + ridge I)^-1 grad f(w_k). The logistic
      function's slope is at most 1/4, so that no Hessian of n f is larger than G / 4 + ridge I, and every step makes f
      smaller (Boehning and Lindsay 1988). A few steps suffice, and agents send nothing else for them.

    The first model of a synchronisation is the last one of the synchronisation before. The answer is the sum G of Gram
    matrices, the model w, and two numbers for the radius of :class:`~fedbandit_envs.baselines.linear.logistic.FedGLB`:

    * 8 R^2 u / c^2 + B_1 + (4 R / c) sqrt(2 u) (||w|| + S + sqrt(B_1)), with B_1 = ridge S^2 / 2 + 1 / n and u = ln(1 /
      failure) + (d / 2) ln(1 + (1 + n) / d);
    * W^2 / (2 c), with W = ||n grad f(w)||_{A^-1} / c + (R / c) sqrt(d ln(1 + n c / (d ridge)) + 2 ln(1 / failure)) +
      sqrt(ridge / c) S and A = (ridge / c) I + G.

    Noise in messages (a privatizer's, of variance v in each number of their sum) must not be taken for data, so that
    eigenvalues of G below sqrt(2 d v), which is about the norm of the noise in G, become 0. Models change in the other
    eigenvectors' directions only, and have a norm of at most S. In the answer an eigenvalue g of G becomes g^2 / (g +
    16 c v / weight^2): the less, the less certain the model is for the noise in gradients. Agents add the answer to
    their own data.

    Agents upload totals, so that no message may be lost. They are written by a
    :class:`~fedbandit_envs.baselines.linear.logistic.GradientReporter`; ``BASELINES["FedGLB-UCB"].wrap`` puts both
    around an environment.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["FedGLB-UCB"].wrap(make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2))
        >>> env.reset_batch([0]).observation["server_model"].shape
        (1, 3, 2)
    """

    needs_every_message = True

    def __init__(
        self,
        ridge: float = 2.0,
        slope: float | None = 0.1966,
        noise_sd: float = 0.5,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        solver: SolverName = "accelerated",
        gradient_rounds: int | None = None,
        gradient_weight: float = 1.0,
        released: bool = False,
    ) -> None:
        """Sets the server's constants, which should be those of the agents.

        Args:
            ridge: The ridge, > 0.
            slope: c, a lower bound of the logistic function's slope; None for the environment's.
            noise_sd: R, the sub-Gaussian constant of rewards.
            parameter_bound: S, an upper bound of ||theta*||.
            failure: Probability with which confidence bounds may fail, in (0, 1].
            solver: ``"accelerated"`` or ``"quasi_newton"``.
            gradient_rounds: The number of times that agents are asked in each synchronisation, whatever they reply, as
                a claim about their privacy needs it; None to go on until the gradient is small.
            gradient_weight: The weight of gradients in agents' messages, > 0, by which they are divided here.
            released: Whether, as in the released program, the step is 0.1 / (1/4 + ridge / n), models start at 0, g_0
                is 1 and l grows in every second step only, there are at most 2 n gradients, and the radius has the norm
                of A in place of that of A^-1.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)
        self._slope = None if slope is None else require_number("slope", slope, 0, 0.25, open_below=True)
        self._noise_sd = require_number("noise_sd", noise_sd, 0, np.inf)
        self._bound = require_number("parameter_bound", parameter_bound, 0, np.inf)
        self._log_failure = -log(require_number("failure", failure, 0, 1, open_below=True))
        self._preconditions = require_choice("solver", solver, get_args(SolverName)) == "quasi_newton"
        asked = None if gradient_rounds is None else require_integer("gradient_rounds", gradient_rounds, 1)
        self._most = asked or np.inf
        self._weight = require_number("gradient_weight", gradient_weight, 0, np.inf, open_below=True)
        self._released = require_flag("released", released)

    def downloads(self, spec: PolicySpec) -> dict[str, dict[str, object]]:
        """Returns the shapes of the Gram matrix, the model, and the two numbers for the radius.

        Raises:
            UnfitError: Agents' messages are not those of a :class:`GradientReporter`, or they are noisy and the solver
                or the number of questions is not made for that.
        """
        require_uploads(spec, "gram", "count", "gradient")
        noisy = variance_of("gram") in spec.release.spaces
        if noisy and not (self._preconditions and self._most < np.inf):
            raise UnfitError("messages have noise; solver='quasi_newton' and gradient_rounds are required")
        (dim,) = spec.observation["pulled_context"].shape or (0,)
        return downloads_of("float64", gram=[dim, dim], model=[dim], radius=[2])

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets everything; see :meth:`.ServerPolicy.reset`.

        Raises:
            UnfitError: Rewards are not logistic.
        """
        (dim,), rows = spec.observation["pulled_context"].shape or (0,), (len(seeds), spec.agents)
        self._noisy = variance_of("gram") in spec.release.spaces
        self._c = slope_of(spec, self._slope)
        self._curve = highest(spec.observation["contexts"]) ** 2 / 4
        self._grams, self._counts = np.zeros((*rows, dim, dim)), np.zeros(rows)
        self._model, self._before, self._gradient = np.zeros((3, rows[0], dim))
        self._steps, self._trusted = np.zeros((2, rows[0], dim, dim))
        # l and the one before, and g, of each replica's descent.
        self._lengths, self._share = np.zeros((2, rows[0])), np.zeros(rows[0])
        self._asked, self._answered = np.zeros(rows[0], np.bool_), np.zeros(rows[0])
        self._gram, self._radius = np.zeros((rows[0], dim, dim)), np.zeros((rows[0], 2))

    def answer(self, uploads: Arrays, mask: Array) -> Arrays | Ask:
        """Begins a descent with new uploads, goes on with gradients; see :meth:`.ServerPolicy.answer`."""
        self._replied = mask
        fresh = mask & ~self._asked[:, np.newaxis]
        self._grams[fresh], self._counts[fresh] = uploads["gram"][fresh], uploads["count"][fresh]
        self._descend(np.flatnonzero(self._asked), uploads)
        variance = uploads[variance_of("count")].sum(axis=1) if self._noisy else np.zeros(len(mask))
        self._begin(np.flatnonzero(fresh.any(axis=1)), variance)
        if self._asked.any():
            # Agents without data have no gradient.
            who = self._asked[:, np.newaxis] & (self._counts > 0)
            return Ask({"model": self._model[:, np.newaxis]}, who)
        return {"gram": self._trusted, "model": self._model, "radius": self._radius}

    def _begin(self, some: Array, variance: Array) -> None:
        """Begins the descents of some replicas, given by their numbers.

        Args:
            some: The replicas.
            variance: Variance of the noise in each number of the sum of all uploads, ``(replicas,)``.
        """
        gram = self._grams[some].sum(axis=1)
        self._trusted[some] = self._gram[some] = gram
        if self._noisy:
            noise = variance[some, np.newaxis]
            values, vectors = np.linalg.eigh((gram + gram.swapaxes(-1, -2)) / 2)
            kept = values >= np.sqrt(2 * gram.shape[-1] * noise)
            values = np.where(kept, values, 0.0)
            certain = values**2 / (values + 16 * self._c * noise / self._weight**2)
            each = (values, kept / (values / 4 + self._ridge), certain)
            self._gram[some], self._steps[some], self._trusted[some] = (
                (vectors * numbers[:, np.newaxis]) @ vectors.swapaxes(-1, -2) for numbers in each
            )
        elif self._preconditions:
            self._steps[some] = np.linalg.inv(gram / 4 + self._ridge * np.eye(gram.shape[-1]))
        self._asked[some], self._answered[some] = self._counts[some].sum(axis=1) > 0, 0
        if self._released:
            self._model[some] = 0.0
        self._before[some] = self._model[some]
        self._lengths[0, some], self._lengths[1, some] = 0.0, 1.0
        self._share[some] = 1.0 if self._released else 0.0

    def _descend(self, some: Array, reports: Arrays) -> None:
        """Takes one step of each running descent, or ends it."""
        # Agents whose report is missing have no part in this step.
        model = self._model[some]
        n = np.maximum((self._counts[some] * self._replied[some]).sum(axis=1), 1.0)[:, np.newaxis]
        gradient = (reports["gradient"][some].sum(axis=1) / self._weight + self._ridge * model) / n
        self._gradient[some] = gradient
        self._answered[some] += 1
        small = np.linalg.norm(gradient, axis=1) <= np.sqrt(2 * self._ridge / n[:, 0] ** 3)
        done = self._answered[some] >= self._most if np.isfinite(self._most) else small
        if self._preconditions:
            after = model - n * (self._steps[some] @ gradient[..., np.newaxis])[..., 0]
            if self._noisy:
                norm = np.linalg.norm(after, axis=1, keepdims=True)
                after *= self._bound / np.maximum(norm, self._bound)
        else:
            curve, factor = (0.25, 0.1) if self._released else (self._curve, 1.0)
            moved = model - factor / (curve + self._ridge / n) * gradient
            share = self._share[some, np.newaxis]
            after = (1 - share) * moved + share * self._before[some]
            earlier, now = self._lengths[:, some]
            later = (1 + np.sqrt(1 + 4 * (earlier if self._released else now) ** 2)) / 2
            self._share[some], self._before[some] = (1 - now) / later, moved
            self._lengths[:, some] = now, later
        self._model[some] = np.where(done[:, np.newaxis], model, after)
        cut = self._released & (self._answered[some] >= 2 * n[:, 0])
        ended = some[done | cut]
        self._asked[ended] = False
        self._finish(ended)

    def _finish(self, some: Array) -> None:
        """Computes the two numbers for the radius."""
        n, dim = self._counts[some].sum(axis=1), self._model.shape[1]
        c, ridge, noise = self._c, self._ridge, self._noise_sd
        gradient = n[:, np.newaxis] * self._gradient[some]
        matrix: Array = self._gram[some] + ridge / c * np.eye(dim)
        if not self._released:
            matrix = np.linalg.inv(matrix)
        form = np.einsum("ri,rij,rj->r", gradient, matrix, gradient)
        spread = np.sqrt(dim * np.log1p(n * c / (dim * ridge)) + 2 * self._log_failure)
        width = np.sqrt(form) / c + noise / c * spread + sqrt(ridge / c) * self._bound
        penalty = ridge * self._bound**2 / 2 + 1 / n
        u = self._log_failure + dim / 2 * np.log1p((1 + n) / dim)
        reach = np.linalg.norm(self._model[some], axis=1) + self._bound + np.sqrt(penalty)
        shared = 8 * noise**2 * u / c**2 + penalty + 4 * noise / c * np.sqrt(2 * u) * reach
        self._radius[some] = np.stack([shared, width**2 / (2 * c)], axis=1)
