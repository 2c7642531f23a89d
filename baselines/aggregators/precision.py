"""The aggregator ``precision``, which weighs received messages by the noise that they announce.

Messages announce the variance of their noise (:mod:`fedbandit_envs.core.privacy`). The received statistics
are replaced by those of as many exact observations as are equally informative, and added to the agent's own data, which
stay exact. So pure noise counts for next to nothing, messages without data do not harm, and no message need be checked
and no estimate regularised because of noise. The numbers of exact observations are plug-in estimates, not bounds.

The aggregator is not robust: a sender that announces less noise than it has added counts for more than it should, as
does a sender that multiplies its statistics by a factor.

**Counts of binary outcomes.** A message (w, y) states that y of w outcomes were successes, both with noise; r = y / w,
clipped to [0, 1], estimates the success probability q. With variances v_w and v_y of the noise and their covariance
v_wy the variance of r is about (v_y - 2 r v_wy + r^2 v_w + q (1 - q) w) / w^2. The mean of n = q (1 - q) / variance
exact outcomes has the same variance, so the message counts as n outcomes, n r of them successes. The unknown q is
replaced by (Y + 1) / (W + 2), clipped to [0.02, 0.98], where W and Y are the agent's own counts plus those received
before this round. Where w <= 4 sqrt(v_w) the quotient is meaningless, and n is 0.

Does the confidence radius sqrt(ln(1 / failure) / (2 W)) hold with W = own counts + sum n? Where w is exact (randomised
response) and the weights n are taken as fixed, n r is sub-Gaussian with variance proxy at most n / 4, since
n <= 1 / (4 v_y / w^2 + 1 / w) whatever q is, if v_y is a variance proxy of the noise; so the radius holds as it does
for W exact outcomes. But weights follow from the messages, r is clipped, and a noisy w makes r a quotient with a bias
of second order, up to a sixteenth at w = 4 sqrt(v_w). No bound of these effects is known, and none for a radius with
tuned constants.

Where the noises of an agent's messages depend on each other, as in continual release, a variance is known only of the
sum of its messages. Then all received messages are weighed together, as one sum.

**Sums of [x; y][x; y]^T.** A received sum has a Gram matrix G of contexts x and a moment b of rewards times contexts,
with noise N and h. Let G + N = sum_i g_i v_i v_i^T be the eigenvalue decomposition of the sum over all messages, whose
noise has variance nu on the diagonal and nu / 2 elsewhere. The error h - N theta then has about the variance nu in
every direction, where ||theta|| <= 1, besides R^2 g_i from the rewards, R^2 being the variance of one reward. So in
direction v_i the sum is as informative as g_i^2 / (g_i + nu / R^2) exact observations, and as none where g_i <= 0; the
moment is shrunk by g_i / (g_i + nu / R^2). The formula is applied to the sum of all messages. Message by message it
would trust directions in which noise made the g_i of one message too large, and the noise of different messages would
no longer cancel. No bound of the error is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec, Sum
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, independent, variance_of
from fedbandit_envs.linear.actions import weighed


@dataclass
class Precision(Aggregator):
    """An aggregator that replaces noisy sums by statistics of as many exact observations as are equally informative.

    Attributes:
        reward_variance: R^2 > 0, the variance of one reward, used for Gram matrices; for counts of binary outcomes the
            variance follows from the counts. 1/4 is the largest possible variance of a reward in [0, 1].

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.baselines.aggregators import Precision
        >>> from fedbandit_envs.baselines.aggregators.precision import count_inbox
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Channel
        >>> spec = Channel(parallel_env(num_agents=3, num_arms=2)).policy_spec
        >>> aggregate = Precision().start(count_inbox(spec, (1, 1), "pulls", "successes"))
        >>> aggregate.totals["pulls"]
        array([[[0., 0.]]])
    """

    reward_variance: float = 0.25

    def __post_init__(self) -> None:
        """Checks that ``reward_variance`` is a finite number > 0.

        Raises:
            TypeError: The variance is no number.
            ValueError: The variance is not > 0, or infinite.
        """
        require_number("reward_variance", self.reward_variance, 0, np.inf, open_below=True)

    def start(self, inbox: InboxSpec) -> Aggregator:
        """Returns the aggregator of such arrays that weighs them; see :meth:`Aggregator.start`."""
        if inbox.echoed:
            raise UnfitError(
                "agents receive what they have sent themselves, through noise, which the aggregator 'precision' would "
                "count beside the exact data; a transport with echo=False is required"
            )
        if inbox.weigh is None:
            raise UnfitError(
                f"nobody has said what noisy arrays {list(inbox.shapes)} are worth; an InboxSpec with 'weigh', as "
                "counts and Gram matrices have, is required for the aggregator 'precision'"
            )
        return inbox.weigh(float(self.reward_variance)).start(inbox)


def count_inbox(spec: PolicySpec, rows: tuple[int, ...], trials: str, successes: str) -> InboxSpec:
    """Returns the description of received counts of outcomes and successes, for aggregators.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        trials: Name of the array of numbers of outcomes, as senders release it.
        successes: Name of the array of numbers of successes among these outcomes.
    """
    inbox = InboxSpec.of(spec, rows, trials, successes)
    return inbox._replace(independent=independent(spec.release), weigh=lambda variance: _WeighedCounts())


@kernel
def _weigh(received, exact_trials, exact_successes, trials_before, successes_before, trials, successes):
    """Adds to two totals the exact outcomes, and successes, that are as informative as the received noisy counts.

    Args:
        received: w, y, v_w, v_y and v_wy of the module's docstring, ``(5, replicas, agents, senders, values)``, with
            one value for each arm or producer; w is 0 where nothing has arrived.
        exact_trials: Numbers of the agent's own outcomes, ``(replicas, agents, values)``.
        exact_successes: Numbers of successes among the agent's own outcomes, same shape.
        trials_before: Numbers of outcomes counted from earlier messages, same shape.
        successes_before: Numbers of successes counted from earlier messages, same shape.
        trials: Total to which the numbers of outcomes are added, same shape.
        successes: Total to which the numbers of successes are added, same shape.
    """
    for r in range(received.shape[1]):
        for j in range(received.shape[2]):
            for i in range(received.shape[4]):
                known = exact_trials[r, j, i] + trials_before[r, j, i]
                quality = (exact_successes[r, j, i] + successes_before[r, j, i] + 1.0) / (known + 2.0)
                quality = min(max(quality, 0.02), 0.98)
                spread = quality * (1.0 - quality)
                for s in range(received.shape[3]):
                    w, y = received[0, r, j, s, i], received[1, r, j, s, i]
                    of_trials, of_successes = received[2, r, j, s, i], received[3, r, j, s, i]
                    # Comparisons with a NaN are false; with "not" a NaN among the received numbers is left out.
                    if not (w > 4.0 * np.sqrt(max(of_trials, 0.0)) and w < np.inf):
                        continue
                    ratio = min(max(y / w, 0.0), 1.0)
                    of_both = received[4, r, j, s, i]
                    noise = max(of_successes - 2.0 * ratio * of_both + ratio * ratio * of_trials, 0.0)
                    worth = w * (spread * w / (noise + spread * w))
                    trials[r, j, i] += worth
                    successes[r, j, i] += worth * ratio


class _WeighedCounts(Aggregator):
    """Totals of exact outcomes that are as informative as noisy counts: message by message, or of all as one sum."""

    def _begin(self, inbox: InboxSpec) -> None:
        super()._begin(inbox)
        noise = (*map(variance_of, inbox.shapes), COVARIANCE)
        self._read = [f"inbox_{name}" for name in (*inbox.shapes, *noise)]
        values = inbox.shapes[next(iter(inbox.shapes))]
        self._sums = None if inbox.independent else np.zeros((5, *inbox.rows, 1, *values))

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        messages = np.zeros((5, *observation[self._read[0]].shape))
        for numbers, name in zip(messages, self._read, strict=True):
            if name in observation:
                np.copyto(numbers, observation[name], where=arrived)
        if self._sums is not None:
            self._sums += messages.sum(axis=3, keepdims=True)
            messages = self._sums
        totals = list(self.totals.values())
        worth = np.zeros((2, *totals[0].shape))
        _weigh(messages, *(exact[name] for name in self.totals), *totals, *worth)
        if self._sums is not None:
            # For an agent with new messages, `_weigh` has just converted the sum of all its messages since the start of
            # the episode into exact outcomes. So this result replaces the agent's former total instead of being added
            # to it. The totals of agents without new messages do not change.
            news = arrived.any(axis=(2, 3))
            for total in totals:
                total[news] = 0.0
            worth[:, ~news] = 0.0
        for total, added in zip(totals, worth, strict=True):
            total += weight * added


GRAM = "statistic"
"""Name of the array with sums of [x; y][x; y]^T, as senders release it."""

NOISE = variance_of(GRAM)
"""Name of the array with the variances of the noise in :data:`GRAM`, of which the diagonals are used."""


def gram_inbox(spec: PolicySpec, rows: tuple[int, ...]) -> InboxSpec:
    """Returns the description of received sums of [x; y][x; y]^T, with variances of their noise where announced.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    inbox = InboxSpec.of(spec, rows, GRAM)
    # Messages hold one sum, or one sum for each of several estimators: then the array has one more leading axis.
    shape = inbox.shapes[GRAM] if len(inbox.shapes[GRAM]) == 3 else (1, *inbox.shapes[GRAM])
    noise = {NOISE: shape[:-1]} if f"inbox_{NOISE}" in spec.observation.spaces else {}
    return inbox._replace(shapes={GRAM: shape, **noise}, weigh=_WeighedGrams)


def gram_arrays(observation: Arrays) -> Arrays:
    """Returns the observation with the received matrices of noise variances replaced by their diagonals.

    The arrays then have the shapes that :func:`gram_inbox` declares.
    """
    noise = observation.get(f"inbox_{NOISE}")
    if noise is None:
        return observation
    return {**observation, f"inbox_{NOISE}": np.diagonal(noise, axis1=-2, axis2=-1)}


def noise_of(totals: Mapping[str, Array], rows: tuple[int, ...]) -> Array:
    """Returns the largest variance of the noise on the diagonals of the received sums, ``(replicas, agents)``.

    Args:
        totals: The ``totals`` of an aggregator of these sums. Without an array of noise variances among them, because
            there is no noise or the aggregator has already accounted for it, the result is 0.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
    """
    if NOISE not in totals:
        return np.zeros(rows)
    variance: Array = np.maximum(totals[NOISE].max(axis=(-2, -1)), 0.0)
    return variance


@dataclass
class _WeighedGrams(Aggregator):
    """Gram matrices and moments of exact observations that are as informative as the sum of all messages."""

    reward_variance: float

    def _begin(self, inbox: InboxSpec) -> None:
        self._sum = Sum().start(inbox)
        # The totals hold no array of noise variances: the weights account for all noise.
        self.totals = {GRAM: np.zeros_like(self._sum.totals[GRAM])}

    def _add(self, observation: Arrays, arrived: Array, exact: Arrays, weight: float) -> None:
        self._sum.add(observation, arrived, exact, weight)
        news = observation["inbox_mask"].any(axis=-1)
        total = self._sum.totals[GRAM]
        variance = noise_of(self._sum.totals, total.shape[:2])
        self.totals[GRAM][news] = weighed(total[news], variance[news], self.reward_variance)
