"""The results that are kept here: README and tables are theirs, and today's code gives their numbers."""

from pathlib import Path

import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.entries import baseline_entry, baselines_of
from fedbandit_envs.leaderboard.board.provenance import machine, package
from fedbandit_envs.leaderboard.board.published import is_open, newest_published
from fedbandit_envs.leaderboard.board.records import Records
from fedbandit_envs.leaderboard.board.report.figures import privacy_png
from fedbandit_envs.leaderboard.board.report.page import markdown, renewed, summary
from fedbandit_envs.leaderboard.board.report.rows import rows_of
from fedbandit_envs.leaderboard.board.result import ResultFile
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.board.tracks import tracks_of
from fedbandit_envs.leaderboard.board.verify import verify

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "leaderboard"
RECORDS = Records(PAGES / "results")
# A suite whose results have not been published yet.
UNPLAYED = {"classification-quick"}
QUICK = [name for name in SUITES if name.endswith("-quick") and name not in UNPLAYED]
STALE = "stale: docs/leaderboard.md, under Reports, has the command that renews it"
NUMERIC = ("numpy", "scipy", "numba", "llvmlite")


@pytest.fixture(scope="module")
def standing():
    return RECORDS.standing()


def test_readme_and_tables_are_those_of_the_results(standing):
    groups = rows_of(standing)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert renewed(readme, summary(groups)) == readme, STALE
    tables = (PAGES / "leaderboard.md").read_text(encoding="utf-8")
    assert tables == markdown(groups, RECORDS.withdrawn()), STALE


def test_the_picture_is_of_the_results(standing, tmp_path):
    pytest.importorskip("matplotlib")
    from PIL import Image

    assert privacy_png(rows_of(standing), tmp_path / "anew.png")
    with Image.open(tmp_path / "anew.png") as anew, Image.open(PAGES / "leaderboard.png") as kept:
        assert anew.text["Description"] == kept.text["Description"], STALE


def test_every_baseline_that_fits_a_track_has_a_row_of_this_version_of_its_suite(standing):
    names = {result.entry.name for result in standing}
    assert names <= set(BASELINES)
    for suite in map(SUITES.get, QUICK):
        for name in {*baselines_of(suite)} - names:
            assert not any(
                track.fits(BASELINES[name], suite.tasks[0]) for track in tracks_of(suite).values()
            ), name
    assert {result.suite for result in standing} == set(QUICK)
    for result in standing:
        assert result.suite_version == SUITES[result.suite].version
        assert [task.digest for task in result.tasks] == [task.digest for task in SUITES[result.suite].tasks]


def test_the_entries_on_record_are_todays_baselines(standing):
    """Classes may be moved and renamed, if the names on record are kept; arguments may not change."""
    for result in standing:
        assert result.entry == baseline_entry(result.entry.source), result.entry.name


def test_the_committed_editions_are_the_published_ones(standing):
    """If this fails, results were made anew: ``python docs/generator/publish.py docs/leaderboard/results``."""
    for suite in QUICK:
        editions = {result.edition for result in standing if result.suite == suite}
        assert editions == {newest_published(SUITES[suite])}
    lines = RECORDS.lines()
    assert not any(is_open(result, lines) for result in standing[::20])
    # Elsewhere, or without the record, the same files are open.
    assert all(is_open(result, []) for result in standing[::20])


def test_secrets_and_shards_stay_out_of_the_repository():
    assert {".secrets/", ".shards/"} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").split())


def cheapest(results: list[ResultFile]) -> ResultFile:
    return min(results, key=lambda result: sum(task.cpu_seconds for task in result.tasks))


@pytest.mark.parametrize("suite", QUICK)
@pytest.mark.parametrize("track", ["silent", "private-1"])
def test_todays_code_gives_the_numbers_of_the_cheapest_row(standing, suite, track):
    result = cheapest([one for one in standing if (one.suite, one.track) == (suite, track)])
    theirs, ours = result.package["lock"], package()["lock"]
    if result.machine["processor"] != machine()["processor"] or any(theirs[n] != ours[n] for n in NUMERIC):
        pytest.skip("numbers are those of another processor, or of other versions, which may round otherwise")
    wrong = [
        f"{found.what}: {found.detail}"
        for found in verify(result, PAGES / "results", seeds=1)
        if found.holds is False
    ]
    assert not wrong, f"{result.entry.name}: results must be made anew (docs/leaderboard.md, Reports)"
