"""Contexts from a table: against plain numpy on the same rows, and all that can be wrong with a table.

Frequencies are compared at 6 standard errors, under fixed seeds: one in 10^8 sets of seeds would raise a false alarm.
"""

import numpy as np
import pytest
from linear_offers import random_rounds
from undrawn import undrawn

from fedbandit_envs.exposure_v0 import parallel_env as exposure
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.testing import check_federation
from fedbandit_envs.wrappers import Participation

pandas = pytest.importorskip("pandas")

ROWS, ARMS, FEATURES = 60, 3, 4
NAMES = [f"z{i}" for i in range(FEATURES)]
PAID = [f"paid{k}" for k in range(ARMS)]
ITEMS = [[1.0, 0.0], [0.6, 0.8], [0.0, -0.5]]


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    features = rng.uniform(-0.5, 0.5, (ROWS, FEATURES))
    frame = pandas.DataFrame(features, columns=NAMES)
    frame["town"] = rng.permuted(np.repeat(["b", "a", "c"], ROWS // 3))
    frame[PAID] = rng.uniform(0, 1, (ROWS, ARMS))
    return frame


def make(frame, make_env=parallel_env, **given):
    of_table = ("features", "arms", "agent", "rewards", "exact", "order")
    table = {"name": "table", "table": frame, "features": NAMES, "arms": ITEMS}
    table |= {name: given.pop(name) for name in of_table if name in given}
    return make_env(contexts=table, **{"max_cycles": 20, "reward": "normal", "reward_sd": 0.0, **given})


def outer_products(frame):
    """The contexts of all rows, (rows, arms, dim)."""
    return np.stack([[np.outer(z, a).ravel() for a in ITEMS] for z in frame[NAMES].to_numpy()])


def played(env, rounds, seeds=(0, 1)):
    """What random pulls show: contexts, (rounds + 1, replicas, agents, arms, dim), rewards, regrets; and the pulls."""
    before, arms, rewards, infos, after = zip(*random_rounds(env, rounds, seeds), strict=True)
    contexts = [seen["contexts"] for seen in (*before, after[-1])]
    return np.array(contexts), np.array(rewards), np.array([info["regret"] for info in infos]), np.array(arms)


def test_agents_play_their_own_rows_in_order(frame):
    env = make(frame, agent="town")
    seen, *_ = played(env, 20)
    expected = outer_products(frame)
    assert (env.max_num_agents, seen.shape[-2:]) == (3, (ARMS, FEATURES * 2))
    for agent, town in enumerate("abc"):
        own = expected[frame["town"] == town]
        for replica in range(2):
            np.testing.assert_array_equal(seen[:20, replica, agent], own)
            # Nothing is left to play, and the first row is shown again.
            np.testing.assert_array_equal(seen[20, replica, agent], own[0])


def test_rows_are_dealt(frame):
    seen, *_ = played(make(frame, num_agents=7, max_cycles=8), 8)
    expected = outer_products(frame)
    for agent in range(7):
        np.testing.assert_array_equal(seen[:8, 0, agent], expected[agent::7][:8])


def test_features_of_each_arm_in_a_row(frame):
    seen, *_ = played(make(frame, features=[["z0", "z1"], ["z2", "z3"]], arms=None, num_agents=1), 20)
    np.testing.assert_array_equal(seen[:20, 0, 0], frame[NAMES].to_numpy()[:20].reshape(20, 2, 2))


@pytest.mark.parametrize("agent", [None, "town"])
def test_rows_are_drawn_with_replacement(frame, agent):
    env = make(frame, agent=agent, order="random", max_cycles=400, **({} if agent else {"num_agents": 3}))
    seen, *_ = played(env, 400, range(20))
    first = outer_products(frame)[:, 0]
    owner = frame["town"].map("abc".index) if agent else np.arange(ROWS) % 3
    for j in range(3):
        own = first[owner == j]
        times = (seen[:400, :, j, 0, np.newaxis] == own).all(axis=-1)
        assert (times.sum(axis=-1) == 1).all(), "a row of another agent"
        frequency, sd = times.mean(axis=(0, 1)), np.sqrt(1 / 20 * 19 / 20 / 8000)
        assert np.abs(frequency - 1 / 20).max() < 6 * sd
    # Agents and replicas draw for themselves; the same seed draws the same.
    assert not np.array_equal(seen[:, 0], seen[:, 1])
    np.testing.assert_array_equal(seen[:, :2], played(env, 400, range(2))[0])


def by_hand(frame, theta, pulls, agents=3):
    means = outer_products(frame) @ theta
    own = np.stack([means[j::agents][: len(pulls)] for j in range(agents)], axis=1)[:, np.newaxis]
    paid = np.take_along_axis(np.broadcast_to(own, (*pulls.shape, ARMS)), pulls[..., np.newaxis], -1)[..., 0]
    return paid, own.max(axis=-1) - paid


def test_a_given_parameter(frame):
    theta = np.full(FEATURES * 2, 0.3)
    _, rewards, regrets, pulls = played(make(frame, num_agents=3, parameter=theta), 20)
    paid, missed = by_hand(frame, theta, pulls)
    np.testing.assert_allclose(rewards, paid, atol=1e-15)
    np.testing.assert_allclose(regrets, missed, atol=1e-15)


@pytest.mark.parametrize("factor", [1.0, 100.0])
def test_a_parameter_fitted_to_the_rewards(frame, factor):
    frame[PAID] *= factor
    env = make(frame, num_agents=3, rewards=PAID)
    _, rewards, _, pulls = played(env, 20)
    # Independently: ridge regression is least squares with rows of the identity and rewards of 0.
    dim = FEATURES * 2
    design = np.concatenate([outer_products(frame).reshape(-1, dim), np.eye(dim)])
    theta = np.linalg.lstsq(design, np.append(frame[PAID].to_numpy().ravel(), np.zeros(dim)), rcond=None)[0]
    theta /= max(np.linalg.norm(theta), 1)
    assert np.linalg.norm(theta) == pytest.approx(1) or factor == 1
    np.testing.assert_allclose(env.hidden()["parameter"][0, 0], theta, atol=1e-10)
    np.testing.assert_allclose(rewards, by_hand(frame, theta, pulls)[0], atol=1e-10)


def test_a_fit_to_features_of_each_arm(frame):
    features = [["z0", "z1"], ["z2", "z3"], ["z1", "z2"]]
    env = make(frame, features=features, arms=None, num_agents=3, rewards=PAID)
    env.reset_batch([0])
    design = np.stack([frame[names].to_numpy() for names in features], axis=1).reshape(-1, 2)
    design = np.concatenate([design, np.eye(2)])
    theta = np.linalg.lstsq(design, np.append(frame[PAID].to_numpy().ravel(), [0, 0]), rcond=None)[0]
    np.testing.assert_allclose(env.hidden()["parameter"][0, 0], theta / max(np.linalg.norm(theta), 1))


def test_rewards_of_all_arms_are_played_as_they_are(frame):
    env = make(frame, num_agents=3, rewards=PAID, exact=True)
    _, rewards, regrets, pulls = played(env, 20)
    own = frame[PAID].to_numpy().reshape(20, 1, 3, ARMS)
    paid = np.take_along_axis(np.broadcast_to(own, (20, 2, 3, ARMS)), pulls[..., np.newaxis], -1)[..., 0]
    np.testing.assert_array_equal(rewards, paid)
    np.testing.assert_allclose(regrets, own.max(axis=-1) - paid)
    # Probabilities can be those of Bernoulli rewards.
    _, rewards, *_ = played(make(frame, num_agents=3, rewards=PAID, exact=True, reward="bernoulli"), 20)
    assert set(np.unique(rewards)) == {0.0, 1.0}


def test_means_outside_of_the_probabilities_are_refused(frame):
    with pytest.raises(ValueError, match=r"reward is 'beta', which needs means in \[0, 1\]"):
        make(frame, reward="beta", parameter=np.full(FEATURES * 2, 0.3))
    with pytest.raises(ValueError, match="reward is 'bernoulli', which needs"):
        make(frame, reward="bernoulli")
    frame[PAID] *= 2
    with pytest.raises(ValueError, match="reward is 'bernoulli', which needs"):
        make(frame, reward="bernoulli", rewards=PAID, exact=True)
    frame[NAMES] = frame[NAMES].abs()
    arms = np.abs(ITEMS)
    for theta in (np.full(FEATURES * 2, 0.3), np.full((ARMS, FEATURES * 2), 0.3)):
        env = make(frame, reward="bernoulli", arms=arms, parameter=theta, num_agents=3)
        assert set(np.unique(played(env, 20)[1])) == {0.0, 1.0}


def test_federations_of_tables_are_federations(frame):
    with undrawn():
        check_federation(lambda: make(frame, max_cycles=12, agent="town"))


def test_exposure_of_a_table_is_by_its_rewards(frame):
    env = make(frame, exposure, num_agents=3, order="random", rewards=PAID, exact=True, merit="linear")
    seen = env.reset_batch([0]).observation["contexts"]
    own = [frame[PAID].to_numpy()[(outer_products(frame) == x).all(axis=(1, 2))][0] for x in seen[0]]
    deserved = np.maximum(own, 0.1) / np.maximum(own, 0.1).sum(axis=1, keepdims=True)
    regret = env.step_batch(np.full((1, 3, ARMS), 1 / ARMS)).info["regret"][0]
    np.testing.assert_allclose(regret, np.abs(deserved - 1 / ARMS).sum(axis=1))


def test_an_agent_that_does_not_act_keeps_its_row(frame):
    env = Participation(make(frame, num_agents=3), "uniform")
    seen = env.reset_batch([0, 1]).observation
    own, rounds = outer_products(frame), np.zeros((2, 3), int)
    for _ in range(20):
        active = seen["active"][..., 0].copy()
        for r, j in np.argwhere(active):
            np.testing.assert_array_equal(seen["contexts"][r, j], own[j::3][rounds[r, j]])
        rounds += active
        seen = env.step_batch(np.zeros((2, 3), np.int64)).observation
    assert rounds.sum() == 40


def test_a_file_is_the_frame_that_was_written(frame, tmp_path):
    frame.to_csv(tmp_path / "visits.csv", index=False)
    expected, found = (played(make(table, agent="town"), 20)[0] for table in (frame, tmp_path / "visits.csv"))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("reward_bound", [1.0, 79.9])
def test_rewards_beyond_their_bound_are_refused(frame, reward_bound):
    """They would be paid clipped and regretted unclipped."""
    frame[PAID] = [20.0, 50.0, 80.0][: len(PAID)]
    most = frame[PAID].to_numpy().max()
    limited = {"rewards": PAID, "exact": True, "agent": "town", "reward_bound": min(reward_bound, most - 0.1)}
    with pytest.raises(
        ValueError, match=rf"reward_bound is .*; at least {most:g}, the largest expected reward"
    ):
        make(frame, **limited)
    _, paid, regret, _ = played(make(frame, **{**limited, "reward_bound": most}), 20)
    np.testing.assert_allclose(paid + regret, most)


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"contexts": [[3.0, 0.0], [0.0, 1.0]], "parameter": [0.6, 0.8]}, "1.8"),
        ({"contexts": [[3.0, 0.0], [0.0, 1.0]]}, "3"),
        ({"contexts": [[0.3, 0.0], [0.0, 0.1]], "reward_bound": 0.2}, "0.3"),
        ({"contexts": [[0.3, 0.0], [0.0, 0.1]], "reward_offset": -0.8}, "1.1"),
        ({"contexts": [[0.3, 0.0], [0.0, 0.1]], "reward": "logistic", "reward_bound": 0.5}, "1"),
        ({"contexts": {"name": "classification", "data": [[0], [1]], "labels": [0, 1]}, "reward_bound": 0.5}, "1"),
    ],
)  # fmt: skip
def test_data_of_every_kind_keep_to_the_bound_on_rewards(settings, least):
    settings = {"reward": "normal", "context_bound": 5.0, **settings}
    with pytest.raises(
        ValueError, match=rf"reward_bound is .*; at least {least}, the largest expected reward"
    ):
        parallel_env(**settings)
    parallel_env(**{**settings, "reward_bound": float(least)})


def test_contexts_that_are_too_long_are_refused(frame, tmp_path):
    path = tmp_path / "visits.csv"
    frame.loc[7, NAMES] = 0.7
    frame.loc[9, NAMES] = 1.0
    frame.to_csv(path, index=False)
    long = "has a context of norm 2; at most context_bound = 1 is required"
    with pytest.raises(ValueError, match=f"visits.csv, row 11 {long}"):
        make(path, agent="town")
    with pytest.raises(ValueError, match=f"table, row 9 {long}"):
        make(frame, agent="town")
    assert make(frame, agent="town", context_bound=2.0, reward_bound=2.0).max_num_agents == 3
    # Features of arms lengthen contexts.
    with pytest.raises(ValueError, match="row 0 has a context of norm 4; at most"):
        make(
            frame.head(1).assign(**dict.fromkeys(NAMES, 0.5)),
            arms=[[1, 0], [0, 4.0]],
            num_agents=1,
            max_cycles=1,
        )


def test_missing_rewards_are_off_policy(frame):
    frame.loc[5, "paid1"] = np.nan
    with pytest.raises(
        ValueError, match=r"table, row 5, column 'paid1' is missing; .*off-policy.* are required"
    ):
        make(frame, agent="town", rewards=PAID)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"features": []}, TypeError, r"features is \[\]"),
        ({"features": [["z0"], ["z1"]]}, TypeError, "a list of columns is required with features of the arms"),
        ({"arms": None}, TypeError, r"arms None; .* without \(arms=None\) a list of as many columns for each arm"),
        ({"arms": None, "features": [["z0"], ["z1", "z2"]]}, TypeError, "as many columns for each arm"),
        ({"features": ["z0", "zeal"]}, ValueError, "table has no column 'zeal'"),
        ({"features": ["z0", "town"]}, ValueError, "table, column 'town' is of .*; finite numbers"),
        ({"arms": [1.0, 2.0]}, ValueError, r"arms has shape \(2,\)"),
        ({"arms": [[1.0], [2.0, 3.0]]}, ValueError, r"arms is \[\[1.0\]"),
        ({"order": "sorted"}, ValueError, "order is 'sorted'; one of 'once', 'random'"),
        ({"exact": True}, ValueError, "rewards is None; 3 columns"),
        *(
            ({"rewards": one}, ValueError, r"rewards is .*; 3 columns, one for each arm, are required: .* off-policy")
            for one in ("paid0", ["paid0"], [*PAID, "z0"])
        ),
        ({"exact": 1, "rewards": PAID}, TypeError, "exact is 1"),
        ({"exact": True, "rewards": PAID, "parameter": "sphere"}, ValueError, "parameter is 'sphere' and reward 'nor"),
        ({"max_cycles": 21}, ValueError, "table has 20 rows for agent 0 of 3; at least 21 are required"),
        ({"num_agents": 4}, ValueError, "num_agents is 4; None or 3"),
        ({"agent": None, "num_agents": 7}, ValueError, "table has 8 rows for agent 4 of 7; at least 20"),
        ({"agent": None, "num_agents": 61, "order": "random"}, ValueError, "0 rows for agent 60 of 61; at least 1 "),
        ({"dim": 4}, ValueError, "dim is 4; None or 8"),
        ({"parameter": [1.0]}, ValueError, r"parameter has shape \(1,\), contexts have shape \(3, 3, 8\)"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(frame, given, error, message):
    with pytest.raises(error, match=message):
        make(frame, **{"agent": "town", **given})


@pytest.mark.parametrize("order", ["once", "random"])
def test_what_one_row_changes(frame, order):
    """A row is one observation where rows are played once: no other agent and no other round sees that it changed."""
    other = frame.copy()
    place = int(frame.index[frame["town"] == "b"][4])
    other.loc[place, NAMES] = frame.loc[place, NAMES].to_numpy()[::-1]
    one, two = (
        make(table, agent="town", order=order, parameter=np.full(FEATURES * 2, 0.3))
        for table in (frame, other)
    )
    (seen, *_), (changed, *_) = played(one, 20, range(9)), played(two, 20, range(9))
    rounds = (seen != changed).any(axis=(3, 4))[:20]
    assert not rounds[..., [0, 2]].any()
    times = rounds[..., 1].sum(axis=0)
    assert (times == 1).all() if order == "once" else times.max() > 1
    if order == "once":
        sums = [env.release(np.ones((9, 3), np.bool_))["statistic"] for env in (one, two)]
        difference = np.linalg.norm(sums[0] - sums[1], axis=(2, 3))
        sensitivity = one.sensitivity()
        most = sensitivity.scale["statistic"][0, 0, 0, 0] * sensitivity.changes["one-observation"].norm
        assert (difference[:, 1] > 0).all()
        assert (difference <= most).all()
        assert not difference[:, [0, 2]].any()
