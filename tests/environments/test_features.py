"""Features: within their bounds whatever is heard, row by row, and entry by entry what their pages say."""

import gymnasium
import numpy as np
import pytest
from arms_env import ArmsEnv as WithoutFeatures
from registered import FIRST, carries_messages, small

from fedbandit_envs.arms_v0 import parallel_env as arms_env
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.policy_spec import Features
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.exposure_v0 import parallel_env as exposure_env
from fedbandit_envs.linear_v0 import parallel_env as linear_env
from fedbandit_envs.procurement_v0 import parallel_env as procurement_env
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.testing.episodes import Trial, random_choices
from fedbandit_envs.testing.policy import check_features
from fedbandit_envs.views.control import Rows
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.transport.channel import Channel

NOISE = ["fedbandit_envs.wrappers:GaussianPrivatizer", {"epsilon_per_release": 0.5}]
CHANNEL = ["fedbandit_envs.wrappers:Channel", {"echo": True}]
STACKS = {
    "noise": [NOISE, CHANNEL],
    "slots": [["fedbandit_envs.wrappers:Interleaved", {"period": 2}], NOISE, CHANNEL],
    "liars": [["fedbandit_envs.wrappers:Byzantine", {"agents": [0], "attack": "garbage"}], CHANNEL],
    "server": [NOISE, ["fedbandit_envs.wrappers:Server", {"schedule": "every_round"}]],
}


def around(env_id, stack):
    entry = REGISTRY[env_id]
    kwargs = {**entry.kwargs, **small(env_id), "num_agents": 3, "max_cycles": 6}
    return build(entry.federation, (*entry.stack, *stack), **kwargs)


def observations(env, seeds=(1, 2)):
    """What agents observe in a whole episode of random actions, copied."""
    rows = len(seeds), env.max_num_agents
    actions = [None, *random_choices(env.single_action_space, rows, env.max_cycles)]
    for action in actions:
        step = env.reset_batch(seeds) if action is None else env.step_batch(action)
        kept = {name: array.copy() for name, array in step.observation.items()}
        yield kept | concealed(kept)


@pytest.mark.parametrize(
    ("env_id", "stack"),
    [
        pytest.param(env_id, stack, marks=pytest.mark.slow if (i + j) % (2 if env_id in FIRST else 4) else ())
        for i, env_id in enumerate(one for one in REGISTRY if not carries_messages(one))
        for j, stack in enumerate(STACKS)
    ],
)
def test_features_behind_noise_and_liars(env_id, stack):
    """Within their bounds, row by row, whatever is heard; ids that are not the first of their problem in one stack."""
    check_features(Trial(lambda: around(env_id, STACKS[stack])))


def entries(features, seen):
    """Features by name: of items ``(replicas, agents, items)``, and of those there are once ``(replicas, agents)``."""
    split = features.items * len(features.each)
    each = seen[..., :split].reshape(*seen.shape[:2], features.items, -1)
    return {name: each[..., i] for i, name in enumerate(features.each)} | {
        name: seen[..., split + i] for i, name in enumerate(features.shared)
    }


def told(env):
    """Pairs of an observation and the features made of all up to it, by name."""
    features: Features = env.features(env.policy_spec)
    features.reset((2, env.max_num_agents))
    for observation in observations(env):
        yield observation, entries(features, features.see(observation))


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_procurement_by_hand():
    heard = np.zeros((2, 2, 3, 5))
    env = Channel(procurement_env(num_agents=3, num_producers=5, max_cycles=6, quality_threshold=0.7), "ring")
    most = env.single_observation_space["capacity"].high.max()
    for seen, found in told(env):
        units, good = seen["total_delivered"], seen["total_good"]
        assert_close(found["estimate"], 2 * (good + 1) / (units + 2) - 1)
        assert_close(found["doubt"], (units + 1.0) ** -0.5)
        heard += [seen["inbox_delivered"].sum(2), seen["inbox_good"].sum(2)]
        assert_close(found["heard_estimate"], 2 * (heard[1] + 1) / (heard[0] + 2) - 1)
        assert_close(found["heard_doubt"], (heard[0] + 1.0) ** -0.5)
        assert_close(found["cost"], 2 * seen["cost"] - 1)
        assert_close(found["capacity"], 2 * seen["capacity"] / most - 1)
        assert_close(found["threshold"], 0.4)
        assert_close(found["time_left"], 1 - seen["round"][..., 0] / 3)
    assert heard.min() > 0


def test_arms_by_hand():
    """With an echo, an agent's own messages are not what it hears."""
    env = Channel(arms_env(num_agents=3, num_arms=4, max_cycles=6, slots=2, awake=0.5), echo=True)
    heard = np.zeros((2, 2, 3, 4))
    for seen, found in told(env):
        pulls, successes = seen["total_pulls"], seen["total_successes"]
        assert_close(found["estimate"], 2 * (successes + 1) / (pulls + 2) - 1)
        assert_close(found["doubt"], (pulls + 1.0) ** -0.5)
        for agent in range(3):
            others = [other for other in range(3) if other != agent]
            heard[0, :, agent] += seen["inbox_pulls"][:, agent, others].sum(1)
            heard[1, :, agent] += seen["inbox_successes"][:, agent, others].sum(1)
        assert_close(found["heard_estimate"], 2 * (heard[1] + 1) / (heard[0] + 2) - 1)
        assert_close(found["heard_doubt"], (heard[0] + 1.0) ** -0.5)
        np.testing.assert_array_equal(found["awake"], np.where(seen["awake"], 1, -1))
        assert_close(found["time_left"], 1 - seen["round"][..., 0] / 3)
    np.testing.assert_array_equal(heard[0], seen["total_pulls"].sum(1, keepdims=True) - seen["total_pulls"])


def ridge(contexts, statistic):
    """Estimates and widths for contexts of norm at most 1, one row."""
    matrix = np.eye(contexts.shape[1]) + statistic[:-1, :-1]
    parameter = np.linalg.solve(matrix, statistic[:-1, -1])
    widths = np.sqrt(np.einsum("ki,ik->k", contexts, np.linalg.solve(matrix, contexts.T)))
    return np.clip(contexts @ parameter, -1, 1), widths


@pytest.mark.parametrize("noisy", [False, True])
def test_linear_by_hand(noisy):
    """In units of the longest context; what is heard through noise is worth fewer exact observations."""
    sizes = {"num_agents": 3, "num_arms": 6, "dim": 4, "max_cycles": 6}
    env = linear_env(**sizes, contexts="unit_ball", context_bound=2.5, reward="normal")
    env = Channel(
        GaussianPrivatizer(env, epsilon_per_release=200.0, calibration="analytic") if noisy else env
    )
    heard, noise = np.zeros((2, 3, 5, 5)), np.zeros((2, 3, 5, 5))
    unit = np.diag([0.4] * 4 + [1.0])
    for seen, found in told(env):
        heard += seen["inbox_statistic"].sum(2)
        if noisy:
            noise += seen["inbox_statistic_noise_variance"].sum(2)
        for row in np.ndindex(2, 3):
            contexts = 0.4 * seen["contexts"][row]
            worth = unit @ (heard[row] + heard[row].T) @ unit / 2
            values, vectors = np.linalg.eigh(worth[:4, :4])
            # Rewards in [-1, 1] are taken to have the variance 1 / 4; the moment's noise is in units of z.
            variance = np.diag(noise[row]).max() * 0.4**2
            values = np.where(values > 1e-12, values, np.inf)
            left = np.sqrt(np.maximum(np.where(np.isinf(values), 0, values) ** 2 - 10 * variance, 0))
            kept = left / (left + 4 * variance + 1e-300)
            worth[:4, 4] = vectors @ np.diag(kept * left / values) @ vectors.T @ worth[:4, 4]
            worth[:4, :4] = vectors @ np.diag(kept * left) @ vectors.T
            for name, statistic in (("", 0 * worth), ("pooled_", worth)):
                estimates, widths = ridge(contexts, unit @ seen["total_statistic"][row] @ unit + statistic)
                assert_close(found[f"{name}estimate"][row], estimates)
                assert_close(found[f"{name}width"][row], widths)
            assert_close(found["length"][row], 2 * np.linalg.norm(contexts, axis=-1) - 1)
    assert (noise.max() > 0) == noisy


@pytest.mark.parametrize("pair", ["as_given", "good_and_defective"])
def test_noise_makes_heard_counts_worth_less(pair):
    """As many exact outcomes as give a mean of the same variance, where one has 1 / 4; own data counts in full."""
    env = arms_env(num_agents=3, num_arms=2, max_cycles=40)
    env = Channel(GaussianPrivatizer(env, epsilon_per_release=30.0, calibration="analytic", pair=pair))
    pulls, successes, of_pulls, of_successes, of_both = np.zeros((5, 2, 3, 2))
    for seen, found in told(env):
        pulls += seen["inbox_pulls"].sum(2)
        successes += seen["inbox_successes"].sum(2)
        of_pulls += seen["inbox_pulls_noise_variance"].sum(2)
        of_successes += seen["inbox_successes_noise_variance"].sum(2)
        of_both += seen["inbox_noise_covariance"].sum(2) if "inbox_noise_covariance" in seen else 0
        clear = pulls > 1
        n, p = pulls[clear], np.clip(successes[clear] / pulls[clear], 0, 1)
        variance = of_successes[clear] - 2 * p * of_both[clear] + p**2 * of_pulls[clear]
        worth = n * (n / 4) / (n / 4 + variance)
        assert_close(found["heard_doubt"][clear], (worth + 1) ** -0.5)
        assert_close(found["heard_estimate"][clear], 2 * (p * worth + 1) / (worth + 2) - 1)
    assert clear.any()
    assert of_both.any() == (pair == "good_and_defective")
    assert (worth < 0.9 * n).all()


@pytest.mark.parametrize("bound", [0.5, 1.0, 2.5])
def test_exposure_by_hand(bound):
    """Estimates are in units of rewards, however long contexts are."""
    merits = ["exponential", {"name": "linear", "floor": 0.2}]
    sizes = {"num_agents": 2, "num_arms": 5, "dim": 3, "max_cycles": 6, "merit": merits}
    env = Channel(exposure_env(**sizes, contexts="unit_ball", context_bound=bound))
    for _, found in told(env):
        for name in ("", "pooled_"):
            means = found[f"{name}estimate"].astype(float)
            merit = np.stack([np.exp(10 * means[:, 0]), np.maximum(means[:, 1], 0.2)], axis=1)
            shares = merit / merit.sum(-1, keepdims=True)
            assert_close(found[f"{name}deserved"], 2 * shares - 1)


@pytest.mark.parametrize("env_id", sorted(FIRST))
@pytest.mark.parametrize("joint", [False, True])
def test_views_show_features(env_id, joint):
    """Those of the rows that learn, as the problem's own class makes them of what these rows observe."""
    kwargs = {**small(env_id), "num_agents": 3, "max_cycles": 5}
    view = gymnasium.make(env_id, features=True, joint=joint, **kwargs)
    seen, _ = view.reset(seed=3)
    env = view.unwrapped._control.federation
    rows = 3 if joint else 1
    features = env.features(env.policy_spec)
    features.reset((1, rows))
    vector = gymnasium.make_vec(env_id, num_envs=1, features=True, joint=joint, **kwargs)
    assert vector.single_observation_space == view.observation_space
    np.testing.assert_array_equal(vector.reset(seed=3)[0][0], seen)
    for _ in range(5):
        inside = view.unwrapped._control._rows._learners()
        expected = features.see(inside)[0]
        np.testing.assert_array_equal(seen, expected if joint else expected[0])
        action = view.action_space.sample()
        seen = view.step(action)[0]
        np.testing.assert_array_equal(vector.step(action[np.newaxis])[0][0], seen)


def test_features_follow_a_horizon_set_between_episodes():
    env = make_federation("FedArms-v0", max_cycles=4)
    rows = Rows(env, features=True)
    for horizon in (4, 10):
        env.max_cycles = horizon
        rows.reset([0])
        times = [rows.step(np.zeros((1, 10), np.int64))[0][0, 0, -1] for _ in range(horizon)]
        assert_close(times, 1 - 2 * np.arange(1, horizon + 1) / horizon)


def test_a_problem_without_features_says_so():
    with pytest.raises(ValueError, match=r"features is True, but .* has none; features=False, or a class of"):
        Rows(WithoutFeatures(), features=True)
    with pytest.raises(TypeError, match="features is 'yes'"):
        gymnasium.make("FedArms-v0", features="yes")
