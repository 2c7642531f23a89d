"""P-FCB against silence, against an independent computation, and under faults."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedbandit_envs.baselines.procurement.pfcb import PFCB
from fedbandit_envs.baselines.procurement.silent import SSUCB
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.procurement.oracle import procure
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import GaussianPrivatizer
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.transport.channel import Channel

EARLY = {"name": "doubling", "start": 10, "stop": 400}


def actions_of(env, policy, seeds, rounds):
    """Every action of an episode's first rounds."""
    observation, _ = env.reset_batch(seeds)
    policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
    kept = []
    for _ in range(rounds):
        action = policy.act(observation)
        kept.append(action.copy())
        observation = env.step_batch(action).observation
    return np.array(kept)


@pytest.mark.parametrize("market", ["uniform", "normal"])
def test_without_a_channel_or_in_silence_it_is_ss_ucb_to_the_bit(market):
    def env():
        return parallel_env(max_cycles=400, market=market)

    silent = simulate(env(), SSUCB(), range(5))
    for quiet in (
        env(),
        Channel(env(), schedule="silent"),
        Channel(GaussianPrivatizer(env(), 1.0), schedule="silent"),
    ):
        for policy in (PFCB(), PFCB(check=False), PFCB(guards=False)):
            np.testing.assert_array_equal(simulate(quiet, policy, range(5)).regret, silent.regret)


@pytest.mark.parametrize("policy", [PFCB(), PFCB(check=False)], ids=["P-FCB", "FCB"])
@pytest.mark.parametrize("schedule", [EARLY, "every_round"], ids=["doubling", "every round"])
def test_infinite_epsilon_is_the_unprotected_run_to_the_bit(policy, schedule):
    raw = Channel(parallel_env(max_cycles=300), schedule=schedule)
    private = Channel(GaussianPrivatizer(parallel_env(max_cycles=300), np.inf), schedule=schedule)
    plain, noisy = (simulate(env, policy, range(4)) for env in (raw, private))
    np.testing.assert_array_equal(plain.regret, noisy.regret)
    assert np.isinf(private.privacy().epsilon)
    # Sharing changed something at all.
    assert (plain.regret != simulate(parallel_env(max_cycles=300), SSUCB(), range(4)).regret).any()


class Reference:
    """CheckandUpdate, index and procurement for one agent, in plain Python."""

    def __init__(self, num_agents, check, radius):
        self.n, self.check, self.radius = num_agents, check, radius
        self.heard = None

    def act(self, seen):
        m, t = len(seen["cost"]), int(seen["round"][0])
        if t == 0:
            self.heard = [[0.0, 0.0] for _ in range(m)]
            return np.minimum(seen["capacity"], 1)
        for sender in range(self.n):
            if not seen["inbox_mask"][sender]:
                continue
            for i in range(m):
                w, y = seen["inbox_delivered"][sender][i], seen["inbox_good"][sender][i]
                if not (w > 0 and 0 <= y <= w):
                    continue
                big_w = seen["total_delivered"][i] + self.heard[i][0]
                big_y = seen["total_good"][i] + self.heard[i][1]
                if self.check and big_w > 0:
                    width = 0.1 * np.sqrt(3 * np.log(self.n * t) / (2 * big_w))
                    if abs(y / w - big_y / big_w) > width:
                        continue
                self.heard[i][0] += 10 * w
                self.heard[i][1] += 10 * y
        bound = np.ones(m)
        for i in range(m):
            big_w = seen["total_delivered"][i] + self.heard[i][0]
            if big_w > 0:
                big_y = seen["total_good"][i] + self.heard[i][1]
                log = np.log(t + 1) if self.radius == "own" else np.log(self.n * (t + 1))
                scale = self.n if self.radius == "printed" else 1
                bound[i] = min(1.0, big_y / big_w + np.sqrt(3 * log / (2 * scale * big_w)))
        problem = {name: array[None, None] for name, array in seen.items()}
        return procure(bound[None, None], problem)[0, 0]


@pytest.mark.parametrize("radius", ["own", "federated", "printed"])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.filterwarnings("ignore:the classic calibration")
def test_it_follows_the_procedure(check, radius):
    """Noise of epsilon 3 a release makes some messages pass the check and others fail it, and the guards bite."""
    env = parallel_env(num_agents=3, num_producers=4, max_cycles=120, quality_threshold=0.3)
    env = Channel(GaussianPrivatizer(env, 360.0, releases=120), schedule={"name": "fixed_gap", "gap": 2})
    policy = PFCB(check=check, radius=radius)
    observation, _ = env.reset_batch([5])
    policy.reset(env.policy_spec, row_seeds([5], 3))
    references = [Reference(3, check, radius) for _ in range(3)]
    refused = False
    for _ in range(120):
        action = policy.act(observation)
        for j, reference in enumerate(references):
            row = {name: array[0, j] for name, array in observation.items()}
            np.testing.assert_array_equal(reference.act(row), action[0, j])
        told = observation["inbox_delivered"][observation["inbox_mask"]]
        refused |= bool((told < 0).any())
        observation = env.step_batch(action).observation
    assert refused
    assert sum(units for reference in references for units, _ in reference.heard) > 0


plans = st.fixed_dictionaries(
    {
        "loss": st.floats(0, 0.3),
        "duplication": st.floats(0, 0.3),
        "delay": st.integers(0, 50),
        "topology": st.sampled_from(["complete", "ring", "star", "line"]),
        "time_to_live": st.sampled_from([None, 2, 5]),
        "schedule": st.sampled_from([EARLY, {"name": "fixed_gap", "gap": 60}]),
    }
)


@settings(max_examples=15, derandomize=True)
@given(plans, st.sampled_from([0.1, 1.0, np.inf]))
@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:the classic calibration")
def test_faults_do_little_harm(plan, epsilon):
    """No NaN, no negative weight, no estimate outside [0, 1], and never over twice the silent regret."""
    market = {"max_cycles": 600, "num_agents": 5, "num_producers": 12, "instance_seed": 3}
    seeds = range(4)
    env = Channel(GaussianPrivatizer(parallel_env(**market), epsilon), **plan)
    policy = PFCB()
    observation, _ = env.reset_batch(seeds)
    policy.reset(env.policy_spec, row_seeds(seeds, 5))
    regret = 0.0
    for _ in range(600):
        action = policy.act(observation)
        assert (action >= 0).all()
        assert (action <= observation["capacity"]).all()
        weight = observation["total_delivered"] + policy._received_units
        good = observation["total_good"] + policy._received_good
        assert (policy._received_units >= 0).all()
        assert (policy._received_good >= 0).all()
        assert (good <= weight * (1 + 1e-12)).all()
        step = env.step_batch(action)
        observation = step.observation
        regret += step.info["regret"]
    assert np.isfinite(regret).all()
    silent = simulate(parallel_env(**market), SSUCB(), seeds).regret[-1]
    assert regret.mean() <= 2 * silent.mean()


def test_the_printed_procedure_diverges_where_the_guards_do_not():
    """Unguarded, noise drives weights below zero, and regret above silence's; quantities stay valid."""

    def env():
        private = GaussianPrivatizer(parallel_env(max_cycles=2000), 0.2)
        return Channel(private, schedule={"name": "doubling", "mode": "printed"})

    printed = PFCB(guards=False)
    actions = actions_of(env(), printed, range(5), 2000)
    assert (printed._received_units < 0).any()
    assert actions.min() >= 0
    assert actions.max() <= 50
    regret = [simulate(e, p, range(5)).regret[-1].mean() for e, p in (
        (env(), PFCB(guards=False)), (env(), PFCB()), (parallel_env(max_cycles=2000), SSUCB()),
    )]  # fmt: skip
    assert regret[0] > regret[2]
    assert regret[1] < 1.05 * regret[2]


def test_the_placebo_says_nothing_of_the_data():
    """Under the same noise, two different histories make the same messages."""

    def messages(quantity):
        env = Channel(GaussianPrivatizer(Placebo(parallel_env(instance_seed=1, max_cycles=9)), 1.0))
        env.reset_batch([0, 1])
        steps = [env.step_batch(np.full((2, 10, 30), quantity)).observation for _ in range(1)]
        return [steps[-1][f"inbox_{name}"].copy() for name in ("delivered", "good")]

    for few, many in zip(messages(0), messages(40), strict=True):
        np.testing.assert_array_equal(few, many)
        assert few.any()
