"""A policy in a child process leaves nothing behind, and ends with its parent."""

import os
import platform
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from entries import file_with, start_and_play

from fedbandit_envs import arms_v0
from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.parts import (
    FILES,
    PROCESSES,
    SIGNALS,
    SYSTEM_CALLS,
    TIMES,
    TRUNCATION,
)
from fedbandit_envs.leaderboard.sandbox.process import _own_folder, _remove, _remove_orphans

FORK = get_context("fork")


@pytest.mark.usefixtures("children")
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
    # In namespaces, what the child writes is in memory of its own.
    assert (folder / "deep/file").exists() == (PROCESSES not in policy.confined)
    process = policy._child._process
    policy.close()
    policy.close()
    assert process.poll() is not None
    assert not list((tmp_path / "t").iterdir())


def play_until_killed(path, folder, told):
    """Plays a round of the policy in a file; tells the child's id, and that the round begins."""
    tempfile.tempdir = folder
    policy = SandboxedPolicy(path, seconds_to_start=60.0)
    policy.reset(arms_v0.parallel_env().policy_spec, np.zeros((1, 2), np.uint64))
    told.send(policy._child._process.pid)
    policy.act({})
    told.send("has played")
    time.sleep(60)


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
def test_it_ends_with_a_parent_that_is_killed(tmp_path, monkeypatch, then):
    """The parent is a fork of this process; it starts a new interpreter, as every parent does."""
    path = file_with(tmp_path, SLEEPER.format(then=then))
    told, telling = FORK.Pipe(duplex=False)
    parent = FORK.Process(target=play_until_killed, args=(str(path), str(tmp_path), telling))
    parent.start()
    child = told.recv()
    if then == "pass":
        assert told.recv() == "has played"
    children = [child, *descendants(child)]
    assert all(map(alive, children))
    parent.kill()
    parent.join()
    until = time.monotonic() + 20.0
    while time.monotonic() < until and any(map(alive, children)):
        time.sleep(0.01)
    assert not any(map(alive, children))
    # Its folder has lost its owner; the next run removes it, and no folder whose owner lives.
    (orphan,) = tmp_path.glob("fedbandit-entry-*")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with _own_folder() as living:
        assert not orphan.exists()
        _remove_orphans.__wrapped__(str(tmp_path))
        assert Path(living).exists()
    assert not Path(living).exists()


def descendants(process):
    """Ids of the processes that a process has started, and of those that these have started."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [one for child in map(int, children) for one in (child, *descendants(child))]


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_folder_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    real, made = os.open, []

    def slow(path, *flags):
        made.append(path)
        if len(made) == 1:
            os.rmdir(path)
        return real(path, *flags)

    monkeypatch.setattr("os.open", slow)
    with _own_folder() as folder:
        assert made == [made[0], folder]
        assert Path(folder).is_dir()


def test_folders_of_any_depth_and_permissions_are_removed(tmp_path):
    (folder := tmp_path / "folder").mkdir()
    here = os.getcwd()
    try:
        for place in ("deep", "closed"):
            os.chdir(folder)
            for _ in range(1500 if place == "deep" else 2):
                os.mkdir(place)
                os.chdir(place)
            Path("file").touch()
    finally:
        os.chdir(here)
    (folder / "closed/closed").chmod(0)
    (folder / "closed").chmod(0)
    (folder / "link").symlink_to(tmp_path)
    (tmp_path / "kept").touch()
    _remove(str(folder))
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


LACKING = """
import ctypes, struct

# The kernel answers EPERM to these system calls, as one does that lacks them or does not allow them.
instructions = [(0x20, 0, 0, 0)]
for number in REFUSED:
    instructions += [(0x15, 0, 1, number), (0x06, 0, 0, 0x00050001)]
code = b"".join(struct.pack("HBBI", *one) for one in [*instructions, (0x06, 0, 0, 0x7FFF0000)])
libc = ctypes.CDLL(None)
filters = ctypes.create_string_buffer(code)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HP", len(code) // 8, ctypes.addressof(filters)), 0, 0) == 0
"""
UNSHARE, MOUNT_SETATTR, LANDLOCK = 272, 442, 444


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("refused", [(MOUNT_SETATTR,), (UNSHARE, LANDLOCK)], ids=str)
def test_a_kernel_that_lacks_a_part_is_told_from_one_that_has_it(tmp_path, monkeypatch, nursery, refused):
    """Namespaces that succeed in part are not used, and the policy plays on."""
    path = file_with(tmp_path, SLEEPER.format(then="assert self.shape"))
    monkeypatch.setattr("fedbandit_envs.leaderboard.sandbox.process.subprocess", nursery)
    monkeypatch.setattr(nursery, "before", LACKING.replace("REFUSED", repr(refused)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held = {*start_and_play(path).confined}
    assert held >= {SYSTEM_CALLS, TRUNCATION}
    assert not held & {PROCESSES, TIMES}
    assert held.isdisjoint({FILES, SIGNALS}) or LANDLOCK not in refused
    assert not list(tmp_path.glob("fedbandit-entry-*"))
