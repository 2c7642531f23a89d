"""What messages are worth by their noise, counts and Gram matrices, against NumPy."""

import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from weighing_references import gram_worth, worth_of

from fedbandit_envs.baselines.aggregators import Precision
from fedbandit_envs.baselines.aggregators.counts import count_inbox
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.linear.actions import weighed

NAMES = ("delivered", "good", "delivered_noise_variance", "good_noise_variance", "noise_covariance")


def inbox(told, mask):
    arrays = {
        f"inbox_{name}": np.where(mask[..., np.newaxis], array, 0)
        for name, array in zip(NAMES, told, strict=True)
    }
    return {**arrays, "inbox_mask": mask}


def exact(own):
    """Counts as environments show them: integers that nobody writes into."""
    counts = [np.asarray(array, np.int64) for array in own]
    for array in counts:
        array.setflags(write=False)
    return dict(zip(NAMES[:2], counts, strict=True))


def start(rows, senders, values, low):
    """An aggregate of deliveries whose variances are announced from ``low`` on."""
    box = gym_spaces.Box(-np.inf, np.inf, (senders, values), np.float64)
    seen = gym_spaces.Dict({"inbox_delivered": box, "inbox_good": box})
    released = gym_spaces.Dict({"good_noise_variance": gym_spaces.Box(low, np.inf, (values,), np.float64)})
    spec = PolicySpec(seen, gym_spaces.Discrete(2), 10, released, senders, {}, {}, None)
    return Precision().start(count_inbox(spec, rows, "delivered", "good"))


def drawn(luck, senders, values=5):
    """Messages of any kind: much noise and little, negative numbers, more good units than there are."""
    shape = (2, 3, senders, values)
    sd = 10.0 ** luck.uniform(-1, 3, shape)
    w = luck.uniform(-50, 400, shape)
    y = w * luck.uniform(-0.3, 1.3, shape)
    v_w, v_y = sd**2, sd**2 * luck.choice([0.0, 0.5, 1.0], shape)
    v_wy = luck.uniform(-1, 1, shape) * np.sqrt(v_w * v_y)
    return np.stack([w, y, v_w * (luck.random(shape) < 0.8), v_y, v_wy]), luck.random(shape[:3]) < 0.7


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32), senders=st.integers(1, 6), rounds=st.integers(1, 4), continual=st.booleans()
)
def test_counts_are_worth_what_numpy_says(seed, senders, rounds, continual):
    """Each message by itself where its noise is its own; else the sum of all that was told."""
    luck = np.random.default_rng(seed)
    aggregate = start((2, 3), senders, 5, -1.0 if continual else 0.0)
    total, sums = np.zeros((2, 2, 3, 5)), np.zeros((5, 2, 3, 5))
    for _ in range(rounds):
        told, mask = drawn(luck, senders)
        own = luck.integers(0, 100, (2, 3, 5)).astype(float)
        own = own, np.floor(own * luck.random(own.shape))
        aggregate.add(inbox(told, mask), exact=exact(own))
        expected = total.copy()
        for r, j, i in np.ndindex(2, 3, 5):
            messages = told[:, r, j, mask[r, j], i].T
            if continual:
                if not mask[r, j].any():
                    continue
                sums[:, r, j, i] += messages.sum(axis=0)
                messages = [sums[:, r, j, i]]
                expected[:, r, j, i] = 0
            mine = own[0][r, j, i], own[1][r, j, i]
            expected[:, r, j, i] += worth_of(messages, mine, total[:, r, j, i])
        total = expected
        outcomes, good = aggregate.totals.values()
        np.testing.assert_allclose([outcomes, good], total, rtol=1e-9, atol=1e-9)
        assert ((good >= 0) & (good <= outcomes)).all()


def test_counts_do_not_depend_on_the_order_of_senders_and_values():
    luck = np.random.default_rng(3)
    told, mask = drawn(luck, 6)
    own = np.full((2, 3, 5), 20.0), np.full((2, 3, 5), 7.0)
    senders, values = luck.permutation(6), luck.permutation(5)
    results = []
    for low in (0.0, -1.0):
        for some in (slice(None), senders):
            for which in (slice(None), values):
                aggregate = start((2, 3), 6, 5, low)
                now = mask[:, :, some]
                aggregate.add(inbox(told[:, :, :, some][..., which], now), exact=exact(own))
                totals = np.stack(list(aggregate.totals.values()))
                results.append(totals[..., np.argsort(np.arange(5)[which])])
    for first, others in ((results[0], results[1:4]), (results[4], results[5:])):
        assert first.any()
        for result in others:
            np.testing.assert_allclose(result, first, rtol=1e-9, atol=1e-12)


def test_messages_that_are_no_numbers_count_for_nothing():
    aggregate = start((1, 1), 3, 1, 0.0)
    told = np.zeros((5, 1, 1, 3, 1))
    told[0, 0, 0, :, 0] = np.nan, np.inf, -np.inf
    mask = np.ones((1, 1, 3), np.bool_)
    own = np.ones((1, 1, 1)), np.ones((1, 1, 1))
    aggregate.add(inbox(told, mask), exact=exact(own))
    assert not aggregate.totals["delivered"].any()


@pytest.mark.parametrize("seed", range(20))
def test_gram_matrices_are_worth_what_numpy_says(seed):
    luck = np.random.default_rng(seed)
    contexts = luck.normal(size=(4, 2, 30, 5))
    statistic = np.swapaxes(contexts, -1, -2) @ contexts + luck.normal(size=(4, 2, 5, 5)) * 10
    variance = np.array([0.0, 1.0, 100.0, 1e4])
    result = weighed(statistic, variance, 0.12)
    np.testing.assert_allclose(result, np.swapaxes(result, -1, -2), atol=1e-9)
    for n, e in np.ndindex(4, 2):
        gram, moment = gram_worth(statistic[n, e], variance[n], 0.12)
        np.testing.assert_allclose(result[n, e, :-1, :-1], gram, atol=1e-9)
        np.testing.assert_allclose(result[n, e, :-1, -1], moment, atol=1e-9)


def test_gram_matrices_without_noise_are_the_true_ones():
    draws = np.random.default_rng(0).normal(size=(3, 2, 40, 5))
    statistic = np.swapaxes(draws, -1, -2) @ draws
    np.testing.assert_allclose(weighed(statistic, np.zeros(3), 0.01), statistic, atol=1e-10)


def test_gram_matrices_of_pure_noise_weigh_next_to_nothing():
    """What comes of it is a small part of one observation."""
    noise = np.random.default_rng(1).normal(size=(200, 1, 6, 6)) * 50
    trace = np.trace(weighed(noise, np.full(200, 2500.0), 0.01)[..., :5, :5], axis1=-2, axis2=-1)
    assert (trace >= 0).all()
    assert trace.max() < 1.0
