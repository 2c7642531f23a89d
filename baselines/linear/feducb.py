"""FedUCB: LinUCB on an agent's own data and on received data (Dubey and Pentland 2020, Algorithms 1 and 3).

The policy defines how an agent uses the statistics that it receives. The wrappers Channel and privatizer determine when
agents send, to whom and with how much noise; without a channel the policy is LinUCB.

Two asynchronous algorithms upload to a :class:`~fedbandit_envs.wrappers.transport.server.Server` once an agent has
collected enough data; agents need not act in the same rounds. The rounds in which an agent uploads depend on its exact
data, so that the times of messages are not private.
"""

from math import log, log1p, pi, sqrt
from typing import Any, Literal, get_args

import numpy as np

from fedbandit_envs.baselines import aggregators
from fedbandit_envs.baselines.aggregators import GRAM, NOISE
from fedbandit_envs.baselines.linear import regressions
from fedbandit_envs.baselines.linear.linucb import LinUCB
from fedbandit_envs.baselines.policy import UnfitError, require_around
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice, require_number
from fedbandit_envs.core.policy_spec import PolicySpec, highest
from fedbandit_envs.linear.ridge import Ridges, last_of, observe

CombineName = Literal["pooled", "min"]
ThresholdName = Literal["wang", "li"]


class FedUCB(LinUCB):
    r"""LinUCB on own and received data, with confidence bounds that take the noise into account.

    An agent pulls the arm whose context $x$ has the largest
    $\langle x, V^{-1} b \rangle + \beta \sqrt{x^\top V^{-1} x}$ with

    $$V = \rho I + \sum_{\text{own}} x_s x_s^\top + \sum_{\text{received}} (G + N), \qquad
    b = \sum_{\text{own}} y_s x_s + \sum_{\text{received}} (u + h)$$

    for contexts $x_s$ and rewards $y_s$, Gram matrices $G$ and moments $u$ of others, and their noise $N$ and $h$.
    Without noise the shift $\rho$ is the ridge $\lambda$, and

    $$\beta = c \left( \sigma \sqrt{2 \ln(1 / \delta) + \ln \det V - d \ln \lambda} + \sqrt{\lambda} \, S \right)$$

    with $c$ for ``beta_scale``, $\sigma$ for ``noise_sd``, $\delta$ for ``failure`` and $S$ for ``parameter_bound``.
    Noise makes both larger. Own data are exact and are
    used for ever, unless the channel also delivers an agent's own messages to it (an echo): then, as printed in the
    paper, an agent learns from the released, noisy version of its own data, and keeps exact data only until it has
    released them. The effect of the noise on V and on the estimate is derived in
    :mod:`fedbandit_envs.baselines.linear.regressions`. The variance of the noise is read from the messages, which
    announce it. Without noise the shift is a ridge. Noise that is not announced is not accounted for, except that
    eigenvalues of V are lifted where it would not be positive definite.

    Half of the failure probability is set aside for noise, and with two bounds half for each, but not where the agent
    is alone or the announced noise is 0: then the policy is LinUCB, or FedUCB without a privatizer.

    With a robust aggregator (``pool``) its result is used as if it were the sum of all messages. The variance of the
    noise in it is computed by the same aggregator from the announced variances. The true variance is a little larger,
    at worst by the factor pi/2 (for a median). Differences between the senders' distributions are not accounted for.

    With the aggregator ``precision`` received data count as exact observations: the only shift is the ridge, there
    is no bias term, and no confidence level of the radius is known; see
    :mod:`fedbandit_envs.baselines.aggregators`.

    Messages may hold several statistics (:class:`~fedbandit_envs.wrappers.releases.Interleaved`): then the agent has
    as many estimators and uses them in turn, which is Algorithm 3's subsampling.

    Where agents choose when to send, they ask to as soon as (Algorithm 1, line 12)

    $$\ln \det \left( V + x x^\top + (\rho_{\max} - \rho_{\min}) I \right) - \ln \det V' \ge \frac{D}{k + 1}$$

    where $V'$ is the $V$ of the last synchronisation, $k$ the number of rounds since, and $\rho_{\min}$ and
    $\rho_{\max}$ bound the eigenvalues of shift and noise together.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import FedUCB
        >>> from fedbandit_envs.wrappers import Channel
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Channel(env, schedule="doubling")
        >>> policy = FedUCB(pool={"name": "trimmed_mean", "share": 0.25})
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(
        self,
        shift: regressions.ShiftName = "on_sum",
        bias: regressions.BiasName = "root_m",
        combine: CombineName = "pooled",
        threshold: float | ThresholdName | None = None,
        pool: aggregators.AggregatorSpec = "sum",
        **linucb: Any,
    ) -> None:
        """Sets the policy's constants; see :class:`LinUCB` for those not named here.

        Args:
            shift: What keeps V positive definite under noise: ``"per_agent"`` (as printed), ``"on_sum"``, ``"floor"``,
                or ``"lift"``, which is without a proof; see :mod:`fedbandit_envs.baselines.linear.regressions`. It has
                no effect where the aggregator leaves no noise.
            bias: Bound of the estimation error that the noise causes: ``"printed"``, ``"root_m"``, ``"euclidean"``, or
                ``"none"`` with ``shift="lift"``; see :mod:`fedbandit_envs.baselines.linear.regressions`.
            combine: ``"pooled"`` uses the confidence bounds from all data. ``"min"`` uses, for each arm, the smaller of
                this bound and the bound from own data alone, which costs no privacy; each then fails with half the
                probability.
            threshold: D, the threshold for sending; None for the paper's 2 T d / (ln(rho_max / rho_min + T L^2 / (d
                rho_min)) + 1) with the horizon T and contexts of dimension d and norm at most L, divided by 1 + L^2
                where there are several estimators. For M agents ``"wang"`` is T ln(M T) / (d M), which DisLinUCB has
                (Wang et al., ICLR 2020), and ``"li"`` is T / (M d ln(M T)) (Li and Wang, NeurIPS 2022).
            pool: The aggregator of received statistics, or its specification; see
                :mod:`fedbandit_envs.baselines.aggregators`.
            **linucb: Other arguments of :class:`LinUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or ``shift`` and ``bias`` do not go together.
        """
        super().__init__(**linucb)
        self._shift: regressions.ShiftName = require_choice("shift", shift, get_args(regressions.ShiftName))
        self._bias: regressions.BiasName = require_choice("bias", bias, get_args(regressions.BiasName))
        self._combine = require_choice("combine", combine, get_args(CombineName))
        if shift == "floor" and bias != "euclidean":
            raise ValueError(f"bias is {bias!r}; 'euclidean' is required with shift='floor'")
        if (shift == "lift") != (bias == "none"):
            raise ValueError(
                f"bias is {bias!r} and shift {shift!r}; bias='none' is required with 'lift' alone"
            )
        if isinstance(threshold, str):
            require_choice("threshold", threshold, get_args(ThresholdName))
        elif threshold is not None:
            require_number("threshold", threshold, 0, np.inf)
        self._threshold = threshold
        self._pool = aggregators.make_aggregator(pool)
        # Subclasses have another ridge of V once a message has been received.
        self._joint_ridge = self._ridge

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and received data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Several estimators are used in turn, but ``combine`` is ``"min"``; or the shift is
                ``"per_agent"`` and the announced variances have no upper bound; or agents receive their own messages,
                which the aggregator (``precision``) would count twice.
        """
        seen, rows = spec.observation.spaces, seeds.shape
        inbox = aggregators.gram_inbox(spec, rows) if "inbox_mask" in seen else None
        self._senders = inbox.senders if inbox else 1
        # A single sender is a server, whose messages are sums over all agents. The printed bounds count these.
        printed = {self._shift, self._bias} & {"per_agent", "printed"}
        self._heads = spec.agents if inbox and printed and self._senders == 1 else 1
        self._estimators = inbox.shapes[GRAM][0] if inbox else 1
        if self._estimators > 1 and self._combine == "min":
            raise UnfitError(f"combine is 'min', for {self._estimators} statistics; 'pooled' is required")
        self._received = self._pool.start(inbox) if inbox else None
        self._echo = "sent" in seen
        # An agent that receives nothing of others needs no probability for the failure of bounds of their data.
        federated = inbox is not None and (spec.agents > 1 or self._echo)
        # An aggregator that accounts for the noise itself, such as precision, has no array of noise variances among its
        # totals. Then no other correction for noise is made.
        announced = federated and self._received is not None and NOISE in self._received.totals
        known = highest(spec.release[NOISE]) if NOISE in spec.release.spaces else np.inf
        self._worst = known if announced else 0.0
        self._noisy = self._worst > 0
        # With two bounds each may fail with half of the probability.
        self._capped = federated and self._combine == "min"
        self._share = self._failure / 2 if self._capped else self._failure
        if np.isinf(self._worst):
            if self._shift == "per_agent":
                raise UnfitError("shift is 'per_agent'; noise with a bound, or shift='on_sum', is required")
            # For the other shifts the largest variance is only used for the trigger's threshold at the start, which is
            # then computed as if there were no noise.
            self._worst = 0.0
        self._start(spec, rows, self._estimators, int(self._capped))
        dim = self._dim
        self._own, self._lifted = np.zeros((2, *rows, self._estimators, dim + 1, dim + 1))
        self._known_senders = np.zeros((*rows, self._senders), np.bool_)
        self._releases = np.zeros(rows)
        # The largest standard deviation that the noise in the sum over all senders can have.
        worst = np.full(rows, sqrt(self._worst * self._senders))
        start = self._regularisation(worst, np.ones(rows), np.full(rows, float(self._senders * self._heads)))
        if self._shift == "per_agent" and self._noisy:
            # Algorithm 1, line 1: the matrix S of the last synchronisation starts as M rho_min I, for M senders.
            self._ridges = Ridges.without_data((*rows, self._estimators), dim, float(start.least.flat[0]))
            self._trust(start, np.ones(rows, np.bool_))
        if isinstance(self._threshold, str):
            power = 1 if self._threshold == "wang" else -1
            self._due = spec.horizon / (dim * spec.agents) * log(spec.agents * spec.horizon) ** power
        elif self._threshold is None:
            self._due = self._default_threshold(spec.horizon, highest(seen["contexts"]), start)
        else:
            self._due = self._threshold
        self._synchronised = self._ridges.log_det.copy()

    def _default_threshold(self, horizon: int, longest: float, start: regressions.Regularisation) -> float:
        dim = self._dim
        least, most = float(start.least.flat[0]), float(start.most.flat[0])
        threshold = 2 * horizon * dim / (log(most / least + horizon * longest**2 / (dim * least)) + 1)
        return threshold / (1 + longest**2) if self._estimators > 1 else threshold

    def _regularisation(self, sd: Array, releases: Array, heads: Array) -> regressions.Regularisation:
        # The noise's bounds may fail with half of the failure probability. It is divided among all releases and senders
        # by a union bound: the share of release k = 1, 2, ... is proportional to 1/k^2, and sum 1/k^2 = pi^2/6.
        log_union = np.log(2 * self._senders * self._heads * releases**2 * pi**2 / (6 * self._share))
        if self._bias == "none":
            # Without a bound, the noise is left out of the radius: with a standard deviation of 0 the shift is the
            # ridge.
            sd = np.zeros_like(sd)
        return regressions.regularise(
            self._shift, self._bias, sd, sqrt(self._worst), heads, log_union, self._dim,
            self._joint_ridge, self._parameter_bound,
        )  # fmt: skip

    def _own_failure(self) -> float:
        """Returns the probability with which the bound of the error from random rewards may fail.

        With private noise this is half of the failure probability: the bound of the noise may fail with the other half.
        """
        return self._share / (2 if self._noisy and self._bias != "none" else 1)

    def act(self, observation: Arrays) -> Any:
        """Returns the arms with the largest bounds, after adding the last round and new messages to the data.

        See :meth:`Policy.act`.

        Returns:
            Arms, int64 ``(replicas, agents)``; where agents choose when to send, a mapping of ``action`` (the arms) and
            ``send``, bool ``(replicas, agents)``.
        """
        last = last_of(observation)
        scratch = np.empty(self._dim)
        observe(*last, scratch, *self._ridges)
        if self._capped:
            observe(*last, scratch, *self._alone)
        mask = observation.get("inbox_mask")
        if mask is not None:
            regressions.keep(*last, self._own)
            self._waited += observation["round"][..., 0] > 0
            if mask.any():
                self._take_in(observation, mask)
        return self._with_requests(observation, self._pull(observation))

    def _take_in(self, observation: Arrays, mask: Array) -> None:
        assert self._received is not None
        self._received.add(aggregators.gram_arrays(observation))
        if self._echo:
            self._own[observation["sent"][..., 0]] = 0.0
        news: Array = np.asarray(mask.any(axis=-1))
        self._releases += news
        if (mask > self._known_senders).any():
            self._known_senders |= mask
            self._heard = self._heads * np.maximum(self._known_senders.sum(axis=-1), 1).astype(np.float64)
        heads = self._heard
        totals = self._received.totals
        total, variance = totals[GRAM], aggregators.noise_of(totals, mask.shape[:2])
        made = self._regularisation(np.sqrt(variance), np.maximum(self._releases, 1), heads)
        others = total
        if self._shift == "lift":
            others = self._lifted
            others[news] = regressions.lift_eigenvalues(total[news], variance[news], self._joint_ridge)
        definite = regressions.rebuild(news, self._own, others, made.shift, *self._ridges)
        self._trust(made, news)
        if self._shift == "floor" or not definite.all():
            affected = np.broadcast_to(news[..., np.newaxis], definite.shape).copy()
            self._floor(affected if self._shift == "floor" else ~definite, made, total)
        self._waited[news] = 0
        self._synchronised[news] = self._ridges.log_det[news]

    def _trust(self, made: regressions.Regularisation, news: Array) -> None:
        """Stores the error bounds of the agents that have received messages in this round (``news``)."""
        log_floor = self._dim * np.log(made.least)
        bounds = log_floor, np.ones_like(log_floor), made.bias, made.tilt
        for held, value in zip(self._confidence, bounds, strict=True):
            held[news] = value[news][..., np.newaxis]
        self._spread = np.where(news, made.most - made.least, self._spread)

    def _floor(self, where: Array, made: regressions.Regularisation, total: Array) -> None:
        """Lifts the eigenvalues of V to at least the ridge, for the estimators that ``where`` marks.

        These are the estimators to which no shift was added, or for which V with the shift is not positive definite.
        """
        gram = self._grams(where, total)
        added, reach, error = (
            np.broadcast_to(value[..., np.newaxis], where.shape)[where]
            for value in (made.shift, made.reach, made.error)
        )
        shifted = gram + added[:, np.newaxis, np.newaxis] * np.eye(gram.shape[-1])
        self._ridges.inverse[where], self._ridges.log_det[where], confidence = regressions.floor_eigenvalues(
            shifted, self._ridge, self._parameter_bound, reach, error, added
        )
        for held, value in zip(self._confidence, confidence, strict=True):
            held[where] = value

    def _grams(self, where: Array, total: Array) -> Array:
        """Returns the Gram matrices, ``(some, dim, dim)``, of own and received data, of some estimators."""
        return (self._own + 0.5 * (total + np.swapaxes(total, -1, -2)))[where][..., :-1, :-1]

    def _pull(self, observation: Arrays) -> Array:
        return self._choose(observation, -log(self._own_failure()))


def _require_server(spec: PolicySpec, echo: bool) -> None:
    """Raises :class:`UnfitError` unless agents can upload to a server whenever they ask to.

    With ``echo`` the server must also send back to an agent what the agent itself has uploaded, else it must not.
    """
    seen = spec.observation.spaces
    served = "inbox_mask" in seen and seen["inbox_mask"].shape == (1,)
    fits = served and ("sent" in seen) == echo and spec.chooses_sending
    require_around(spec, fits, f"a Server with schedule='on_request' and echo={echo}")


class FedLinUCB(LinUCB):
    r"""Asynchronous LinUCB on the server's data alone (He, Wang, Min and Gu 2022, Algorithm 1).

    Agent $m$ pulls the arm whose context $x$ has the largest

    $$\langle x, \Sigma_m^{-1} b_m \rangle + \beta \sqrt{x^\top \Sigma_m^{-1} x}$$

    where $(\Sigma_m, b_m)$ is its last download, at first $\lambda I$ and 0. It does not use its own data before they
    have been to the server and back. Let $\Sigma_{\text{loc}}$ be the sum of $x_s x_s^\top$ since its last upload: in
    the round in which $\det(\Sigma_m + \Sigma_{\text{loc}}) > (1 + \alpha) \det \Sigma_m$, the agent uploads these data
    and downloads the server's. It needs a server with ``echo=True``.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import FedLinUCB
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="on_request")
        >>> policy = FedLinUCB(alpha=1.0, beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["send"].shape
        (1, 3)
    """

    def __init__(self, alpha: float | None = None, beta: float | None = None, **linucb: Any) -> None:
        """Sets the policy's constants.

        Args:
            alpha: Relative growth of the determinant that triggers an upload, > 0; None for the theory's 1/M^2 with M
                agents.
            beta: The radius; None for the theory's sqrt(lambda) S + (sqrt(1 + M alpha) + M sqrt(2 alpha)) (R sqrt(d
                ln((1 + T L^2/(min(alpha, 1) lambda))/delta)) + sqrt(lambda) S), where ``parameter_bound`` is S,
                ``noise_sd`` R, ``failure`` delta, T the horizon, and contexts have dimension d and norm at most L.
            **linucb: Other arguments of :class:`LinUCB`; ``ridge`` is lambda, which Sigma_m contains once, not once for
                each agent.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        beta = None if beta is None else require_number("beta", beta, 0, np.inf)
        super().__init__(alpha=beta, **linucb)
        self._alpha = None if alpha is None else require_number("alpha", alpha, 0, np.inf, open_below=True)
        self._beta = beta

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and downloaded data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server to which agents can upload when they ask to, or it does not send an agent's
                own data back to it.
        """
        _require_server(spec, echo=True)
        super().reset(spec, seeds)
        self._growth = spec.agents**-2 if self._alpha is None else self._alpha
        if self._beta is None:
            # The radius of the confidence ellipsoids in He et al. 2022, Theorem 5.1.
            agents, bias = spec.agents, sqrt(self._ridge) * self._parameter_bound
            longest = highest(spec.observation["contexts"])
            grown = spec.horizon * longest**2 / (min(self._growth, 1.0) * self._ridge)
            width = self._noise_sd * sqrt(self._dim * log((1 + grown) / self._failure)) + bias
            spread = sqrt(1 + agents * self._growth) + agents * sqrt(2 * self._growth)
            self._constant = self._beta_scale * (bias + spread * width)
        # The server adds up the data that agents upload. So there is a single sender, and robust aggregation, which
        # compares senders, is not possible.
        self._received = aggregators.Sum().start(aggregators.gram_inbox(spec, seeds.shape))
        self._downloaded = self._received.totals[GRAM]
        self._local, self._uploaded = np.zeros((2, *self._downloaded.shape))
        self._no_shift = np.full(seeds.shape, self._ridge)

    def act(self, observation: Arrays) -> Any:
        """Returns arms and requests to upload, after adding the last round and new downloads to the data.

        See :meth:`Policy.act`.

        Returns:
            A mapping of ``action``, arms int64 ``(replicas, agents)``, and ``send``, bool of the same shape.
        """
        regressions.keep(*last_of(observation), self._local)
        # An agent that asked to upload in the last round has uploaded that round's observation, too, which was added
        # to its local data just now.
        self._uploaded[self._send] = self._local[self._send]
        mask = observation["inbox_mask"]
        if mask.any():
            self._received.add(aggregators.gram_arrays(observation))
            back = observation["sent"][..., 0]
            self._local[back] -= self._uploaded[back]
            self._uploaded[back] = 0.0
            regressions.rebuild(
                mask[..., 0], np.zeros_like(self._downloaded), self._downloaded, self._no_shift, *self._ridges
            )
        return self._with_requests(observation, self._choose(observation, -np.log(self._failure)))

    def _wants(self, observation: Arrays, arm: Array) -> None:
        """Writes into ``_send`` which agents ask to upload, given the arms they are about to pull."""
        regressions.has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, self._downloaded[:, :, 0],
            self._local[:, :, 0], self._ridge, log1p(self._growth), self._send,
        )  # fmt: skip


class AsyncLinUCB(FedUCB):
    r"""Asynchronous LinUCB on an agent's own and downloaded data (Li and Wang 2022, Async-LinUCB).

    Agent $m$ pulls the arm whose context $x$ has the largest
    $\langle x, V_m^{-1} b_m \rangle + \beta \sqrt{x^\top V_m^{-1} x}$, where $V_m$ is $\lambda I$ plus the sum of
    $x_s x_s^\top$ of its data, and $b_m$ the sum of rewards times contexts. It uses its own data at once, and the data
    of others as soon as the server sends them. It uploads in a round in which
    $\det V_m > \gamma_U \det(V_m - \Delta V_m)$, where $\Delta V_m$ is the matrix of its own data since its last
    upload. It needs a server with ``echo=False``, whose ``answers`` are sent by the determinant
    criterion with the paper's gamma_D.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.baselines.linear import AsyncLinUCB
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="on_request", echo=False)
        >>> policy = AsyncLinUCB(growth=6.0, beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)["send"].shape
        (1, 3)
    """

    def __init__(self, growth: float = 6.0, beta: float | None = None, **feducb: Any) -> None:
        """Sets the policy's constants.

        Args:
            growth: Growth gamma_U >= 1 of the determinant that triggers an upload.
            beta: A constant radius; None for the formula of :class:`LinUCB`.
            **feducb: Other arguments of :class:`FedUCB`.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        beta = None if beta is None else require_number("beta", beta, 0, np.inf)
        super().__init__(alpha=beta, **feducb)
        require_number("growth", growth, 1, np.inf)
        self._log_growth = log(growth)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets own and downloaded data; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server to which agents can upload when they ask to, or it sends an agent's own data
                back to it.
        """
        _require_server(spec, echo=False)
        super().reset(spec, seeds)
        self._fresh = np.zeros_like(self._own)

    def act(self, observation: Arrays) -> Any:
        """Returns arms and requests to upload, as :meth:`FedUCB.act` does, and keeps track of data not uploaded yet."""
        regressions.keep(*last_of(observation), self._fresh)
        self._fresh[self._send] = 0.0
        return super().act(observation)

    def _wants(self, observation: Arrays, arm: Array) -> None:
        assert self._received is not None
        base = (self._own - self._fresh + self._received.totals[GRAM])[:, :, 0]
        regressions.has_grown(
            observation.get("active", self._everyone), observation["contexts"], arm, base,
            self._fresh[:, :, 0], self._ridge, self._log_growth, self._send,
        )  # fmt: skip
