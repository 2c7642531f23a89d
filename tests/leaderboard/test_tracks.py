"""Tracks hold entries to what they may let out, whatever entries ask for."""

import re
from dataclasses import replace

import numpy as np
import pytest
from refusals import refusals
from tiny_board import SIZE, TINY

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import layers
from fedbandit_envs.experiments.result import simulate
from fedbandit_envs.leaderboard.plays import Play, baselines_of
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, tracks_of
from fedbandit_envs.leaderboard.table import Entry
from fedbandit_envs.registry.registration import make_federation

TRACKS = tracks_of(TINY)
ON_NO_TRACK = re.compile(
    "FedLinUCB-(amplified|vector-sum)|(LDP-FedLinUCB|vector-sum)-printed|(SecureSum|Central)-"
)
"""Names of baselines whose noise cannot be set to an epsilon, or whose privacy needs trust in others."""
SECRET = 2**100 + 1


def play(track, name: str, rounds: int = 32, noise: int | None = SECRET):
    env = track.wrap(make_federation("FedLinear-v0", max_cycles=rounds, **SIZE), BASELINES[name], noise)
    simulate(env, BASELINES[name].make_policy(), [5, 6])
    return env


@pytest.fixture
def noise_of_any_size(monkeypatch):
    """Which tracks a baseline fits depends on the kind of its noise; what its size must be is searched for long."""
    monkeypatch.setattr("fedbandit_envs.baselines.linear.registered.largest_loss", lambda *arguments: 0.1)


@pytest.mark.usefixtures("noise_of_any_size")
@pytest.mark.parametrize("suite", [name for name in SUITES if name.endswith("-quick")])
def test_every_baseline_fits_one_kind_of_track(suite):
    # The kind of noise decides, not its size, which is not tried between the smallest and the largest.
    tracks = [one for one in tracks_of(SUITES[suite]).values() if not one.messages and one.epsilon != 1]
    private = [track.name for track in tracks if track.private]
    for name in baselines_of(SUITES[suite]):
        fitting = [track.name for track in tracks if track.fits(BASELINES[name], SUITES[suite])]
        if ON_NO_TRACK.search(name):
            assert not fitting
            continue
        assert fitting in (["silent"], ["non-private"], ["revealed"], private), name
        # By another way to the same: what the baseline's own summary of itself is.
        if "clairvoyant" in name or name == "deserved-shares":
            assert fitting == ["revealed"]
        elif not BASELINES[name].wrappers:
            assert fitting == ["silent"]
        elif "privatizer" not in BASELINES[name].wrappers:
            assert fitting == ["non-private"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", ["FedUCB-min", "FedUCB-weighted", "LinUCB-private"])
def test_private_tracks_spend_no_more_than_they_say_whatever_is_registered(name, epsilon):
    track = TRACKS[f"private-{epsilon:g}"]
    claim = track.check(play(track, name))
    assert 0 < claim.epsilon <= epsilon * (1 + 1e-9)
    assert (claim.delta, claim.adjacency, claim.noise) == (1e-5, "one-observation", "secret")
    with pytest.raises(BoardError, match="epsilon is"):
        replace(track, epsilon=claim.epsilon * (1 - 1e-6)).check(play(track, name))


def test_shared_out_budgets_keep_the_promise_of_the_track():
    suite = SUITES["procurement-quick"]
    track = tracks_of(suite)["private-1"]
    made = make_federation("FedProcurement-v0", max_cycles=600, num_agents=2, num_producers=3)
    env = track.wrap(made, BASELINES["P-FCB"], SECRET)
    simulate(env, BASELINES["P-FCB"].make_policy(), [0])
    # Both releases, in rounds 256 and 512, and not one of them, spend it.
    assert track.check(env).epsilon == pytest.approx(1.0, rel=1e-6)
    assert env.traffic["messages"].tolist() == [[2, 2]]


def test_silence_is_kept_by_who_would_speak():
    env = play(TRACKS["silent"], "FedUCB-nonprivate")
    assert env.traffic["messages"].sum() == 0
    assert TRACKS["silent"].check(env).epsilon == 0


@pytest.mark.parametrize("name", ["FedUCB-nonprivate", "FedLinUCB", "Async-LinUCB", "ES-send"])
def test_limits_are_kept(name):
    limited = replace(TRACKS["non-private-few"], messages=1)
    free = play(TRACKS["non-private"], name, 300)
    env = play(limited, name, 300)
    assert free._ledger.left(99)[0].max() > 1
    assert env._ledger.left(99)[0].tolist() == [[1, 1], [1, 1]]


def test_what_is_released_past_the_noise_is_found():
    track = TRACKS["private-1"]
    env = track.wrap(make_federation("FedLinear-v0", max_cycles=8, **SIZE), BASELINES["FedUCB-min"], SECRET)
    env.reset_batch([0])
    env.unwrapped.release(np.ones((1, 2), bool))
    with pytest.raises(BoardError, match="epsilon is inf"):
        track.check(env)


test_what_does_not_keep_a_track_is_refused = refusals(
    lambda name, noise: TRACKS["private-1"].check(play(TRACKS["private-1"], name, noise=noise)),
    ("ES-send", SECRET, "epsilon is None"),
    ("FedUCB-nonprivate", SECRET, "epsilon is inf"),
    ("FedUCB-min", 12345, "noise is 'repeatable'"),
    ("FedUCB-min", None, "noise is 'repeatable'"),
    ("LDP-FedLinUCB-printed", SECRET, "^no epsilon can be asked of this noise on track private-1"),
    ("SDP-FedLinUCB-vector-sum", SECRET, "^no epsilon can be asked of this noise on track private-1"),
    ("Central-FedLinUCB", SECRET, "^trust is 'server'; 'local' is required on track private-1"),
    error=BoardError,
)


test_settings_that_are_the_tracks_are_refused = refusals(
    lambda settings, track: TRACKS[track].submitted(settings),
    ({"privatizer": {"epsilon": 9.0}}, "private-1", "epsilon"),
    ({"privatizer": {"noise_seed": 1}}, "private-1", "noise_seed"),
    ({"privatizer": {"mechanism": "tree"}}, "non-private", "privatizer"),
    ({"channel": {"schedule": "every_round"}}, "silent", "channel"),
    ({"env": {"num_arms": 2}}, "non-private", "env"),
    error=BoardError,
)  # fmt: skip


@pytest.mark.parametrize(("track", "wrappers"), [
    ("silent", ["Quota"]),
    ("non-private", ["Channel"]),
    ("private-1", ["Channel", "ContinualPrivatizer"]),
    ("private-1-few", ["Channel", "ContinualPrivatizer", "Quota"]),
])  # fmt: skip
def test_a_submission_stands_behind_its_track(track, wrappers):
    entry = Baseline("", "", FederatedEnv, object, {}, TRACKS[track].submitted({}))
    made = make_federation("FedLinear-v0", max_cycles=16, **SIZE)
    stack = list(layers(TRACKS[track].wrap(made, entry, SECRET)))
    assert [type(layer).__name__ for layer in stack] == [*wrappers, "LinearEnv"]


@pytest.mark.parametrize("source", ["mine.py:Mine", "FedUCB-min"])
@pytest.mark.parametrize("asked", [
    {"channel": {"schedule": "evil.py:rule"}},
    {"channel": {"topology": {"edges": [[0, 1], ["evil:graph", 2]]}}},
    {"privatizer": {"mechanism": "evil.py:Noise"}},
])  # fmt: skip
def test_wrappers_run_no_code_that_an_entry_names(asked, source):
    """They run where the environment runs; also those of a row that is only verified."""
    entry = Entry("tiny", "", "private-1", "mine", source, asked, "", {}, False, "", {}, {}, "")
    with pytest.raises(BoardError, match=r"name code, .*evil"):
        _ = Play(TINY.tasks[0], TRACKS["private-1"], entry, (3, 4)).stack()
    # The policy's own constructor may get any text: it runs in the entry's process.
    TRACKS["private-1"].submitted({"policy": {"note": "a:b"}})
