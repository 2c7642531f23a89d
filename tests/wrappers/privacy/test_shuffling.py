"""Shuffled batches against enumeration of what an observer can see, and against the published reduction's numbers."""

import math
from collections import Counter
from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm
from shuffled_bits import response_delta, response_epsilon, stick

from fedbandit_envs.wrappers.privacy import stage_claims
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.stage_claims import _deltas, largest_loss, shuffled_epsilon


def shuffled_delta(epsilon: float, n: int, eps0: float) -> float:
    """The delta at epsilon of n shuffled messages, each by a randomiser that is eps0-DP."""
    return float(_deltas(np.array(epsilon), n, eps0))


def pure_epsilon(delta: float, *batches: tuple[int, float]) -> float:
    """The epsilon at delta of shuffled batches, each of a number of messages that are eps0-DP."""
    highest = sum(eps0 for _, eps0 in batches)
    return stage_claims._least_epsilon(delta, stage_claims._curve(Counter(batches)), 0.0, highest)


@lru_cache(maxsize=8)
def pair(n: int, eps0: float) -> tuple[np.ndarray, np.ndarray]:
    """The two distributions of the reduction, outcome by outcome, for almost all of their mass."""
    right, keep = 1 / (1 + math.exp(-eps0)), math.exp(-eps0)
    ps, qs = [], []
    for c, weight in enumerate(binom.pmf(np.arange(n), n - 1, keep).tolist()):
        if weight > 1e-30:
            half = binom.pmf(np.arange(-1, c + 2), c, 0.5)
            ps.append(weight * (right * half[:-1] + (1 - right) * half[1:]))
            qs.append(weight * ((1 - right) * half[:-1] + right * half[1:]))
    return np.concatenate(ps), np.concatenate(qs)


@pytest.mark.parametrize("n", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("eps0", [0.1, 1.0, 3.0])
def test_a_batch_is_never_said_to_be_more_private_than_randomised_response(n, eps0):
    for share in (0.0, 0.02, 0.1, 0.3, 0.6, 0.95):
        assert shuffled_delta(share * eps0, n, eps0) >= response_delta(share * eps0, n, eps0) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("n", "eps0", "delta", "exact", "said"),
    [
        (10, 1, 1e-2, 0.7395, 0.9109),
        (100, 1, 1e-3, 0.2270, 0.3318),
        (1000, 1, 1e-5, 0.1054, 0.1540),
        (3000, 2, 1e-6, 0.1707, 0.2969),
    ],
)
def test_the_printed_epsilons(n, eps0, delta, exact, said):
    assert pure_epsilon(delta, (n, eps0)) == pytest.approx(said, abs=5.1e-5)
    if n <= 1000:
        assert response_epsilon(delta, n, eps0) == pytest.approx(exact, abs=5.1e-5)


@pytest.mark.parametrize(("n", "eps0"), [(1, 0.7), (2, 2.0), (30, 0.3), (300, 1.0), (3000, 2.5)])
def test_the_delta_is_that_of_the_reduction_in_both_directions(n, eps0):
    p, q = pair(n, eps0)
    for share in (0.01, 0.1, 0.4, 0.8):
        epsilon = share * eps0
        said = shuffled_delta(epsilon, n, eps0)
        for exact in (stick(epsilon, p, q), stick(epsilon, q, p)):
            assert said == pytest.approx(exact, rel=1e-9, abs=1e-16)
    assert shuffled_delta(0.5 * eps0, n, eps0) > 0 or n > 100


def test_rounding_of_many_clones_only_adds():
    p, q = pair(4000, 0.5)
    for epsilon in (0.0, 0.01, 0.03, 0.05):
        exact = stick(epsilon, p, q)
        assert exact <= shuffled_delta(epsilon, 4000, 0.5) <= 1.01 * exact
    # Here delta is below every floating-point number for as many clones as there are; so few as to matter are counted.
    assert 0 < shuffled_delta(0.49, 10_000, 0.5) < 1e-17


def test_different_batches_are_composed_as_enumeration_does():
    batches = [(4, 1.0), (9, 0.6), (4, 1.0)]
    p, q = np.ones(1), np.ones(1)
    for n, eps0 in batches:
        one = pair(n, eps0)
        p, q = np.outer(p, one[0]).ravel(), np.outer(q, one[1]).ravel()
    for delta in (1e-1, 1e-2, 1e-3):
        said = pure_epsilon(delta, *batches)
        assert stick(said, p, q) <= delta
        assert stick(0.99 * said, p, q) > delta


def test_gaussian_messages_pay_for_what_is_not_pure():
    """Close to the least epsilon at which the reduction's delta and the second term fit into delta, for any delta0."""
    n, delta, mu = 30, 1e-2, 0.1

    def beyond(epsilon, eps0, delta0):
        second = (math.exp(epsilon) + 1) * (1 + math.exp(-eps0) / 2) * n * delta0
        return stick(epsilon, *pair(n, eps0)) + second - delta

    said, best = shuffled_epsilon(delta, [(n, mu)]), math.inf
    for delta0 in np.geomspace(1e-4, 1 / 6, 50) * delta / n:
        eps0 = float(gaussian_epsilon(delta0, mu))
        if beyond(2 * said, eps0, delta0) < 0:
            best = min(best, brentq(beyond, 0, 2 * said, args=(eps0, delta0)))
    assert best - 1e-9 <= said <= 1.01 * best


def test_what_is_not_pure_adds_up_over_batches(monkeypatch):
    """One delta0 for five batches: the epsilon at which all second terms and the composed first term are delta."""
    delta, part, counts = 1e-2, 1 / 8, {60: 3, 90: 2}
    monkeypatch.setattr(stage_claims, "_PARTS", (part,))
    stage_claims._epsilon.cache_clear()
    said = shuffled_epsilon(delta, [(n, 0.1) for n, times in counts.items() for _ in range(times)])
    stage_claims._epsilon.cache_clear()
    pure, second = Counter(), 0.0
    for n, times in counts.items():
        delta0 = part * delta / (5 * n)
        eps0 = float(gaussian_epsilon(delta0, 0.1))
        pure[n, eps0] = times
        second += times * (math.exp(said) + 1) * (1 + math.exp(-eps0) / 2) * n * delta0
    assert said < gaussian_epsilon(delta, 0.1 * math.sqrt(5))
    assert stage_claims._curve(pure)(said) + second == pytest.approx(delta, rel=1e-6)


def test_large_losses_are_not_amplified():
    large = [(100, 60.0), (100, 0.01)]
    assert shuffled_epsilon(1e-3, large) == pytest.approx(gaussian_epsilon(1e-3, math.hypot(60, 0.01)))
    tiny = pure_epsilon(1e-3, (100, 1e-9), (100, 2.0))
    assert tiny == pytest.approx(pure_epsilon(1e-3, (100, 2.0)), rel=0.02)


@pytest.mark.parametrize(("n", "delta", "mu"), [(100, 1e-3, 0.5), (1000, 1e-5, 1.0), (1, 1e-2, 0.3)])
def test_where_shuffling_gains_nothing_the_local_claim_stands(n, delta, mu):
    assert shuffled_epsilon(delta, [(n, mu)]) == gaussian_epsilon(delta, mu)
    assert shuffled_epsilon(delta, [(n, mu)] * 4) == gaussian_epsilon(delta, 2 * mu)


@pytest.mark.parametrize("n", [2, 20, 300])
@pytest.mark.parametrize("mu", [0.05, 0.4])
def test_signs_of_gaussian_messages_are_no_less_private_than_said(n, mu):
    """Signs of messages about +C and -C are randomised response. For two messages, half the loss is refuted: C/s."""
    eps0 = math.log(norm.cdf(mu / 2) / norm.cdf(-mu / 2))
    for share in (0.1, 0.3, 0.6):
        delta = response_delta(share * eps0, n, eps0)
        assert shuffled_epsilon(delta, [(n, mu)]) >= share * eps0
        assert n > 2 or shuffled_epsilon(delta, [(n, mu / 2)]) < share * eps0


@pytest.mark.parametrize("messages", [[200, 100], [1]])
def test_the_largest_loss_spends_what_is_given(messages):
    loss = largest_loss(0.5, 1e-4, messages)
    assert shuffled_epsilon(1e-4, [(n, loss) for n in messages]) <= 0.5
    assert shuffled_epsilon(1e-4, [(n, 1.0003 * loss) for n in messages]) > 0.5
