"""Received counts of binary outcomes, and the number of exact outcomes that are as informative as noisy counts.

A message (w, y) states that y of w outcomes were successes, both with noise; r = y / w, clipped to [0, 1], estimates
the success probability q. With variances v_w and v_y of the noise and their covariance v_wy the variance of r is about
(v_y - 2 r v_wy + r^2 v_w + q (1 - q) w) / w^2. The mean of n = q (1 - q) / variance exact outcomes has the same
variance, so the message counts as n outcomes, n r of them successes. The unknown q is replaced by (Y + 1) / (W + 2),
clipped to [0.02, 0.98], where W and Y are the agent's own counts plus those received before this round. Where
w <= 4 sqrt(v_w) the quotient is meaningless, and n is 0.

Does the confidence radius sqrt(ln(1 / failure) / (2 W)) hold with W = own counts + sum n? Where w is exact (randomised
response) and the weights n are taken as fixed, n r is sub-Gaussian with variance proxy at most n / 4, since
n <= 1 / (4 v_y / w^2 + 1 / w) whatever q is, if v_y is a variance proxy of the noise; so the radius holds as it does
for W exact outcomes. But weights follow from the messages, r is clipped, and a noisy w makes r a quotient with a bias
of second order, up to a sixteenth at w = 4 sqrt(v_w). No bound of these effects is known, and none for a radius with
tuned constants.

Where the noises of an agent's messages depend on each other, as in continual release, a variance is known only of the
sum of its messages. Then all received messages are weighed together, as one sum.
"""

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, independent, variance_of


def count_inbox(spec: PolicySpec, rows: tuple[int, ...], trials: str, successes: str) -> InboxSpec:
    """Returns the description of received counts of outcomes and successes, for aggregators.

    Args:
        spec: Public description of the environment, whose agents must receive messages.
        rows: Numbers of replicas and agents, ``(replicas, agents)``.
        trials: Name of the array of numbers of outcomes, as senders release it.
        successes: Name of the array of numbers of successes among these outcomes.
    """
    inbox = InboxSpec.of(spec, rows, trials, successes)
    return inbox._replace(independent=independent(spec.release), weigh=_WeighedCounts)


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
    """Totals of exact outcomes that are as informative as noisy counts: message by message, or of all as one sum.

    The argument ``reward_variance`` is not used: the variance of a binary outcome follows from the counts.
    """

    def __init__(self, reward_variance: float) -> None:
        pass

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
