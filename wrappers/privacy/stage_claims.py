"""Claims of privacy under a stage of a transport: for every observer, from accounts and from the shares in sums.

A stage is a shuffler, a secure sum or a trusted server between the agents.

Of a secure sum an observer sees nothing but the sum. Its noise has the standard deviation sigma if h agents,
``honest``, add theirs: each agent adds a share of variance sigma^2/h to its release, whose own (local) privacy is
therefore mu_local = D sqrt(h)/sigma, for neighbours at a distance D. If the sum contains k shares that the observer
does not know, the agent's own among them, its noise has the variance sigma^2 k/h, and the sum is mu-GDP for mu = D
sqrt(h/k)/sigma = mu_local/sqrt(k).

The same holds for a matrix mechanism (:mod:`..mechanisms.prefix_noise`) to whose streams of noise all agents
contribute, one draw a synchronisation, also where agents are absent. For a change in one window (the rounds between two
synchronisations), k counts the shares in the window's own synchronisation. For a change of all data of an agent, k
counts the agents that are present at all of its releases: the shares of others are further noise.

The noise is idealised: it is real-valued, while a real secure sum adds up integers.

**Amplification by shuffling.** An observer sees messages as a batch in random order, without names.

Each of n agents sends one message in a synchronisation, made by the same randomiser, which is eps0-DP **for any two
payloads**. It must bound payloads of different agents and not only of neighbouring histories of one, since an agent
hides among the messages of others. So an amplified claim needs a clip, and eps0 (or mu) is that of the agent's level.

The batch is then at least as private as a pair of integers (Feldman, McMillan, Talwar, FOCS 2021): of C ~ Bin(n - 1,
exp(-eps0)) other agents' messages, A ~ Bin(C, 1/2) look like the agent's first payload and C - A like its second; the
agent's own message adds one to the right number with probability exp(eps0)/(exp(eps0) + 1), and to the wrong one
otherwise. Exchanging the two numbers exchanges the two histories, so that both directions have the same delta.

A Gaussian randomiser is (eps0, delta0)-DP instead. By the same paper, its batch differs from that of an eps0-DP one
with a probability of at most f = (1 + exp(-eps0)/2) n delta0, which adds (exp(eps) + 1) f to delta at eps.

Batches of an episode are composed by their pairs' privacy loss distributions (Zhu, Dong, Wang, AISTATS 2022: pairs that
dominate each mechanism, given what was seen before, dominate all of them together); the numbers f add up. Each batch
needs fresh noise: nothing is claimed for correlated noise.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial, reduce
from math import exp, inf, log, sqrt, tanh
from typing import Any

import numpy as np
import scipy  # imports its large parts, such as stats, only when they are used
from scipy.special import expit

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import AGENT, Claim
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier, gaussian_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant
from fedbandit_envs.wrappers.transport.schedule import Combined, Stage

# The most different numbers of clones; where there are more, some are rounded down, which increases delta: another
# clone hides an agent better.
_MOST_COUNTS = 400
# The parts of delta, divided by all messages, that are tried as the delta0 of Gaussian messages. With the largest one
# half of delta at epsilon = 0 goes to the messages that are not eps0-DP.
_PARTS = tuple(np.geomspace(1 / 6, 1e-3, 10).tolist())
# Number of intervals of a privacy loss distribution for each standard deviation of the loss.
_INTERVALS = 8
# The most intervals from 0 to the largest loss, and the largest eps0 of a message of which amplification is computed:
# for a larger one no number of agents hides anybody.
_MOST_INTERVALS = 5000
_LARGEST_LOSS = 40.0


class Shares:
    """Counts how many agents contributed noise to each sum of an episode, for claims about sums and batches.

    A *share* is the noise that one agent has added to a sum. The more shares an observer does not know, the better an
    agent is protected.

    Memory grows with the number of agents, not with its square or with the number of sums.

    Attributes:
        times: The number of synchronisations (rounds in which at least one agent has released data), int64
            ``(replicas,)``.
    """

    def __init__(self, rows: tuple[int, int]) -> None:
        """Starts an episode of ``(replicas, agents)`` rows in which nothing has been released."""
        self.times, self._passed = np.zeros((2, rows[0]), np.int64)
        self._least = np.full(rows, rows[1])
        self._always = np.ones(rows, np.bool_)

    @property
    def bypassed(self) -> bool:
        """Whether data has been released in any other way than through the transport that has the stage."""
        return bool((self.times != self._passed).any())

    def pass_on(self, synchronised: Array, combined: Combined) -> None:
        """Counts one synchronisation of the transport.

        Args:
            synchronised: In which replicas agents have released data for it, bool ``(replicas,)``.
            combined: What has left the stage.
        """
        self._passed += synchronised
        size = combined.arrived.sum(axis=1, keepdims=True)
        np.minimum(self._least, size, out=self._least, where=combined.arrived)
        self._always &= combined.arrived | ~combined.went[:, np.newaxis]

    @property
    def complete(self) -> bool:
        """Whether all agents were in every sum so far."""
        return bool(self._always.all())

    def unknown(self, known: int, every_release: bool) -> Array:
        """Returns how many of the shares that protect each agent an observer does not know, int ``(replicas, agents)``.

        Args:
            known: How many of the shares in each sum the observer knows.
            every_release: Whether only agents count that were in all sums of the episode; otherwise it is the least
                number of agents in any sum with the agent.
        """
        always = self._always.sum(axis=1, keepdims=True) + ~self._always
        # An agent's own share counts, whoever else is known.
        return np.maximum((always if every_release else self._least) - known, 1)


def stage_claims(
    stage: Stage, accounts: Accountant, shares: Shares, correlated: bool, **asked: Any
) -> list[Claim]:
    """Returns the claims for all observers, those that trust least first.

    Args:
        stage: The stage of the transport.
        accounts: The recorded releases: with each agent's own noise, or for ``server`` with the server's.
        shares: Whose noise was in the sums.
        correlated: Whether the noises of an agent's releases are correlated.
        **asked: Delta, composition and adjacency of the claims, as :meth:`.Accountant.epsilon` takes them.
    """
    own = accounts.epsilon(**asked)
    local, claims = own, [own]
    unclaimable = bool(accounts.unrecorded()[2])
    if stage.trust == "aggregator":
        masked = own
        if own.epsilon != inf and not (shares.bypassed or unclaimable):
            masked = replace(own, epsilon=0.0, reason="a secure sum shows no single release", noise="none")
        claims.append(replace(masked, trust="cryptography", observer="wire"))
    elif stage.trust == "server":
        if shares.times.any():
            local = replace(own, epsilon=inf, reason="released without noise", noise="none")
        local = replace(local, trust="local")
        claims = [replace(local, observer=observer) for observer in ("wire", "server")]
    settled = stage.trust == "server" or own.epsilon in (0, inf) or unclaimable
    for observer, known in (("server", stage.colluders), ("fellow", stage.colluders + 1), ("public", 0)):
        if shares.bypassed:
            claim = replace(local, reason=f"released past the {stage.trust}; {local.reason}".rstrip("; "))
        elif settled:
            claim = replace(own, trust=stage.trust)
        elif stage.trust == "aggregator":
            unknown = shares.unknown(known, correlated and accounts.covering(asked["adjacency"]) == AGENT)
            claim = _summed(stage, accounts, own, unknown, shares.complete, asked)
        else:
            # The public sees a function of what the server sees, and may know the colluders, too.
            unknown = shares.unknown(known or stage.colluders, False)
            claim = _shuffled(stage, accounts, own, unknown, correlated)
        if observer != stage.trust:
            claims.append(replace(claim, observer=observer))
    return claims


def _summed(
    stage: Stage, accounts: Accountant, own: Claim, unknown: Array, complete: bool, asked: dict[str, Any]
) -> Claim:
    """Returns the claim for sums in which an observer does not know ``unknown`` shares of each agent's noise."""
    gaussian = all(event.kind == "gaussian" for event in accounts.events)
    unclaimed = partial(replace, own, epsilon=None, trust=stage.trust)
    if not all(event.adds_up for event in accounts.events):
        return unclaimed(reason="the noise of sums is accounted for Gaussian noise only")
    if not (gaussian or complete):
        return unclaimed(reason="where agents are absent, sums are accounted for Gaussian noise only")
    claim = accounts.rescaled(1 / unknown).epsilon(**asked)
    # A real secure sum adds up integers, whose noise is discrete.
    reason = "; ".join(filter(None, (claim.reason, "idealised: real-valued noise" * gaussian)))
    return replace(claim, reason=reason, trust=stage.trust)


def _shuffled(stage: Stage, accounts: Accountant, own: Claim, unknown: Array, correlated: bool) -> Claim:
    """Returns the local claim or the claim amplified by shuffling, whichever has the smaller epsilon.

    Args:
        stage: The stage of the transport, a shuffler.
        accounts: The recorded releases.
        own: The local claim.
        unknown: Number of messages in a batch whose noise the observer does not know, the agent's own among them,
            int ``(replicas, agents)``.
        correlated: Whether the noises of an agent's releases are correlated; then nothing is amplified.
    """
    unclaimed = partial(replace, own, epsilon=None, trust=stage.trust)
    if correlated:
        return unclaimed(reason="the noise of an agent's messages is correlated")
    if any(event.kind != "gaussian" for event in accounts.events):
        return unclaimed(reason="shuffled batches are accounted for Gaussian noise only")
    if any(event.change(AGENT).norm == inf for event in accounts.events):
        return unclaimed(reason="shuffling hides whole payloads only, which must have a clip")
    if not own.delta:
        return unclaimed(reason="shuffled Gaussian noise gives no finite epsilon at delta 0")
    losses = [event.mu(AGENT) for event in accounts.events]
    rows = np.concatenate([unknown[np.newaxis], accounts.counts]).reshape(len(losses) + 1, -1)
    amplified = 0.0
    for size, *times in np.unique(rows, axis=1).T.tolist():
        # Events that differ otherwise may have the same loss, and then their batches add up.
        batches: Counter[tuple[int, float]] = Counter()
        for loss, n in zip(losses, times, strict=True):
            batches[size, loss] += n
        amplified = max(amplified, shuffled_epsilon(own.delta, +batches))
    if own.epsilon is not None and own.epsilon <= amplified:
        return own
    reason = "" if own.epsilon is None else own.reason
    return replace(own, epsilon=amplified, composition="exact", reason=reason, trust=stage.trust)


def shuffled_epsilon(delta: float, batches: Iterable[tuple[int, float]]) -> float:
    """Returns the epsilon at delta of all given batches together, never above that of their single messages.

    Example:
        >>> round(shuffled_epsilon(1e-3, [(100, 0.2)]), 3)
        0.262

    Args:
        delta: In (0, 1).
        batches: The shuffled batches that contain messages of one agent: of each the number n of messages whose noise
            the observer does not know, including the agent's own; and the privacy loss of one message for any two
            payloads, mu = 2 C/s for Gaussian noise of standard deviation s and a clip C.
    """
    return _epsilon(delta, tuple(Counter(batches).items()))


@lru_cache(maxsize=4096)  # Each episode needs the same results again.
def _epsilon(delta: float, counted: tuple[tuple[tuple[int, float], int], ...]) -> float:
    total = sum(times for _, times in counted)
    least = float(gaussian_epsilon(delta, sqrt(sum(times * mu**2 for (_, mu), times in counted))))
    improved = False
    for part in _PARTS:
        pure: Counter[tuple[int, float]] = Counter()
        failures = 0.0
        for (messages, mu), times in counted:
            delta0 = part * delta / (total * messages)
            local = float(gaussian_epsilon(delta0, mu))
            pure[messages, local] += times
            failures += (1 + exp(-local) / 2) * messages * delta0 * times
        if max((local for _, local in pure), default=0.0) <= _LARGEST_LOSS:
            found = _least_epsilon(delta, _curve(pure), failures, least)
            if found == inf and improved:
                # Parts smaller than the best one only get worse.
                break
            improved, least = found < inf, min(least, found)
    return least


def _least_epsilon(delta: float, curve: Callable[[float], float], failures: float, highest: float) -> float:
    """Returns the least epsilon up to ``highest`` at which ``curve`` and failures give delta; infinity if none does.

    At most half of delta goes to failures.
    """
    if failures:
        if delta < 4 * failures:
            return inf
        highest = min(highest, log(delta / (2 * failures) - 1))

    def suffices(epsilon: float) -> bool:
        return curve(epsilon) + (exp(epsilon) + 1) * failures <= delta

    if highest == inf or not suffices(highest):
        return inf
    # The sum is convex in exp(epsilon), so that it is at most delta from some epsilon on up to `highest`.
    low = 0.0
    for _ in range(50):
        middle = (low + highest) / 2
        low, highest = (low, middle) if suffices(middle) else (middle, highest)
    return highest


def _curve(pure: Counter[tuple[int, float]]) -> Callable[[float], float]:
    """Returns the function from epsilon to delta of batches, given as (messages, eps0) and how often each happened."""
    pure = Counter({batch: times for batch, times in pure.items() if batch[1] > 0})
    if not pure:
        return lambda epsilon: 0.0
    if pure.total() == 1:
        return lambda epsilon: float(_deltas(np.array(epsilon), *next(iter(pure))))
    # The standard deviation of the loss of a batch, roughly.
    deviations = (2 * tanh(local / 2) / sqrt(1 + (n - 1) * exp(-local)) for n, local in pure)
    interval = max(min(deviations) / _INTERVALS, max(local for _, local in pure) / _MOST_INTERVALS)
    parts = [_distribution(*batch, interval).self_compose(times) for batch, times in pure.items()]
    whole = reduce(lambda left, right: left.compose(right), parts)
    return lambda epsilon: float(whole.get_delta_for_epsilon(epsilon))


def _distribution(messages: int, local_epsilon: float, interval: float) -> Any:
    """Returns a pessimistic privacy loss distribution of one batch whose losses are multiples of an interval."""
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    grid = np.arange(int(np.ceil(local_epsilon / interval)) + 1)
    losses = grid * interval
    deltas = _deltas(losses, messages, local_epsilon)
    # Both directions have the same delta, and delta(-x) = 1 - exp(-x) (1 - delta(x)).
    mirrored = (1 - np.exp(-losses) * (1 - deltas))[:0:-1]
    pmf = create_pmf_pessimistic_connect_dots(
        interval, np.concatenate((-grid[:0:-1], grid)), np.concatenate((mirrored, deltas))
    )
    return PrivacyLossDistribution(pmf)


def _deltas(epsilon: Array, messages: int, local_epsilon: float) -> Array:
    """Returns the delta of one batch at each epsilon (any shape)."""
    counts, weights, missing = _clones(messages, local_epsilon)
    right, grown = expit(local_epsilon), np.expm1(epsilon)[..., np.newaxis]
    # For C = c, the first number has the probabilities P(a) = right B(a - 1) + wrong B(a) and, exchanged, Q(a), with
    # B = Bin(c, 1/2) and B(a - 1)/B(a) = a/(c + 1 - a). So P exceeds exp(epsilon) Q from some a on, called `first`, and
    # the sum over a >= first telescopes.
    gain = right - (grown + 1) * expit(-local_epsilon)
    part = (gain + grown) / (tanh(local_epsilon / 2) * (grown + 2))
    first = np.floor(part * (counts + 1)) + 1
    binom = scipy.stats.binom
    shown = gain * binom.pmf(first - 1, counts, 0.5) - grown * binom.sf(first - 1, counts, 0.5)
    return np.minimum(np.maximum(shown, 0.0) @ weights + missing, 1.0)


@lru_cache(maxsize=256)
def _clones(messages: int, local_epsilon: float) -> tuple[Array, Array, float]:
    """Returns numbers of clones, their probabilities, and the probability of still fewer clones."""
    mean = (messages - 1) * exp(-local_epsilon)
    # The probability of fewer clones is below exp(-9^2/2) < 3e-18, by Chernoff's bound.
    low, high = max(mean - 9 * sqrt(mean), 0.0), min(mean + 9 * sqrt(mean) + 1, messages - 1)
    counts = np.unique(np.floor(np.linspace(low, high, _MOST_COUNTS)))
    below = scipy.stats.binom.cdf(counts - 1, messages - 1, exp(-local_epsilon))
    return counts, np.diff(below, append=1.0), float(below[0])


def largest_loss(epsilon: float, delta: float, messages: Sequence[int]) -> float:
    """Returns the largest mu of a message whose batches together are (epsilon, delta) private.

    It is at most a ten-thousandth smaller than the largest one.

    Args:
        epsilon: Epsilon of all batches together, > 0 and finite.
        delta: Delta of all batches together, in (0, 1).
        messages: The number of messages in each batch, at least one of them; see :func:`shuffled_epsilon`.
    """

    def suffices(mu: float) -> bool:
        return shuffled_epsilon(delta, [(n, mu) for n in messages]) <= epsilon

    # Without amplification; slightly less, for rounding.
    low = 1 / (analytic_noise_multiplier(epsilon, delta) * sqrt(len(messages))) * (1 - 1e-9)
    factor = 2.0
    while factor > 1 + 1e-4:
        while suffices(low * factor):
            low *= factor
        factor = sqrt(factor)
    return low
