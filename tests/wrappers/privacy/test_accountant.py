"""The accountant against dp-accounting, against closed forms and against the paper's figures."""

import json
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from events import ALL, PAIR_OF_30, gaussian, pure

from fedbandit_envs import arms_v0, exposure_v0, linear_v0, procurement_v0
from fedbandit_envs.core.privacy import Change, Claim
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.accounting.event import Event


@pytest.fixture
def p_fcb() -> Accountant:
    """P-FCB at epsilon 1 and T = 1e5: 8 communications, at rounds 256 to 32768."""
    accountant = Accountant(1, 1)
    for z in range(1, 9):
        accountant.record(gaussian(1 / (2 * math.log2(1e5)) + 1 / 2 ** (z + 1)), ALL)
    return accountant


def test_p_fcb_by_basic_composition(p_fcb):
    claim = p_fcb.epsilon()
    assert claim.epsilon == pytest.approx(1.4777, abs=1e-4)
    assert round(claim.epsilon, 2) == 1.48
    assert claim.delta == pytest.approx(0.16)
    assert (claim.adjacency, claim.composition, claim.reason) == ("one-quantity", "basic", "")
    assert p_fcb.epsilon(0.2).delta == 0.2


def test_p_fcb_by_other_compositions(p_fcb):
    epsilon = {c: p_fcb.epsilon(1e-5, composition=c).epsilon for c in ("zcdp", "exact", "parallel")}
    assert epsilon["parallel"] < epsilon["exact"] < epsilon["zcdp"]
    squares = [2 * (e / math.sqrt(2 * math.log(125))) ** 2 for e in (event.epsilon for event in p_fcb.events)]
    for composition, square in (("exact", sum(squares)), ("parallel", max(squares))):
        mechanism = pld.from_gaussian_mechanism(1 / math.sqrt(square))
        assert epsilon[composition] == pytest.approx(mechanism.get_epsilon_for_delta(1e-5), abs=1e-3)


def test_one_round_has_the_root_of_the_producers_in_mu(p_fcb):
    # mu grows by sqrt(30): what 30 times as many releases would have under one-quantity.
    often = Accountant(1, 1)
    for event in p_fcb.events:
        for _ in range(30):
            often.record(event, ALL)
    assert p_fcb.epsilon(1e-5, composition="exact", adjacency="one-round").epsilon == pytest.approx(
        often.epsilon(1e-5, composition="exact").epsilon
    )


def test_basic_has_no_answer_below_the_promised_deltas(p_fcb):
    claim = p_fcb.epsilon(1e-5)
    assert claim.epsilon is None
    assert "at least 0.16" in claim.reason
    assert np.isinf(p_fcb.epsilon_by_agent(1e-5)).all()
    claim = p_fcb.epsilon(adjacency="one-round")
    assert claim.epsilon is None
    assert "add up to 4.8" in claim.reason


def test_the_agent_that_has_spent_most_is_claimed_for():
    accountant = Accountant(2, 3)
    who = np.zeros((2, 3), np.bool_)
    who[1, 2] = True
    accountant.record(gaussian(0.5), who)
    accountant.record(gaussian(0.5), np.ones_like(who))
    for composition in ("basic", "zcdp", "exact", "parallel"):
        rows = accountant.epsilon_by_agent(0.05, composition=composition)
        assert rows[1, 2] == rows.max() == accountant.epsilon(0.05, composition=composition).epsilon
        assert (rows[0] > 0).all()
        if composition != "parallel":
            assert (rows[0] < rows[1, 2]).all()


def test_nothing_released_spends_nothing():
    claim = Accountant(2, 3).epsilon(1e-5, composition="exact")
    assert (claim.epsilon, claim.reason) == (0.0, "nothing has been released")


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact", "parallel"])
@pytest.mark.parametrize("delta", [None, 0.0, 0.1])
def test_no_noise_and_no_protection_are_infinite(composition, delta):
    raw = Accountant(1, 2)
    raw.record(Event("gaussian", np.inf, np.inf, 0.0, PAIR_OF_30), np.array([[True, False]]))
    claim = raw.epsilon(delta, composition=composition)
    assert (claim.epsilon, claim.reason) == (np.inf, "released without noise")
    assert raw.epsilon_by_agent(delta, composition=composition).tolist() == [[np.inf, 0.0]]
    exposed = Accountant(1, 1)
    exposed.record(pure("randomised_response", 1.0), ALL)
    claim = exposed.epsilon(delta, composition=composition, adjacency="one-round")
    assert claim.epsilon == np.inf
    assert "randomised response does not protect one-round" in claim.reason


def test_gaussian_noise_at_delta_0_is_infinite():
    accountant = Accountant(1, 1)
    accountant.record(gaussian(0.5), ALL)
    for composition in ("zcdp", "exact", "parallel"):
        assert accountant.epsilon(0.0, composition=composition).epsilon == np.inf
    accountant.record(pure("laplace", 0.5), ALL)
    assert accountant.epsilon(0.0, composition="exact").epsilon == np.inf


def test_memory_is_flat_in_the_number_of_releases():
    accountant = Accountant(1, 1)
    for _ in range(1000):
        accountant.record(gaussian(0.5), ALL)
        accountant.record(gaussian(0.25), ALL)
    assert accountant.counts.tolist() == [[[1000]], [[1000]]]


def test_an_event_takes_the_place_of_another():
    first, both = gaussian(0.5), Event("gaussian", 0.3, 0.5, 0.01, PAIR_OF_30, releases=2)
    accountant = Accountant(1, 2)
    accountant.record(first, np.array([[True, True]]))
    accountant.record(both, np.array([[1, 0]]))
    accountant.record(first, np.array([[-1, 0]]))
    alone = Accountant(1, 2)
    alone.record(both, np.array([[True, False]]))
    for composition in ("basic", "zcdp", "exact"):
        of_both, of_first = accountant.epsilon_by_agent(0.02, composition=composition)[0]
        assert of_both == alone.epsilon_by_agent(0.02, composition=composition)[0, 0]
        assert of_first > 0
    # Windows of the agent that released but once are disjoint all the same.
    repeated, single = accountant.epsilon_by_agent(0.02, composition="parallel")[0]
    assert repeated == np.inf
    assert single == accountant.epsilon_by_agent(0.02, composition="exact")[0, 1]
    assert accountant.epsilon(0.02, composition="parallel").epsilon is None
    accountant.record(first, np.array([[0, -1]]))
    assert accountant.events == [both]
    with pytest.raises(ValueError, match="takes back 2 of agent 0 in replica 0; 1 at most"):
        accountant.record(both, np.array([[-2, 0]]))
    assert accountant.counts.tolist() == [[[1, 0]]]


def test_the_future_leaves_the_present_alone(p_fcb):
    before = p_fcb.epsilon()
    after = p_fcb.after({gaussian(0.125): ALL})
    assert p_fcb.epsilon() == before
    assert after.epsilon().epsilon == pytest.approx(before.epsilon + 0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delta": 1.0}, "delta is 1.0"),
        ({"delta": -0.1}, "delta is -0.1"),
        ({"composition": "advanced"}, "composition is 'advanced'"),
    ],
)
def test_bad_questions_are_named(arguments, message):
    accountant = Accountant(1, 1)
    for ask in (accountant.epsilon, accountant.epsilon_by_agent):
        with pytest.raises(ValueError, match=message):
            ask(**arguments)


def test_bad_shapes_are_named():
    with pytest.raises(ValueError, match=r"times has shape \(2,\)"):
        Accountant(1, 2).record(gaussian(0.5), np.ones(2, np.bool_))


def test_the_reason_for_infinity_is_the_right_one():
    accountant = Accountant(1, 1)
    accountant.record(pure("laplace", np.inf), ALL)
    assert accountant.epsilon(1e-5, composition="exact").reason == "released without noise"
    accountant = Accountant(1, 1)
    accountant.record(pure("laplace", 1.0), ALL)
    accountant.record(gaussian(0.5), ALL)
    claim = accountant.epsilon(0.0, composition="exact")
    assert claim.epsilon == np.inf
    assert "Gaussian noise gives no finite epsilon at delta 0" in claim.reason


@pytest.mark.parametrize("composition", ["zcdp", "exact", "parallel"])
def test_what_is_not_known_gets_no_answer_but_from_its_promise(composition):
    accountant = Accountant(1, 2)
    accountant.record(pure("staircase", 0.5), np.array([[True, False]]))
    claim = accountant.epsilon(1e-5, composition=composition)
    assert claim.epsilon is None
    expected = f"{composition} composition does not know the mechanism 'staircase': its event gives no "
    assert claim.reason.startswith(expected)
    assert accountant.epsilon_by_agent(1e-5, composition=composition).tolist() == [[np.inf, 0.0]]
    assert accountant.epsilon(1e-5).epsilon == 0.5


def test_an_adjacency_that_nobody_names_is_not_protected():
    accountant = Accountant(1, 1)
    accountant.record(pure("laplace", 0.5), ALL)
    claim = accountant.epsilon(adjacency="one-life")
    assert claim.epsilon == np.inf
    assert claim.reason == "laplace does not protect one-life"


def test_infinite_and_unknown_are_written_apart():
    claims = {None: None, np.inf: "infinity", 0.5: 0.5, 0.0: 0.0}
    for epsilon, written in claims.items():
        claim = Claim(epsilon, 0.1, "one-round", "basic", "", "shuffler", "secret").as_json()
        assert json.loads(json.dumps(claim, allow_nan=False)) == {
            "epsilon": written, "delta": 0.1, "adjacency": "one-round", "composition": "basic", "reason": "",
            "trust": "shuffler", "noise": "secret",
        }  # fmt: skip


def test_the_first_adjacency_named_is_the_default():
    environments = Accountant(1, 1, adjacencies=("one-observation", "one-round"))
    assert environments.epsilon().adjacency == "one-observation"
    assert Accountant(1, 1).epsilon().adjacency == ""
    changes = (("one-life", Change(3, 3.0)), ("one-round", Change(2, 2.0)))
    for accountant, adjacency, epsilon in (
        (environments, "one-observation", np.inf),
        (Accountant(1, 1), "one-life", 1.5),
    ):
        accountant.record(pure("laplace", 0.5, changes), ALL)
        claim = accountant.epsilon()
        assert (claim.adjacency, claim.epsilon) == (adjacency, epsilon)
        assert accountant.epsilon_by_agent().tolist() == [[epsilon]]
        assert accountant.epsilon(adjacency="one-round").epsilon == 1.0


@pytest.mark.parametrize("make", [arms_v0, linear_v0, exposure_v0, procurement_v0])
def test_every_environment_is_asked_under_its_own_adjacency(make):
    env = GaussianPrivatizer(make.parallel_env(num_agents=2), noise_multiplier=5.0)
    env.reset_batch([3])
    env.release(np.ones((1, 2), np.bool_))
    claim = env.accountant.epsilon(1e-5, composition="exact")
    assert claim.adjacency == next(iter(env.sensitivity().changes)) == env.privacy().adjacency
    assert claim.epsilon == env.accountant.epsilon_by_agent(1e-5, composition="exact").max() > 0


def test_deltas_that_promise_nothing_are_said_to():
    """The sum of the promised deltas is no delta that could be asked for: no delta >= 1 is."""
    accountant = Accountant(1, 1)
    accountant.record(gaussian(0.5), 50 * ALL)
    for delta in (1e-5, 0.99):
        claim = accountant.epsilon(delta, adjacency="one-quantity")
        assert claim.epsilon is None
        assert claim.reason == "the promised deltas add up to 1, and from 1 on promise nothing at any delta"
    accountant.record(gaussian(0.5), 10**6 * ALL)
    assert "add up to 2e+04" in accountant.epsilon(0.5).reason
