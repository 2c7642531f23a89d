"""The results that are kept here: README and tables are theirs, and today's code gives their numbers."""

from functools import cache
from pathlib import Path

import pytest

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.entries import baseline_entry, baselines_of
from fedbandit_envs.leaderboard.provenance import machine, package
from fedbandit_envs.leaderboard.published import is_open, newest_published
from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.report.page import markdown, renewed, summary
from fedbandit_envs.leaderboard.report.privacy_picture import privacy_png
from fedbandit_envs.leaderboard.report.rows import rows_of
from fedbandit_envs.leaderboard.result import ResultFile
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.leaderboard.verify import verify

ROOT = Path(__file__).parents[2]
DOCS, FULL = ROOT / "docs" / "leaderboard", ROOT / "docs" / "leaderboard-full"
# Suites whose results have not been published yet.
UNPLAYED = {"classification", "classification-quick"}
BOARDS = {
    DOCS: [name for name in SUITES if name.endswith("-quick") and name not in UNPLAYED],
    FULL: [name for name in SUITES if not name.endswith("-quick") and name not in UNPLAYED],
}
"""Suites whose results and tables are in a folder."""
SUITE_IN = [
    pytest.param(folder, suite, id=suite, marks=() if folder == DOCS else pytest.mark.slow)
    for folder, suites in BOARDS.items()
    for suite in suites
]
STALE = "stale: docs/leaderboard.md, under Reports, has the command that renews it"
NUMERIC = ("numpy", "scipy", "numba", "llvmlite")


def records(folder):
    return Records(folder / "results")


@cache
def standing(folder):
    """The results of a folder; :func:`test_files_follow_the_schema` checks them, in ordinary runs a tenth of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedbandit_envs.leaderboard.result._check", lambda data: None)
        return records(folder).standing()


@cache
def rows(folder):
    return rows_of(standing(folder))


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("folder", BOARDS, ids=["quick", "full"])
def test_files_follow_the_schema(folder, every):
    """They are committed: what makes them wrong is a change of the schema, which is the same for all of them."""
    files = sorted((folder / "results").glob("*.json"))
    assert len(files) > 100
    for file in files[::every]:
        ResultFile.load(file)


@pytest.mark.parametrize(
    "folder", [pytest.param(DOCS, id="quick"), pytest.param(FULL, id="full", marks=pytest.mark.ci)]
)
def test_tables_are_those_of_the_results(folder):
    tables = (folder / "leaderboard.md").read_text(encoding="utf-8")
    assert tables == markdown(rows(folder), records(folder).withdrawn()), STALE


@pytest.mark.ci
def test_readme_is_that_of_the_full_suites():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert renewed(readme, summary(rows(FULL))) == readme, STALE


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("folder", BOARDS, ids=["quick", "full"])
def test_the_picture_is_of_the_results(folder, tmp_path):
    pytest.importorskip("matplotlib")
    from PIL import Image

    assert privacy_png(rows(folder), tmp_path / "anew.png")
    with Image.open(tmp_path / "anew.png") as anew, Image.open(folder / "leaderboard.png") as kept:
        assert anew.text["Description"] == kept.text["Description"], STALE


@pytest.mark.parametrize(("folder", "suite"), [pytest.param(*one.values, id=one.id) for one in SUITE_IN])
def test_every_baseline_that_fits_a_track_has_a_row_of_this_version_of_its_suite(folder, suite):
    results, suite = [one for one in standing(folder) if one.suite == suite], SUITES[suite]
    names = {result.entry.name for result in results}
    assert names <= set(BASELINES)
    for name in {*baselines_of(suite)} - names:
        assert not any(track.fits(BASELINES[name], suite.tasks[0]) for track in tracks_of(suite).values()), (
            name
        )
    for result in results:
        assert result.suite_version == suite.version
        assert [task.digest for task in result.tasks] == [task.digest for task in suite.tasks]
    # The committed editions are the published ones.
    # If this fails, results were made anew: python docs/generator/publish.py FOLDER
    assert {result.edition for result in results} == {newest_published(suite)}


@pytest.mark.parametrize("folder", BOARDS, ids=["quick", "full"])
def test_the_entries_on_record_are_todays_baselines_and_not_open(folder):
    """Classes may be moved and renamed, if the names on record are kept; arguments may not change."""
    assert {result.suite for result in standing(folder)} == set(BOARDS[folder])
    for result in standing(folder):
        assert result.entry == baseline_entry(result.entry.source), result.entry.name
    lines = records(folder).lines()
    assert not any(is_open(result, lines) for result in standing(folder)[::20])
    # Elsewhere, or without the record, the same files are open.
    assert all(is_open(result, []) for result in standing(folder)[::20])


def test_secrets_and_shards_stay_out_of_the_repository():
    assert {".secrets/", ".shards/"} <= set((ROOT / ".gitignore").read_text(encoding="utf-8").split())


def cheapest(results: list[ResultFile]) -> ResultFile:
    return min(results, key=lambda result: sum(task.cpu_seconds for task in result.tasks))


@pytest.mark.parametrize(("folder", "suite"), SUITE_IN)
@pytest.mark.parametrize("track", ["silent", "private-1"])
def test_todays_code_gives_the_numbers_of_the_cheapest_row(folder, suite, track):
    result = cheapest([one for one in standing(folder) if (one.suite, one.track) == (suite, track)])
    theirs, ours = result.package["lock"], package()["lock"]
    if result.machine["processor"] != machine()["processor"] or any(theirs[n] != ours[n] for n in NUMERIC):
        pytest.skip("numbers are those of another processor, or of other versions, which may round otherwise")
    wrong = [
        f"{found.what}: {found.detail}"
        for found in verify(result, folder / "results", seeds=1)
        if found.holds is False
    ]
    assert not wrong, f"{result.entry.name}: results must be made anew (docs/leaderboard.md, Reports)"
