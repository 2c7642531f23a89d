"""FedUCB: LinUCB that listens, through noise (Dubey and Pentland 2020, Algorithms 1 and 3).

The policy says what an agent makes of what it hears. When agents talk, to whom and through how much noise is up to
channel and privatizer; without a channel it is LinUCB.
"""

from math import log, pi, sqrt
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.heard import PooledGrams
from fedbandit_envs.baselines.linear.hearing import lifted
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.linear.noise import BiasName, Regularisation, ShiftName, floored, regularise
from fedbandit_envs.baselines.linear.optimism import Confidence, choose_min
from fedbandit_envs.baselines.linear.pooling import keep, rebuild
from fedbandit_envs.baselines.linear.triggers import is_due
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.pool import PoolSpec, make_pool
from fedbandit_envs.checks import require_choice, require_number
from fedbandit_envs.features import highest
from fedbandit_envs.linear.ridge import Ridges, arms_last, observe
from fedbandit_envs.spaces import Spaces

CombineName = Literal["pooled", "min"]

_VARIANCE = variance_of("statistic")


class FedUCB(LinUCB):
    """LinUCB on own data and on what others release, with confidence bounds that reckon with the noise.

    V = sum of own x x^T + what was heard + shift I. Own data is exact and counts for ever, unless the channel echoes:
    then, as printed, an agent learns from the released version of its own data, and of the exact one keeps what it
    has not released yet. What the noise does to V and to the estimate is in
    :mod:`fedbandit_envs.baselines.linear.noise`; it is read off what messages announce of it. Without noise this is
    a ridge; noise that is not announced is not reckoned with, but V is lifted where it would not be positive definite.

    A ``pool`` that withstands liars stands for the sum of all that was heard, and is reckoned with as if it were one.
    Its noise is taken to be that of a sum over as many senders: the same pool of the variances they announce. Dropping
    costs a little more than that, pi/2 times the variance at worst (a median's); and what comes from senders who are
    not alike is not reckoned with. V is lifted where what is pooled would not be positive definite.

    With the pool ``precision`` what was heard counts as so many exact observations, and nothing of its noise is
    reckoned with any more: no shift but the ridge, no bias. No confidence is known of the radius then, see
    :mod:`fedbandit_envs.baselines.precision`.

    Messages may hold several statistics (:class:`~fedbandit_envs.wrappers.interleaved.Interleaved`): then as many
    estimators are used in turn, which is Algorithm 3's subsampling.

    Where agents say when to send, they ask once log det(V + x x^T + (rho_max - rho_min) I) - log det S reaches
    D / (rounds since the last synchronisation + 1), S being V at that time (Algorithm 1, line 12).
    """

    def __init__(
        self,
        shift: ShiftName = "on_sum",
        bias: BiasName = "root_m",
        combine: CombineName = "pooled",
        threshold: float | None = None,
        ridge: float = 1.0,
        noise_sd: float = 0.5,
        parameter_bound: float = 1.0,
        failure: float = 0.01,
        beta_scale: float = 1.0,
        alpha: float | None = None,
        pool: PoolSpec = "sum",
    ) -> None:
        """Sets the policy's constants; see :class:`LinUCB` for those not named here.

        Args:
            shift: What keeps V positive definite: ``"per_agent"`` (printed), ``"on_sum"`` or ``"floor"``; see
                :mod:`fedbandit_envs.baselines.linear.noise`; or ``"lift"``, without a proof; see
                :mod:`fedbandit_envs.baselines.linear.hearing`. Of no matter where the pool leaves no noise.
            bias: What bounds the noise's share of the error: ``"printed"``, ``"root_m"``, ``"euclidean"`` or, where
                nothing does, ``"none"``.
            combine: ``"pooled"`` acts on the bounds from all data; ``"min"`` on the smaller one of these and of those
                from own data alone, which costs no privacy; each then fails with half the probability.
            threshold: D; None for the paper's 2 T d / (ln(rho_max / rho_min + T L^2 / (d rho_min)) + 1), divided by
                1 + L^2 where there are several estimators.
            ridge: See :class:`LinUCB`.
            noise_sd: See :class:`LinUCB`.
            parameter_bound: See :class:`LinUCB`.
            failure: See :class:`LinUCB`.
            beta_scale: See :class:`LinUCB`.
            alpha: See :class:`LinUCB`.
            pool: How what is heard is put together, see :mod:`fedbandit_envs.baselines.pool`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or ``shift`` and ``bias`` do not go together.
        """
        super().__init__(ridge, noise_sd, parameter_bound, failure, beta_scale, alpha)
        require_choice("shift", shift, get_args(ShiftName))
        require_choice("bias", bias, get_args(BiasName))
        require_choice("combine", combine, get_args(CombineName))
        if shift == "floor" and bias != "euclidean":
            raise ValueError(
                f"bias is {bias!r}; 'euclidean' is required with shift='floor', under which V has no known rho_min"
            )
        if (shift == "lift") != (bias == "none"):
            raise ValueError(
                f"bias is {bias!r} and shift {shift!r}; bias='none' is required with 'lift', which bounds no error, "
                "and with it alone"
            )
        if threshold is not None:
            require_number("threshold", threshold, 0, np.inf)
        self._shift: ShiftName = shift
        self._bias: BiasName = bias
        self._combine = combine
        self._threshold = threshold
        self._pool = make_pool(pool)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets own data and what was heard; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Several estimators are used in turn, but bounds are to be combined with those from own data; or
                the shift is ``"per_agent"`` and the largest noise is not known; or the pool keeps own data exact, and
                agents hear themselves.
        """
        seen = spaces.observation.spaces
        dim = (seen["contexts"].shape or (0, 0))[1]
        inbox = seen.get("inbox_statistic")
        told = (1, dim + 1, dim + 1) if inbox is None or inbox.shape is None else inbox.shape
        self._senders = told[0]
        # (senders, numbers) or (senders, estimators, numbers).
        self._estimators = told[1] if len(told) == 4 else 1
        if self._estimators > 1 and self._combine == "min":
            raise UnfitError(
                f"combine is 'min', but messages hold {self._estimators} statistics to be used in turn; 'pooled' is "
                "required"
            )
        noise = spaces.release.spaces.get(_VARIANCE)
        self._noisy = f"inbox_{_VARIANCE}" in seen and not self._pool.weighs
        self._worst = highest(noise) if self._noisy and noise is not None else 0.0
        if np.isinf(self._worst):
            if self._shift == "per_agent":
                raise UnfitError(
                    "shift is 'per_agent', which needs to know the largest variance that noise can come to have, and "
                    "messages announce one without a bound; ContinualPrivatizer, or shift='on_sum', is required"
                )
            # Only what the trigger starts from, as without noise.
            self._worst = 0.0
        self._echo = "sent" in seen
        rows = seeds.shape
        self._begin(rows, dim, self._estimators)
        self._own = np.zeros((*rows, self._estimators, dim + 1, dim + 1))
        self._told = None if inbox is None else self._pool.grams(rows, spaces)
        self._heard_of = np.zeros_like(self._own)
        self._heard = np.zeros((*rows, self._senders), np.bool_)
        self._releases = np.zeros(rows)
        start = self._regularisation(
            self._starting_noise(), np.ones(rows), np.full(rows, float(self._senders))
        )
        self._spread = np.zeros(rows)
        if self._shift == "per_agent" and self._noisy:
            # Line 1: S starts as M rho_min I.
            self._ridges = Ridges.without_data((*rows, self._estimators), dim, float(start.least.flat[0]))
            self._trust(start, np.ones(rows, np.bool_))
        if self._combine == "min":
            one = (*rows, 1)
            self._alone = Ridges.without_data(one, dim, self._ridge)
            self._alone_confidence = Confidence.without_noise(one, dim, self._ridge, self._parameter_bound)
        self._asks = isinstance(spaces.action, gym_spaces.Dict)
        due = self._threshold
        if due is None:
            due = self._default_threshold(spaces.horizon, highest(seen["contexts"]), start)
        self._due = due
        self._waited = np.zeros(rows)
        self._synchronised = self._ridges.log_det.copy()
        self._send = np.zeros(rows, np.bool_)

    def _starting_noise(self) -> Array:
        """Returns the largest sd there can be on the sum of all senders' statistics, a row."""
        return np.full(self._releases.shape, sqrt(self._worst * self._senders))

    def _default_threshold(self, horizon: int, longest: float, start: Regularisation) -> float:
        dim = self._ridges.moment.shape[-1]
        least, most = float(start.least.flat[0]), float(start.most.flat[0])
        threshold = 2 * horizon * dim / (log(most / least + horizon * longest**2 / (dim * least)) + 1)
        return threshold / (1 + longest**2) if self._estimators > 1 else threshold

    def _regularisation(self, sd: Array, releases: Array, heads: Array) -> Regularisation:
        # By a union over releases k = 1, 2, ... and senders, with sum 1/k^2 = pi^2/6, for half the failures.
        log_union = np.log(2 * self._senders * releases**2 * pi**2 / (6 * self._share_of_failure()))
        if self._bias == "none":
            # As if there were no noise: then all shifts are the ridge.
            sd = np.zeros_like(sd)
        return regularise(
            shift=self._shift,
            bias=self._bias,
            sd=sd,
            worst_sd=sqrt(self._worst),
            heads=heads,
            log_union=log_union,
            dim=self._ridges.moment.shape[-1],
            ridge=self._heard_ridge(),
            parameter_bound=self._parameter_bound,
        )

    def _heard_ridge(self) -> float:
        """Returns the regulariser of V once something was heard."""
        return self._ridge

    def _share_of_failure(self) -> float:
        return self._failure / 2 if self._combine == "min" else self._failure

    def _own_failure(self) -> float:
        """Returns with which probability the rewards' part of the bound may fail; the noise takes the other half."""
        return self._share_of_failure() / (2 if self._noisy and self._bias != "none" else 1)

    def act(self, observation: Arrays) -> Any:
        """Takes in own data and the inbox, then acts as LinUCB does; see :meth:`Policy.act`.

        Returns:
            Arms, int64 ``(replicas, agents)``; where agents say when to send, a mapping of ``action`` and ``send``.
        """
        last = (observation["round"], observation["pulled_context"], observation["last_reward"])
        observe(*last, *self._ridges)
        if self._combine == "min":
            observe(*last, *self._alone)
        mask = observation.get("inbox_mask")
        if mask is not None:
            keep(*last, self._own)
            self._waited += observation["round"][..., 0] > 0
            if self._told is not None and mask.any():
                self._listen(observation, mask, self._told)
        arm = self._pull(observation)
        if not self._asks:
            return arm
        self._wants(observation, arm)
        return {"action": arm, "send": self._send}

    def _wants(self, observation: Arrays, arm: Array) -> None:
        """Decides who asks to send, given the arms about to be pulled, into ``_send``: line 12's trigger."""
        is_due(
            observation.get("active", self._everyone), observation["round"], observation["contexts"], arm,
            self._ridges.inverse, self._ridges.log_det,
            self._synchronised, self._waited, self._spread, self._due, self._send,
        )  # fmt: skip

    def _listen(self, observation: Arrays, mask: Array, told: PooledGrams) -> None:
        told.add(observation)
        self._heard |= mask
        if self._echo:
            self._own[observation["sent"][..., 0]] = 0.0
        news: Array = np.asarray(mask.any(axis=-1))
        self._releases += news
        heads = np.maximum(self._heard.sum(axis=-1), 1).astype(np.float64)
        pooled, variance = told.statistic, told.variance
        made = self._regularisation(np.sqrt(variance), np.maximum(self._releases, 1), heads)
        heard = pooled
        if self._shift == "lift":
            heard = self._heard_of
            heard[news] = lifted(pooled[news], variance[news], self._heard_ridge())
        definite = rebuild(news, self._own, heard, made.shift, *self._ridges)
        self._trust(made, news)
        if self._shift == "floor" or not definite.all():
            affected = np.broadcast_to(news[..., np.newaxis], definite.shape).copy()
            self._lift(affected if self._shift == "floor" else ~definite, made, pooled)
        self._waited[news] = 0
        self._synchronised[news] = self._ridges.log_det[news]

    def _trust(self, made: Regularisation, news: Array) -> None:
        """Takes over confidence bounds for rows with news."""
        dim = self._ridges.moment.shape[-1]
        log_floor = dim * np.log(made.least)
        for held, value in zip(
            self._confidence, (log_floor, np.ones_like(log_floor), made.bias, made.tilt), strict=True
        ):
            held[news] = value[news][..., np.newaxis]
        self._spread = np.where(news, made.most - made.least, self._spread)

    def _lift(self, where: Array, made: Regularisation, pooled: Array) -> None:
        """Lifts eigenvalues of V to the ridge, where no shift was added or it was not enough."""
        dim = self._ridges.moment.shape[-1]
        gram = (self._own + 0.5 * (pooled + np.swapaxes(pooled, -1, -2)))[where][..., :dim, :dim]
        added, reach, error = (
            np.broadcast_to(value[..., np.newaxis], where.shape)[where]
            for value in (made.shift, made.reach, made.error)
        )
        shifted = gram + added[:, np.newaxis, np.newaxis] * np.eye(dim)
        lifted = floored(shifted, self._ridge, self._parameter_bound, reach, error, added)
        self._ridges.inverse[where], self._ridges.log_det[where] = lifted.inverse, lifted.log_det
        for held, value in zip(self._confidence, lifted.confidence, strict=True):
            held[where] = value

    def _pull(self, observation: Arrays) -> Array:
        failure = self._own_failure()
        if self._combine == "pooled":
            return self._choose(observation, failure)
        choose_min(
            observation.get("active", self._everyone), observation["round"], arms_last(observation["contexts"]),
            *self._ridges, *self._confidence, *self._alone, *self._alone_confidence,
            self._noise_sd, -log(failure), -log(self._failure / 2), self._beta_scale, self._constant,
            self._parameter, self._arm,
        )  # fmt: skip
        return self._arm
