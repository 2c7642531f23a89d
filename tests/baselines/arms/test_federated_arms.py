"""Agents of arms that share what they know: through servers, channels and noise."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import binom

from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.baselines.arms import UCB1, ThompsonSampling
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.transport.channel import Channel


def episode(name, rounds, seeds=(0,), **env_kwargs):
    """Plays a baseline; returns the environment, its last observation and all actions."""
    baseline = BASELINES[name]
    env = baseline.wrap(parallel_env(max_cycles=rounds, **env_kwargs))
    policy = baseline.make_policy()
    observation = env.reset_batch(seeds).observation
    policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
    actions = []
    for _ in range(rounds):
        actions.append(policy.act(observation).copy())
        observation = env.step_batch(actions[-1]).observation
    return env, observation, actions


def test_who_knows_the_same_does_the_same():
    """With all data of every round in common, agents of UCB1 are one agent that pulls an arm ten times a round."""
    rounds = 300
    env, observation, actions = episode("Fed-UCB1-server", rounds)
    assert all((arms == arms[0, 0]).all() for arms in actions)
    n, s = observation["total_pulls"][0].sum(axis=0), observation["total_successes"][0].sum(axis=0)
    assert n.sum() == 10 * rounds
    policy = UCB1()
    policy.reset(env.policy_spec, row_seeds([0], 10))
    # The whole of it at once, as one message.
    own = np.zeros((1, 10, 10), np.int64)
    told = {
        "round": np.full((1, 10, 1), rounds),
        "total_pulls": own,
        "total_successes": own,
        "inbox_mask": np.ones((1, 10, 1), np.bool_),
        "inbox_pulls": np.broadcast_to(n, (1, 10, 1, 10)).astype(np.float64),
        "inbox_successes": np.broadcast_to(s, (1, 10, 1, 10)).astype(np.float64),
    }
    best = (s / n + np.sqrt(2 * np.log(rounds + 1) / n)).argmax()
    assert (policy.act(told) == best).all()


@pytest.mark.parametrize(
    ("heard", "known"), [((-4.0, 3.0), (0, 0)), ((6.0, 9.0), (6, 6)), ((6.0, -1.0), (6, 0))]
)
def test_what_noise_makes_impossible_counts_as_what_could_be(heard, known):
    """Pulls below 0, more successes than pulls, successes below 0: by hand, against an arm of 20 pulls, 10 good."""
    env = Channel(parallel_env(num_agents=2, num_arms=2))
    policy = UCB1()
    policy.reset(env.policy_spec, row_seeds([0], 2))
    inbox = np.zeros((2, 1, 2, 2, 2))
    inbox[:, 0, :, 0, 0] = np.array(heard)[:, np.newaxis]
    for good in range(11):
        policy.reset(env.policy_spec, row_seeds([0], 2))
        arms = policy.act(
            {
                "round": np.full((1, 2, 1), 29),
                "total_pulls": np.broadcast_to([10, 20], (1, 2, 2)),
                "total_successes": np.broadcast_to([good, 10], (1, 2, 2)),
                "inbox_mask": np.array([[[True, False]] * 2]),
                "inbox_pulls": inbox[0],
                "inbox_successes": inbox[1],
            }
        )
        n, s = np.array([10 + known[0], 20]), np.array([good + known[1], 10])
        assert (arms == (s / n + np.sqrt(2 * np.log(30) / n)).argmax()).all()


@pytest.mark.parametrize("policy", ["UCB1", "Thompson"])
def test_sharing_helps_and_noise_alone_does_not(policy):
    """Ten agents, 1,000 rounds, ten federations: true data, none, and messages that are noise."""
    regret = {
        name: simulate(
            BASELINES[name].wrap(parallel_env(max_cycles=1000)), BASELINES[name].make_policy(), range(10)
        ).regret[-1]
        for name in (
            policy,
            f"Fed-{policy}",
            f"Fed-{policy}-server",
            f"Priv-{policy}",
            f"Priv-{policy}-placebo",
        )
    }
    mean = {name: values.mean() for name, values in regret.items()}
    print({name: round(value) for name, value in mean.items()})
    assert max(mean[f"Fed-{policy}"], mean[f"Fed-{policy}-server"]) < 0.5 * mean[policy]
    private, placebo = mean[f"Priv-{policy}"], mean[f"Priv-{policy}-placebo"]
    if policy == "UCB1":
        assert mean["Fed-UCB1"] < private < min(placebo, mean["UCB1"])
    else:
        # It takes what it hears for exact: noise costs it more than data bring. Over 200 federations its placebo's
        # regret is the same (75 and 76, the difference's standard error 4), and silence's half of it.
        assert mean["Thompson"] < min(private, placebo)


@pytest.mark.parametrize("rounds", [100, 3000])
def test_the_claim_of_private_ucb1_is_dp_accountings(rounds):
    """Noise on prefix sums is sigma B z, where B is the square root of summation.

    One observation replaced moves two pulls and two successes by 1, so the sums by 2 from its window on: a Gaussian
    mechanism whose sensitivity is 2 |B e_1|, if all of the planned releases are made.
    """
    env, _, _ = episode("Priv-UCB1", rounds)
    releases = int(np.floor(np.log2(rounds))) + 1
    # Each goes to nine others.
    assert (env.traffic["messages"] == 9 * releases).all()
    first = BASELINES["Priv-UCB1"].wrap(parallel_env(max_cycles=rounds))
    first.reset_batch([0])
    observation = first.step_batch(np.zeros((1, 10), np.int64)).observation
    sigma = np.sqrt(observation["inbox_pulls_noise_variance"][0, 0, 1, 0])
    # (1 - x)^(-1/2) = sum_k binom(2k, k) / 4^k x^k.
    k = np.arange(releases)
    column = np.sqrt(((binom(2 * k, k) / 4.0**k) ** 2).sum())
    mechanism = pld.from_gaussian_mechanism(sigma, sensitivity=2 * column)
    claim = env.privacy()
    assert (claim.adjacency, claim.delta, claim.composition) == ("one-observation", 1e-5, "exact")
    assert claim.epsilon == pytest.approx(mechanism.get_epsilon_for_delta(1e-5), abs=1e-3)
    assert claim.epsilon == pytest.approx(1.0, abs=1e-3)


def test_the_noise_of_private_ucb1_is_what_it_announces():
    """A placebo's first release is noise: 20,000 values, whose variance is off by 4 % in 1 of 10,000 runs."""
    env = BASELINES["Priv-UCB1-placebo"].wrap(parallel_env(num_arms=50, max_cycles=100))
    env.reset_batch(range(20))
    observation = env.step_batch(np.zeros((20, 10), np.int64)).observation
    told, announced = (
        np.concatenate(
            [observation[f"inbox_{name}{of}"][:, 0, 1:] for name in ("pulls", "successes")], axis=-1
        )
        for of in ("", "_noise_variance")
    )
    assert (told**2 / announced).mean() == pytest.approx(1.0, abs=0.04)


def test_liars_are_outvoted_by_a_pool():
    """The arms' pools are those of the other families: one liar of five moves a median of means by little."""
    truth = np.full((1, 1, 5, 2), 10.0)
    truth[:, :, 4] = 1e6
    spaces = Channel(parallel_env(num_agents=5, num_arms=2), echo=False).policy_spec
    arms = {}
    for pool in ("sum", {"name": "median_of_means", "groups": 5}):
        policy = ThompsonSampling(pool=pool)
        policy.reset(spaces, row_seeds([0], 1))
        policy.act(
            {
                "round": np.full((1, 1, 1), 50),
                "total_pulls": np.ones((1, 1, 2), np.int64),
                "total_successes": np.zeros((1, 1, 2), np.int64),
                "inbox_mask": np.ones((1, 1, 5), np.bool_),
                "inbox_pulls": truth,
                "inbox_successes": truth,
            }
        )
        arms[str(pool)] = policy._pulls.max()
    assert arms["sum"] > 1e6
    assert list(arms.values())[1] == 1 + 5 * 10
