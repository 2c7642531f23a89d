"""Records are only ever appended to, and editions are drawn once."""

import json
import shutil
import stat
from dataclasses import replace

import pytest
from tiny_board import TINY, played

from fedbandit_envs.leaderboard.engine import rows_of
from fedbandit_envs.leaderboard.records import EditionSecrets, RecordError, Records, evaluation_seeds
from fedbandit_envs.leaderboard.result import Edition, ResultError, ResultFile, canonical, digest_of
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of


@pytest.fixture
def own(board, tmp_path):
    """A copy of the board of one's own."""
    folder = tmp_path / "board"
    shutil.copytree(board[0], folder)
    return folder, {name: folder / file.name for name, file in board[1].items()}


def test_what_is_played_is_recorded_and_nothing_else_is_json(board):
    folder, files = board
    assert sorted(folder.glob("*.json")) == sorted(files.values())
    lines = Records(folder).lines()
    assert [line["what"] for line in lines] == ["edition", "in", "in"]
    assert [line["file"] for line in lines[1:]] == [file.name for file in files.values()]
    assert [row.entry.name for row in Records(folder).standing()] == sorted(
        files, key=lambda name: files[name].name
    )


def test_started_again_it_plays_and_records_nothing_again(own, tiny, monkeypatch):
    folder, files = own
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert played(folder) == files
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_all_of_it_follows_from_the_edition(board, tiny, tmp_path):
    # As after a kill at the very beginning: the edition is opened, and nothing is played.
    folder, files = board
    shutil.copytree(folder / ".secrets", tmp_path / ".secrets")
    record = (folder / "record.jsonl").read_text().splitlines()[0]
    (tmp_path / "record.jsonl").write_text(record + "\n")
    for name, file in played(tmp_path).items():
        first, second = ResultFile.load(files[name]), ResultFile.load(file)
        for one, other in zip(first.tasks, second.tasks, strict=True):
            assert replace(one, cpu_seconds=0.0) == replace(other, cpu_seconds=0.0)
        assert file.name == files[name].name


def test_a_result_that_was_changed_is_made_again(own, tiny):
    folder, files = own
    data = json.loads(files["LinUCB"].read_text())
    data["tasks"][0]["regret"][-1][0] = 0.0
    files["LinUCB"].write_text(json.dumps(data))
    played(folder)
    assert ResultFile.load(files["LinUCB"]).tasks[0].regret[-1][0] > 0


@pytest.mark.parametrize("tampered", ["changed", "taken away", "put in between", "broken", "the last"])
def test_a_record_that_was_changed_shows(own, tampered):
    folder, files = own
    record = folder / "record.jsonl"
    lines = record.read_text().splitlines()
    lines = {
        "changed": [lines[0], lines[1].replace("LinUCB", "LinUCC"), lines[2]],
        "taken away": [lines[0], lines[2]],
        "put in between": [lines[0], lines[1], lines[1], lines[2]],
        "broken": [lines[0], lines[1][:-5], lines[2]],
        "the last": [*lines[:2], lines[2].replace("FedUCB-min", "FedUCB-max")],
    }[tampered]
    record.write_text("\n".join(lines) + "\n")
    with pytest.raises(RecordError, match=r"record.jsonl, line [23]"):
        Records(folder).lines()
    # Nothing is appended to it either.
    with pytest.raises(RecordError):
        Records(folder).take_out(ResultFile.load(files["LinUCB"]), "never mind")
    assert record.read_text().splitlines() == lines


@pytest.mark.parametrize(
    "said",
    [
        {"what": "in", "file": "mine.json"},
        {"what": "promise", "result": "0" * 64},
        {"what": "out", "result": "0" * 64, "entry": "nobody", "reason": "who was never in"},
        {"what": "edition", "salt": "ab" * 16},
        {"what": ["in"]},
    ],
)
def test_a_line_that_no_command_writes_is_found_although_its_seal_fits(own, said):
    folder, _ = own
    record = folder / "record.jsonl"
    line = {**said, "at": "2026-01-01T00:00:00+00:00", "before": Records(folder).lines()[-1]["seal"]}
    with record.open("a") as out:
        out.write(canonical({**line, "seal": digest_of(line)}) + "\n")
    with pytest.raises(RecordError, match=r"record.jsonl, line 4"):
        Records(folder).standing()


def test_a_line_that_was_not_written_to_its_end_counts_as_none(own):
    """Wherever a full disk or a kill has cut it; the next line takes its place. What is no part of a line is kept."""
    folder, files = own
    record, result = folder / "record.jsonl", ResultFile.load(files["LinUCB"])
    before = record.read_bytes()
    Records(folder).take_out(result, "its code was lost")
    whole = record.read_bytes()
    for end in (*range(len(before), len(whole) - 1, 17), len(whole) - 2):
        for tail in (b"", b"\0" * 9, b"\xff"):
            record.write_bytes(whole[:end] + tail)
            assert [line["what"] for line in Records(folder).lines()] == ["edition", "in", "in"]
            assert record.read_bytes() == whole[:end] + tail, "reading changes nothing"
            Records(folder).take_out(result, "its code was lost")
            text = record.read_bytes()
            assert text.startswith(before)
            assert text.count(b"\n") == 4
            assert [line["what"] for line in Records(folder).lines()] == ["edition", "in", "in", "out"]
    # All of the last line but its newline: the line counts.
    record.write_bytes(before[:-1])
    assert len(Records(folder).standing()) == 2
    Records(folder).take_out(result, "its code was lost")
    assert record.read_bytes().startswith(before)
    assert len(Records(folder).lines()) == 4


@pytest.mark.parametrize(
    "tail", [b'{"what": "in"}', b"{}", b"3", b'{"what": "in"\n', b"\n", b"[" * 99999 + b"\n"]
)
def test_a_last_line_that_is_wrong_is_no_line_that_was_cut(own, tail):
    folder, _ = own
    record = folder / "record.jsonl"
    record.write_bytes(record.read_bytes() + tail)
    before = record.read_bytes()
    with pytest.raises(RecordError, match=r"record.jsonl, line 4: it was changed"):
        Records(folder).edition(TINY, new=True)
    assert record.read_bytes() == before
    assert len(list((folder / ".secrets").iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"short", b"another secret of 32 bytes, indeed"])
def test_a_secret_that_is_not_the_one_on_record_is_none(tmp_path, content):
    """Noise would follow from a number that anybody can guess, such as of a file that a full disk has left empty."""
    records = Records(tmp_path)
    first = records.edition(TINY)
    (tmp_path / ".secrets" / first.edition.id).write_bytes(content)
    assert records.secret(first.edition.id) is None
    assert records.edition(TINY).edition != first.edition


def test_a_record_cut_short_leaves_files_without_a_row(own, tiny):
    folder, files = own
    record = folder / "record.jsonl"
    lines = record.read_text().splitlines()
    record.write_text("\n".join(lines[:-1]) + "\n")
    (gone,) = set(files.values()) - {
        folder / line["file"] for line in Records(folder).lines() if "file" in line
    }
    assert Records(folder).strays() == [f"{gone.name}: no row on record"]
    assert len(Records(folder).standing()) == 1
    # Whoever has the edition's secret takes the row in again: shards are kept.
    played(folder)
    assert Records(folder).strays() == []
    # Without any record nothing stands.
    record.unlink()
    assert Records(folder).standing() == []
    assert len(Records(folder).strays()) == 2


def test_files_that_are_no_rows_are_told_apart(own):
    folder, files = own
    text = files["LinUCB"].read_text()
    files["LinUCB"].write_text(text.replace('"processors"', '"processor"'))
    files["FedUCB-min"].unlink()
    assert Records(folder).strays() == sorted(
        [f"{files['LinUCB'].name}: not as it was taken in", f"{files['FedUCB-min'].name}: the file is gone"]
    )
    assert Records(folder).standing() == []


def test_a_withdrawal_is_an_entry_with_a_reason(own):
    folder, files = own
    records, result = Records(folder), ResultFile.load(files["LinUCB"])
    with pytest.raises(RecordError, match="reason is empty"):
        records.take_out(result, " ")
    records.take_out(result, "its code was lost")
    assert records.lines()[-1] == records.latest()[result.digest]
    assert records.lines()[-1]["reason"] == "its code was lost"
    (gone,) = records.withdrawn()
    assert tuple(gone[name] for name in ("suite", "track", "entry", "file", "reason")) == (
        "tiny", "silent", "LinUCB", files["LinUCB"].name, "its code was lost",
    )  # fmt: skip
    assert [row.entry.name for row in records.standing()] == ["FedUCB-min"]
    with pytest.raises(RecordError, match="withdrawn already"):
        records.take_out(result, "once more")
    with pytest.raises(RecordError, match="not in the record"):
        records.take_out(replace(result, made="2026-01-01T00:00:00Z"), "unheard of")


def test_who_was_withdrawn_stays_out(own, tiny):
    folder, files = own
    Records(folder).take_out(ResultFile.load(files["LinUCB"]), "its code was lost")
    played(folder)
    assert Records(folder).latest()[ResultFile.load(files["LinUCB"]).digest]["what"] == "out"


def test_an_edition_stays_until_another_is_asked_for(tmp_path):
    records = Records(tmp_path)
    first = records.edition(TINY)
    assert records.edition(TINY) == first
    second = records.edition(TINY, new=True)
    assert second.edition.salt != first.edition.salt
    assert records.edition(TINY) == second
    # What is a suite's own is no other's.
    assert records.edition(SUITES["linear-quick"]).edition not in (first.edition, second.edition)


def test_a_secret_is_for_its_owner_alone(tmp_path):
    records = Records(tmp_path)
    opened = records.edition(TINY)
    assert records.secret(opened.edition.id) == opened.secret
    assert len(opened.secret) == 32
    assert stat.S_IMODE((tmp_path / ".secrets").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / ".secrets" / opened.edition.id).stat().st_mode) == 0o600
    assert opened.secret.hex() not in (tmp_path / "record.jsonl").read_text()


def test_an_edition_without_its_secret_is_not_gone_on_with(tmp_path):
    records = Records(tmp_path)
    first = records.edition(TINY)
    (tmp_path / ".secrets" / first.edition.id).unlink()
    assert records.edition(TINY).edition != first.edition


def test_seeds_follow_from_suite_and_salt():
    task, salt = TINY.tasks[0], "ab" * 16
    seeds = evaluation_seeds(TINY, task, Edition.of(salt))
    assert seeds == evaluation_seeds(TINY, task, Edition.of(salt))
    others = [
        *evaluation_seeds(TINY, task, Edition.of("ac" * 16)),
        *evaluation_seeds(replace(TINY, version=2), task, Edition.of(salt)),
        *evaluation_seeds(TINY, replace(task, id="tiny/other"), Edition.of(salt)),
    ]
    assert len({*seeds, *others}) == 4 * task.seeds
    # Of 32 numbers of 128 bits the largest has fewer than 120 with probability 2^-256.
    assert max(seeds + others).bit_length() > 120


def test_noise_is_another_one_for_whatever_differs():
    opened = EditionSecrets.draw()
    tracks = tracks_of(TINY)
    (row,), _ = rows_of(TINY, ["FedUCB-min"], [tracks["private-1"]])
    entry, task = row.entry, TINY.tasks[0]
    drawn = {
        opened.entropy(*of)
        for of in (
            ("noise", TINY, "private-1", entry, task),
            ("watch", TINY, "private-1", entry, task),
            ("noise", TINY, "private-10", entry, task),
            ("noise", TINY, "private-1", replace(entry, settings={"policy": {"a": 1}}), task),
            ("noise", TINY, "private-1", replace(entry, source_digest="0" * 64), task),
            ("noise", TINY, "private-1", entry, replace(task, rounds=17)),
        )
    }
    assert len({*drawn, EditionSecrets.draw().entropy("noise", TINY, "private-1", entry, task)}) == 7


def test_a_result_is_checked_against_the_schema(board, tmp_path):
    _, files = board
    good = json.loads(files["FedUCB-min"].read_text())
    wrong = {
        "seeds": lambda task: task["seeds"].pop(),
        "regret": lambda task: task["regret"].pop(),
        "messages": lambda task: task.update(messages=[1.0]),
        "noise_entropy": lambda task: task.update(noise_entropy="abc"),
        "epsilon": lambda task: task["claims"][0].update(epsilon="much"),
        "surplus": lambda task: task.update(surplus=1),
        "audit": lambda task: task.update(audit={"lower_bound": "much", "holds": True}),
        "confined": lambda task: task.update(confined=["windows"]),
    }
    file = tmp_path / "wrong.json"
    for name, change in wrong.items():
        data = json.loads(json.dumps(good))
        change(data["tasks"][0])
        file.write_text(json.dumps(data))
        with pytest.raises(ResultError, match=r"\$\.tasks\[0\]"):
            ResultFile.load(file)
        assert name
    for text in (
        "",
        "[]",
        '{"schema": 1}',
        json.dumps({**good, "schema": 1}),
        files["LinUCB"].read_text()[:-9],
    ):
        file.write_text(text)
        with pytest.raises(ResultError):
            ResultFile.load(file)
    for number in ("NaN", "1e400", "-Infinity", "9" * 400):
        file.write_text(files["LinUCB"].read_text().replace('"cpu_seconds":', f'"cpu_seconds":{number},"x":'))
        with pytest.raises(ResultError, match=number[:4]):
            ResultFile.load(file)
    file.write_text("[" * 100_000)
    with pytest.raises(ResultError, match="is no JSON"):
        ResultFile.load(file)


def test_claims_keep_infinite_and_unknown_apart(board):
    result = ResultFile.load(board[1]["FedUCB-min"])
    task = replace(
        result.tasks[0],
        claims=[{**result.tasks[0].claims[0], "epsilon": epsilon} for epsilon in ("infinity", None, 1.5)],
    )
    data = replace(result, tasks=[task]).as_json()
    assert [claim["epsilon"] for claim in data["tasks"][0]["claims"]] == ["infinity", None, 1.5]
