"""What releases cost, when a budget is spent, and what is claimed."""

import math

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from privatizers import PRIVATIZERS, everyone, play, small

from fedbandit_envs.core.noise_variance import variance_of
from fedbandit_envs.wrappers import GaussianPrivatizer, LaplacePrivatizer, RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_delta
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing
from fedbandit_envs.wrappers.privacy.privatizer import Budget, BudgetExhaustedError


def test_shares_of_epsilon():
    shares = decreasing(1.0, 100_000)
    assert (np.diff(shares) <= 0).all()
    assert shares[-1] == 1 / (2 * math.log2(100_000))
    assert shares[:8].sum() * 2 == pytest.approx(1.4777, abs=1e-4)
    # As many releases as doubling gaps make spend epsilon, which a natural logarithm would exceed by a fifth.
    assert shares[:16].sum() == pytest.approx(1, abs=0.02)
    assert decreasing(np.inf, 2)[0] == np.inf


def test_p_fcb_spends_what_the_paper_adds_up():
    env = GaussianPrivatizer(small(max_cycles=100_000), 1.0)
    env.reset_batch([0])
    for _ in range(8):
        env.release(everyone(env))
    claim = env.privacy()
    assert round(claim.epsilon, 2) == 1.48
    assert claim.delta == pytest.approx(0.16)
    step = play(env, 1)
    assert step.info["epsilon_spent"].shape == (1, 3)
    assert step.info["epsilon_spent"] == pytest.approx(claim.epsilon)
    exact = env.accountant.epsilon(1e-5, composition="exact").epsilon
    half = GaussianPrivatizer(small(max_cycles=100_000), math.sqrt(2), pair="good_and_defective")
    half.reset_batch([0])
    for _ in range(8):
        half.release(everyone(half))
    assert half.accountant.epsilon(1e-5, composition="exact").epsilon == pytest.approx(exact)
    assert half.privacy().epsilon == pytest.approx(claim.epsilon / math.sqrt(2))
    assert half.privacy().delta == pytest.approx(0.08)


def test_adjacencies_of_both_pairs():
    """4 producers; lengths of the change in sensitivities, and how often the promise is needed."""
    expected = {
        "as_given": {
            "one-quantity": (2, 2),
            "one-round": (8, 8),
            "one-observation": (2, 2),
            "one-outcome": (1, 1),
        },
        "good_and_defective": {
            "one-quantity": (1, 1),
            "one-round": (4, 4),
            "one-observation": (2, 2),
            "one-outcome": (2, 2),
        },
    }
    for pair, changes in expected.items():
        env = GaussianPrivatizer(small(), 0.5, pair=pair)
        env.reset_batch([0])
        env.release(everyone(env))
        (event,) = env.accountant.events
        for adjacency, (values, square) in changes.items():
            assert event.change(adjacency).values == values
            assert event.change(adjacency).norm ** 2 == pytest.approx(square)


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_reset_starts_fresh_accounts(privatize):
    env = privatize(small(), 0.5)
    with pytest.raises(ResetNeeded):
        _ = env.accountant
    env.reset_batch([0])
    env.release(everyone(env))
    play(env, 1)
    env.reset_batch([0, 1])
    assert env.privacy().epsilon == 0.0
    assert env.accountant.counts.shape == (0, 2, 3)
    assert not play(env, 1).info["epsilon_spent"].any()


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_the_pettingzoo_face_shows_what_was_spent(privatize):
    env = privatize(small(), 0.5, releases=2)
    env.reset(seed=0)
    env.release(np.array([[True, False, False]]))
    action = {agent: np.zeros(4, np.int64) for agent in env.agents}
    *_, infos = env.step(action)
    assert infos["agent_0"]["epsilon_spent"] > 0
    assert infos["agent_1"]["epsilon_spent"] == 0


LIMITS = [
    Budget(0.95, 0.1, "basic"),
    Budget(0.5, 1e-4, "zcdp"),
    Budget(0.3, 1e-4, "exact"),
    Budget(1.0, 1e-4, "exact", "one-round"),
]


@pytest.mark.parametrize("budget", LIMITS)
def test_silence_ends_what_the_budget_does_not_allow(budget):
    env = GaussianPrivatizer(small(), 0.1 * 50, 0.01, releases=50, budget=budget, on_exhausted="silence")
    env.reset_batch([0, 1])
    ones = everyone(env)
    for _ in range(50):
        wants = ones.copy()
        wants[1, 2] = False
        play(env, 1)
        permitted = env.allowed_senders(wants)
        counts = env.accountant.counts.sum(axis=0)
        got = env.release(wants)
        assert np.array_equal((got["delivered"] != 0).any(axis=2), permitted)
        assert np.array_equal(env.accountant.counts.sum(axis=0), counts + permitted)
        assert env.privacy().epsilon <= budget.epsilon * (1 + 1e-9)
        if not permitted.any():
            break
    assert not permitted.any()
    assert env.allowed_senders(ones).tolist() == [[False] * 3, [False, False, True]]
    # Nothing was wasted: one more release would have been too much.
    (event,) = env.accountant.events
    more = env.accountant.after({event: ones})
    claim = more.epsilon(
        budget.delta, composition=budget.composition, adjacency=budget.adjacency or "one-quantity"
    )
    assert claim.epsilon is None or claim.epsilon > budget.epsilon
    # Data of the silent stays and could still be sent by somebody with a budget.
    assert env.unwrapped.release(ones)["delivered"].all()


@pytest.mark.parametrize("privatize", PRIVATIZERS)
def test_a_spent_budget_raises_and_releases_nothing(privatize):
    env = privatize(small(), 1.0, releases=2)
    env.reset_batch([0])
    first = np.array([[True, False, False]])
    env.release(first)
    env.release(first)
    play(env)
    counts, spent = env.accountant.counts.copy(), env.privacy()
    assert env.allowed_senders(everyone(env)).all()
    with pytest.raises(BudgetExhaustedError, match=r"agent_0 \(replica 0\) has spent .* in 2 releases"):
        env.release(everyone(env))
    assert np.array_equal(env.accountant.counts, counts)
    assert env.privacy() == spent
    assert env.unwrapped.release(everyone(env))["delivered"].all()


def test_equal_shares_add_up_to_what_was_shared_out():
    env = LaplacePrivatizer(small(), 1.0, releases=10, budget=Budget(2.0, 0.0))
    env.reset_batch([0])
    for _ in range(10):
        env.release(everyone(env))
    assert env.privacy().epsilon == pytest.approx(2.0)


@pytest.mark.parametrize("privatizer", [GaussianPrivatizer, LaplacePrivatizer])
def test_shares_in_given_proportions_add_up_to_what_was_shared_out(privatizer):
    env = privatizer(small(), 0.7, releases=[1, 2, 4])
    env.reset_batch([0])
    spent, deviations = [], []
    for _ in range(3):
        deviations.append(np.sqrt(env.release(everyone(env))[variance_of("delivered")].max()))
        spent.append(env.privacy().epsilon)
    # Two numbers of a message change: units and good units.
    assert np.diff(spent, prepend=0.0) == pytest.approx([0.2, 0.4, 0.8])
    assert deviations == pytest.approx([deviations[0], deviations[0] / 2, deviations[0] / 4])
    with pytest.raises(RuntimeError, match="3 releases"):
        env.release(everyone(env))


def test_outcomes_are_flipped_by_shares_in_given_proportions():
    env = RandomizedResponsePrivatizer(small(), 1.4, releases=[1, 2, 4])
    env.reset_batch([0])
    for share in (0.2, 0.6, 1.4):
        env.release(everyone(env))
        assert env.privacy().epsilon == pytest.approx(share)


def test_the_classic_calibration_warns_beyond_its_proof_and_claims_what_is_true():
    with pytest.warns(
        UserWarning, match=r"largest share of a release, 10, its noise gives delta 0\.0\d+ where 0\.01 was"
    ):
        env = GaussianPrivatizer(small(), 10.0, releases=1)
    with pytest.warns(UserWarning, match="largest share of a release, 8, its noise"):
        GaussianPrivatizer(small(), 10.0, releases=[1, 4])
    env.reset_batch([0])
    env.release(everyone(env))
    true = gaussian_delta(10.0, 10.0 / math.sqrt(2 * math.log(125)))
    assert true > 0.01
    assert env.privacy().delta == pytest.approx(2 * true)
    assert env.privacy().epsilon == pytest.approx(20)


@pytest.mark.filterwarnings("error")
def test_no_other_calibration_warns():
    GaussianPrivatizer(small(), 0.99, releases=1)
    GaussianPrivatizer(small(), 10.0, calibration="analytic", releases=1)
    GaussianPrivatizer(small(), np.inf)
