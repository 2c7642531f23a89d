"""The channel: what is delivered, when, to whom, at what cost, and what is refused."""

import warnings

import numpy as np
import pytest
from channels import PRODUCERS, assert_same, buying, private, run_of, small
from played import begun
from refusals import refusals

from fedbandit_envs import make_federation
from fedbandit_envs.procurement.env import ProcurementEnv
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.schedule import Schedule


def test_information_counts_the_round_s_own_release():
    env = begun(Channel(private(small(3)), schedule={"name": "fixed_gap", "gap": 2}))
    for _ in range(6):
        spent = env.step_batch(buying(env)).info["epsilon_spent"]
        np.testing.assert_array_equal(spent, env.privacy().epsilon)


def test_silence_releases_nothing_and_draws_nothing(monkeypatch):
    env = begun(Channel(small(), schedule="silent", loss=0.3))
    monkeypatch.setattr("fedbandit_envs.wrappers.transport.channel.stream", None)
    monkeypatch.setattr(env.env, "_release", None)
    for _ in range(60):
        step = env.step_batch(buying(env))
        assert not step.observation["inbox_mask"].any()
    assert not env.traffic["messages"].any()
    assert env.privacy().epsilon == 0.0


def test_messages_under_way_are_dropped_at_reset():
    env = Channel(small(), "line", delay=2)
    run_of(env, [0], 5)
    assert not env.reset_batch([0])[0]["inbox_mask"].any()
    again, fresh = run_of(env, [0], 10), run_of(Channel(small(), "line", delay=2), [0], 10)
    for first, second in zip(again, fresh, strict=True):
        assert_same(first, second)
    assert fresh[-1]["inbox_mask"].sum() == 12


class Reusing(ProcurementEnv):
    """Releases in buffers that it uses again, as environments may."""

    def _release(self, sends):
        released = super()._release(sends)
        self.buffers = getattr(
            self, "buffers", {name: array.astype(float) for name, array in released.items()}
        )
        for name, array in released.items():
            self.buffers[name][:] = array
        return self.buffers


def test_what_is_under_way_outlives_the_buffers_of_releases():
    arguments = {"num_agents": 4, "num_producers": PRODUCERS, "instance_seed": 1}
    reusing, plain = (Channel(make(**arguments), "line", delay=1) for make in (Reusing, ProcurementEnv))
    for first, second in zip(run_of(reusing, [0], 10), run_of(plain, [0], 10), strict=True):
        assert_same(first, second)


def test_what_is_sent_is_what_the_privatizer_released():
    noisy, raw = begun(Channel(private(small()))), begun(Channel(small()))
    heard, truth = (env.step_batch(buying(env)).observation["inbox_good"] for env in (noisy, raw))
    twin = begun(private(small()))
    twin.step_batch(buying(twin))
    released = twin.release(np.ones((1, 4), bool))["good"]
    assert np.array_equal(heard[0, 0, 1:], released[0, 1:])
    assert not np.array_equal(heard, truth)
    assert (heard < 0).any()


def test_who_has_spent_the_budget_is_not_permitted_to_send():
    silenced = begun(Channel(private(small(), releases=2, on_exhausted="silence")))
    traffic = [silenced.step_batch(buying(silenced)).info["messages"].sum() for _ in range(4)]
    assert traffic == [12, 12, 0, 0]
    echoing = begun(Channel(private(small(), releases=2, on_exhausted="silence"), echo=True))
    sent = [echoing.step_batch(buying(echoing)).observation["sent"].tolist() for _ in range(4)]
    assert sent == [[[[True]] * 4]] * 2 + [[[[False]] * 4]] * 2
    strict = begun(Channel(private(small(), releases=1), schedule=Schedule(lambda t: min(t, 2))))
    assert strict.step_batch(buying(strict)).observation["inbox_good"].any()
    with pytest.raises(BudgetExhaustedError):
        strict.step_batch(buying(strict))
    # The first round's messages are not seen again.
    later = strict.step_batch(buying(strict)).observation
    assert not any(later[name].any() for name in ("inbox_mask", "inbox_good", "inbox_delivered"))


test_bad_arguments_are_named = refusals(
    lambda arguments: Channel(small(), **arguments),
    ({"delay": -1}, ValueError, "delay is -1; an integer >= 0"),
    ({"time_to_live": 0}, ValueError, "time_to_live is 0; an integer >= 1"),
    ({"topology": "star", "time_to_live": 1}, ValueError, "time_to_live is 1; None or at least 2"),
    ({"loss": 1.0}, ValueError, r"loss is 1.0; a number in \[0, 1\)"),
    ({"duplication": 1}, ValueError, r"duplication is 1; a number in \[0, 1\)"),
    ({"echo": "no"}, TypeError, "echo is 'no'; True or False"),
    ({"cliques": None}, TypeError, "cliques is None; True or False"),
    ({"cliques": True}, ValueError, "time_to_live is None; an integer >= 1, the reach of a clique"),
)


def test_a_channel_over_which_nothing_goes_warns():
    def made(agents=3, **arguments):
        return Channel(make_federation("FedArms-v0", num_agents=agents, max_cycles=64), **arguments)

    for schedule in ("doubling", {"name": "fixed_gap", "gap": 65}, lambda t: 0):
        with pytest.warns(UserWarning, match=r"nobody sends before round 64 .*; set its start"):
            made(schedule=schedule)
    with pytest.warns(UserWarning, match="without edges"):
        made(schedule="every_round", topology={"edges": []})
    with pytest.warns(UserWarning, match="without edges"):
        made(schedule="every_round", topology={"name": "erdos_renyi", "probability": 0}).reset_batch([0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(schedule="every_round", topology={"edges": []}, echo=True)
        made(agents=1, schedule="every_round").reset_batch([0])
        made(schedule={"name": "fixed_gap", "gap": 64}).reset_batch([0])
        made(schedule={"name": "silent"})
    wrong = {"start, stop, mode": {"name": "doubling", "begin": 5}, "gap": {"name": "fixed_gap"}}
    for allowed, schedule in wrong.items():
        message = rf"schedule '\w+' with .*argument:? '\w+'; arguments are {allowed}$"
        with pytest.raises(TypeError, match=message):
            made(schedule=schedule)
