"""The vector view against Gymnasium's own, its resets, arguments and pictures."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pairs import every_second
from registered import small, views
from view_stacks import stack

from fedbandit_envs.testing.assertions import difference


def listed(infos):
    """Information in which the last observations, an array of objects, are a list."""
    return {name: [*value] if name == "final_obs" else value for name, value in infos.items()}


# Views in turn have the one or the other mode in ordinary runs.
MODES = [
    view._replace(
        values=(*view.values, mode),
        id=f"{view.id}-{mode.name}",
        marks=view.marks if (i + j) % 2 == 0 else (pytest.mark.slow,),
    )
    for i, view in enumerate(views(stack))
    for j, mode in enumerate((AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP))
]


@pytest.mark.parametrize(("env_id", "view", "mode"), every_second(MODES))
def test_native_vector_env_equals_gymnasiums_own(env_id, view, mode):
    """Two episodes of two copies, step by step, against a SyncVectorEnv of single environments: the same call."""
    kwargs = {"max_cycles": 9, "max_episode_steps": 2, "num_agents": 3, **small(env_id), **view}
    native = gymnasium.make_vec(env_id, num_envs=2, autoreset_mode=mode, **kwargs)
    assert native.autoreset_mode is mode
    sync = SyncVectorEnv([lambda: gymnasium.make(env_id, **kwargs) for _ in range(2)], autoreset_mode=mode)
    assert native.metadata["autoreset_mode"] is mode
    assert native.single_observation_space == sync.single_observation_space
    assert native.action_space == sync.action_space
    native.action_space.seed(1)
    observations = native.reset(seed=9)[0], sync.reset(seed=9)[0]
    truncations = 0
    for _ in range(5):
        assert not difference(*observations)
        assert native.observation_space.contains(observations[0])
        action = native.action_space.sample()
        mine, theirs = native.step(action), sync.step(action)
        for k in (1, 2, 3):
            np.testing.assert_array_equal(mine[k], theirs[k])
        assert not difference(listed(mine[4]), listed(theirs[4]))
        observations = mine[0], theirs[0]
        truncations += mine[3].all()
        assert {env.unwrapped.privacy() for env in sync.envs} == {native.privacy()}
    assert truncations == 2


def test_vector_env_refuses():
    with pytest.raises(ValueError, match="'Sometimes' is not a valid AutoresetMode"):
        gymnasium.make_vec("FedProcurement-v0", num_envs=2, autoreset_mode="Sometimes")
    with pytest.raises(ValueError, match="num_envs is 0"):
        gymnasium.make_vec("FedProcurement-v0", num_envs=0)
    env = gymnasium.make_vec("FedProcurement-v0", num_envs=2)
    with pytest.raises(ResetNeeded):
        env.step(env.action_space.sample())
    with pytest.raises(ValueError, match="seed has length 3; num_envs = 2"):
        env.reset(seed=[1, 2, 3])


def test_seeds_may_be_numpys():
    env = gymnasium.make_vec("FedArms-v0", num_envs=2, num_agents=2)
    single = gymnasium.make("FedArms-v0", num_agents=2)
    env.reset(seed=3)
    expected = env.unwrapped._control.federation.hidden()
    single.reset(seed=np.int64(4))
    assert not difference(single.unwrapped._control.federation.hidden()["mean"], expected["mean"][1:])
    for seed in (np.int64(3), np.array([3, 4]), [np.uint32(3), 4]):
        env.reset(seed=seed)
        assert not difference(env.unwrapped._control.federation.hidden(), expected)
    for bad, error in ((1.5, TypeError), ([1.5, 2], TypeError), (-1, ValueError)):
        with pytest.raises(error, match=r"seed is -?1.*integer"):
            env.reset(seed=bad)


def test_resets_by_mask_are_of_all_copies():
    """As where whoever is done is reset: TorchRL's way, with no automatic reset. Part of them cannot be reset."""
    env = gymnasium.make_vec("FedArms-v0", num_envs=2, max_cycles=2, autoreset_mode="Disabled")
    first, _ = env.reset(seed=3)
    actions = env.action_space.sample()
    for _ in range(2):
        over = env.step(actions)[3]
    assert over.all()
    with pytest.raises(ResetNeeded, match="autoreset_mode is DISABLED"):
        env.step(actions)
    again, _ = env.reset(seed=3, options={"reset_mask": over})
    assert not difference(again, first)
    env.step(actions)
    with pytest.raises(ValueError, match=r"reset_mask'\] is \[ True False\]; True everywhere"):
        env.reset(options={"reset_mask": np.array([True, False])})
    # Refused resets have not touched the episodes, of which one round has been played.
    assert env.step(actions)[3].all()


def test_every_copy_is_drawn():
    """As gymnasium.wrappers.vector.RecordVideo demands."""
    kwargs = {"num_agents": 2, "num_arms": 3, "max_cycles": 5, "render_mode": "ansi"}
    native = gymnasium.make_vec("FedArms-v0", num_envs=3, **kwargs)
    sync = gymnasium.make_vec("FedArms-v0", num_envs=3, vectorization_mode="sync", **kwargs)
    actions = np.array([0, 1, 2])
    for env in (native, sync):
        env.reset(seed=5)
        env.step(actions)
    assert native.render() == sync.render()
    assert len(set(native.render())) == 3
    assert gymnasium.make_vec("FedArms-v0", num_envs=3).render() is None
