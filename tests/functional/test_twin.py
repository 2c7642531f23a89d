"""The functional twin plays what the batch API plays: the same instances, outcomes and actions under equal seeds."""

from functools import partial

import jax
import numpy as np
import pytest

from fedbandit_envs import functional as twin
from fedbandit_envs.baselines import arms, gaussian
from fedbandit_envs.baselines.exposure import FairX
from fedbandit_envs.baselines.linear import FedUCB, LinUCB
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.procurement import PFCB, SSUCB, LaplaceIndex
from fedbandit_envs.core.wrapper import build
from fedbandit_envs.experiments import simulate
from fedbandit_envs.experiments.result import claims_of
from fedbandit_envs.functional.environment import COMMON, axes
from fedbandit_envs.functional.policies import Indexed
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import find_registered
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

CHANNEL = [["Channel", {"schedule": {"name": "doubling", "start": 1, "stop": None}}]]
SERVER = [["Server", {"schedule": "every_round", "answers": "every_round", "echo": False}]]
LATE = [["Channel", {"schedule": {"name": "fixed_gap", "gap": 20}}]]


def private(mechanism, gap=8, **kwargs):
    """Wrappers of a federation with noise: a server, in every gap-th round, and releases of 80 rounds."""
    schedule = {"name": "fixed_gap", "gap": gap}
    kwargs = {"mechanism": mechanism, "epsilon": 5.0, "delta": 1e-5, "releases": schedule, **kwargs}
    server = ["Server", {"schedule": schedule, "answers": "every_round", "echo": False}]
    if mechanism == "gaussian":
        return [["GaussianPrivatizer", {"noise_multiplier": 2.0}], server]
    return [["ContinualPrivatizer", kwargs], server]


# Id, arguments, wrappers, and the policy of the twin and of the package.
CASES = {
    "UCB1": ("FedArms-v0", {"spread": 0.2, "regret": 0.5}, [], twin.PureUCB1(), arms.UCB1()),
    "UCB1-told": (
        *("FedArmsMovieLens-v1", {"num_agents": 4, "num_arms": 20}, CHANNEL),
        *(twin.PureUCB1(0.3, "horizon"), arms.UCB1(0.3, "horizon")),
    ),
    "UCB1-weighted": (
        *("FedArms-v0", {"num_agents": 4}, SERVER),
        *(twin.PureUCB1(0.3, pool="precision"), arms.UCB1(0.3, pool="precision")),
    ),
    "MOSS": (
        *("FedArms-v0", {"num_agents": 4}, []),
        *(twin.PureUCB1(0.25, "horizon_per_pull"), arms.UCB1(0.25, "horizon_per_pull")),
    ),
    "MOSS-weighted": (
        *("FedArms-v0", {"num_agents": 4}, CHANNEL),
        *(
            twin.PureUCB1(0.1, "horizon_per_pull", pool="precision"),
            arms.UCB1(0.1, "horizon_per_pull", pool="precision"),
        ),
    ),
    "Thompson": ("FedArms-v0", {"num_agents": 4}, CHANNEL, twin.PureThompson(), arms.ThompsonSampling()),
    "Gaussian-UCB": ("FedMixed-v0", {}, [], twin.PureGaussianUCB(), gaussian.GaussianUCB()),
    "Gaussian-UCB-told": (
        *("FedGaussianSampled-v0", {"num_agents": 6, "reward_bound": 1.5}, CHANNEL),
        # Without noise all outcomes count in full.
        *(twin.PureGaussianUCB(0.3, pool="precision"), gaussian.GaussianUCB(0.3)),
    ),
    "LinUCB-band": (
        *("FedLinear-v0", {"num_agents": 2, "reward": "bernoulli", "num_arms": 30}, []),
        *(twin.PureLinUCB(), LinUCB()),
    ),
    "LinUCB-ball": (
        *("FedLinearBall-v0", {"num_agents": 3, "num_arms": 20}, LATE),
        *(twin.PureLinUCB(beta_scale=0.3), FedUCB(beta_scale=0.3)),
    ),
    "LinUCB-cube": (
        *("FedLinearCube-v0", {"num_agents": 2, "num_arms": 20, "statistic": "moments"}, SERVER),
        *(twin.PureLinUCB(ridge=2.0, alpha=0.3), FedUCB(ridge=2.0, alpha=0.3, pool="precision")),
    ),
    "LinUCB-sphere": (
        *("FedLinearSphere-v0", {"num_agents": 3, "num_arms": 15}, CHANNEL),
        *(twin.PureLinUCB(), FedUCB()),
    ),
    "LinUCB-pool": ("FedLogistic-v0", {"num_agents": 2}, [], twin.PureLinUCB(), LinUCB()),
    "SS-UCB": (
        *("FedProcurement-v0", {"num_agents": 3, "num_producers": 8}, []),
        *(twin.PureSSUCB(0.5, margin=2.0), SSUCB(radius_scale=0.5, margin=2.0)),
    ),
    "SS-UCB-told": (
        *("FedProcurementNormal-v0", {"num_agents": 3}, CHANNEL),
        *(twin.PureSSUCB(0.3), PFCB(radius_scale=0.3, check=False, guards=False, omega2=1.0)),
    ),
    "Laplace-index": (
        *("FedProcurement-v0", {"num_agents": 2, "violation": "optimum", "regret_oracle": "greedy"}, []),
        *(twin.PureLaplaceIndex(0.5), LaplaceIndex(0.5)),
    ),
    "FairX": ("FedExposure-v0", {"num_agents": 3}, [], twin.PureFairX(beta_scale=0.3), FairX(beta_scale=0.3)),
    "FairX-told": (
        *(
            "FedExposureNoisy-v0",
            {"num_agents": 2, "merit": ["linear", {"name": "exponential", "scale": 5}]},
            CHANNEL,
        ),
        *(twin.PureFairX(), FairX()),
    ),
}

# The same with noise, of which the package's policy is shown the twin's.
PRIVATE = {
    "UCB1": (
        *("FedArms-v0", {"num_agents": 3}, private("sqrt_toeplitz")),
        *(twin.PureUCB1(0.3, pool="precision"), arms.UCB1(0.3, pool="precision")),
    ),
    "UCB1-independent": (
        *("FedArms-v0", {"num_agents": 3}, private("gaussian")),
        *(twin.PureUCB1(0.3, pool="precision"), arms.UCB1(0.3, pool="precision")),
    ),
    "UCB1-sum": (
        *("FedArms-v0", {"num_agents": 3}, private("honaker")),
        *(twin.PureUCB1(0.3), arms.UCB1(0.3)),
    ),
    "SS-UCB": (
        *("FedProcurement-v0", {"num_agents": 3, "num_producers": 6}, private("tree", epsilon=50.0)),
        *(twin.PureSSUCB(pool="precision"), PFCB(check=False, guards=False, omega2=1.0, pool="precision")),
    ),
    "LinUCB": (
        *("FedLinearBall-v0", {"num_agents": 3, "num_arms": 10, "dim": 3}, private("tree", epsilon=50.0)),
        *(twin.PureLinUCB(beta_scale=0.3), FedUCB(beta_scale=0.3, pool="precision")),
    ),
    "FairX": (
        *("FedExposure-v0", {"num_agents": 3, "num_arms": 4, "dim": 3}, private("gaussian")),
        *(twin.PureFairX(), FairX(pool="precision")),
    ),
}

# Where bounds tie, to the last bits, by the symmetry of contexts, the actions of a whole run may differ.
TIED = ("LinUCB-sphere", "LinUCB-pool")


def built(env_id, stack, **kwargs):
    """The package's own environment with these arguments."""
    entry = find_registered(env_id)
    return build(entry.federation, (*entry.stack, *stack), **{**entry.kwargs, **kwargs})


def assert_same(array, wanted, name):
    # The package gives one number an axis of its own.
    wanted = wanted.reshape(array.shape) if wanted.size == array.size else wanted[:, 0, 0]
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(array, wanted, rtol=1e-9, atol=1e-9, err_msg=name)
    else:
        np.testing.assert_array_equal(array, wanted, err_msg=name)


def played_alike(case, rounds, shown=lambda seen, inbox: seen):
    """Plays the package's actions in both, holds that all else is the same, and returns how many actions tie.

    ``shown`` returns what the package's policy sees, of its own observation and what the twin's agents have received.
    """
    env_id, kwargs, stack, mine, theirs = case
    seeds, kwargs, ties = [3, 4], {**kwargs, "max_cycles": rounds}, 0
    env, host = twin.make(env_id, stack, np.float64, **kwargs), built(env_id, stack, **kwargs)
    policy_seeds = row_seeds(seeds, host.max_num_agents)
    keys = policy_seeds.view(np.uint32).reshape(*policy_seeds.shape, 2)
    seen = host.reset_batch(seeds).observation
    theirs.reset(host.policy_spec, policy_seeds)
    with env.precision():
        params = env.params(seeds)
        own = axes(params, env.problem.shared)
        memory = jax.vmap(jax.vmap(partial(mine.start, env), (own, 0)))(params, keys)
        state, observation = jax.jit(jax.vmap(env.reset))(params)
        choose = mine.index if isinstance(mine, Indexed) else mine.act
        choose = jax.vmap(partial(choose, mine.params()), (0, axes(observation, COMMON)))
        choose, step = jax.jit(jax.vmap(choose)), jax.jit(jax.vmap(env.step))
        for _ in range(rounds):
            for name, array in observation.items():
                if name in seen and not name.startswith("inbox"):
                    assert_same(np.asarray(array), seen[name], name)
            memory, chosen = choose(memory, observation)
            action = theirs.act(
                shown(seen, {name: np.asarray(observation[name]) for name in state["inbox"]})
            ).copy()
            if isinstance(mine, Indexed):
                other = np.take_along_axis(np.asarray(chosen), action[..., np.newaxis], axis=2)[..., 0]
                differ = chosen.argmax(axis=2) != action
                np.testing.assert_allclose(chosen.max(axis=2)[differ], other[differ], rtol=0, atol=1e-9)
                ties += int(differ.sum())
            else:
                assert_same(np.asarray(chosen), action, "action")
            state, observation, reward, info = step(params, state, action)
            wanted = host.step_batch(action)
            seen = wanted.observation
            assert_same(np.asarray(reward), wanted.reward, "reward")
            for name, array in info.items():
                assert_same(np.asarray(array), wanted.info[name], name)
    return ties


@pytest.mark.parametrize("case", CASES)
def test_every_round_is_the_same(case):
    ties = played_alike(CASES[case], 100)
    assert ties <= (100 if case in TIED else 0)


@pytest.mark.parametrize("case", PRIVATE)
def test_policies_do_the_same_with_noisy_messages(case):
    def shown(seen, inbox):
        for name, array in inbox.items():
            if name.endswith("variance"):
                assert_same(array, seen[name], name)
        return {**seen, **{name: array[:, :, np.newaxis] for name, array in inbox.items()}}

    assert played_alike(PRIVATE[case], 60, shown) == 0


def compare_runs(case, rounds):
    env_id, kwargs, stack, mine, theirs = CASES[case]
    kwargs = {**kwargs, "max_cycles": rounds}
    wanted = simulate(built(env_id, stack, **kwargs), theirs, range(5))
    result = twin.rollout(twin.make(env_id, stack, np.float64, **kwargs), mine, range(5))
    np.testing.assert_array_equal(result.rounds, wanted.rounds)
    np.testing.assert_allclose(result.regret, wanted.regret, rtol=1e-6, atol=1e-9)
    for name in result.info:
        np.testing.assert_allclose(result.info[name], wanted.info[name], rtol=1e-6, atol=1e-9)
    assert result.privacy == wanted.privacy
    assert (result.messages is None) == (wanted.messages is None)
    for name, traffic in wanted.traffic.items():
        np.testing.assert_array_equal(result.traffic[name], traffic)


@pytest.mark.parametrize(
    "case",
    ["UCB1", "UCB1-told", "Thompson", "Gaussian-UCB-told", "LinUCB-ball", "SS-UCB-told", "FairX-told"],
)
def test_runs_are_the_same(case):
    compare_runs(case, 300)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case not in TIED])
def test_runs_of_2000_rounds_are_the_same(case):
    compare_runs(case, 2000)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "stack", "message"),
    [
        ("FedArmsSleeping-v0", {}, [], "awake=0.7 is not in the functional twin; 1 is required"),
        ("FedArmsSuper-v0", {}, [], "slots=3"),
        ("FedProcurement-v0", {"drift": 0.1}, [], "drift=0.1"),
        ("FedProcurement-v0", {"market": {"name": "uniform", "max_capacity": 200}}, [], "a capacity of 200"),
        ("FedLinear-v0", {}, [], "reward='beta'"),
        ("FedFixed-v0", {}, [], "contexts of FixedContexts"),
        ("FedClassification-v0", {}, [], "contexts of LabelledContexts"),
        ("FedExposure-v0", {"merit": "numpy:exp"}, [], "merit CustomMerit"),
        ("FedLinearAsync-v0", {}, [], "wrapper Participation"),
        ("FedArms-v0", {}, [["Byzantine", {"agents": [0]}]], "wrapper Byzantine"),
        ("FedArms-v0", {}, [["GaussianPrivatizer", {"noise_multiplier": 1.0, "clip": 1.0}]], "wrapper Clip"),
        (
            "FedArms-v0",
            {},
            [["LaplacePrivatizer", {"epsilon_per_release": 1.0}], *CHANNEL],
            "a mechanism .*Laplace",
        ),
        (
            "FedArms-v0",
            {},
            [["GaussianPrivatizer", {"noise_multiplier": 1.0, "noise_seed": 5}], *CHANNEL],
            "noise_seed",
        ),
        ("FedArms-v0", {}, [["Channel", {"topology": "ring"}]], "a topology other than 'complete'"),
        ("FedArms-v0", {}, [["Channel", {"loss": 0.1}]], "loss=0.1"),
        ("FedArms-v0", {}, [["Channel", {"echo": True}]], "echo=True"),
        ("FedArms-v0", {}, [["Channel", {"stage": "shuffler"}]], "stage="),
        ("FedArms-v0", {}, [["Channel", {"schedule": "on_request"}]], "a schedule that is not fixed"),
        ("FedArms-v0", {}, [["Server", {**SERVER[0][1], "answers": "doubling"}]], "answers later"),
    ],
)
def test_what_the_twin_lacks_is_named(env_id, kwargs, stack, message):
    with pytest.raises(ValueError, match=message):
        twin.make(env_id, stack, **kwargs)


def test_more_releases_than_the_budget_has_are_refused():
    stack = [["ContinualPrivatizer", {"epsilon": 1.0, "delta": 1e-5, "releases": 3}], *CHANNEL]
    with pytest.raises(BudgetExhaustedError, match="releases is 3"):
        twin.make("FedArms-v0", stack, num_agents=2)


@pytest.mark.parametrize(
    ("env_id", "policy", "error", "message"),
    [
        ("FedProcurement-v0", twin.PureUCB1(), UnfitError, r"PureUCB1 needs \['pulls', 'successes'\]"),
        ("FedArms-v0", twin.PureLinUCB(), UnfitError, r"PureLinUCB needs \['statistic'\]"),
        ("FedLinearBall-v0", twin.PureFairX(), UnfitError, r"PureFairX needs \['merit_scale'\]"),
        (
            "FedExposure-v0",
            twin.PureLinUCB(),
            ValueError,
            r"action has shape \(10,\); \(10, 10\), one an agent",
        ),
    ],
)
def test_policies_that_do_not_fit_are_refused(env_id, policy, error, message):
    with pytest.raises(error, match=message):
        twin.rollout(twin.make(env_id, max_cycles=5), policy, [1])


def test_rounds_beyond_the_horizon_and_equal_seeds_are_refused():
    env = twin.make("FedArms-v0", max_cycles=20)
    with pytest.raises(ValueError, match=r"rounds is 21; an integer in \[1, 20\]"):
        twin.rollout(env, twin.PureUCB1(), [1], rounds=21)
    with pytest.raises(ValueError, match="different seeds"):
        twin.rollout(env, twin.PureUCB1(), [1, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (partial(twin.PureUCB1, scale=-1.0), "scale is -1.0"),
        (partial(twin.PureUCB1, logarithm="base"), "logarithm is 'base'"),
        (partial(twin.PureSSUCB, pool="median"), "pool is 'median'"),
    ],
)
def test_wrong_constants_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("mechanism", ["sqrt_toeplitz", "tree", "gaussian"])
def test_claims_are_the_package_s(mechanism):
    stack = private(mechanism)
    host = built("FedArms-v0", stack, num_agents=3, max_cycles=40)
    wanted = simulate(host, arms.UCB1(pool="precision"), range(2))
    env = twin.make("FedArms-v0", stack, num_agents=3, max_cycles=40)
    result = twin.rollout(env, twin.PureUCB1(pool="precision"), range(2))
    assert result.privacy == wanted.privacy
    assert np.isfinite(result.privacy.epsilon)
    assert result.labels == {**wanted.labels, "baseline": "PureUCB1"}
    assert result.claims == claims_of(host, 1e-5)
    np.testing.assert_array_equal(result.messages, wanted.messages)


def test_regret_has_a_gradient_in_a_policy_s_parameters():
    env = twin.make("FedExposure-v0", num_agents=2, num_arms=4, dim=3, dtype=np.float64)
    policy = twin.PureFairX(beta_scale=0.3)
    with env.precision():
        params = jax.tree.map(lambda array: array[0], env.params([5]))

        def regret(beta_scale):
            """Regret of 20 rounds; the arms that are drawn do not depend on the parameter but where one flips."""
            state, observation = env.reset(params)
            memory = jax.vmap(partial(policy.start, env))(params, np.zeros((2, 2), np.uint32))

            def play(loop, _):
                state, observation, memory = loop
                constants = {**policy.params(), "beta_scale": beta_scale}
                act = jax.vmap(partial(policy.act, constants), (0, axes(observation, COMMON)))
                memory, shares = act(memory, observation)
                state, observation, _, info = env.step(params, state, shares)
                return (state, observation, memory), info["regret"].sum()

            return jax.lax.scan(play, (state, observation, memory), None, 20)[1].sum()

        slope = float(jax.jit(jax.grad(regret))(0.3))
        below, above = np.asarray(jax.jit(jax.vmap(regret))(np.array([0.3 - 1e-6, 0.3 + 1e-6])))
    assert slope != 0
    assert slope == pytest.approx((above - below) / 2e-6, rel=1e-4)


def test_float32_has_about_the_regret_of_float64():
    """Of 100 agents the mean regret; another rounding changes single actions, and means by a few per cent at most."""
    regret = [
        twin.rollout(twin.make("FedArms-v0", dtype=dtype, max_cycles=300), twin.PureUCB1(), range(10)).regret[
            -1
        ]
        for dtype in (np.float32, np.float64)
    ]
    assert regret[0].dtype == np.float64
    assert regret[0].mean() == pytest.approx(regret[1].mean(), rel=0.05)
    assert not jax.config.jax_enable_x64


@pytest.mark.parametrize("case", ["UCB1", "SS-UCB", "LinUCB", "FairX"])
def test_float32_stays_float32_where_jax_computes_in_64_bits(case):
    env_id, kwargs, stack, policy, _ = PRIVATE[case]
    env = twin.make(env_id, stack, np.float32, max_cycles=20, **kwargs)

    def play(loop, _):
        state, observation, memory = loop
        act = jax.vmap(partial(policy.act, policy.params()), (0, axes(observation, COMMON)))
        memory, action = act(memory, observation)
        state, observation, reward, _ = env.step(params, state, action)
        return (state, observation, memory), reward

    def played():
        memory = jax.vmap(partial(policy.start, env))(params, np.zeros((env.num_agents, 2), np.uint32))
        return jax.lax.scan(play, (*env.reset(params), memory), None, 20)[1]

    params = jax.tree.map(lambda array: array[0], env.params([5]))
    with jax.enable_x64(True):
        # The loop's types would change from round to round otherwise, which is an error.
        assert jax.eval_shape(played).dtype == np.float32
