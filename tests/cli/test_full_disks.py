"""Disks that are full or cannot be written to: a message, nothing half-written, and the next run works."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from tiny_board import TINY
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.experiments.store import ShardLock
from fedbandit_envs.leaderboard import plays
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.table import Table

MINE = """
import numpy as np

class Mine:
    def reset(self, spaces, seeds):
        self.rows = seeds.shape

    def act(self, observation):
        return np.zeros(self.rows, int)
"""


@pytest.fixture(scope="module", autouse=True)
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "tiny", TINY)
        patch.setattr(plays, "_SAMPLES", 100)
        yield


@pytest.fixture(scope="module")
def played(tiny, tmp_path_factory):
    """A folder in which two rows were played; not to be written to."""
    out = tmp_path_factory.mktemp("played")
    assert play(out).exit_code == 0
    return out


def call(*words):
    words = ["leaderboard", *map(str, words)]
    return CliRunner().invoke(app, words, env={"COLUMNS": "200", "TERM": "dumb"})


def play(out, *words):
    return call("run", "--suite", "tiny", "--out", out, "--workers", 1, "LinUCB", "FedUCB-min", *words)


def explained(result, message, codes=(1, 2)):
    assert result.exit_code in codes, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in " ".join(result.output.replace("│", " ").split())


@contextmanager
def full_after(size):
    """No file of this process gets larger than this: as on a full disk, a write is cut or refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patch:
        # Python would keep bytecode that was cut.
        patch.setattr(sys, "dont_write_bytecode", True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files_in(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def assert_nothing_is_half_written(out):
    """What is there is whole, whether much of it or little."""
    assert not list(out.rglob("*.partial"))
    Table.load(out, new=True)


@pytest.mark.ci
def test_a_run_on_a_full_disk_is_explained_and_goes_on_when_there_is_room(tmp_path, played):
    """The disk fills in the middle of files that the run writes, from the smallest to the largest."""
    sizes = sorted({9 * len(content) // 10 for content in files_in(played).values()})
    out = tmp_path / "results"
    for size in sizes[:: len(sizes) // 4]:
        with full_after(size):
            explained(play(out), "File too large: '")
        assert_nothing_is_half_written(out)
    assert play(out).exit_code == 0
    assert len(Table.load(out).editions) == 1


def test_a_report_on_a_full_disk_leaves_the_pages_as_they_were(tmp_path, played):
    page, readme = tmp_path / "page", tmp_path / "README.md"
    readme.write_text("<!-- leaderboard -->\n<!-- /leaderboard -->\n" + 2000 * "x")
    words = ("report", "--results", played, "--out", page, "--readme", readme)
    assert call(*words).exit_code == 0
    before = files_in(tmp_path)
    for size in (0, 300):
        with full_after(size):
            explained(call(*words), "File too large: '")
        assert {file: text for file, text in files_in(tmp_path).items() if file.suffix != ".png"} == before


def test_a_file_in_place_of_a_folder_is_explained(tmp_path, played):
    file = tmp_path / "file"
    file.write_text("mine\n")
    explained(play(file), "File exists")
    explained(play(file / "deeper"), "Not a directory")
    explained(call("report", "--results", played, "--out", file), "File exists", codes=[2])
    assert files_in(tmp_path) == {file: b"mine\n"}


def test_a_readme_that_is_no_text_is_explained_and_kept(tmp_path, played):
    readme = tmp_path / "README.md"
    readme.write_bytes(bytes(range(256)))
    explained(call("report", "--results", played, "--out", tmp_path, "--readme", readme), "can't decode")
    assert readme.read_bytes() == bytes(range(256))


def test_a_verification_writes_nothing(played):
    """It needs no room on the disk, where the entry is a baseline."""
    with full_after(0):
        done = call("verify", played, "--entry", "LinUCB")
    assert done.exit_code == 0, done.output


def test_a_machine_that_fails_refutes_nobody(tmp_path, played, monkeypatch):
    def full(self, *arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/somewhere")

    monkeypatch.setattr(plays.Play, "play", full)
    done = call("verify", played, "--entry", "LinUCB")
    explained(done, "Error: [Errno 28] No space left on device: '/tmp/somewhere'", codes=[1])
    assert "REFUTED" not in done.output


def test_a_shard_that_cannot_be_written_is_given_up(tmp_path):
    lock = ShardLock.take(tmp_path / "shard.npz")
    with full_after(5000), pytest.raises(OSError, match=r"File too large: .*partial"):
        lock.write(bytes(20_000))
    lock.give_up()
    assert not list(tmp_path.iterdir())
    # Nothing that was left to be written comes later, and the next one takes it.
    lock = ShardLock.take(tmp_path / "shard.npz")
    lock.write(b"whole")
    assert files_in(tmp_path) == {tmp_path / "shard.npz": b"whole"}


@pytest.fixture
def disk(tmp_path):
    """A disk of 128 KiB, where tests may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_a_disk(disk, played):
    """With less and less that fills it; then it can only be read."""
    ballast, out = disk / "ballast", disk / "results"
    for size in (128, 127):
        ballast.write_bytes(bytes(1024 * size))
        explained(play(out), "No space left on device: '")
        assert_nothing_is_half_written(out)
        ballast.unlink()
    assert play(out).exit_code == 0
    assert len(Table.load(out).editions) == 1
    before = files_in(out)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert play(out).exit_code in (0, 1)
    explained(play(disk / "other"), "Read-only file system")
    explained(call("report", "--results", out, "--out", out), "Read-only file system", codes=[2])
    assert call("verify", out, "--entry", "LinUCB").exit_code == 0
    assert files_in(out) == before
