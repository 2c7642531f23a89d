"""The procurement environment against an independent computation, and its answers to wrong input."""

import itertools

import numpy as np
import pytest
from played import begun
from refusals import refusals

from fedbandit_envs.procurement_v0 import parallel_env

SMALL = {
    "quality": [0.9, 0.2, 0.6],
    "cost": [[0.5, 0.1, 0.2], [0.3, 0.3, 0.9]],
    "capacity": [[3, 2, 4], [1, 5, 2]],
}


def test_regret_reward_and_violation_by_enumeration(sample_actions):
    quality, cost, capacity = (np.array(SMALL[name]) for name in ("quality", "cost", "capacity"))
    threshold, unit_revenue = 0.55, 0.8
    options = {"market": SMALL, "quality_threshold": threshold, "unit_revenue": unit_revenue}
    env = begun(parallel_env(**options, max_cycles=300))
    lenient = begun(parallel_env(**options, max_cycles=300, violation="optimum"))
    seen_violation = 0
    for action in sample_actions(env, 1, seed=4, rounds=300):
        step, mild = env.step_batch(action), lenient.step_batch(action)
        for j in range(2):
            every = np.array(list(itertools.product(*[range(k + 1) for k in capacity[j]])))
            feasible = every[(every * (quality - threshold)).sum(axis=1) >= -1e-9]
            expected = [(s * (unit_revenue * quality - cost[j])).sum(axis=-1) for s in (feasible, every)]
            best, worst = expected[0].max(), expected[1].min()
            bought = np.minimum(action[0, j], capacity[j])
            regret = best - (bought * (unit_revenue * quality - cost[j])).sum()
            violated = (bought * quality).sum() < threshold * bought.sum() - 1e-9
            assert step.info["violation"][0, j] == violated
            assert step.info["regret"][0, j] == pytest.approx(best - worst if violated else regret)
            assert mild.info["regret"][0, j] == pytest.approx(best if violated else regret)
            assert step.info["excess"][0, j] == (action[0, j] - bought).sum()
            good = step.observation["good"][0, j]
            assert step.reward[0, j] == pytest.approx(unit_revenue * good.sum() - (bought * cost[j]).sum())
            np.testing.assert_array_equal(step.observation["delivered"][0, j], bought)
            assert (good <= bought).all()
            seen_violation += violated
    assert 20 < seen_violation < 580


def test_outcomes_have_the_market_s_qualities():
    """Six-sigma bounds on 60 means: false alarm below 1e-6."""
    env = begun(parallel_env(num_agents=2, max_cycles=4000), [3])
    for _ in range(4000):
        step = env.step_batch(step_of_ones(env))
    quality = env.hidden()["quality"][0]
    units = step.observation["total_delivered"][0]
    error = step.observation["total_good"][0] / units - quality
    assert (np.abs(error) <= 6 * np.sqrt(quality * (1 - quality) / units) + 1e-12).all()


def step_of_ones(env):
    return np.ones((1, env.max_num_agents, *env.single_action_space.shape), np.int64)


def bad(value, dtype=None):
    action = np.ones((2, 2, 3), type(value) if dtype is None else dtype)
    action[1, 0, 2] = value
    return action


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (bad(-4), ValueError, r"agent_0 \(replica 1\), entry 2, is -4; an integer >= 0"),
        (bad(2.5), ValueError, r"agent_0 \(replica 1\), entry 2, is 2.5; an integer >= 0"),
        (bad(2.0), TypeError, "action has dtype float64; an integer dtype"),
        (bad(True, np.bool_), TypeError, "action has dtype bool"),
        (bad(1, object), TypeError, "action has dtype object"),
        (np.ones((2, 3), np.int64), ValueError, r"action has shape \(2, 3\)"),
        ([[[1, 1, 1]] * 2] * 2, TypeError, r"a numpy array \(replicas, agents, ...\) = "),
    ],
)
def test_bad_actions_are_named_and_leave_the_state_untouched(action, error, message):
    env, twin = (begun(parallel_env(market=SMALL, max_cycles=10), [1, 2]) for _ in range(2))
    good = np.ones((2, 2, 3), np.int64)
    env.step_batch(good)
    twin.step_batch(good)
    with pytest.raises(error, match=message):
        env.step_batch(action)
    mine, theirs = env.step_batch(good), twin.step_batch(good)
    for name, array in theirs.observation.items():
        np.testing.assert_array_equal(mine.observation[name], array)
    np.testing.assert_array_equal(mine.reward, theirs.reward)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_any_integer_dtype_and_layout_gives_the_same(dtype):
    outcomes = []
    for action in (np.full((1, 2, 3), 5, dtype), np.full((3, 2, 1), 5, dtype).T):
        env = begun(parallel_env(market=SMALL))
        outcomes.append(env.step_batch(action).observation["good"].copy())
    env.reset_batch([0])
    np.testing.assert_array_equal(outcomes[0], outcomes[1])
    np.testing.assert_array_equal(
        outcomes[0], env.step_batch(np.full((1, 2, 3), 5, np.int64)).observation["good"]
    )


def test_quantities_above_capacity_deliver_capacity_and_are_counted():
    env = begun(parallel_env(market=SMALL))
    step = env.step_batch(np.full((1, 2, 3), 2**40, np.int64))
    np.testing.assert_array_equal(step.observation["delivered"][0], SMALL["capacity"])
    np.testing.assert_array_equal(step.info["excess"][0], 3 * 2**40 - np.sum(SMALL["capacity"], axis=1))


def test_markets_of_the_laws():
    """Means within six standard errors: false alarm below 1e-7 in all."""
    env = parallel_env(num_agents=20, num_producers=200)
    observation, _ = env.reset_batch(range(5))
    capacity = observation["capacity"]
    assert set(np.unique(capacity)) == set(range(1, 51))
    assert abs(observation["cost"].mean() - 0.5) < 6 * np.sqrt(1 / 12 / observation["cost"].size)
    quality = env.hidden()["quality"]
    assert (quality == quality[:, :1]).all()
    normal = parallel_env(
        num_agents=20, num_producers=200, market={"name": "normal", "sd": 0.05}, quality_threshold=0.6
    )
    cost = normal.reset_batch(range(5))[0]["cost"]
    assert abs(cost.mean() - 0.6) < 6 * 0.05 / np.sqrt(cost.size)
    assert cost.std() == pytest.approx(0.05, rel=0.05)


def test_homogeneous_markets_share_costs_and_capacities():
    observation, _ = parallel_env(market={"name": "uniform", "homogeneous": True}).reset_batch([0, 1])
    for name in ("cost", "capacity"):
        assert (observation[name] == observation[name][:, :1]).all()
        assert (observation[name][0] != observation[name][1]).any()


def test_federations_of_different_size_meet_the_same_producers():
    small, large = (parallel_env(num_agents=n, instance_seed=4) for n in (2, 40))
    seen = [env.reset_batch([0])[0] for env in (small, large)]
    np.testing.assert_array_equal(small.hidden()["quality"][0, 0], large.hidden()["quality"][0, 0])
    for name in ("cost", "capacity"):
        np.testing.assert_array_equal(seen[0][name][0], seen[1][name][0, :2])


def test_fixed_market_and_fresh_markets():
    fixed, fresh = parallel_env(instance_seed=8), parallel_env()
    costs = fixed.reset_batch([0, 1])[0]["cost"]
    np.testing.assert_array_equal(costs[0], costs[1])
    costs = fresh.reset_batch([0, 1])[0]["cost"]
    assert (costs[0] != costs[1]).all()


def test_drifting_qualities_stay_probabilities_and_move_as_told():
    """The standard deviation of 2e4 steps within 5 %: seven sigma."""
    env = begun(parallel_env(num_agents=1, num_producers=200, drift=0.01, max_cycles=100))
    path = [env.hidden()["quality"][0, 0]]
    for _ in range(100):
        env.step_batch(step_of_ones(env))
        path.append(env.hidden()["quality"][0, 0])
    path = np.array(path)
    assert path.min() >= 0
    assert path.max() <= 1
    inner = (path[:-1] > 0.05) & (path[:-1] < 0.95)
    assert np.diff(path, axis=0)[inner].std() == pytest.approx(0.01, rel=0.05)


def test_regret_follows_drifting_qualities():
    env = begun(parallel_env(market=SMALL, drift=0.2, max_cycles=30))
    for _ in range(30):
        quality = env.hidden()["quality"]
        step = env.step_batch(np.zeros((1, 2, 3), np.int64))
        frozen = begun(parallel_env(market={**SMALL, "quality": quality[0, 0]}))
        expected = frozen.step_batch(np.zeros((1, 2, 3), np.int64)).info["regret"]
        np.testing.assert_allclose(step.info["regret"], expected)


test_bad_parameters_are_named = refusals(
    lambda kwargs: parallel_env(**kwargs),
    ({"num_agents": 0}, ValueError, "num_agents is 0"),
    ({"max_cycles": 2**32}, ValueError, r"max_cycles is 4294967296; an integer in \[1, 4294967295\]"),
    ({"drift": "much"}, TypeError, "drift is 'much'"),
    ({"regret_oracle": "lp"}, ValueError, "regret_oracle is 'lp'"),
    ({"render_mode": "human"}, ValueError, "render_mode is 'human'"),
    ({"market": 3}, TypeError, "market is 3; a name or a mapping with a name"),
    ({"market": {"name": "normal", "sd": 0.0}}, ValueError, "sd is 0.0; a finite number > 0"),
    ({"market": {"name": "uniform", "sd": 3}}, TypeError, "argument 'sd'; arguments are homogeneous, max_c"),
    ({"market": {"name": "uniform", "homogeneous": 1}}, TypeError, "homogeneous is 1; True or False"),
    ({"market": SMALL, "num_agents": 5}, ValueError, "num_agents is 5; None or 2"),
    ({"market": {**SMALL, "quality": [0.1, 1.2, 0.3]}}, ValueError, r"market\['quality'\]\[1\] is 1.2"),
    ({"market": {**SMALL, "cost": [[0.1] * 3, [0.1, -1, 0]]}}, ValueError, r"market\['cost'\]\[1, 1\] is -1.0"),
    ({"market": {**SMALL, "capacity": [[1, 2, 3], [1, 2, 2.5]]}}, ValueError, r"\['capacity'\]\[1, 2\] is 2.5"),
    ({"market": {**SMALL, "capacity": [[1, 2, 3]]}}, ValueError, r"market\['capacity'\] has shape \(1, 3\)"),
    ({"market": {"quality": [0.5]}}, ValueError, r"market has entries \['quality'\]; quality, cost and capacity"),
    ({"instance_seed": []}, ValueError, r"instance_seed is \[\]; at least one integer >= 0"),
    ({"instance_seed": [1, -1]}, ValueError, r"instance_seed\[1\] is -1"),
)  # fmt: skip


def test_large_capacities_are_inverted_without_tables():
    market = {**SMALL, "capacity": [[3000, 2000, 4000], [1000, 5000, 2000]]}
    env = begun(parallel_env(market=market))
    step = env.step_batch(np.array([market["capacity"]]))
    good, bought = step.observation["good"][0], step.observation["delivered"][0]
    # Six standard deviations on six draws: false alarm below 1e-7.
    spread = 6 * np.sqrt(bought * 0.25)
    assert (np.abs(good - bought * np.array(SMALL["quality"])) < spread).all()


def test_an_explicit_market_may_give_costs_and_capacities_once_for_all_agents():
    once = {"quality": [0.9, 0.2], "cost": [0.3, 0.1], "capacity": [4, 7]}
    for size, agents in ((None, 10), (3, 3)):
        seen, _ = parallel_env(num_agents=size, market=once).reset_batch([0])
        np.testing.assert_array_equal(seen["cost"], np.broadcast_to([0.3, 0.1], (1, agents, 2)))
        np.testing.assert_array_equal(seen["capacity"], np.broadcast_to([4, 7], (1, agents, 2)))
    mixed = {**once, "capacity": [[4, 7], [1, 1]]}
    seen, _ = parallel_env(market=mixed).reset_batch([0])
    np.testing.assert_array_equal(seen["cost"], [[[0.3, 0.1]] * 2])
    with pytest.raises(ValueError, match="num_agents is 3; None or 2, as in the market given"):
        parallel_env(num_agents=3, market=mixed)
