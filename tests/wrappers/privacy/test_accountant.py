"""The accountant and its compositions, against dp-accounting, closed forms and the paper's figures."""

import json
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from events import ALL, ONE_VALUE, PAIR_OF_30, gaussian, pure
from pairs import every_pair
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from scipy.stats import binom
from values_env import ValuesEnv

from fedbandit_envs.core.privacy import AGENT, Change, Claim
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.accounting.calibration import gaussian_epsilon
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant, Event


@pytest.fixture
def p_fcb() -> Accountant:
    """P-FCB at epsilon 1 and T = 1e5: 8 communications, at rounds 256 to 32768."""
    accountant = Accountant(1, 1)
    for z in range(1, 9):
        accountant.record(gaussian(1 / (2 * math.log2(1e5)) + 1 / 2 ** (z + 1)), ALL)
    return accountant


def test_p_fcb_by_other_compositions(p_fcb):
    epsilon = {c: p_fcb.epsilon(1e-5, composition=c).epsilon for c in ("zcdp", "exact", "parallel")}
    assert epsilon["parallel"] < epsilon["exact"] < epsilon["zcdp"]
    squares = [2 * (e / math.sqrt(2 * math.log(125))) ** 2 for e in (event.epsilon for event in p_fcb.events)]
    for composition, square in (("exact", sum(squares)), ("parallel", max(squares))):
        mechanism = pld.from_gaussian_mechanism(1 / math.sqrt(square))
        assert epsilon[composition] == pytest.approx(mechanism.get_epsilon_for_delta(1e-5), abs=1e-3)


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
    with pytest.raises(ValueError, match="takes back more of Event"):
        accountant.record(both, np.array([[-2, 0]]))
    assert accountant.counts.tolist() == [[[1, 0]]]


def test_the_future_leaves_the_present_alone(p_fcb):
    before = p_fcb.epsilon()
    assert p_fcb.after({gaussian(0.125): ALL}).epsilon().epsilon == pytest.approx(before.epsilon + 0.25)
    assert p_fcb.epsilon() == before


@pytest.mark.parametrize("arguments", [{"delta": 1.0}, {"delta": -0.1}, {"composition": "advanced"}])
def test_bad_questions_are_named(arguments):
    ((name, value),) = arguments.items()
    with pytest.raises(ValueError, match=f"{name} is {value!r}"):
        Accountant(1, 1).epsilon(**arguments)


def test_the_reason_for_infinity_is_the_right_one():
    accountant = Accountant(1, 1)
    accountant.record(pure("laplace", np.inf), ALL)
    assert accountant.epsilon(1e-5, composition="exact").reason == "released without noise"
    accountant = Accountant(1, 1)
    accountant.record(pure("laplace", 1.0), ALL)
    accountant.record(gaussian(0.5), ALL)
    for composition in ("zcdp", "exact", "parallel"):
        claim = accountant.epsilon(0.0, composition=composition)
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


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_single_pure_releases_agree_with_closed_forms(epsilon):
    for kind, expected in (
        # delta = 1 - exp((eps - eps0)/2), and delta = p - e^eps (1 - p) with p = e^eps0/(1 + e^eps0).
        ("laplace", epsilon + 2 * math.log(1 - 0.05)),
        ("randomised_response", math.log(1 - 0.05 * (1 + math.exp(-epsilon))) + epsilon),
    ):
        accountant = Accountant(1, 1)
        accountant.record(pure(kind, epsilon), ALL)
        for composition in ("exact", "parallel"):
            claim = accountant.epsilon(0.05, composition=composition)
            assert claim.epsilon == pytest.approx(expected, abs=1e-3)
            assert accountant.epsilon(0.0, composition=composition).epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize(
    ("kind", "loss", "times", "mu"),
    every_pair(["laplace", "randomised_response"], [1e-6, 0.3, 35.0, 45.0, 1e9], [1, 7], [0.0, 0.4]),
)
def test_exact_composition_says_no_more_than_basic_and_is_bounded_work(kind, loss, times, mu):
    """From 1e-6 to 1e9, where it once took minutes and gigabytes, gave 80 times the sum, or overflowed."""
    accountant = Accountant(1, 1)
    for _ in range(times):
        accountant.record(pure(kind, loss), ALL)
    parts = loss * times
    if mu:
        accountant.record(Event("gaussian", mu, 1.0, 0.01, ONE_VALUE), ALL)
        parts += float(gaussian_epsilon(1e-5, mu))
    claim = accountant.epsilon(1e-5, composition="exact")
    assert 0 <= claim.epsilon <= parts * (1 + 1e-12)
    assert claim.reason == ""
    if mu == 0 and times == 1 and loss >= 1e-3:
        # delta buys next to nothing of a single pure release.
        assert claim.epsilon >= 0.9 * loss


SECRET = 2**80 + 7


def private(multiplier=20.0, **kwargs) -> GaussianPrivatizer:
    return GaussianPrivatizer(ValuesEnv(), noise_multiplier=multiplier, clip=1.0, **kwargs)


def episode(env, seeds, releases=1, senders=(True, True)) -> Accountant:
    """Plays an episode in which some agents release several times; returns its accountant."""
    env.reset_batch(seeds)
    for _ in range(releases):
        env.release(np.array([senders] * len(seeds)))
    return env.accountant


def exact(accountant: Accountant, adjacency=AGENT):
    return accountant.epsilon(1e-3, composition="exact", adjacency=adjacency)


def test_two_episodes_cost_as_much_as_one_that_is_as_long():
    env = private()
    first, second = episode(env, [0], 4), episode(env, [1], 6)
    both = exact(first + second)
    assert both == exact(episode(private(), [2], 10))
    assert round(both.epsilon, 5) == 0.78289
    assert both == exact(second + first)


def test_different_mechanisms_and_agents_add_up():
    first = episode(private(20.0), [0, 1], 2)
    second = episode(private(30.0), [2, 3], 3, senders=(True, False))
    total = first + second
    other = PLDAccountant(value_discretization_interval=1e-4)
    other.compose(dp_event.GaussianDpEvent(10.0), 2)
    other.compose(dp_event.GaussianDpEvent(15.0), 3)
    by_agent = total.epsilon_by_agent(1e-3, composition="exact", adjacency=AGENT)
    assert by_agent[:, 0] == pytest.approx(other.get_epsilon(1e-3), abs=1e-4)
    assert by_agent[:, 1].tolist() == [exact(episode(private(20.0), [4], 2)).epsilon] * 2


def test_a_reset_that_fails_ends_nothing():
    env = private()
    accountant = episode(env, [0])
    with pytest.raises(ValueError, match="seeds"):
        env.reset_batch([])
    env.env.release(np.ones((1, 2), np.bool_))
    assert exact(accountant).epsilon == math.inf


@pytest.mark.parametrize("order", [1, -1])
def test_what_was_not_recorded_is_not_forgotten(order):
    env = private()
    episode(env, [0])
    env.env.release(np.array([[True, False]]))
    leaky = env.accountant
    silent_reset = episode(env, [1])
    first, second = (leaky, silent_reset)[::order]
    claim = exact(first + second)
    assert (claim.epsilon, claim.reason) == (math.inf, "data has left without passing the privatizer")
    by_agent = (first + second).epsilon_by_agent(1e-3, composition="exact", adjacency=AGENT)
    assert np.isinf(by_agent[0, 0])
    assert by_agent[0, 1] == exact(episode(private(), [5], 2)).epsilon


@pytest.mark.parametrize(
    ("noise_seed", "named"),
    [(None, "seed 3"), (SECRET, "noise_seed of hash [0-9a-f]{32}, episode 0, seed 3")],
)
def test_episodes_of_the_same_noise_are_refused(noise_seed, named):
    first = episode(private(5.0, noise_seed=noise_seed), [1, 3])
    second = episode(private(50.0, noise_seed=noise_seed), [3, 2])
    with pytest.raises(ValueError, match=rf"drew the same noise \({named}\); other noise is required"):
        first + second
    with pytest.raises(ValueError, match="drew the same noise"):
        first + first
    with pytest.raises(ValueError, match="drew the same noise"):
        (episode(private(), [8, 9]) + first) + second


def test_noise_of_another_seed_or_of_a_later_episode_is_other_noise():
    env = private(noise_seed=SECRET)
    total = episode(env, [0]) + episode(env, [0]) + episode(private(noise_seed=SECRET + 1), [0])
    assert exact(total).noise == "secret"
    assert str(SECRET) not in repr(vars(total))
    assert exact(total + episode(private(), [0])).noise == "repeatable"


def test_other_agents_and_other_adjacencies_are_refused():
    with pytest.raises(
        ValueError, match=r"have \(replicas, agents\) \(1, 2\) and \(2, 2\); equal ones are required"
    ):
        episode(private(), [0]) + episode(private(), [1, 2])
    unclipped = GaussianPrivatizer(ValuesEnv(), noise_multiplier=9.0)
    with pytest.raises(ValueError, match=r"adjacencies \['one-round', 'agent'\] and \['one-round'\]"):
        episode(private(), [0]) + episode(unclipped, [1])
    with pytest.raises(TypeError):
        episode(private(), [0]) + 1


def counted(kind: str, loss: float, times: int, delta: float, composition: str) -> float:
    accountant = Accountant(1, 1)
    accountant.record(pure(kind, loss), np.full((1, 1), times))
    return accountant.epsilon(delta, composition=composition).epsilon


def flipped(loss: float, times: int, delta: float) -> float:
    """Returns epsilon of randomised response by its binomial tail, in logarithms."""
    hits = np.arange(times + 1)
    losses, logs = (2 * hits - times) * loss, binom.logpmf(hits, times, expit(loss))

    def excess(epsilon: float) -> float:
        more = losses > epsilon
        return logsumexp(logs[more] + np.log(-np.expm1(epsilon - losses[more]))) - math.log(delta)

    return brentq(excess, 0, times * loss * (1 - 1e-12))


@pytest.mark.parametrize("delta", [1e-6, 1e-12, 1e-15, 1e-20])
def test_many_small_releases(delta):
    """Equal parts of epsilon 1 cost less, the more of them there are: 0.392, 0.116 and 0.034 at 1e-6."""
    found = []
    for times in (100, 1000, 10_000):
        exact, zcdp = (counted("randomised_response", 1 / times, times, delta, c) for c in ("exact", "zcdp"))
        true = flipped(1 / times, times, delta)
        assert true * (1 - 1e-6) <= exact <= min(zcdp, 1.0)
        assert exact <= true * (1 + 1e-3 if delta > 1e-13 else 1.06)
        found.append(exact)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("kind", ["laplace", "randomised_response"])
@pytest.mark.parametrize("delta", [1e-5, 1e-20])
def test_more_releases_never_cost_less(kind, delta):
    for loss in (1e-4, 0.3):
        found = [counted(kind, loss, times, delta, "exact") for times in (1, 50, 51, 4000, 4001)]
        assert found == sorted(found)
