"""What is registered: by Gymnasium's own checker, as JSON, in pickles and pictures; and that nothing is missing."""

import json
import pickle
from pathlib import Path

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from pairs import every_second
from registered import FIRST, FIRST_IDS, PROBLEMS, few, small, views
from view_stacks import stack

import fedbandit_envs
from fedbandit_envs import wrappers
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.testing.assertions import difference
from fedbandit_envs.wrappers import WRAPPERS

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(("env_id", "view"), every_second(views(stack)))
@pytest.mark.filterwarnings("error", r"ignore:.*A Box observation space m\w+ value is -?infinity")
def test_gymnasium_check_env(env_id, view):
    # Pictures are the problem's: one view without wrappers and one with them show that views hand them on.
    modes = fedbandit_envs.make_federation(env_id, **small(env_id)).metadata["render_modes"]
    drawn = env_id in FIRST and "ansi" in modes and set(view) in (set(), {"stack", "joint"})
    mode = {"render_mode": "ansi"} if drawn else {}
    env = gymnasium.make(env_id, max_episode_steps=5, **mode, **{**few(env_id), **view})
    check_env(env.unwrapped, skip_render_check=not drawn)


def test_other_seed_other_episode(make_federation, sample_actions):
    """So it is with the seed that an unseeded reset takes; the first observation alone may be the same."""
    env = make_federation(max_cycles=20)
    actions = sample_actions(env, 1, seed=3, rounds=20)
    episodes = []
    for seed in (0, 1, None):
        env.reset(seed=seed)
        episodes.append([env.step_batch(action).reward.copy() for action in actions])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert difference(episodes[one], episodes[other])


@pytest.mark.parametrize(("env_id", "view"), views(stack))
def test_spec_survives_json(env_id, view):
    env = gymnasium.make(env_id, max_episode_steps=7, **{**few(env_id), **view})
    text = env.spec.to_json()
    json.loads(text)
    twin = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert twin.spec == env.spec
    assert not difference(twin.reset(seed=5)[0], env.reset(seed=5)[0])


@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_make_without_import_of_the_package(env_id):
    env = gymnasium.make(f"fedbandit_envs:{env_id}")
    assert env.reset(seed=0)


VIEWS = [
    one if one.marks or one.values[0].startswith("FedArms") else one._replace(marks=(pytest.mark.ci,))
    for one in views(stack)
]
"""All views; those of other problems than arms are left to continuous integration."""


@pytest.mark.parametrize(("env_id", "view"), VIEWS)
def test_views_pickle_in_mid_episode(env_id, view):
    """What an unpickled view observes first can be written to, for which kernels are compiled anew."""
    env = gymnasium.make(env_id, **{**few(env_id), **view})
    env.reset(seed=1)
    env.step(env.action_space.sample())
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(3):
        action = env.action_space.sample()
        assert not difference(copy.step(action), env.step(action))


def test_pettingzoo_registry(env_id):
    pettingzoo = pytest.importorskip("pettingzoo", minversion="1.27")
    env = pettingzoo.make("parallel", fedbandit_envs.REGISTRY[env_id].pettingzoo, max_cycles=9)
    assert env.max_cycles == 9
    env.reset(seed=0)


def test_presets_are_written_as_json(env_id):
    entry = fedbandit_envs.REGISTRY[env_id]
    assert json.loads(json.dumps(entry.kwargs)) == entry.kwargs
    assert json.loads(json.dumps(entry.small)) == entry.small
    assert json.loads(json.dumps(entry.stack)) == [list(layer) for layer in entry.stack]


@pytest.mark.parametrize("env_id", FIRST_IDS, indirect=True)
def test_pictures_show_the_round(make_federation, env_id, sample_actions, monkeypatch):
    """Labels of arms are drawn where they have room, those of other problems where matplotlib first puts them."""
    if env_id != "FedArms-v0":
        monkeypatch.setattr("matplotlib.layout_engine.ConstrainedLayoutEngine.execute", lambda *figure: {})
    for mode in make_federation().metadata["render_modes"]:
        env = make_federation(render_mode=mode)
        env.reset(seed=0)
        before = env.render()
        env.step_batch(sample_actions(env, 1, seed=0, rounds=1)[0])
        after = env.render()
        if mode == "ansi":
            assert "round 0" in before
            assert "round 1" in after
        else:
            assert after.shape == before.shape
            assert (after != before).any()


def test_packages_export_what_there_is():
    faces = {path.stem for path in (ROOT / "fedbandit_envs").glob("*_v0.py")}
    assert len(faces) >= 4
    assert all(callable(getattr(fedbandit_envs, name).parallel_env) for name in faces)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_v0'"):
        fedbandit_envs.nothing_v0  # noqa: B018 - looked up, not used
    # The mechanism of a privatizer is an object, which cannot be written as JSON; a clip is an argument of privatizers.
    assert set(wrappers.__all__) - set(WRAPPERS) == {"Privatizer", "Clip"}


def test_every_folder_is_registered():
    """A folder with an environment has a registered.py, and so has the folder of its baselines."""
    folders = [path.parent for path in (ROOT / "fedbandit_envs").glob("*/env.py")]
    needed = [*folders, *(ROOT / "baselines" / folder.name for folder in folders)]
    assert [folder for folder in needed if not (folder / "registered.py").exists()] == []


@pytest.mark.parametrize("federation", PROBLEMS, ids=lambda federation: federation.__name__)
def test_every_problem_has_a_baseline(federation):
    played = {baseline.federation for baseline in BASELINES.values()}
    assert federation in played, f"no baseline plays {federation.__name__}: add one in baselines/"
