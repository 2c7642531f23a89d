"""Exact checks of privatizers' books: announced variances are compared with the events that are recorded for them."""

import numpy as np

from fedbandit_envs.core.privacy import AGENT, variance_of
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.testing.assertions import require
from fedbandit_envs.testing.episodes import Trial, copied
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_delta

KNOWN = {
    "gaussian": lambda loss: 1 / loss**2,
    "laplace": lambda loss: 2 / loss**2,
    "randomised_response": lambda loss: 1 / (4 * np.sinh(min(loss, 700.0) / 2) ** 2),
}
"""For each kind of event the variance of the noise by its loss: at scale 1, or of one binary outcome."""


def check_booked(wrap, make, releases=3):
    """Checks that noise is as large as the recorded events require, and that events promise no more than they keep."""
    noisy = Trial(lambda: find_layer(wrap(make()), "noise"), rounds=2 * releases)
    clear = Trial(lambda: find_layer(wrap(make()), "noise").env, rounds=2 * releases)
    layer, before = noisy.env, {}
    for trial in (noisy, clear):
        trial.env.reset_batch(trial.seeds)
    for t, action in enumerate(noisy.actions):
        for trial in (noisy, clear):
            trial.env.step_batch(action)
        if t % 2:
            sends = layer.allowed_senders(noisy.everyone)
            found, data = copied(layer.release(sends)), copied(clear.env.release(sends))
            booked = dict(zip(layer.accountant.events, layer.accountant.counts, strict=True))
            for event, times in booked.items():
                who = times > before.get(event, 0)
                # Events of unknown kinds are attacked; events without noise guarantee nothing.
                if event.kind in KNOWN and np.isfinite(event.loss) and who.any():
                    _require_promises(event, layer.sensitivity())
                    _require_variance(event, who, layer.sensitivity(), found, data)
            before = booked


def _in_sum(event, sensitivity):
    """Returns whether an event is of a clipped release, and its privacy depends on the sum of absolute differences.

    Neighbouring clipped releases of n numbers differ by a Euclidean norm of 2 C, and so by a sum of 2 C sqrt(n).
    """
    return AGENT in sensitivity.changes and event.kind != "gaussian"


def _require_variance(event, who, sensitivity, found, data):
    # Where one event describes several releases, only the variances of sums are known.
    square = {name: scale**2 for name, scale in sensitivity.scale.items()} if event.releases == 1 else {}
    if event.kind == "randomised_response" and sensitivity.pair:
        square = {sensitivity.pair.good: data[sensitivity.pair.total]}
    for name in square:
        variance = found[variance_of(name)][who]
        least = KNOWN[event.kind](event.loss) * square[name][who]
        if _in_sum(event, sensitivity):
            agent, loss = sensitivity.changes[AGENT], event.loss * event.change(AGENT).values
            least = KNOWN[event.kind](loss) * square[name][who] * agent.values * agent.norm**2
        if sensitivity.symmetric:
            # A change off the diagonal of a symmetric matrix appears twice, so half the variance suffices there.
            least = least * np.where(np.eye(least.shape[-1]), 1.0, 0.5)
        short = variance < least * (1 - 1e-6)
        require(
            not short.any(),
            f"the noise on {name!r} has the variance {variance[short][:1]}, but the booked event "
            f"{event.kind!r} of loss {event.loss:.4g} claims {least[short][:1]}",
        )


def _require_promises(event, sensitivity):
    """Requires that an event states no smaller change than the sensitivity and promises no more than its loss gives."""
    told = [sensitivity.changes] + ([sensitivity.pair.changes] if sensitivity.pair else [])
    part = int(event.kind == "gaussian")
    for adjacency, change in event.changes:
        known = [changes[adjacency][part] for changes in told if adjacency in changes]
        least = 0.0 if _in_sum(event, sensitivity) else min(known, default=0.0)
        require(
            change[part] >= least * (1 - 1e-9),
            f"the booked event {event.kind!r} has a change of {change[part]:.4g} under {adjacency!r}, where "
            f"sensitivity has {least:.4g}",
        )
        epsilon, delta = event.promised(adjacency)
        kept = event.loss <= event.epsilon * (1 + 1e-9)
        if event.kind == "gaussian":
            kept = delta >= 1 or gaussian_delta(epsilon, event.mu(adjacency)) <= delta * (1 + 1e-6)
        require(
            kept,
            f"the booked event {event.kind!r} promises epsilon {epsilon:.4g} at delta {delta:.4g} under {adjacency!r}, "
            f"more than its loss of {event.loss:.4g} gives",
        )
