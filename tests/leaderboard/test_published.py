"""Rows on published seeds: comparable with the published rows, and shown as open whatever they say of themselves."""

import json
import re
import runpy
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from board_results import EDITION, federation_pays, only, result
from tiny_board import TINY

from fedbandit_envs.leaderboard import engine, published
from fedbandit_envs.leaderboard.published import is_open
from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.report import report
from fedbandit_envs.leaderboard.report.figures import GroupFigures
from fedbandit_envs.leaderboard.report.page import summary
from fedbandit_envs.leaderboard.report.rows import rows_of
from fedbandit_envs.leaderboard.result import Edition, ResultFile, digest_of
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.leaderboard.verify import verify

ROOT = Path(__file__).parents[2]
SUITE = "arms-quick"


PUBLISH = runpy.run_path(str(ROOT / "docs" / "generator" / "publish.py"))["publish"]


@pytest.fixture
def known(board, tiny, tmp_path_factory, monkeypatch):
    """The folder and files of the tiny board, whose edition is published as its record is now."""
    file = tmp_path_factory.mktemp("published") / "published.json"
    file.write_text("[]")
    PUBLISH(board[0], file)
    monkeypatch.setattr(published, "PUBLICATIONS", json.loads(file.read_text()))
    return board


def play(folder: Path, name: str = "random-arm", **which: bool) -> ResultFile:
    rows, _ = engine.rows_of(TINY, [name], [tracks_of(TINY)["silent"]])
    (file,) = engine.run(rows, Records(folder).edition(TINY, **which), folder)
    return ResultFile.load(file)


def open_of(folder: Path, *results: ResultFile) -> list[bool]:
    return [is_open(one, Records(folder).lines()) for one in results]


def test_published_rows_are_not_open_and_later_ones_are(known, tmp_path):
    folder, files = known
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    rows = [ResultFile.load(file) for file in files.values()]
    added = play(mine, published=True)
    assert added.edition == rows[0].edition
    assert added.tasks[0].seeds == rows[0].tasks[0].seeds
    assert open_of(mine, *rows, added) == [False, False, True]
    assert added.command[-2:] == ["--edition", "published"]


def test_in_a_folder_of_ones_own_the_published_edition_is_open_and_is_never_the_default(known, tmp_path):
    folder, files = known
    theirs = ResultFile.load(files["LinUCB"])
    mine = play(tmp_path, "LinUCB", published=True)
    # The same seeds and, without noise, the same numbers; but it is not their row.
    assert mine.tasks[0].arrays_digest == theirs.tasks[0].arrays_digest
    assert open_of(tmp_path, mine, theirs) == [True, True]
    secret = Records(tmp_path).secret(mine.edition.id)
    assert secret is not None
    assert secret != Records(folder).secret(mine.edition.id)
    assert play(tmp_path, "LinUCB", published=True) == mine
    own = play(tmp_path)
    assert own.edition != mine.edition
    assert open_of(tmp_path, own) == [False]
    assert "published" not in own.command
    # Who opened the edition cannot go on with it unseen either, once it is published.
    assert Records(folder).edition(TINY).edition != mine.edition


def test_an_older_edition_is_still_open_and_the_newest_is_played(known, tmp_path, monkeypatch):
    old = play(tmp_path, published=True)
    salt = "ab" * 16
    newer = {"seal": "0" * 64, "editions": [{"suite": "tiny", "digest": TINY.digest, "salt": salt}]}
    monkeypatch.setattr(published, "PUBLICATIONS", [*published.PUBLICATIONS, newer])
    assert play(tmp_path, published=True).edition == Edition.of(salt)
    assert open_of(tmp_path, old) == [True]
    other = {**newer, "editions": [{**newer["editions"][0], "digest": "f" * 64}]}
    monkeypatch.setattr(published, "PUBLICATIONS", [other])
    with pytest.raises(ValueError, match="no edition of tiny in version 1 was published"):
        Records(tmp_path).edition(TINY, published=True)


def test_publishing_is_appending_and_is_done_once(known, tmp_path):
    folder, _ = known
    first = published.PUBLICATIONS
    assert [one["seal"] for one in first] == [Records(folder).lines()[-1]["seal"]]
    file = tmp_path / "published.json"
    file.write_text(json.dumps(first))
    PUBLISH(folder, file)
    assert json.loads(file.read_text()) == first
    later = Records(tmp_path / "later")
    later.edition(TINY)
    PUBLISH(tmp_path / "later", file)
    second = json.loads(file.read_text())
    assert second[:1] == first
    assert [edition["salt"] for edition in second[1]["editions"]] == later.salts(TINY)


def forged(folder: Path, mine: ResultFile, how: str) -> ResultFile:
    """What a forger does with a row on published seeds in a copy of the published folder."""
    if how == "its edition has another salt":
        return replace(mine, edition=Edition(mine.edition.id, "0" * 32))
    if how == "its edition has another id":
        return replace(mine, edition=Edition("0" * 12, mine.edition.salt))
    record = folder / "record.jsonl"
    lines = record.read_text().splitlines()
    if how == "its line comes before the published ones":
        lines = [lines[0], lines[-1], *lines[1:-1]]
    if how == "its line takes the published seal":
        lines = [*lines[:-1], json.dumps({**json.loads(lines[-1]), "seal": json.loads(lines[2])["seal"]})]
    if how == "all is sealed anew":
        before, sealed = "0" * 64, []
        for line in map(json.loads, [lines[0], lines[-1], *lines[1:-1]]):
            line = {**line, "before": before}
            before = line["seal"] = digest_of({k: v for k, v in line.items() if k != "seal"})
            sealed.append(json.dumps(line))
        lines = sealed
    record.write_text("\n".join(lines) + "\n")
    return mine


@pytest.mark.parametrize(
    "how",
    [
        "its edition has another salt",
        "its edition has another id",
        "its line comes before the published ones",
        "its line takes the published seal",
        "all is sealed anew",
    ],
)
def test_a_forged_file_cannot_deny_that_it_is_open(known, tmp_path, how):
    folder, _ = known
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    row = forged(mine, play(mine, published=True), how)
    findings = {finding.what: finding for finding in verify(row, mine)}
    wrong = [name for name, finding in findings.items() if finding.holds is False]
    # Either it is found out, or it verifies as what it is.
    assert wrong or findings["seeds"].detail.startswith("open")
    if "record" not in wrong:
        assert open_of(mine, row) == [True]


def test_an_honest_open_row_verifies_and_says_so(known, tmp_path):
    row = play(tmp_path, published=True)
    findings = list(verify(row, tmp_path))
    assert not [finding for finding in findings if finding.holds is False]
    assert [finding.detail for finding in findings if finding.what == "seeds"] == [
        "open: they may have been known before the row was played"
    ]


@pytest.fixture
def beside():
    """Published rows, an open submission that is better than all of them, and an open copy of a baseline's row."""
    shown = federation_pays(SUITE)
    best = result(SUITE, "best", "silent", 0.001, kind="submission")
    again = replace(next(one for one in shown if one.entry.name == "UCB1-tuned"), made="2026-09-09T00:00:00Z")
    return shown, [best, again], {best.digest, again.digest}


def test_an_open_row_is_below_all_others_of_its_track_and_has_no_rank(beside):
    shown, added, opened = beside
    (rows,) = rows_of([*added, *shown], opened).values()
    silent = [(row.name, row.rank, row.is_open) for row in rows if row.result.track == "silent"]
    assert silent == [
        ("UCB1-tuned", 1, False), ("UCB1", 2, False), ("uniform-arms", 3, False),
        ("best", 0, True), ("UCB1-tuned", 0, True),
    ]  # fmt: skip
    # It is scored, and nothing else changes.
    assert rows[[row.name for row in rows].index("best")].score.value > 0.99
    alone = only(shown)
    ranked = [row for row in rows if not row.is_open]
    assert [(row.name, row.rank, row.score) for row in ranked] == [(r.name, r.rank, r.score) for r in alone]
    assert "best" not in summary({rows[0].result.group: rows})
    assert len({row.id for row in rows}) == len(rows)


def test_an_open_result_is_not_what_others_are_compared_with(beside):
    shown, _, _ = beside
    # On a track whose name comes first, with so much regret that every other score would be near 1.
    reference = result(SUITE, SUITES[SUITE].reference, "a", 100.0)
    tuned = result(SUITE, "UCB1-tuned", "a", 100.0)
    (rows,) = rows_of([reference, tuned, *shown], {reference.digest, tuned.digest}).values()
    ranked = [row for row in rows if row.rank]
    assert [(row.name, row.score, row.over) for row in ranked] == [
        (r.name, r.score, r.over) for r in only(shown)
    ]
    # Alone they do: somebody has played the baselines openly, too.
    (rows,) = rows_of(shown, {one.digest for one in shown}).values()
    assert {row.rank for row in rows} == {0}
    assert [row.score for row in rows] == [row.score for row in only(shown)]


def test_figures_show_an_open_submission_as_such_and_no_baseline_twice(beside):
    shown, added, opened = beside
    (rows,) = rows_of([*added, *shown], opened).values()
    names = [curve["name"] for curve in GroupFigures(rows).regret_curves(0).curves]
    assert "best (open)" in names
    assert not [name for name in names if name.startswith("UCB1-tuned") and "open" in name]
    levels = [curve["y"] for curve in GroupFigures(rows).privacy(0).curves if curve["form"] == "level"]
    alone = GroupFigures(only(shown)).privacy(0)
    assert levels == [curve["y"] for curve in alone.curves if curve["form"] == "level"]


@pytest.mark.usefixtures("blank_pictures")
def test_the_pages_mark_open_rows(beside, tmp_path):
    shown, added, opened = beside
    report([*shown, *added], tmp_path, open_results=opened)
    text = (tmp_path / "leaderboard.md").read_text()
    assert [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| open")] == [
        "best",
        "UCB1-tuned",
    ]
    html = (tmp_path / "leaderboard.html").read_text()
    assert len(re.findall(r"<tr [^>]* data-open>", html)) == 2
    assert EDITION.id in text
