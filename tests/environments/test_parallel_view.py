"""PettingZoo's faces for learning agents: its own tests, and equality with the federation."""

import io
import warnings
from contextlib import redirect_stdout
from importlib import import_module

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.test import api_test, parallel_api_test
from registered import PROBLEMS

from fedbandit_envs.arms_v0 import env as arms_in_turn
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.registry.registration import make_parallel
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.views.parallel import ParallelView
from fedbandit_envs.wrappers.transport.channel import Channel

MODULES = [
    pytest.param(import_module(f"fedbandit_envs.{kind.metadata['name']}"), problem.small, id=kind.__name__)
    for kind, problem in PROBLEMS.items()
]


@pytest.fixture
def strictly():
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.filterwarnings("error", module=r"pettingzoo\.test")
        # Raw observations are mappings, and meant to be; PettingZoo gives an option that it invents.
        ignored = r"(Observation is not a NumPy array|\w+ space for each agent prob|options is .* ignored)"
        warnings.filterwarnings("ignore", ignored)
        yield


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize(("module", "small"), MODULES)
@pytest.mark.usefixtures("strictly")
def test_pettingzoos_own_tests(module, small, features):
    """In parallel and one agent after another, in the problem's last action format."""
    chosen = {"action_format": list(module.parallel_env(**small).action_formats)[-1], "features": features}
    kwargs = {**small, "max_cycles": 4, "num_agents": 3, **(chosen if features else {})}
    parallel_api_test(module.parallel_env(**kwargs), num_cycles=9)
    for make in (module.env, module.raw_env):
        api_test(make(**kwargs), num_cycles=9)


@pytest.mark.usefixtures("strictly")
def test_agents_that_choose_when_to_send():
    env = Channel(parallel_env(num_agents=3, num_arms=4, max_cycles=4), schedule="on_request")
    for action_format in ("values", "values_and_send"):
        parallel_api_test(ParallelView(env, action_format, features=True), num_cycles=9)


def test_the_view_is_the_federation():
    """Rewards, information and ends are the federation's; features are those of the problem, row by row."""
    kwargs = {"num_agents": 3, "num_arms": 4, "max_cycles": 5}
    view, env = parallel_env(action_format="values", features=True, **kwargs), parallel_env(**kwargs)
    features = env.features(env.policy_spec)
    features.reset((1, 3))
    seen, infos = view.reset(seed=4)
    reset = env.reset(seed=4)
    assert not difference(infos, reset[1])
    rng = np.random.default_rng(0)
    for _ in range(5):
        rows = [*reset[0].values()]
        expected = features.see({name: np.array([[row[name] for row in rows]]) for name in rows[0]})
        for j, agent in enumerate(view.possible_agents):
            np.testing.assert_array_equal(seen[agent], expected[0, j])
            seen[agent][:] = 9  # What is handed out is the agent's own.
        values = {agent: rng.random(4, np.float32) for agent in view.agents}
        seen, *mine = view.step(values)
        reset = env.step({agent: np.int64(value.argmax()) for agent, value in values.items()})
        assert not difference(mine, list(reset[1:]))
    assert view.agents == []
    assert view.step({}) == ({}, {}, {}, {}, {})
    assert view.privacy() == env.privacy()


def test_one_after_another_is_the_same_episode():
    kwargs = {"num_agents": 2, "num_arms": 3, "max_cycles": 4, "features": True}
    turns, together = arms_in_turn(**kwargs), parallel_env(**kwargs)
    turns.reset(seed=1)
    seen, _ = together.reset(seed=1)
    for t in range(4):
        for agent in together.possible_agents:
            own, *_ = turns.last()
            np.testing.assert_array_equal(own, seen[agent])
            turns.step(np.int64(t % 3))
        seen, rewards, *_ = together.step(dict.fromkeys(together.agents, np.int64(t % 3)))
        assert turns.rewards == rewards
    assert all(turns.truncations.values())


def test_registered_ids_take_formats_and_features():
    pettingzoo = pytest.importorskip("pettingzoo", minversion="1.27")
    env = pettingzoo.make(
        "parallel", "fedbandit/arms_v0", features=True, action_format="values", num_agents=2
    )
    assert env.observation_space("agent_0").shape == (21,)
    turns = pettingzoo.make("aec", "fedbandit/arms_v0", features=True, num_agents=2)
    turns.reset(seed=0)
    assert turns.agent_selection == "agent_0"
    assert turns.last()[0].shape == (21,)
    assert make_parallel("FedLinearInTurn-v0", features=True).federation.layer == "data"


def test_errors():
    view = parallel_env(features=True, num_agents=2)
    with pytest.raises(ResetNeeded):
        view.step({})
    view.reset(seed=np.int64(0))
    with pytest.raises(ValueError, match=r"actions are of \['agent_0', 'x'\]; one"):
        view.step({"agent_0": 0, "x": 0})
    with pytest.raises(ValueError, match="action_format is 'votes'"):
        parallel_env(action_format="votes")
    with pytest.raises(TypeError, match="features is 1"):
        parallel_env(features=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'feature'"):
        parallel_env(feature=True)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_help_names_the_class_that_has_the_arguments(kind):
    module = import_module(f"fedbandit_envs.{kind.metadata['name']}")
    assert getattr(module, kind.__name__) is kind
    assert f"Arguments of {kind.__name__}," in module.parallel_env.__doc__
    assert f"help({kind.metadata['name']}.{kind.__name__})" in module.__doc__
