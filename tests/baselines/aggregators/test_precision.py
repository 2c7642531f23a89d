"""Weighing by known noise: against plain numpy, message by message and in policies, on true data and on noise alone."""

import fairx_reference
import numpy as np
import pytest
from gymnasium import spaces as gym_spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from played import played, refused

from fedbandit_envs.arms_v0 import parallel_env as arms
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.aggregators import InboxSpec, Precision, count_inbox, make_aggregator
from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.procurement import PFCB, SSUCB
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.privacy import COVARIANCE, variance_of
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.linear.actions import weighed
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.procurement_v0 import parallel_env as procurement
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import (
    Channel,
    ContinualPrivatizer,
    GaussianPrivatizer,
    Interleaved,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
    Server,
)

NAMES = ("delivered", "good", variance_of("delivered"), variance_of("good"), COVARIANCE)


def worth(w, y, v_w, v_y, v_wy, q):
    """How many units a message is worth, and how many good ones, by the formula's words."""
    if w <= 4 * np.sqrt(v_w):
        return 0.0, 0.0
    r = min(max(y / w, 0.0), 1.0)
    variance = (max(v_y - 2 * r * v_wy + r**2 * v_w, 0.0) + q * (1 - q) * w) / w**2
    n = q * (1 - q) / variance
    return n, n * r


def worth_of(messages, own, before):
    """All of them for one value: ``messages`` rows of w, y, v_w, v_y and v_wy."""
    total, good = own[0] + before[0], own[1] + before[1]
    q = min(max((good + 1) / (total + 2), 0.02), 0.98)
    return np.sum([worth(*message, q) for message in messages] or [(0.0, 0.0)], axis=0)


def gram_worth(heard, variance, reward_variance):
    """The Gram matrix and the moment, direction by direction."""
    gram, moment = fairx_reference.weighed(heard, variance, reward_variance**0.5)
    return gram - np.eye(len(gram)), moment


def inbox(told, mask):
    told = np.where(mask[..., np.newaxis], told, 0)
    return {**{f"inbox_{name}": one for name, one in zip(NAMES, told, strict=True)}, "inbox_mask": mask}


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


SOMETIMES = {"name": "fixed_gap", "gap": 3}


PROCUREMENT = {
    "gaussian": lambda env: GaussianPrivatizer(env, epsilon_per_release=50.0, calibration="analytic"),
    "good and defective": lambda env: GaussianPrivatizer(
        env, epsilon_per_release=200.0, delta=0.1, calibration="analytic", pair="good_and_defective"
    ),
    "laplace": lambda env: LaplacePrivatizer(env, epsilon_per_release=20.0),
    "randomised response": lambda env: RandomizedResponsePrivatizer(env, epsilon_per_release=1.0),
    "continual": lambda env: ContinualPrivatizer(env, 5.0, 0.1, adjacency="one-quantity"),
}
CARRIERS = {
    "channel": lambda env: Channel(env, schedule=SOMETIMES, topology="ring", delay=1, loss=0.2),
    "server": lambda env: Server(env, schedule=SOMETIMES, answers="every_round", echo=False),
}


def check_worth(env, policy, counts, continual, seeds=(0, 1)):
    """Plays an episode; agents must hold what the messages that they saw are worth, from their observations alone."""
    names = (*counts, *map(variance_of, counts), COVARIANCE)
    for t, (_, seen, _) in enumerate(played(env, policy, seeds)):
        told = [seen.get(f"inbox_{name}", np.zeros(seen[f"inbox_{counts[0]}"].shape)) for name in names]
        told, own = np.stack(told), np.stack([seen[f"total_{name}"] for name in counts])
        if t == 0:
            held, sums = np.zeros(own.shape), np.zeros((5, *own.shape[1:]))
        before = held.copy()
        for row in np.ndindex(own.shape[1:]):
            messages = told[:, *row[:2], seen["inbox_mask"][row[:2]], row[2]].T
            if not len(messages):
                continue
            if continual:
                sums[:, *row] += messages.sum(axis=0)
                messages, held[:, *row] = [sums[:, *row]], 0
            held[:, *row] += worth_of(messages, own[:, *row], before[:, *row])
        np.testing.assert_allclose(list(policy._known.received.totals.values()), held, rtol=1e-9, atol=1e-9)
    return held


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize("privatize", PROCUREMENT.values(), ids=PROCUREMENT)
def test_buyers_hold_what_the_messages_they_saw_are_worth(privatize, carry):
    env = carry(privatize(procurement(num_agents=4, num_producers=3, max_cycles=40)))
    policy = SSUCB(pool="precision", exploration_rounds=0, radius_scale=0.3)
    assert check_worth(env, policy, NAMES[:2], isinstance(env.env, ContinualPrivatizer)).any()


def test_arms_behind_continual_releases_are_weighed_as_one_sum():
    """Weighted counts: pulls and successes of all others, with the variance of their sums."""
    baseline = BASELINES["MOSS-weighted"]
    env = baseline.wrap(
        arms(num_agents=6, num_arms=3, max_cycles=300),
        {"privatizer": {"epsilon": 20.0, "mechanism": "sqrt_toeplitz"}},
    )
    held = check_worth(env, baseline.make_policy(scale=0.5), ("pulls", "successes"), True, (0,))
    assert (held[0] > 0).mean() > 0.5


ANALYTIC = {"calibration": "analytic", "delta": 0.1}
LINEAR = {
    "continual": lambda env: ContinualPrivatizer(env, 2.0, 0.1, "tree"),
    "gaussian": lambda env: GaussianPrivatizer(env, epsilon_per_release=20.0, **ANALYTIC),
    "interleaved": lambda env: ContinualPrivatizer(Interleaved(env, 2), 2.0, 0.1),
}


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize("privatize", LINEAR.values(), ids=LINEAR)
def test_regressions_hold_what_all_they_heard_is_worth(privatize, carry):
    """From their observations alone: own data exact, everything heard weighed as one sum."""
    env = carry(privatize(linear(num_agents=4, num_arms=4, dim=3, max_cycles=40)))
    policy = FedUCB(pool={"name": "precision", "reward_variance": 0.12})
    own = np.zeros((2, 4, 2, 4, 4))
    slots = 2 if len(env.single_release_space["statistic"].shape) == 3 else 1
    heard, variance = np.zeros((2, 4, slots, 4, 4)), np.zeros((2, 4, slots))
    expected = np.zeros((2, 4, slots, 3, 4))
    for t, (_, observation, _) in enumerate(played(env, policy, [0, 1])):
        if t:
            z = np.concatenate([observation["pulled_context"], observation["last_reward"]], axis=-1)
            own[:, :, (t - 1) % slots] += z[..., :, np.newaxis] * z[..., np.newaxis, :]
        mask = observation["inbox_mask"]
        arrived = mask[..., np.newaxis, np.newaxis, np.newaxis]
        told = observation["inbox_statistic"].reshape(2, 4, -1, slots, 4, 4)
        announced = observation["inbox_statistic_noise_variance"].reshape(told.shape)
        heard += np.where(arrived, told, 0).sum(axis=2)
        variance += np.where(arrived[..., 0, 0], announced[..., 0, 0], 0).sum(axis=2)
        for r, j, e in np.ndindex(2, 4, slots):
            if mask[r, j].any():
                gram, moment = gram_worth(heard[r, j, e], variance[r, j, e], 0.12)
                expected[r, j, e] = np.hstack([gram, moment[:, np.newaxis]])
            gram = np.linalg.inv(policy._ridges.inverse[r, j, e])
            known = np.eye(3) + own[r, j, e, :3, :3] + expected[r, j, e, :, :3]
            np.testing.assert_allclose(gram, known, atol=1e-9 * (1 + gram.max()))
            moment = own[r, j, e, :3, 3] + expected[r, j, e, :, 3]
            np.testing.assert_allclose(policy._ridges.moment[r, j, e], moment, atol=1e-9)
    assert expected.any()


@pytest.mark.parametrize(
    ("problem", "name"),
    [(procurement, "P-FCB"), (procurement, "Thompson-procurement"), (arms, "MOSS")],
)
def test_a_placebo_is_no_communication_with_the_same_constants(problem, name):
    """To the last bit, since reports of noise alone are cut off."""
    placebo, env = BASELINES[f"{name}-weighted-placebo"], problem(max_cycles=600)
    envs = (placebo.wrap(env), env)
    regret = [simulate(one, placebo.make_policy(), range(3)).regret for one in envs]
    np.testing.assert_array_equal(*regret)


@pytest.mark.parametrize(("make", "policy"), [
    (procurement, lambda: PFCB(pool="precision")),
    (linear, lambda: FedUCB(pool="precision")),
])  # fmt: skip
def test_echoes_are_refused_since_own_data_stay_exact(make, policy):
    refused(policy(), Channel(make(num_agents=3), echo=True), "echo=False is required")


def test_noise_without_a_bound_is_refused_where_one_is_needed():
    env = Channel(GaussianPrivatizer(linear(num_agents=3), epsilon_per_release=0.5, delta=0.1))
    refused(FedUCB(shift="per_agent"), env, "shift is 'per_agent'")
    FedUCB().reset(env.policy_spec, row_seeds([0], 3))


def test_arrays_that_do_not_say_what_they_are_worth_are_refused():
    with pytest.raises(UnfitError, match=r"cannot weigh .* count_inbox\("):
        make_aggregator("precision").start(InboxSpec((1, 1), 2, {"temperature": ()}))
