"""FairX-LinUCB, alone and federated, and simple policies of shares: equal shares, a best arm, deserved shares.

FairX-LinUCB gives the shares that are fair for an optimistic parameter. For one agent the objective is the expected
reward sum_i pi_i(theta) <theta, x_i>, with shares pi_i proportional to the merit f(<theta, x_i>) of arm i with context
x_i. It is maximised over ||theta - estimate||_V <= radius (thesis, Algorithm 6.1, line 6). The objective is not
concave; both solvers start at the estimate and ascend from there:

* ``frank_wolfe`` goes in each step to the point of the whole ellipsoid that is best for the linearised objective,
  estimate + radius V^-1 g / ||g||_{V^-1}, where g is the gradient;
* ``projected_gradient`` (the thesis' solver) moves along the gradient g, then to the nearest point of the ellipsoid.

The gradient is sum_i pi_i (1 + l_i (mu_i - v)) x_i, where mu_i = <theta, x_i>, l_i is the derivative of ln f at mu_i,
and v = sum_i pi_i mu_i.
"""

from math import log
from typing import Any, Literal

import numpy as np

from fedbandit_envs.baselines.aggregators import reward_variance
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.regressions import Regularisation, reach
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_flag, require_integer, require_number
from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.exposure.merit import Merits, share_out, share_row
from fedbandit_envs.linear.ridge import arms_last, dot, estimate, expected_rewards, factorise, solve

SolverName = Literal["frank_wolfe", "projected_gradient"]

_SIZE = 0.1
"""Step size of the projected gradient method, which is the thesis'."""


@kernel
def _centre(
    round_, inverse, moment, log_det, log_floor, inflation, bias, tilt, noise_sd, log_failure, scale, middle,
    radius,
):  # fmt: skip
    """Writes the centre V^-1 b and the radius, in the norm of V, of each agent's confidence ellipsoid.

    Args:
        round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index of
            the estimator that is used.
        inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
        moment: Moments b, ``(replicas, agents, estimators, dim)``.
        log_det: log det V, ``(replicas, agents, estimators)``.
        log_floor: Log-determinant that ``log_det`` is compared with; see
            :class:`~fedbandit_envs.baselines.linear.regressions.Confidence`.
        inflation: Factor of the radius's term for noise, see the same class.
        bias: Error bound in the norm of V^-1, see the same class.
        tilt: Error bound in the Euclidean norm, see the same class. In the norm of V this error is at most
            tilt ||V^-1||^(1/2); the Frobenius norm is used as a bound of ||V^-1||.
        noise_sd: Sub-Gaussian constant of rewards.
        log_failure: ln(1/failure), for ellipsoids that fail with probability ``failure``.
        scale: Factor of the whole radius, ``bias`` and ``tilt`` included.
        middle: Receives the centres, ``(replicas, agents, dim)``.
        radius: Receives the radii, ``(replicas, agents)``.
    """
    for r in range(radius.shape[0]):
        for j in range(radius.shape[1]):
            e = round_[r, j, 0] % moment.shape[2]
            estimate(inverse[r, j, e], moment[r, j, e], middle[r, j])
            width = reach(r, j, e, log_det, log_floor, inflation, bias, noise_sd, log_failure)
            if tilt[r, j, e] > 0.0:
                square = 0.0
                for entry in inverse[r, j, e].flat:
                    square += entry * entry
                width += tilt[r, j, e] * np.sqrt(np.sqrt(square))
            radius[r, j] = scale * width


@inlined_kernel
def _climb(contexts, means, logarithms, slopes, weights, gradient):
    """Writes the gradient of one agent's objective, by the formula of the module's docstring.

    Args:
        contexts: Contexts x_i of the arms, ``(dim, arms)``.
        means: mu_i, ``(arms,)``.
        logarithms: ln f(mu_i), the logarithms of the arms' merits, ``(arms,)``.
        slopes: l_i, the derivatives of ln f at mu_i, ``(arms,)``.
        weights: Scratch, ``(arms,)``.
        gradient: Receives the gradient, ``(dim,)``.
    """
    dim, arms = contexts.shape
    share_row(logarithms, weights)
    value = dot(weights, means)
    for k in range(arms):
        weights[k] *= 1.0 + slopes[k] * (means[k] - value)
    for i in range(dim):
        gradient[i] = dot(weights, contexts[i])


@allocating_kernel
def _project(inverse, middle, radius, point):
    """Moves a point to the nearest point of the ellipsoid ||point - middle||_V <= radius, in Euclidean distance.

    With W = V^-1 and u = point - middle the nearest point is middle + W a, where (W + nu I) a = u and nu >= 0 is such
    that ||W a||_V is the radius. Newton's method on 1 / radius - 1 / ||W a||_V, started at nu = 0, converges to this nu
    from below. A point inside of the ellipsoid does not move.

    Args:
        inverse: W, ``(dim, dim)``.
        middle: Centre of the ellipsoid, ``(dim,)``.
        radius: Radius of the ellipsoid in the norm of V, >= 0.
        point: The point, ``(dim,)``, which is overwritten.
    """
    dim = middle.shape[0]
    if radius <= 0.0:
        point[:] = middle
        return
    factor = np.empty((dim, dim))
    away, weight, moved, bent = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for i in range(dim):
        away[i] = point[i] - middle[i]
    nu = 0.0
    for _ in range(100):
        factorise(inverse, nu, factor)
        solve(factor, away, weight)
        estimate(inverse, weight, moved)
        square = dot(weight, moved)
        norm = np.sqrt(max(square, 0.0))
        if norm <= radius * (1.0 + 1e-13):
            break
        solve(factor, weight, bent)
        nu += square * (norm / radius - 1.0) / dot(bent, moved)
    if nu > 0.0:
        for i in range(dim):
            point[i] = middle[i] + moved[i]


@allocating_kernel
def _project_gradients(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Updates the parameters of all agents by one step of the projected gradient method.

    Arguments are those of :meth:`FairX._optimise` and ``_climb``; ``parameter`` is ``(replicas, agents, dim)``.
    """
    dim, arms = contexts.shape[2:]
    weights, gradient = np.empty(arms), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            for i in range(dim):
                parameter[r, j, i] += _SIZE * gradient[i]
            e = round_[r, j, 0] % inverse.shape[2]
            _project(inverse[r, j, e], middle[r, j], radius[r, j], parameter[r, j])


@allocating_kernel
def _frank_wolfe(round_, contexts, means, logarithms, slopes, inverse, middle, radius, parameter):
    """Overwrites the parameters of all agents by one step of Frank and Wolfe's algorithm.

    Arguments are those of :meth:`FairX._optimise` and ``_climb``; ``parameter`` is ``(replicas, agents, dim)``.
    """
    dim, arms = contexts.shape[2:]
    weights, gradient, product = np.empty(arms), np.empty(dim), np.empty(dim)
    for r in range(means.shape[0]):
        for j in range(means.shape[1]):
            _climb(contexts[r, j], means[r, j], logarithms[r, j], slopes[r, j], weights, gradient)
            e = round_[r, j, 0] % inverse.shape[2]
            estimate(inverse[r, j, e], gradient, product)
            form = dot(gradient, product)
            # Where the gradient is 0 every point is a maximum of the linearised objective, and the step goes to the
            # centre of the ellipsoid.
            factor = radius[r, j] / np.sqrt(form) if form > 0.0 else 0.0
            for i in range(dim):
                parameter[r, j, i] = middle[r, j, i] + factor * product[i]


SOLVERS: dict[SolverName, int] = {"frank_wolfe": 3, "projected_gradient": 10}
"""The default number of steps of each solver, by the solver's name."""


class FairX(FedUCB):
    r"""FairX-LinUCB (Wang et al. 2021), on own data or also on received data (thesis, Algorithm 6.1).

    Under a parameter $\theta$ the fair share of an arm is proportional to its merit $f$:

    $$\pi_i(\theta) = \frac{f(\langle \theta, x_i \rangle)}{\sum_k f(\langle \theta, x_k \rangle)}$$

    The policy plays $\pi(\theta)$ for the parameter of the confidence ellipsoid under which fair shares would have the
    largest expected reward:

    $$\max_\theta \; \sum_i \pi_i(\theta) \, \langle \theta, x_i \rangle \qquad \text{where} \quad
    (\theta - V^{-1} b)^\top V \, (\theta - V^{-1} b) \le \beta^2$$

    For contexts $x_s$ that were drawn and their rewards $y_s$, $V = \lambda I + \sum_s x_s x_s^\top$ and
    $b = \sum_s y_s x_s$, on own and received data, and

    $$\beta = c \left( \sigma \sqrt{2 \ln(1 / \delta) + \ln \det V - d \ln \lambda} + \sqrt{\lambda} \, S \right)$$

    with $c$ for ``beta_scale``, $\lambda$ for the ridge, $\sigma$ for ``noise_sd``, $\delta$ for ``failure`` and $S$
    for ``parameter_bound``. Noise in received data makes $V$ and $\beta$ larger, as in
    :class:`~fedbandit_envs.baselines.linear.feducb.FedUCB`. Solvers are in :mod:`fedbandit_envs.baselines.exposure`.
    With different settings of Channel and privatizer this policy is the thesis' baseline B0, Fed-FairX-LinUCB,
    Priv-FairX-LinUCB, B1 or B2.

    Where agents choose when to send, they ask to as soon as log det V - log det S reaches D / (number of rounds since
    the last synchronisation + 1), where S is the V of the last synchronisation (FedUCB's line 12). Unlike FedUCB's, the
    condition leaves out the coming context, because the arm is drawn only after the shares were chosen.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import FairX
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = FairX(beta_scale=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        solver: SolverName = "frank_wolfe",
        steps: int | None = None,
        ridge_each: bool = False,
        prior_variance: float | None = None,
        failure: float = 0.05,
        **feducb: Any,
    ) -> None:
        """Sets the policy's constants.

        Args:
            solver: Algorithm that computes the optimistic parameter: ``"frank_wolfe"`` or ``"projected_gradient"``.
            steps: Number of the solver's steps; None for 3 (Frank and Wolfe) or 10 (projected gradient). With 0 steps
                the estimate itself is used, as with ``beta_scale=0``.
            ridge_each: Whether V has the ridge lambda I once for each agent after the first message, as in the thesis'
                listing; else only once.
            prior_variance: Variance of an entry of theta* under a normal prior with the mean 0, > 0. The ridge is then
                that of Bayesian regression, the variance of a reward divided by this one; None for ``ridge``.
            failure: Probability delta' with which the confidence bounds may fail.
            **feducb: Other arguments of :class:`FedUCB`, except ``combine`` and ``alpha``. ``beta_scale`` is the factor
                of the radius sqrt(beta); 0 means no exploration. Where D (``threshold``) is None it is FedUCB's printed
                formula with rho_min = rho_max = ridge / (number of agents).

        Raises:
            TypeError: A parameter has the wrong type, or is unknown.
            ValueError: A parameter is out of its range, or ``shift`` and ``bias`` do not go together.
        """
        if refused := feducb.keys() & {"combine", "alpha"}:
            raise TypeError(f"FairX takes no {', '.join(sorted(refused))}: shares follow from one ellipsoid")
        super().__init__(failure=failure, **feducb)
        self._solver: SolverName = require_choice("solver", solver, SOLVERS)
        if steps is not None:
            require_integer("steps", steps, 0)
        self._ridge_each = require_flag("ridge_each", ridge_each)
        self._prior = prior_variance
        if prior_variance is not None:
            self._prior = require_number("prior_variance", prior_variance, 0, np.inf, open_below=True)
        self._steps = 0 if self._beta_scale == 0 else SOLVERS[solver] if steps is None else int(steps)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The environment has no public merit functions, because it is of another problem.
        """
        merits = spec.public.get("merits")
        if not isinstance(merits, Merits):
            raise UnfitError("public has no 'merits'; an environment of exposure_v0 is required")
        self._merits = merits
        self._federation = spec.agents
        if self._prior is not None:
            self._ridge = reward_variance(spec) / self._prior
        self._joint_ridge = self._ridge * (spec.agents if self._ridge_each else 1)
        shape = (*seeds.shape, *(spec.observation["contexts"].shape or ())[:1])
        self._means, self._shares = np.zeros(shape), np.zeros(shape)
        self._radius = np.zeros(seeds.shape)
        super().reset(spec, seeds)

    def _default_threshold(self, horizon: int, longest: float, start: Regularisation) -> float:
        grown = horizon * longest**2 * self._federation / (self._dim * self._ridge)
        return 2 * horizon * self._dim / (log(1 + grown) + 1)

    def _wants(self, observation: Arrays, action: Array) -> None:
        turn = observation["round"] % self._estimators
        grown = np.take_along_axis(self._ridges.log_det - self._synchronised, turn, axis=2)[..., 0]
        self._send[...] = grown >= self._due / (self._waited + 1.0)
        self._send &= observation.get("active", self._everyone)[..., 0]

    def _pull(self, observation: Arrays) -> Array:
        round_, contexts = observation["round"], observation["contexts"]
        _centre(
            round_, *self._ridges, *self._confidence, self._noise_sd, -log(self._own_failure()),
            self._beta_scale, self._parameter, self._radius,
        )  # fmt: skip
        _, logarithms = self._optimise(round_, contexts, self._ridges.inverse, observation.get("merit"))
        share_out(logarithms, self._shares)
        return self._shares

    def _optimise(
        self, round_: Array, contexts: Array, inverse: Array, which: Array | None
    ) -> tuple[Array, Array]:
        """Returns the optimistic parameters of all agents, in the ellipsoids ||theta - middle||_V <= radius.

        The middle is ``_parameter``, ``(replicas, agents, dim)``, and the radius ``_radius``, ``(replicas, agents)``.
        With 0 steps the middle is returned. ``_means`` receives <theta, x> of every arm for the returned parameters.

        Args:
            round_: Number of rounds played, ``(replicas, agents, 1)``; modulo the number of estimators it is the index
                of the estimator that is used.
            contexts: Contexts of all arms, ``(replicas, agents, arms, dim)``.
            inverse: V^-1, ``(replicas, agents, estimators, dim, dim)``.
            which: Index of each agent's merit function, ``(replicas, agents, 1)``; None if all agents have the same.

        Returns:
            The parameters, ``(replicas, agents, dim)``, and the logarithms of the arms' merits under them.
        """
        parameter, turned, means = self._parameter.copy(), arms_last(contexts), self._means
        expected_rewards(contexts, parameter, means)
        logarithms = self._merits.logarithm(means, which)
        # Two kernels, of which only the one that is used is compiled.
        step = _project_gradients if self._solver == "projected_gradient" else _frank_wolfe
        for _ in range(self._steps):
            slopes = self._merits.slope(means, which)
            step(round_, turned, means, logarithms, slopes, inverse, self._parameter, self._radius, parameter)
            expected_rewards(contexts, parameter, means)
            logarithms = self._merits.logarithm(means, which)
        return parameter, logarithms


class EqualShares:
    """Gives all arms the same share in every round.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import EqualShares
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = EqualShares()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Computes the equal shares, 1 / arms each; see :meth:`Policy.reset`."""
        arms = (spec.action.shape or (1,))[-1]
        self._shares = np.full((*seeds.shape, arms), 1.0 / arms)

    def act(self, observation: Arrays) -> Array:
        """Returns the share 1 / arms for each arm, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        return self._shares


class BestArm(LinUCB):
    """LinUCB as a policy of shares: the arm with the largest upper confidence bound gets all exposure.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import BestArm
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> policy = BestArm(beta_scale=0.1)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def act(self, observation: Arrays) -> Array:
        """Returns shares, 1 for the best arm and 0 for others, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        arm = super().act(observation)
        return np.asarray(np.arange(observation["contexts"].shape[2]) == arm[..., np.newaxis], np.float64)


class DeservedShares:
    """Gives every arm the share that is proportional to its merit under the true parameter theta*.

    The parameter must be in the observation, where :class:`~fedbandit_envs.wrappers.reveal.Reveal` puts it.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import exposure_v0
        >>> from fedbandit_envs.baselines.exposure import DeservedShares
        >>> from fedbandit_envs.wrappers import Reveal
        >>> env = exposure_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Reveal(env)
        >>> policy = DeservedShares()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that the observation contains the true parameter; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The observation has no ``parameter``.
        """
        if "parameter" not in spec.observation.spaces:
            raise UnfitError("the observation has no 'parameter'; wrap the environment in Reveal")
        self._merits = spec.public["merits"]

    def act(self, observation: Arrays) -> Array:
        """Returns shares proportional to the arms' merits, ``(replicas, agents, arms)``; see :meth:`Policy.act`."""
        shares = expected_rewards(observation["contexts"], observation["parameter"])
        share_out(self._merits.logarithm(shares, observation.get("merit")), shares)
        return shares


PEERS = FairX
"""The policy of a learner's peers, unless the learner's environment is told another."""
