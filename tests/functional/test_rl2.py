"""Networks trained on the twin: training lowers regret, and the batch API plays what was trained, row by row."""

from functools import partial
from pathlib import Path

import jax
import numpy as np
import pytest

from fedbandit_envs.baselines.learned.rl2 import RL2
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.experiments import simulate
from fedbandit_envs.functional import make, rollout
from fedbandit_envs.functional.environment import COMMON, axes
from fedbandit_envs.testing import check_policy

SMALL = {
    "arms": {"num_agents": 3, "num_arms": 4},
    "private arms": {"num_agents": 3, "num_arms": 4},
    "procurement": {"num_agents": 2, "num_producers": 5},
    "linear": {"num_agents": 2, "num_arms": 6, "dim": 3, "reward": "bernoulli"},
}


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    global rl2
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "functional"))
    import rl2


def saved(problem, folder):
    """Saves random weights, of which outputs depend more than of first ones; returns their path and them."""
    drawn = rl2.first_weights(np.random.default_rng(1), rl2.TASKS[problem].inputs, 5)
    rl2.save(folder / "some.npz", problem, drawn := jax.tree.map(lambda layer: 1.5 * layer, drawn))
    return folder / "some.npz", drawn


def twin(problem, rounds=60):
    task = rl2.TASKS[problem]
    return make(next(iter(task.envs)), task.stack, np.float64, max_cycles=rounds, **SMALL[problem])


def test_training_repeats_and_lowers_regret():
    """From weights that are too large, on 60 instances that were not trained on, at two standard errors (2.5 %)."""
    drawn = rl2.first_weights(np.random.default_rng(1), rl2.TASKS["arms"].inputs, 4)
    start = jax.tree.map(lambda layer: 2.0 * layer, drawn)
    task = {"envs": {"FedArms-v0": {"num_agents": 3}}, "horizons": (100, 200), "instances": 4}
    short = partial(rl2.train, "arms", 3, pairs=8, start=start, **task)
    once, again = (short(generations=2) for _ in range(2))
    assert jax.tree.all(jax.tree.map(np.array_equal, once, again))
    play = partial(
        rollout, make("FedArms-v0", num_agents=3, max_cycles=200), rl2.PureRL2("arms", 200), range(60)
    )
    gain = play(params=start).regret[-1] - play(params=short(generations=40)).regret[-1]
    assert gain.mean() > 2 * gain.mean(axis=1).std(ddof=1) / 60**0.5


@pytest.mark.parametrize("problem", ["arms", "procurement", "linear"])
def test_batch_policy_plays_as_the_twin_s(problem, tmp_path):
    path, weights = saved(problem, tmp_path)
    mine = rollout(twin(problem), rl2.PureRL2(problem, 60), range(3), params=weights).regret
    np.testing.assert_allclose(mine, simulate(twin(problem).host, RL2(path), range(3)).regret, atol=1e-9)


def test_noisy_messages_are_weighed_alike(tmp_path):
    path, weights = saved("private arms", tmp_path)
    env = twin("private arms")
    mine, theirs = rl2.PureRL2("private arms", 60), RL2(path)
    theirs.reset(env.host.policy_spec, np.zeros((1, 3), np.uint64))
    with env.precision():
        params = {name: array[0] for name, array in env.params([5]).items()}
        state, seen = jax.jit(env.reset)(params)
        memory = jax.vmap(lambda own: mine.start(env, own, np.zeros(2, np.uint32)))(params)
        act = jax.jit(jax.vmap(partial(mine.act, weights), (0, axes(seen, COMMON))))
        step = jax.jit(env.step)
        for _ in range(60):
            memory, action = act(memory, seen)
            shown = {
                name: np.asarray(array)[np.newaxis] for name, array in seen.items() if name not in COMMON
            }
            shown = {
                name: array[:, :, np.newaxis] if "inbox" in name else array for name, array in shown.items()
            }
            shown["round"] = np.full((1, 3, 1), int(seen["round"]))
            shown["inbox_mask"] = np.full((1, 3, 1), bool(seen["inbox_mask"]))
            np.testing.assert_array_equal(theirs.act(shown)[0], action)
            state, seen, _, _ = step(params, state, action)
    np.testing.assert_allclose(theirs._received[:, 0], memory["received"].swapaxes(0, 1), rtol=1e-9)
    assert (theirs._received > 0).all()


@pytest.mark.parametrize("problem", SMALL)
def test_agents_know_of_their_own_row_alone(problem, tmp_path):
    path, _ = saved(problem, tmp_path)
    check_policy(lambda: RL2(path), lambda: twin(problem, 30).host)


def test_networks_of_another_problem_are_refused(tmp_path):
    with pytest.raises(UnfitError, match="the networks are for linear, with 'contexts'"):
        simulate(twin("arms").host, RL2(saved("linear", tmp_path)[0]), [0])
    with pytest.raises(ValueError, match="problem of the networks is ''"):
        RL2("PPO-arms")
