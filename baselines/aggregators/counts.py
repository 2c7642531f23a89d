"""Counts of binary outcomes as an inbox, and what noisy counts are worth.

A message (w, y) states that y of w outcomes were successes; r = y / w, clipped to [0, 1], estimates the success
probability q. With variances v_w and v_y of the noise and their covariance v_wy the variance of r is about
(v_y - 2 r v_wy + r^2 v_w + q (1 - q) w) / w^2, that of n = q (1 - q) / variance exact outcomes; so the message counts
as n outcomes, n r of them successes. In the place of q stands (Y + 1) / (W + 2), clipped to [0.02, 0.98], where W and Y
are the own counts and what was received before this round. Where w <= 4 sqrt(v_w) the quotient means nothing, and n is
0.

What the confidence radius sqrt(ln(1 / failure) / (2 W)) is still worth with W = own counts + sum n: where w is exact
(randomised response) and the weights are taken as given, n r is sub-Gaussian with variance proxy at most n / 4, since
n <= 1 / (4 v_y / w^2 + 1 / w) whatever q is, if v_y is a proxy of the noise; so the radius holds as it does for W exact
outcomes. But weights follow from the messages, r is clipped, and a noisy w makes r a quotient with a bias of second
order, up to a sixteenth at the cut: no bound of that is known, and none of a radius that was tuned.

Where the noises of an agent's messages depend on each other, as in continual release, only sums have a known variance:
then all that was received is weighed as one sum.
"""

import numpy as np

from fedbandit_envs.baselines.aggregators.aggregator import Aggregator, InboxSpec
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.noise_variance import COVARIANCE, independent, variance_of
from fedbandit_envs.core.policy_spec import PolicySpec


def count_inbox(spec: PolicySpec, rows: tuple[int, ...], trials: str, successes: str) -> InboxSpec:
    """Returns the specification of an inbox of counts.

    Args:
        spec: The environment's; it has an inbox.
        rows: ``(replicas, agents)``.
        trials: Name in releases of the numbers of outcomes.
        successes: Name of the numbers of successes among them.
    """
    inbox = InboxSpec.of(spec, rows, trials, successes)
    return inbox._replace(independent=independent(spec.release), weigh=_WeighedCounts)


@kernel
def _weigh(received, exact_trials, exact_successes, trials_before, successes_before, trials, successes):
    """Adds the exact outcomes that messages are worth, sender by sender, value by value.

    Args:
        received: w, y, v_w, v_y and v_wy, ``(5, replicas, agents, senders, values)``; w is 0 where nothing has arrived.
        exact_trials: The agent's own outcomes, ``(replicas, agents, values)``.
        exact_successes: Successes among them.
        trials_before: What was received before, same shape.
        successes_before: Successes among them.
        trials: Is added to, same shape.
        successes: Is added to, same shape.
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
                    # Written with "not" so that a NaN counts for nothing.
                    if not (w > 4.0 * np.sqrt(max(of_trials, 0.0)) and w < np.inf):
                        continue
                    ratio = min(max(y / w, 0.0), 1.0)
                    of_both = received[4, r, j, s, i]
                    noise = max(of_successes - 2.0 * ratio * of_both + ratio * ratio * of_trials, 0.0)
                    worth = w * (spread * w / (noise + spread * w))
                    trials[r, j, i] += worth
                    successes[r, j, i] += worth * ratio


class _WeighedCounts(Aggregator):
    """Exact outcomes that messages are worth: each message by itself, or all as one sum.

    The variance of a reward, which other statistics need, is not used: it follows from the counts.
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
            # Rows with news: the worth of the new sums replaces that of the old ones.
            news = arrived.any(axis=(2, 3))
            for total in totals:
                total[news] = 0.0
            worth[:, ~news] = 0.0
        for total, added in zip(totals, worth, strict=True):
            total += weight * added
