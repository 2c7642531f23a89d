"""A policy in a child process leaves nothing behind, and ends with its parent."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from entries import file_with, start_and_play


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    path = file_with(
        tmp_path,
        """
import pathlib
import numpy as np

class Litters:
    def reset(self, spaces, seeds):
        pathlib.Path("deep").mkdir()
        pathlib.Path("deep/file").write_text("x")
        self.action = np.zeros(seeds.shape, np.int64)

    def act(self, observation):
        return self.action
""",
    )
    policy = start_and_play(path, close=False)
    (folder,) = (tmp_path / "t").iterdir()
    assert (folder / "deep/file").exists()
    process = policy._child._process
    policy.close()
    policy.close()
    assert process.poll() is not None
    assert not list((tmp_path / "t").iterdir())


ORPHAN = """
import json, sys, time
import numpy as np
from fedbandit_envs import arms_v0, procurement_v0
from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy

policy = SandboxedPolicy(sys.argv[1], seconds_to_start=60.0)
policy.reset(arms_v0.parallel_env().policy_spec, np.zeros((1, 2), np.uint64))
print(policy._child._process.pid, flush=True)
policy.act({})
time.sleep(60)
"""
SLEEPER = """
import time
import numpy as np

class Sleeper:
    def reset(self, spaces, seeds):
        self.shape = seeds.shape

    def act(self, observation):
        {then}
        return np.zeros(self.shape, np.int64)
"""


@pytest.mark.parametrize("then", ["pass", "time.sleep(60)"], ids=["waits", "is busy"])
def test_it_ends_with_a_parent_that_is_killed(tmp_path, then):
    path = file_with(tmp_path, SLEEPER.format(then=then))
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, path],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    child = int(parent.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 20.0
    while time.monotonic() < until and alive(child):
        time.sleep(0.01)
    assert not alive(child)


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
