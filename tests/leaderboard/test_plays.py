"""What a play leaves besides its numbers, and what becomes of a submission that does what it may not."""

import json
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np
import pytest
from tiny_board import TINY

from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.leaderboard import plays as module
from fedbandit_envs.leaderboard.entries import baseline_entry, submission_of
from fedbandit_envs.leaderboard.plays import EntryRun
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.parts import FILES, PARTS, SIGNALS, SYSTEM_CALLS
from fedbandit_envs.leaderboard.suites import Task
from fedbandit_envs.leaderboard.tracks import tracks_of

POLICY = """
import time
import numpy as np

class Mine:
    def reset(self, spaces, seeds):
        self.rows, self.round = seeds.shape, 0

    def act(self, observation):
        self.round += 1
        action = np.zeros(self.rows, np.int64)
        if self.round == 3:
            {third}
        return action
"""

SILENT = tracks_of(TINY)["silent"]
TASK = replace(TINY.tasks[0], rounds=4)


def submitted(folder: Path, third: str, track=SILENT, task: Task = TASK, **settings) -> EntryRun:
    file = folder / "mine.py"
    file.write_text(POLICY.format(third=third))
    entry, code = submission_of(str(file), "mine", settings, folder / "sources")
    return EntryRun(task, track, entry, (1, 2), 2**100, 3, 0, code)


def play(one: EntryRun):
    return one.play()


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize(
    ("third", "message"),
    [
        # By the child, and by the environment.
        ("raise ValueError('enough')", "mine, tiny/band, round 3: ValueError: enough"),
        ("action[-1, -1] = 99", "mine, tiny/band, round 3: action.*99.*"),
    ],
)
def test_who_breaks_is_named_with_task_and_round(tmp_path, third, message):
    with pytest.raises(EntryError, match=f"^{message}$") as caught:
        play(submitted(tmp_path, third))
    assert caught.value.__cause__ is not None


@pytest.mark.usefixtures("children")
def test_who_asks_for_more_releases_than_it_planned_is_named(tmp_path):
    settings = {"channel": {"schedule": "every_round"}, "privatizer": {"releases": 2}}
    with pytest.raises(EntryError, match=r"^mine, tiny/band, round 3: "):
        play(submitted(tmp_path, "pass", tracks_of(TINY)["private-1"], **settings))


def test_what_a_baseline_does_wrong_is_raised_as_it_is(monkeypatch):
    class Wrong:
        def reset(self, spec, seeds):
            self.rows = seeds.shape

        def act(self, observation):
            return np.full(self.rows, 99)

    monkeypatch.setattr(Baseline, "make_policy", lambda self: Wrong())
    with pytest.raises(ValueError, match="99") as caught:
        play(EntryRun(TASK, SILENT, baseline_entry("LinUCB"), (1, 2), 2**100, 3, 1))
    assert not isinstance(caught.value, EntryError)


@pytest.mark.usefixtures("children")
def test_a_child_s_time_is_an_entry_s(tmp_path):
    """A quarter of a second that two children compute each is neither lost nor counted again in the next play."""
    # In the first round, which may take long by the clock on a busy machine.
    busy = "\n            begun = time.process_time()\n            while time.process_time() < begun + 0.25: pass"
    file = tmp_path / "mine.py"
    file.write_text(POLICY.replace("== 3", "== 1").format(third=busy))
    entry, code = submission_of(str(file), "mine", {}, tmp_path / "sources")
    linucb = EntryRun(TASK, SILENT, baseline_entry("LinUCB"), (1, 2), 2**100, 3, 1)
    # Kernels may have to be compiled, which takes longer than what is measured.
    play(linucb)
    one = EntryRun(TASK, SILENT, entry, (1, 2), 2**100, 3, 1, code)
    before = sum(getrusage(RUSAGE_CHILDREN)[:2])
    played = play(one)
    children = sum(getrusage(RUSAGE_CHILDREN)[:2]) - before
    # One that plays all rows, one that plays a row alone.
    assert children > 2 * 0.25
    assert children <= played["cpu_seconds"] <= children + sum(getrusage(RUSAGE_SELF)[:2])
    # The process is used again, as joblib's are: what ended before is nobody's any more.
    own = play(linucb)
    assert own["cpu_seconds"] < children


@pytest.mark.usefixtures("children")
def test_what_has_held_is_said(tmp_path, monkeypatch):
    parts = [play(submitted(tmp_path, "pass"))]
    one = submitted(tmp_path, "pass")
    with SandboxedPolicy(one.code) as policy:
        env = one.task.federation()
        env.reset_batch([0])
        policy.reset(env.policy_spec, np.zeros((1, 2), np.uint64))
        held = list(policy.confined)
    assert json.loads(str(parts[0]["confined"])) == [part for part in PARTS if part in held]
    assert one.join(parts).confined == json.loads(str(parts[0]["confined"]))
    # What is lacking in one shard's children, of another machine say, is lacking.
    parts[0]["confined"] = np.array(json.dumps([FILES, SIGNALS, SYSTEM_CALLS]))
    elsewhere = {**parts[0], "confined": np.array(json.dumps([SYSTEM_CALLS, FILES]))}
    assert one.join([parts[0], elsewhere]).confined == [FILES, SYSTEM_CALLS]


def test_a_baseline_needs_no_confinement():
    one = EntryRun(TASK, SILENT, baseline_entry("LinUCB"), (1, 2), 2**100, 3, 1)
    assert one.join([play(one)]).confined is None


def test_shares_are_those_of_arms_in_the_order_in_which_each_agent_s_deserve():
    # Two agents, whose arms are worth the same the other way round, and who get what is deserved.
    deserved = np.array([[[1.0, 3.0], [3.0, 1.0]]])
    pulls = np.array([[[2.0, 2.0], [4.0, 0.0]]])
    simulation = RunResult(np.array([1]), np.zeros((1, 1, 2)), totals={"pulls": pulls, "deserved": deserved})
    assert module.extra_of(simulation) == {
        "deserved[0]": [0.75], "deserved[1]": [0.25], "pulls[0]": [0.75], "pulls[1]": [0.25],
    }  # fmt: skip
