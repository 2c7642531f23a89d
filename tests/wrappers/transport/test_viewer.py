"""The picture of a federation: what it records, that it changes nothing, and that it shows what has happened."""

import numpy as np
import pytest
from channels import assert_same, buying, private, run_of, small
from gymnasium.error import ResetNeeded
from played import begun
from registered import FIRST_IDS, carries_messages, has_bounded_releases

from fedbandit_envs.core.privacy import variance_of
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, Server
from fedbandit_envs.wrappers.transport.viewer import learned, noise_share, render_federation

pytest.importorskip("matplotlib")
SHAPE = (600, 480, 3)
DRAWN = {"render_mode": "rgb_array"}


def federation(env_id, make_federation, **kwargs):
    env = make_federation(**kwargs)
    if carries_messages(env_id):
        return env
    return Channel(
        GaussianPrivatizer(env, epsilon_per_release=1.0) if has_bounded_releases(env_id) else env,
        topology="ring",
    )


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("env_id", FIRST_IDS, indirect=True)
def test_every_problem_is_drawn_and_not_changed(env_id, make_federation, sample_actions):
    drawn, plain = (begun(federation(env_id, make_federation, **kwargs), [3, 4]) for kwargs in (DRAWN, {}))
    rounds = sample_actions(plain.unwrapped, 2, seed=0, rounds=2)
    for action in rounds:
        steps = [env.step_batch(action) for env in (drawn, plain)]
        for one, other in zip(*steps, strict=True):
            assert_same(one, other)
        if action is rounds[0]:
            picture = drawn.render(1)
            assert (picture.shape, picture.dtype) == (SHAPE, np.uint8)
    assert drawn.privacy() == plain.privacy()
    assert plain.regrets is None
    assert plain.render() is None


TRANSPORTS = {
    "relay and delay": lambda env: Channel(env, topology="star", delay=1),
    "drawn and lossy": lambda env: Channel(
        env, topology={"name": "erdos_renyi", "probability": 0.3}, loss=0.5
    ),
    "alone": lambda env: Channel(env, topology={"edges": []}, echo=True),
    "secure sum": lambda env: Channel(env, stage={"name": "aggregator", "honest": 2}),
    "server": lambda env: Server(env, schedule="every_round", answers="every_round", echo=False),
    "trusted server": lambda env: Server(
        private(env), schedule="every_round", answers="every_round", stage="server"
    ),
}
# A single agent stands in the middle, or beside a server.
CASES = [*((name, 5) for name in TRANSPORTS), ("alone", 1), ("server", 1)]


@pytest.mark.parametrize(("name", "num_agents"), CASES)
def test_every_transport_is_drawn_and_not_changed(name, num_agents, request):
    if name != "server":
        request.getfixturevalue("blank_pictures")
    make = TRANSPORTS[name]
    drawn, plain = (make(small(num_agents, **kwargs)) for kwargs in (DRAWN, {}))
    for number, (one, other) in enumerate(zip(run_of(drawn, [0], 3), run_of(plain, [0], 3), strict=True)):
        assert_same(one, other)
        if number == 1:
            picture = drawn.render()
            assert picture.shape == SHAPE
            if name == "server":
                np.testing.assert_array_equal(drawn.render(), picture)
                assert (render_federation(drawn, progress=0.1) != picture).any()


def test_drawn_graphs_are_those_on_which_messages_travel():
    env = Channel(small(6), topology={"name": "erdos_renyi", "probability": 0.4}, time_to_live=1)
    env.reset_batch([0, 1, 2])
    mask = env.step_batch(buying(env, 3)).observation["inbox_mask"]
    for replica in range(3):
        np.testing.assert_array_equal(env.graph(replica), mask[replica].T)


def test_noise_is_measured_as_it_is_announced():
    env = begun(Channel(private(small(4, **DRAWN))), [7])
    seen = env.step_batch(buying(env)).observation
    shares = []
    for name in ("delivered", "good"):
        # What agent 0 receives from agents 1 to 3.
        values, variances = (seen[f"inbox_{of}"][0, 0, 1:] for of in (name, variance_of(name)))
        shares.append(np.sqrt(variances.mean(axis=1)) / np.sqrt((values**2).mean(axis=1)))
    np.testing.assert_allclose(env.sent_noise[0, 1:], np.clip(shares, 0, 1).mean(axis=0))
    assert (env.sent_noise > 0).all()
    assert noise_share({"bare": np.ones((1, 2, 3))}).tolist() == [[0.0, 0.0]]


def test_what_an_agent_has_learned_is_its_regret_against_the_worst():
    regret = np.random.default_rng(0).random((40, 2)) * np.linspace(1, 0, 40)[:, np.newaxis]
    regret[:, 1] = 0.0
    for played in range(1, 41):
        means = [regret[t - 10 : t, 0].mean() for t in range(10, played + 1)]
        expected = 1 - means[-1] / max(means) if means else 0.0
        found = learned(regret[:played], 10)
        np.testing.assert_allclose(found, [expected, float(played >= 10)], atol=1e-12)
    assert found[0] > 0.5


def test_what_cannot_be_drawn():
    bare = begun(small(3, **DRAWN))
    with pytest.raises(ValueError, match="a stack with a transport, made with render_mode='rgb_array'"):
        render_federation(bare)
    env = begun(Channel(small(3)))
    with pytest.raises(ValueError, match="made with render_mode='rgb_array' and then reset"):
        render_federation(env)
    env = Channel(small(3, **DRAWN))
    with pytest.raises(ResetNeeded):
        env.render()
    env.reset_batch([0])
    assert env.render().shape == SHAPE, "before the first round"
    with pytest.raises(ValueError, match=r"progress is 1\.5"):
        render_federation(env, progress=1.5)
    with pytest.raises(IndexError):
        render_federation(env, 5)
    beside = render_federation(env, silent_regret=np.ones((4, 3)))
    assert beside.shape == SHAPE
    text = begun(Channel(small(3, render_mode="ansi")))
    assert "round 0" in text.render()
