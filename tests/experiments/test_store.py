"""Shards: known by what they follow from, whole or noticed."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sweep_cells import Drawn

from fedbandit_envs.experiments import source, store
from fedbandit_envs.experiments.execute import play
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import DamagedShardError, DamagedShardWarning, ShardLock, Store
from fedbandit_envs.papers.feducb_critique.runs import first_messages

CELL = Drawn(tuple(range(4)), numbers=50)


@pytest.fixture
def kept(tmp_path):
    """The files of a sweep that has been played, in the cell's order."""
    play(CELL.split(), tmp_path)
    return [Store(tmp_path).path(shard) for shard in CELL.split()]


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


DAMAGES = {
    "empty": lambda content: b"",
    "short of a byte": lambda content: content[:-1],
    "half": lambda content: content[: len(content) // 2],
    "without its digest": lambda content: content[:-32],
    "longer": lambda content: content + b"\0",
    "another first byte": lambda content: flipped(content, 0),
    "another number": lambda content: flipped(content, 60),
    "another digest": lambda content: flipped(content, len(content) - 1),
    "zeros": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_shard_is_named_and_played_again(kept, tmp_path, damage):
    whole = [file.read_bytes() for file in kept]
    stamps = [file.stat().st_mtime_ns for file in kept]
    kept[2].write_bytes(DAMAGES[damage](whole[2]))
    with pytest.raises(DamagedShardError, match=str(kept[2])):
        Store(tmp_path).load(CELL)
    with pytest.warns(DamagedShardWarning, match=str(kept[2])) as warned:
        assert Store(tmp_path).missing(CELL.split()) == [CELL.split()[2]]
    assert len(warned) == 1
    with pytest.warns(DamagedShardWarning, match=str(kept[2])):
        play(CELL.split(), tmp_path)
    np.testing.assert_array_equal(Store(tmp_path).load(CELL), CELL.expected())
    others = [0, 1, 3]
    assert [kept[i].stat().st_mtime_ns for i in others] == [stamps[i] for i in others]


def test_every_byte_of_a_shard_is_watched(kept):
    whole = kept[0].read_bytes()
    for at in range(0, len(whole), 7):
        kept[0].write_bytes(flipped(whole, at))
        with pytest.raises(DamagedShardError):
            Store.read(kept[0])


def test_one_shard_s_file_is_not_taken_for_another_s(kept, tmp_path):
    kept[0].write_bytes(kept[1].read_bytes())
    with pytest.warns(DamagedShardWarning, match=str(kept[0])):
        play(CELL.split(), tmp_path)
    np.testing.assert_array_equal(Store(tmp_path).load(CELL), CELL.expected())


def test_numpy_reads_a_shard_s_file(kept):
    with np.load(kept[3]) as arrays:
        np.testing.assert_array_equal(arrays["numbers"], CELL.expected()[3])


def test_a_shard_that_is_not_there_is_no_damage(kept, tmp_path, recwarn):
    kept[1].unlink()
    assert Store(tmp_path).missing(CELL.split()) == [CELL.split()[1]]
    assert not recwarn.list
    with pytest.raises(FileNotFoundError):
        Store(tmp_path).load(CELL)


def digests(monkeypatch, *modules, **changed):
    """Digests of the source for modules, as if files had other contents."""
    source.source_digest.cache_clear()
    files = {**source._files(), **changed}
    monkeypatch.setattr(source, "_files", lambda: files)
    found = [source.source_digest(module) for module in modules]
    source.source_digest.cache_clear()
    monkeypatch.undo()
    return found


# Of a run, of a function that a paper measures with, one of the board, one outside of the package, and of all.
MODULES = (
    RunSpec.__module__,
    first_messages.__module__,
    "fedbandit_envs.leaderboard.plays",
    "json",
    None,
)


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        ("randomness/episode.py", "yes yes yes yes yes"),
        ("baselines/policy.py", "yes yes yes yes yes"),
        ("wrappers/privacy/budget.py", "yes yes yes yes yes"),
        ("leaderboard/__init__.py", "yes yes yes yes yes"),
        ("experiments/spec.py", "yes yes yes yes yes"),
        ("papers/reproduction/page.py", "no yes yes yes yes"),
        ("papers/pfcb/reports.py", "no yes no no yes"),
        ("leaderboard/suites.py", "no no yes no yes"),
        ("cli/tune.py", "no no no no yes"),
    ],
)
def test_changed_code_reads_no_shards_of_before(monkeypatch, changed, which):
    before, after = digests(monkeypatch, *MODULES), digests(monkeypatch, *MODULES, **{changed: "x"})
    assert [a != b for a, b in zip(before, after, strict=True)] == [word == "yes" for word in which.split()]


def test_files_are_known_by_the_source(monkeypatch, tmp_path):
    run = RunSpec("SS-UCB", "FedProcurement-v0", 9, 2, 0)
    before = Store(tmp_path).path(run)
    monkeypatch.setattr(store, "source_digest", lambda module: f"other {module}")
    assert Store(tmp_path).path(run) != before


def test_the_digest_takes_in_every_source_and_all_data():
    root = Path(__file__).parents[2]
    wanted = {
        file.relative_to(root).as_posix().removeprefix("fedbandit_envs/")
        for floor in ("fedbandit_envs", "wrappers", "baselines", "samba", "leaderboard", "papers")
        for kind in ("py", "csv", "json", "npz")
        for file in (root / floor).rglob(f"*.{kind}")
    }
    assert set(source._files()) == wanted


def test_the_digest_is_the_same_in_another_process():
    code = "from fedbandit_envs.experiments.source import source_digest; print(source_digest())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == source.source_digest()


def test_stray_partial_files_go_and_those_of_the_living_stay(kept, tmp_path):
    stray, living = tmp_path / f"{'0' * 20}.npz.partial", tmp_path / "1.npz"
    stray.write_bytes(b"half of a sha")
    claim = ShardLock.take(living)
    play(CELL.split(), tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([*kept, claim.partial])
    claim.write(b"whole")
    assert living.read_bytes() == b"whole"
    assert sorted(tmp_path.iterdir()) == sorted([*kept, living])


def test_a_partial_file_holds_what_was_played(tmp_path):
    lock = ShardLock.take(tmp_path / "a.npz")
    assert lock.played == 0.0
    advance = ShardLock.progress(tmp_path / "a.npz")
    for more in (1e15 / 3, 0.1, 2e15):
        advance(more)
    assert lock.played == 1e15 / 3 + 0.1 + 2e15
    # Played again, from the beginning.
    ShardLock.progress(tmp_path / "a.npz")(1.0)
    assert lock.played == 1.0
    lock.write(b"whole")
    advance(1.0)
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == b"whole"


def test_a_claim_is_one_process_s_until_it_ends(tmp_path):
    file = tmp_path / "a.npz"
    claim = ShardLock.take(file)
    assert ShardLock.take(file) is None
    claim.give_up()
    assert list(tmp_path.iterdir()) == []
    # Another process takes it, and is killed while it writes.
    child = os.fork()
    if not child:
        try:
            held = ShardLock.take(file)
            os.write(held._out.fileno(), b"half")
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert (tmp_path / "a.npz.partial").read_bytes() == b"half"
    claim = ShardLock.take(file)
    claim.write(b"x")
    assert file.read_bytes() == b"x"
    Store(tmp_path).remove_strays()
    assert list(tmp_path.iterdir()) == [file]


def test_what_was_moved_while_one_waited_for_it_is_not_claimed(tmp_path, monkeypatch):
    """Between the opening of the partial file and its locking the other has finished."""
    file = tmp_path / "a.npz"
    other = ShardLock.take(file)
    real = store.FileIO

    def opened(path, mode):
        handle = real(path, mode)
        if path == other.partial:
            monkeypatch.undo()
            other.write(b"done")
        return handle

    monkeypatch.setattr(store, "FileIO", opened)
    assert ShardLock.take(file) is None
    assert file.read_bytes() == b"done"
    again = ShardLock.take(file)
    again.give_up()
    assert file.read_bytes() == b"done"
