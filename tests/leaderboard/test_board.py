"""Results are a table, rows of which verify up to rounding; what was changed or cheats is found."""

import gzip
import math
import os
import re
import shutil
import signal
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_board import TINY
from typed import call

from fedbandit_envs.cli.leaderboard import _opened
from fedbandit_envs.experiments import measures
from fedbandit_envs.leaderboard import _serve, plays, report, suites
from fedbandit_envs.leaderboard.suites import SUITES, BoardError, Edition, published, tracks_of
from fedbandit_envs.leaderboard.table import Line, ResultTable
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import Channel

ROOT = Path(__file__).parents[2]
BOARDS = [ROOT / "docs" / name for name in ("leaderboard", "leaderboard-full")]

ENTRIES = """
import os, pathlib
import numpy as np

class Honest:
    def reset(self, spec, seeds):
        self.sums, self.arms = np.zeros((*seeds.shape, spec.action.n)), spec.action.n
    def see(self, observation):
        return observation["contexts"].sum(axis=-1)
    def act(self, observation):
        self.sums += self.see(observation)
        return self.sums.argmax(axis=-1)

class Pools(Honest):
    def see(self, observation):
        return super().see(observation).mean(axis=1, keepdims=True)

class Leaves(Honest):
    # Acts by what agents leave in a common file, which works where processes are apart, too: only the first has none.
    file = pathlib.Path(PLACE)
    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self.known = seeds.shape[1] > 1 or self.file.exists()
        self.file.touch()
    def act(self, observation):
        return super().act(observation) * self.known

class Fails(Honest):
    def act(self, observation):
        raise RuntimeError("no \x1b[31midea")

class Dies(Honest):
    def act(self, observation):
        os._exit(3)

class Lists(Honest):
    def act(self, observation):
        return [[0]]

class Looks(Honest):
    def reset(self, spec, seeds):
        if os.listdir() != ["entry.py"]:
            raise RuntimeError("folder has more than the code")
        super().reset(spec, seeds)
        pathlib.Path("left").write_text("for later")
"""


class Forked:
    """Is to the leaderboard what Popen is: a fork of this process, which need not import the package again."""

    def __init__(self, words, pass_fds, cwd, **kwargs):
        self.pid = os.fork()
        if not self.pid:
            os.chdir(cwd)
            _serve(*pass_fds)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        os.waitpid(self.pid, 0)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setitem(SUITES, "tiny", TINY)
    monkeypatch.setattr(plays, "Popen", Forked)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A function that plays a baseline once for all tests; what they change they read anew."""
    return cache(lambda *of: played(tmp_path_factory.mktemp("kept"), *of)[1:])


def test_processes_are_sent_what_their_agents_have_received(monkeypatch):
    env = Channel(make_federation("FedArms-v0", num_agents=4, num_arms=2), "ring", time_to_live=1)
    policy, sent = plays.FilePolicy(SimpleNamespace(code=b"", source="mine:Mine", settings={}), range(4)), []
    answer = {plays.ALONE: np.zeros((1, 1), np.int64)}
    monkeypatch.setattr(policy, "_ask", lambda pipe, own: sent.append(own) or answer)
    policy._children = [(None, None, None)] * 4
    env.reset_batch([0])
    assert policy.act(env.step_batch(np.zeros((1, 4), np.int64)).observation).shape == (1, 4)
    for own in sent:
        received = own["inbox_pulls"][..., 0]
        np.testing.assert_array_equal(received, own["inbox_mask"])


def submitted(folder, name, track="silent"):
    file = folder / "mine.py"
    file.write_text(ENTRIES.replace("PLACE", repr(str(folder / "place"))))
    return played(folder / "out", name, track, f"{file}:{name}")


def played(folder, name, track, *source):
    edition = Edition.draw(TINY)
    entry = plays.make_entry(TINY, edition, tracks_of(TINY)[track], name, *source)
    return plays.run(TINY, edition, [entry], folder), folder, entry.row


def refuted(table, row):
    """Returns by what a row is refuted: a check before anything is played, or the replay; empty if it is not."""
    found = []
    try:
        found += plays.verify(table, row, 99)
    except ValueError as error:
        return "replay" if re.match("replay of tiny/band|agent", str(error)) else "entry"
    assert found[-1].startswith("replay of tiny/band: ")
    return ""


def changed(table, row, **fields):
    table.lines[row][3] = table.lines[row][3]._replace(**fields)
    return table


@pytest.mark.parametrize(("name", "track"), [("LinUCB", "silent"), ("FedUCB-min", "private-1")])
def test_a_row_verifies_and_what_was_edited_is_found(name, track, kept):
    folder, row = kept(name, track)
    table = ResultTable.load(folder)
    assert sorted(table.lines[row]) == ResultTable.load(folder).lines[row]
    assert refuted(table, row) == ""
    line = table.lines[row][3]
    assert 0 < line.half < line.regret
    if track != "silent":
        assert table.entries[row].audited <= 1
        assert table.entries[row].holds
        assert len(table.entries[row].noise["tiny/band"]) == 32
    for fields in (
        *[{"epsilon": 0.5}] * (track != "silent"),
        {"regret": line.regret * (1 - 1e-8)},
        {"half": line.half * 0.9},
        {"messages": line.messages + 1},
        {"bytes": line.bytes + 8},
        {"delta": 0.1},
    ):
        assert refuted(changed(ResultTable.load(folder), row, **fields), row) == "replay"
    # Another processor rounds differently.
    assert refuted(changed(ResultTable.load(folder), row, regret=line.regret * (1 + 1e-12)), row) == ""
    assert refuted(changed(ResultTable.load(folder), row, half=None), row) == ""
    assert refuted(changed(ResultTable.load(folder), row, seed="0" * 32), row) == "entry"
    table.lines[row].append(line)
    assert refuted(table, row) == "entry"
    table.lines[row] = table.lines[row][1:-1]
    assert refuted(table, row) == "entry"


def test_half_is_the_regret_of_half_as_many_rounds(kept):
    folder, row = kept("LinUCB", "silent")
    table = ResultTable.load(folder)
    (play,) = plays.plays_of(TINY, table.editions[row.edition], table.entries[row])
    short = replace(play, task=replace(play.task, rounds=8))
    assert [line.half for line in play.join([play.play()])] == [
        line.regret for line in short.join([short.play()])
    ]


def test_other_settings_than_played_are_found(kept):
    folder, row = kept("FedUCB-min", "private-1")
    table = ResultTable.load(folder)
    settings = {**table.entries[row].settings, "policy": {"combine": "min"}}
    table.entries[row] = replace(table.entries[row], settings=settings)
    assert refuted(table, row) == "replay"
    table.entries[row] = replace(table.entries[row], source="no-baseline")
    assert refuted(table, row) == "entry"


@pytest.mark.parametrize(
    ("name", "track", "start"), [("Honest", "silent", Forked), ("Looks", "private-1", Popen)]
)
def test_an_honest_file_verifies(name, track, start, monkeypatch, tmp_path):
    """A fork would make the noise repeatable, which a private track refuses; other processes take seconds."""
    monkeypatch.setattr(plays, "Popen", start)
    monkeypatch.setattr(plays, "_SAMPLES", 500)
    table, _, row = submitted(tmp_path, name, track)
    assert refuted(table, row) == ""


@pytest.mark.parametrize("track", ["silent", "non-private"])
def test_a_policy_that_reads_other_rows_is_found(track, tmp_path):
    assert refuted(*submitted(tmp_path, "Pools", track)[::2]) == "replay"


def test_what_is_left_for_others_is_found_by_who_plays_first(tmp_path):
    table, _, row = submitted(tmp_path, "Leaves")
    (tmp_path / "place").unlink()
    with pytest.raises(BoardError, match="acts otherwise when it plays before the others"):
        list(plays.verify(table, row))


def test_changed_code_is_found(tmp_path):
    table, folder, row = submitted(tmp_path, "Honest")
    file = folder / "sources" / f"{table.entries[row].digest}.py"
    file.write_text(file.read_text() + " ")
    assert refuted(ResultTable.load(folder), row) == "entry"


@pytest.mark.parametrize(("name", "why"), [
    ("Fails", r"Fails, tiny/band, round 1: 'RuntimeError: no \\x1b\[31midea'"),
    ("Dies", "round 1: 'its process has ended'"),
    ("Lists", "Lists, tiny/band, action"),
    ("Missing", 'round 0: "AttributeError'),
])  # fmt: skip
def test_what_fails_says_where(name, why, tmp_path):
    with pytest.raises(BoardError, match=why):
        submitted(tmp_path, name)


def test_a_killed_run_goes_on_with_its_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(plays, "_SAMPLES", 500)

    def killed(cells, folder):
        raise KeyboardInterrupt

    edition, track = Edition.draw(TINY), tracks_of(TINY)["private-1"]
    first, again = (plays.make_entry(TINY, edition, track, "FedUCB-min") for _ in range(2))
    with pytest.raises(KeyboardInterrupt):
        plays.run(TINY, edition, [first], tmp_path, killed)
    assert not ResultTable.load(tmp_path).lines
    table = plays.run(TINY, edition, [again], tmp_path)
    assert table.entries[first.row].noise == first.noise != again.noise
    plays.run(
        TINY, edition, [again], tmp_path, lambda cells, folder: None if not cells else killed(cells, folder)
    )
    other = replace(again, settings={"policy": {}})
    with pytest.raises(BoardError, match="another name is required"):
        plays.run(TINY, edition, [other], tmp_path)


def test_equal_results_are_equal_bytes(tmp_path):
    for board in BOARDS:
        ResultTable.load(board).save(tmp_path)
        for name in ("results.csv.gz", "entries.json"):
            assert (tmp_path / name).read_bytes() == (board / name).read_bytes()
    (tmp_path / "results.csv.gz").write_bytes(gzip.compress(b"suite,edition\na,b\n"))
    with pytest.raises(BoardError, match="has no entries or table of results"):
        ResultTable.load(tmp_path)


@pytest.mark.parametrize("board", BOARDS)
def test_committed_rows_can_be_played_again_and_their_tables_are_theirs(board):
    table = ResultTable.load(board)
    groups = report.ranked(table)
    for edition, rows in groups.items():
        suite = SUITES[edition.suite]
        assert edition in published(suite)
        for row in rows:
            for play in plays.plays_of(suite, edition, row.entry):
                play.stack()
    best = report.best(groups)
    assert best in (board / "leaderboard.md").read_text()
    if board.name == "leaderboard":
        written = (board / "leaderboard.md").read_text().partition("## Entries")[0]
        assert report.markdown(groups).partition("## Entries")[0] == written
    else:
        first = {edition.suite: rows for edition, rows in groups.items()}
        said = re.findall(r"([0-9.]+) in `(\w+)` at epsilon ([0-9.]*[0-9])", (ROOT / "README.md").read_text())
        assert len(said) == 4
        for words in said:
            rows = [
                row for row in first[words[1]] if row.entry.track == f"private-{words[2]}" and row.rank == 1
            ]
            assert f"{rows[0].ratio[0]:.2f}" == words[0]
            assert rows[0].ratio[2] < 1


def test_committed_numbers_come_about_again():
    table = ResultTable.load(BOARDS[0])
    for asked in ("MOSS-weighted", "private-1", "arms-quick"), ("LinUCB-disjoint", "silent", "linear-quick"):
        row = next(row for row in table.entries if (row.entry, row.track, row.suite) == asked)
        assert "replay of" in list(plays.verify(table, row, 1))[-1]


def test_the_command_verifies_the_rows_that_are_asked_for():
    words = ["leaderboard", "verify", BOARDS[0], "--suite", "arms-quick", "--seeds", "1", "--entry"]
    ran = call(*words, "UCB1-tuned", "--track", "silent")
    assert ran.exit_code == 0, ran.output
    assert ran.output.splitlines()[-1] == "Verdict: all of 1 rows hold."
    assert ran.output.count("entry: ") == ran.output.count(" silent UCB1-tuned\n") == 1
    assert call(*words, "UCB1-tuned", "--track", "private-1").exit_code == 2


def test_the_newest_published_edition_is_played(tmp_path, monkeypatch):
    suite = SUITES["procurement-quick"]
    before, *_ = editions = [*published(suite), Edition.draw(suite)]
    monkeypatch.setattr(suites, "published", lambda _: editions)
    assert _opened(suite.name, tmp_path, on_published=True)[1] == editions[-1] != before


SILENT = np.random.default_rng(0).normal(85, 10, (2, 20))


def ranking(suite="arms", first=0, **regrets):
    """Returns the ranking of entries with given regret, ``(tasks, seeds)``, all of it late."""
    edition, table = Edition.draw(SUITES[suite]), ResultTable()
    table.editions[edition.id] = edition
    blank = next(iter(ResultTable.load(BOARDS[0]).entries.values()))
    for name, regret in regrets.items():
        name = name.replace("_", "-")
        entry = replace(blank, suite=suite, edition=edition.id, track="silent", name=name, source=name)
        table.entries[entry.row] = entry
        table.lines[entry.row] = [
            Line(suite, edition.id, name, "silent", task.id, f"{seed:032x}", value, 0, 0, 0, 0, 0)
            for task, own in zip(SUITES[suite].tasks, regret, strict=True)
            for seed, value in zip(edition.seeds(SUITES[suite], task)[first:], own, strict=False)
        ]
    return report.ranked(table)


def test_the_best_in_most_runs_does_not_lead_if_it_is_lost_in_the_others():
    reckless = 0.1 * SILENT
    reckless[:, ::10] = 10_000
    groups = ranking(MOSS_tuned=SILENT, careful=0.9 * SILENT, reckless=reckless)
    ((*others, last),) = groups.values()
    assert [row.entry.name for row in (*others, last)] == ["careful", "MOSS-tuned", "reckless"]
    cells = report._cells(last)
    assert (cells["median ratio"], cells["failed runs"]) == ("0.10", "4 of 40 (at most 21.4%)")
    assert last.ratio[0] == pytest.approx(np.prod(reckless.mean(axis=1) / SILENT.mean(axis=1)) ** 0.5)
    assert report.best(groups).endswith("| arms | careful 0.90 [0.90, 0.90] |")


@pytest.mark.parametrize("suite", ["arms", "classification"])
def test_every_run_counts_for_a_rank(suite):
    """A measure that drops runs, such as a median, would not see one run: no rank and no best entry follows from it."""
    ((better, _),) = ranking(suite, MOSS_tuned=SILENT, mine=0.5 * SILENT).values()
    assert better.entry.name == "mine"
    numbers = {"worst tenth", "failed runs", "regret / best silence's"} if suite == "arms" else {"regret"}
    for run in range(SILENT.size):
        lost = 0.5 * SILENT
        lost.flat[run] = 1e6
        groups = ranking(suite, MOSS_tuned=SILENT, mine=lost)
        ((first, mine),) = groups.values()
        assert (first.rank, mine.rank, mine.entry.name) == (1, 2, "mine")
        assert "mine" not in report.best(groups)
        before, after = (report._cells(row) for row in (better, mine))
        moved = {name for name in before if before[name] != after[name]}
        assert moved >= {"rank", "largest run's share"} | numbers


def test_the_first_seeds_of_an_edition_are_compared_with_the_same_seeds(monkeypatch):
    longer = [replace(task, seeds=30) for task in SUITES["arms"].tasks]
    monkeypatch.setitem(SUITES, "arms", replace(SUITES["arms"], tasks=tuple(longer)))
    whole = np.concatenate([SILENT, 10 * SILENT[:, :10]], axis=1)
    ((_, _, few),) = ranking(MOSS_tuned=whole, more=whole + 1, few=2 * SILENT).values()
    assert few.ratio == pytest.approx((2, 2, 2))
    assert report._cells(few)["entry"] == "few (20 seeds)"
    for wrong in {"few": SILENT[:, 1:]}, {"few": SILENT, "first": 1}:
        with pytest.raises(BoardError, match="which are not those of the edition"):
            ranking(**wrong)


def test_a_row_of_the_first_seeds_verifies(monkeypatch, tmp_path):
    many = replace(TINY, tasks=(replace(TINY.tasks[0], seeds=22),))
    monkeypatch.setitem(SUITES, "tiny", many)
    words = ("random-arm", "--suite", "tiny", "--track", "silent", "--seeds", 20, "--out", tmp_path)
    assert call("leaderboard", "run", *words, "--workers", 1).exit_code == 0
    ((row, lines),) = (table := ResultTable.load(tmp_path)).lines.items()
    assert len(lines) == 20
    assert refuted(table, row) == ""


def test_an_interval_decides_the_digits():
    assert measures.rounded((0.0566734, 0.0454465, 0.0774894)) == "0.057 [0.045, 0.077]"
    assert measures.rounded((0.53, 0.18, 0.61)) == "0.53 [0.18, 0.61]"
    assert measures.rounded((1234.5, math.nan, math.nan)) == "1,234"
    assert measures.rounded((math.nan,) * 3) == "\N{EN DASH}"


def test_without_bubblewrap_isolation_is_an_error(monkeypatch, tmp_path):
    if shutil.which("bwrap"):
        assert plays.isolated(tmp_path)[1] == "--unshare-all"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match="bubblewrap"):
        plays.isolated(tmp_path)


def test_what_is_no_result_is_named_and_left_out_of_the_report(tmp_path):
    table, folder, row = played(tmp_path / "good", "random-arm", "silent")
    entry, lines = table.entries[row], table.lines[row][1:]
    cut = replace(entry, track="revealed")
    table.entries[cut.row] = cut
    table.lines[cut.row] = [one._replace(track="revealed") for one in lines]
    rude = replace(entry, name="<img>", settings={"policy": {"<b>": "a|<script>"}})
    table.entries[rude.row] = rude
    table.lines[rude.row] = [one._replace(entry=rude.name) for one in table.lines[row]]
    table.save(folder)
    shutil.copytree(folder, tmp_path / "damaged")
    (tmp_path / "damaged" / "results.csv.gz").write_bytes((folder / "results.csv.gz").read_bytes()[:40])
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no result")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "entries.json").write_text("[]")
    names = ("notes.txt", "empty", "good", "damaged", "odd")
    words = [word for name in names for word in ("--results", tmp_path / name)]
    ran = call("leaderboard", "report", *words, "--out", tmp_path / "page")
    assert ran.exit_code == 0, ran.output
    for name in ("notes.txt", "empty", "damaged", "odd"):
        assert re.search(f"left out: .*{name}", ran.output), name
    assert f"random-arm on revealed: {cut.row}: {len(lines)} runs" in ran.output
    assert "\n2 rows: " in ran.output
    # Names and settings are free text.
    page = (tmp_path / "page" / "leaderboard.md").read_text()
    assert page.count("&lt;img&gt;") == 3
    assert r"'policy.&lt;b&gt;': 'a\|&lt;script&gt;'" in page
    assert "<" not in page


def test_an_entry_is_one_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "mine.py").write_text("import beside\n")
    (tmp_path / "alone.py").write_text("import numpy\n")
    make = partial(plays.make_entry, TINY, Edition.draw(TINY), tracks_of(TINY)["silent"], "mine")
    for asked in ("mine.py:Mine", {}), ("alone.py:Mine", {"policy": {"weights": f"{tmp_path}/beside.py"}}):
        with pytest.raises(BoardError, match=r"mine needs .*beside\.py; an entry is one file"):
            make(f"{tmp_path}/{asked[0]}", asked[1])
    assert make(f"{tmp_path}/alone.py:Mine", {"policy": {"scale": np.float32(2)}}).settings["policy"] == {
        "scale": 2
    }
