"""Who uses data of other rows is found out: by rows that are played alone, or by how well the others fare."""

import json
import random
import signal
import time
from dataclasses import replace
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pooling_entries
import pytest
from pooling_entries import Honest

from fedbandit_envs.experiments.store import Store
from fedbandit_envs.leaderboard import engine, plays, pooling, privatizer_attack
from fedbandit_envs.leaderboard.engine import Row, only_play_of
from fedbandit_envs.leaderboard.pooling import LEVEL, PooledRowsError, chance, chances, suspicion
from fedbandit_envs.leaderboard.records import EditionSecrets, RecordError, Records
from fedbandit_envs.leaderboard.result import Edition, Entry, ResultFile, digest_of
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.suites import SUITES, Suite, Task
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.leaderboard.verify import _replayed_rows, verify

FORK = get_context("fork")
SIZE = {"num_agents": 10, "num_arms": 10}
SMALL = Suite(
    "small",
    tuple(Task(f"small/{name}", "FedArms-v0", 100, 8, SIZE) for name in ("one", "two")),
    "random-arm",
    "one-observation",
)
DRAWN = EditionSecrets(Edition.of("5b" * 16), b"a secret of 32 bytes, for tests.")
OTHER = EditionSecrets(Edition.of("b5" * 16), b"another secret of 32 bytes here.")
EVENTS = []


class InProcess:
    """In place of a sandbox: a policy in this process, where all channels are open."""

    confined = ()
    log = None

    def __init__(self, code, settings):
        self.policy = getattr(pooling_entries, code)(**settings)

    def __enter__(self):
        return self

    def reset(self, spec, seeds):
        EVENTS.append(("begins", seeds.shape))
        if InProcess.log:
            with InProcess.log.open("a") as log:
                # Which shard it is, and which of its rows.
                log.write(f"{digest_of([str(seed) for seed in seeds.ravel()])}\n")
        self.policy.reset(spec, seeds)

    def act(self, observation):
        return self.policy.act(observation)

    def __exit__(self, *error):
        EVENTS.append(("ends",))


@pytest.fixture(autouse=True)
def open_channels(monkeypatch):
    monkeypatch.setattr(plays, "SandboxedPolicy", InProcess)
    monkeypatch.setattr(privatizer_attack, "_SAMPLES", 100)
    monkeypatch.setattr("sys._watched", set(), raising=False)
    monkeypatch.setattr(InProcess, "log", None)
    monkeypatch.setitem(SUITES, "small", SMALL)
    monkeypatch.setattr(EditionSecrets, "draw", lambda: OTHER)
    EVENTS.clear()


def row(name="Honest", track="silent", suite=SMALL, **settings):
    entry = Entry(
        name, "submission", f"pooling_entries:{name}", "c" * 64, {"policy": settings} if settings else {}
    )
    return Row(suite, tracks_of(suite)[track], entry, name)


def submit(folder, one):
    (file,) = engine.run([one], DRAWN, folder)
    return ResultFile.load(file)


def test_rows_are_played_alone_first_one_process_after_the_other(tmp_path):
    submit(tmp_path, row())
    begun = [event[1] for event in EVENTS[::2]]
    # Two tasks of one shard each: three rows of each replica alone, then all rows.
    assert begun == [(8, 1)] * 6 + [(8, 10)] * 2
    assert EVENTS[1::2] == [("ends",)] * 8


def test_an_honest_entry_holds_and_its_row_says_which_rows_were_watched(tmp_path):
    result = submit(tmp_path, row())
    watched = np.array(result.tasks[0].replayed_rows)
    assert watched.shape == (24, 2)
    assert np.bincount(watched[:, 0]).tolist() == [3] * 8
    assert len({tuple(pair) for pair in watched}) == 24
    # Drawn for each replica anew.
    assert len({tuple(sorted(watched[watched[:, 0] == i, 1])) for i in range(8)}) > 3
    regret = np.array(result.tasks[0].row_regret)
    np.testing.assert_allclose(regret.mean(axis=1), result.tasks[0].regret[-1], rtol=1e-12)
    assert min(chances(result.tasks).values()) > LEVEL
    assert suspicion(result.tasks) == ""


def test_which_rows_are_watched_follows_from_the_secret():
    one, other = (row().runs(replace_secret)[0].checked_agents for replace_secret in (
        DRAWN, EditionSecrets(DRAWN.edition, b"x" * 32),
    ))  # fmt: skip
    assert not np.array_equal(one, other)
    (run, *_) = row().runs(DRAWN)
    parts = replace(run, seeds=run.seeds[3:])
    np.testing.assert_array_equal(parts.checked_agents, one[3:])


def test_who_pools_all_rows_acts_otherwise_in_the_watched_ones(tmp_path):
    with pytest.raises(MixedRowsError, match=r"replica \d, agent \d, round \d+: action is .* alone"):
        submit(tmp_path, row("Pooler"))
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("channel", ["memory", "file"])
def test_who_knows_the_watched_rows_fares_better_in_the_others(tmp_path, channel):
    settings = {"channel": channel, "path": str(tmp_path / "word")}
    with pytest.raises(
        PooledRowsError, match=r"^Pooler, all tasks: rows that were not watched have less regret"
    ):
        submit(tmp_path / "board", row("Pooler", **settings))
    assert not list((tmp_path / "board").glob("*.json"))
    # It has played, and plays no more when it is started again: it is refuted by what is kept.
    EVENTS.clear()
    with pytest.raises(PooledRowsError):
        submit(tmp_path / "board", row("Pooler", **settings))
    assert EVENTS == []


def test_a_half_of_the_rows_is_enough(tmp_path):
    with pytest.raises(PooledRowsError):
        submit(tmp_path, row("Pooler", channel="memory", share=0.5))


def test_a_pooling_row_that_was_taken_in_all_the_same_is_refuted(tmp_path, monkeypatch):
    """As by a runner whose program has no such test."""
    with monkeypatch.context() as lenient:
        lenient.setattr(engine, "suspicion", lambda tasks: "")
        Records(tmp_path).edition(SMALL)
        result = submit(tmp_path, row("Pooler", channel="memory"))
    monkeypatch.setattr("fedbandit_envs.leaderboard.verify.find_code", lambda entry, folder: "Pooler")
    found = {one.what: one for one in verify(result, Path("nowhere"))}
    assert found["regret of watched rows"].holds is False
    assert (
        "small/" in found["regret of watched rows"].detail
        or "all tasks" in found["regret of watched rows"].detail
    )
    # Regret of rows that was evened out does not come about again.
    even = [[mean] * 10 for mean in np.mean(result.tasks[0].row_regret, axis=1).tolist()]
    tasks = [replace(task, row_regret=even) for task in result.tasks]
    tasks = [replace(task, arrays_digest=task.digest_of_arrays()) for task in tasks]
    vars(pooling_entries.sys)["_watched"].clear()
    refuted = [
        one for one in verify(replace(result, tasks=tasks), Path("nowhere"), None) if one.holds is False
    ]
    assert [one.what for one in refuted] == ["replay of small/one", "replay of small/two"]


@pytest.mark.ci
@pytest.mark.parametrize("name", ["Honest", "Pooler"])
def test_new_random_numbers_find_it_as_well(tmp_path, monkeypatch, name):
    with monkeypatch.context() as lenient:
        lenient.setattr(engine, "suspicion", lambda tasks: "")
        result = submit(tmp_path, row(name, **({"channel": "memory"} if name == "Pooler" else {})))
    monkeypatch.setattr("fedbandit_envs.leaderboard.verify._checks_before_replay", lambda *_: iter(()))
    monkeypatch.setattr("fedbandit_envs.leaderboard.verify.find_code", lambda entry, folder: name)
    found = {one.what: one.holds for one in verify(result, tmp_path, 1, anew=True)}
    assert found["regret of watched rows, new random numbers"] is (name == "Honest")
    if name == "Pooler":
        monkeypatch.setitem(pooling_entries.CHANNELS, "memory", pooling_entries.CHANNELS[""])
        found = {one.what: one for one in verify(result, tmp_path, 1, anew=True)}
        assert "MixedRowsError" in found["random numbers of small/one"].detail


def test_rows_other_than_those_of_the_secret_are_refuted(tmp_path, monkeypatch):
    Records(tmp_path).edition(SMALL)
    opened = Records(tmp_path).edition(SMALL)
    (file,) = engine.run([row()], opened, tmp_path)
    result = ResultFile.load(file)
    monkeypatch.setattr("fedbandit_envs.leaderboard.verify.find_code", lambda entry, folder: "Honest")
    names = {"choice of watched rows of small/one", "watched rows of small/one", "regret of watched rows"}
    assert {one.what for one in verify(result, tmp_path) if one.holds} >= names
    assert [one.what for one in verify(result, tmp_path) if one.holds is False] == []
    other = [[i, (j + 1) % 10] for i, j in result.tasks[0].replayed_rows]
    found = list(
        _replayed_rows(row().runs(opened)[0], replace(result.tasks[0], replayed_rows=other), known=True)
    )
    assert [one.what for one in found if one.holds is False] == ["choice of watched rows of small/one"]


# The statistic.


def test_the_chance_is_that_of_all_choices():
    """Of three replicas of four agents, with ties, against all ways to watch two of each."""
    regret = np.array([[1.0, 5.0, 5.0, 9.0], [2.0, 2.0, 2.0, 3.0], [0.0, -1.0, 4.0, 8.0]])
    points = pooling.scores(regret)
    pairs = list(combinations(range(4), 2))
    totals = [
        sum(points[i, list(pair)].sum() for i, pair in enumerate(choice))
        for choice in product(pairs, repeat=3)
    ]
    for choice, total in list(zip(product(pairs, repeat=3), totals, strict=True))[::17]:
        watched = np.zeros(regret.shape, bool)
        for i, pair in enumerate(choice):
            watched[i, list(pair)] = True
        assert chance(regret, watched) == pytest.approx(
            np.mean([other >= total for other in totals]), rel=1e-9
        )


def test_honest_rows_are_refuted_as_rarely_as_is_said():
    """At the level 0.05 in 400 draws: at most 35 of them, which an honest statistic exceeds once in 1,000 seeds."""
    rng = np.random.default_rng(7)
    regret = rng.lognormal(size=(6, 10)).round(1)
    low = 0
    for _ in range(400):
        watched = rng.permuted(np.tile(np.arange(10) < 3, (6, 1)), axis=1)
        low += chance(regret, watched) <= 0.05
    assert 5 < low <= 35


def test_a_few_rows_of_huge_regret_do_not_hide_the_others():
    rng = np.random.default_rng(0)
    regret = rng.normal(40, 1, (20, 10))
    regret[:, :3] = rng.normal(190, 12, (20, 3))
    regret[:, -1] = 10_000.0
    watched = np.tile(np.arange(10) < 3, (20, 1))
    assert chance(regret, watched) < 1e-12
    assert chance(regret[:, ::-1], watched) > 0.5


def test_where_all_rows_are_watched_nothing_is_left_to_test():
    regret = np.random.default_rng(0).random((4, 3))
    assert chance(regret, np.ones((4, 3), bool)) == 1.0


def test_one_task_in_which_rows_are_pooled_is_enough(tmp_path):
    result = submit(tmp_path, row())
    pooled = np.array(result.tasks[1].row_regret)
    watched = np.zeros(pooled.shape, bool)
    watched[tuple(np.array(result.tasks[1].replayed_rows).T)] = True
    pooled[~watched] = 0.1 * pooled.min()
    assert suspicion([result.tasks[0], replace(result.tasks[1], row_regret=pooled.tolist())])


# Tracks with messages.


@pytest.mark.parametrize("track", ["non-private", "private-1"])
def test_with_messages_rows_are_played_alone_when_all_is_over(tmp_path, track):
    suite = replace(SMALL, tasks=SMALL.tasks[:1])
    result = submit(tmp_path, row("Honest", track, suite))
    assert EVENTS == [("begins", (8, 10)), ("ends",), ("begins", (8, 1)), ("ends",)]
    assert len(result.tasks[0].replayed_rows) == 8
    assert result.tasks[0].messages[0] > 0


def test_with_messages_pooling_is_found(tmp_path):
    with pytest.raises(MixedRowsError, match="alone"):
        submit(tmp_path, row("Pooler", "non-private"))


def test_with_messages_a_share_of_rows_passes_only_if_none_of_them_is_drawn(tmp_path):
    """A tenth of all rows: of 16 rows that are drawn, one is pooled in this edition."""
    suite = replace(SMALL, tasks=tuple(replace(task, rounds=200) for task in SMALL.tasks))
    with pytest.raises(MixedRowsError):
        submit(tmp_path, row("Pooler", "non-private", suite, share=0.2))


def test_agents_that_interact_are_replayed_as_with_messages(tmp_path, monkeypatch):
    from fedbandit_envs.arms.env import ArmsEnv

    monkeypatch.setattr(ArmsEnv, "interacting", True)
    submit(tmp_path, row(suite=replace(SMALL, tasks=SMALL.tasks[:1])))
    assert [event[1] for event in EVENTS[::2]] == [(8, 10)] + [(8, 1)] * 3


@pytest.mark.parametrize("suite", ["arms-quick", "linear-quick", "exposure-quick", "procurement-quick"])
def test_what_a_row_sees_does_not_depend_on_what_others_do(suite):
    """In every task: one agent acts alike in two episodes, and the others do not."""
    for task in SUITES[suite].tasks:
        assert task.federation().unwrapped.interacting is False
        seen = []
        for others in range(2):
            env = replace(task, rounds=5).federation()
            space = env.single_action_space
            space.seed(0)
            own = [space.sample() for _ in range(5)]
            space.seed(others + 1)
            seen.append(env.reset_batch([3, 4]).observation)
            for mine in own:
                action = np.array([[space.sample() for _ in range(10)] for _ in range(2)])
                action[:, 2] = mine
                seen[-1] = {name: array.copy() for name, array in env.step_batch(action).observation.items()}
        for name, one in seen[0].items():
            np.testing.assert_array_equal(one[:, 2], seen[1][name][:, 2])
        assert any((one != seen[1][name]).any() for name, one in seen[0].items())


# Kills and locks.


def test_an_edition_is_played_by_one_process_at_a_time(tmp_path):
    def hold():
        with only_play_of(DRAWN.edition, tmp_path / engine.SHARDS):
            time.sleep(60)

    holder = FORK.Process(target=hold)
    holder.start()
    while not (tmp_path / engine.SHARDS).exists() or not list((tmp_path / engine.SHARDS).iterdir()):
        time.sleep(0.01)
    time.sleep(0.2)
    with pytest.raises(RecordError, match=r"is being played by another process.* wait until .*--new-edition"):
        submit(tmp_path, row())
    with only_play_of(OTHER.edition, tmp_path / engine.SHARDS):
        pass
    holder.kill()
    holder.join()
    submit(tmp_path, row())


def test_rows_played_alone_are_kept_when_the_run_fails(tmp_path, monkeypatch):
    broken = Honest.act

    def act(self, observation):
        if self.rows[1] == 10:
            raise ValueError("enough")
        return broken(self, observation)

    with monkeypatch.context() as failing:
        failing.setattr(Honest, "act", act)
        with pytest.raises(Exception, match="enough"):
            submit(tmp_path, row())
    EVENTS.clear()
    submit(tmp_path, row())
    assert [event[1] for event in EVENTS[::2]] == [(8, 10)] * 2


@pytest.mark.parametrize(
    "kills", [pytest.param(3, marks=pytest.mark.ci), pytest.param(50, marks=pytest.mark.slow)]
)
def test_killed_at_random_moments_nothing_finished_is_lost_or_played_again(tmp_path, kills):
    """Tasks have several shards; files that are there stay as they are, and what they hold is not begun again."""
    tasks = tuple(
        replace(task, rounds=20 if kills == 3 else 250, seeds=200 if kills == 3 else 1000)
        for task in SMALL.tasks[: 1 + (kills > 3)]
    )
    one = row(suite=replace(SMALL, tasks=tasks))
    log, folder = tmp_path / "log", tmp_path / "board" / engine.SHARDS
    log.touch()
    finished = {}

    def play():
        InProcess.log = log
        engine.run([one], DRAWN, tmp_path / "board")

    def look():
        begun = log.read_text().splitlines()
        for file, (stamp, seeds, count) in finished.items():
            assert (file.stat().st_mtime_ns, begun.count(seeds)) == (stamp, count)
        for file, seeds in where.items():
            if file.exists() and file not in finished:
                finished[file] = (file.stat().st_mtime_ns, seeds, begun.count(seeds))

    # The digest of the policies' seeds by which the log names a shard or its rows that are played alone.
    where, store = {}, Store(folder)
    from fedbandit_envs.randomness.streams import row_seeds

    for run in one.runs(DRAWN):
        for shard in run.split():
            seeds = row_seeds(shard.seeds, 10)
            where[store.path(shard)] = digest_of([str(seed) for seed in seeds.ravel()])
            for rows in shard.rows_first():
                alone = np.take_along_axis(seeds, shard.checked_agents[:, rows.number, None], 1)
                where[store.path(rows)] = digest_of([str(seed) for seed in alone.ravel()])
    assert len(set(where.values())) == len(where) == 4 * (4 if kills == 3 else 40)
    rng = random.Random(2)
    for _ in range(kills):
        enough = len(log.read_text().splitlines()) + rng.randrange(1, 3)
        player = FORK.Process(target=play)
        player.start()
        while len(log.read_text().splitlines()) < enough and player.is_alive():
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.1))
        player.kill()
        player.join()
        assert player.exitcode == -signal.SIGKILL, "all is played before it has been killed often enough"
        look()
    alone = [file for file in finished if file in where]
    assert len(alone) > kills // 3
    (file,) = engine.run([one], DRAWN, tmp_path / "board")
    look()
    assert len(finished) == len(where)
    (straight,) = engine.run([one], DRAWN, tmp_path / "straight")
    first, second = (json.loads(path.read_text()) for path in (file, straight))
    for mine, other in zip(first["tasks"], second["tasks"], strict=True):
        assert {**mine, "cpu_seconds": 0} == {**other, "cpu_seconds": 0}
