"""The commands of the leaderboard, as a user types them: rightly and wrongly."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tiny_board import TINY
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.leaderboard import engine, privatizer_attack, published
from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.result import ResultFile
from fedbandit_envs.leaderboard.suites import SUITES

runner = CliRunner()

MINE = """
import numpy as np

class Mine:
    def __init__(self, arm=0):
        self.arm = arm

    def reset(self, spaces, seeds):
        self.rows = seeds.shape

    def act(self, observation):
        return np.full(self.rows, self.arm)
"""

MIXES = MINE.replace("return np.full(self.rows, self.arm)", "return np.full(self.rows, self.rows[1] % 4)")


def call(*words: object):
    # One worker is this process, which knows the tiny suite.
    return runner.invoke(app, ["leaderboard", *map(str, words)], env={"COLUMNS": "200", "TERM": "dumb"})


def explained(result, message: str, code: int = 2) -> None:
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(SUITES, "tiny", TINY)
    monkeypatch.setattr(privatizer_attack, "_SAMPLES", 100)
    monkeypatch.setattr(engine, "_ROWS_FIRST", 1)


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_run_verify_withdraw_report(tmp_path):
    out = tmp_path / "results"
    done = call(
        "run", "--suite", "tiny", "--out", out, "--workers", 1, "LinUCB", "FedUCB-nonprivate", "random-arm"
    )
    assert done.exit_code == 0, done.output
    files = sorted(out.glob("*.json"))
    assert [ResultFile.load(file).track for file in files] == ["non-private", "silent", "silent"]
    silent = next(file for file in files if "LinUCB" in file.name)
    found = call("verify", silent)
    assert found.exit_code == 0, found.output
    assert "holds    replay of tiny/band: 2 of 8 seeds give the same numbers" in found.output
    assert "holds    replay of tiny/band: 8 of 8" in call("verify", silent, "--whole").output
    explained(call("withdraw", silent, "--reason", " "), "reason is empty")
    gone = call("withdraw", silent, "--reason", "for the sake of it")
    assert gone.output == "withdrawn: LinUCB on silent of tiny\n"
    refuted = call("verify", silent)
    assert refuted.exit_code == 1
    assert "REFUTED  row on record: withdrawn: for the sake of it" in refuted.output
    assert [row.entry.name for row in Records(out).standing()] == ["FedUCB-nonprivate", "random-arm"]


def test_the_command_of_a_row_makes_that_row(tmp_path):
    out = tmp_path / "results"
    call("run", "--suite", "tiny", "--out", out, "--workers", 1, "FedUCB-min")
    one = ResultFile.load(next(out.glob("*.private-1.*")))
    assert one.command[:3] == ["fedbandit", "leaderboard", "run"]
    again = tmp_path / "elsewhere" / "results"
    words = [str(again) if word == "results" else word for word in one.command[2:]]
    assert call(*words, "--workers", 1).exit_code == 0
    (other,) = again.glob("*.json")
    assert ResultFile.load(other).track == "private-1"


def test_another_edition_has_other_luck(tmp_path):
    words = ("run", "--suite", "tiny", "--out", tmp_path, "--workers", 1, "random-arm")
    call(*words)
    call(*words)
    assert len(list(tmp_path.glob("*.json"))) == 1
    call(*words, "--new-edition")
    first, second = (ResultFile.load(file) for file in sorted(tmp_path.glob("*.json")))
    assert set(first.tasks[0].seeds).isdisjoint(second.tasks[0].seeds)


def test_a_strangers_entry(tmp_path, mine):
    out = tmp_path / "results"
    words = ("--suite", "tiny", "--track", "non-private", "--out", out, "--workers", 1)
    done = call("submit", mine, *words, "--set", "policy.arm=1", "--set", "channel.schedule=every_round")
    assert done.exit_code == 0, done.output
    (file,) = out.glob("*.json")
    result = ResultFile.load(file)
    assert (result.entry.name, result.entry.kind, result.entry.source) == ("mine", "submission", "mine.py")
    assert result.entry.settings == {"policy": {"arm": 1}, "channel": {"schedule": "every_round"}}
    # Every round to the one other agent.
    assert result.tasks[0].messages == [16.0] * 8
    # It is its code that is kept, wherever the file goes; other code needs another name.
    mine.write_text("raise SystemExit")
    explained(call("submit", mine, *words), "other code or settings of that name", code=1)
    assert call("verify", file, "--seeds", 1).exit_code == 0
    kept = out / "sources" / f"{result.entry.source_digest}.py"
    kept.write_text(kept.read_text().replace("self.arm)", "self.arm + 1)"))
    found = call("verify", file)
    assert found.exit_code == 1
    assert "REFUTED  entry: source of mine has the digest" in found.output


def test_who_acts_as_no_policy_may_gets_no_row_and_is_told_why(tmp_path, mine):
    out = tmp_path / "results"
    words = ("--suite", "tiny", "--track", "silent", "--out", out, "--workers", 1, "--set", "policy.arm=9")
    explained(call("submit", mine, *words), "Error: mine, tiny/band, round 1: action", code=1)
    assert not list(out.glob("*.json"))


def test_who_mixes_rows_gets_no_row(tmp_path, mine):
    mine.write_text(MIXES)
    out = tmp_path / "results"
    done = call("submit", mine, "--suite", "tiny", "--track", "silent", "--out", out, "--workers", 1)
    explained(done, "what a row does may depend on its own observations and its seed", code=1)
    assert not list(out.glob("*.json"))
    assert [line["what"] for line in Records(out).lines()] == ["edition"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--suite", "tinier"), "suite is 'tinier'"),
        (("run", "--suite", "tiny", "SS-UCB"), "BASELINE is 'SS-UCB'"),
        (("run", "--suite", "tiny", "--track", "loud"), "track is 'loud'"),
        (("run", "--suite", "tiny", "--track", "silent", "FedUCB"), "none of FedUCB fits silent"),
        (("run", "--suite", "tiny", "--backend", "dask"), "--scheduler is None"),
        (("run", "--suite", "tiny", "--backend", "spark"), "--backend is 'spark'"),
        (("run", "--suite", "tiny", "--edition", "published"), "no edition of tiny in version 1 was published"),
        (("run", "--suite", "tiny", "--edition", "newest"), "--edition is 'newest'"),
        (("run", "--suite", "linear-quick", "--edition", "published", "--new-edition"), "only one of them is allowed"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--edition", "published"), "was published"),
        (("run",), "Missing option '--suite'"),
        (("run", "--suite", "tiny", "--workers", "0"), "Invalid value for '--workers'"),
        (("submit", "MINE", "--suite", "tiny", "--track", "loud"), "track is 'loud'"),
        (("submit", "MINE", "--suite", "tiny", "--track", "revealed"), "lines to compare with"),
        (("submit", "nothing.py", "--suite", "tiny", "--track", "silent"), "policy is 'nothing.py'; there is no file"),
        (("submit", "nothing", "--suite", "tiny", "--track", "silent"), "'module:Class' is required"),
        (("submit", "no_such:Thing", "--suite", "tiny", "--track", "silent"), "no module 'no_such'"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--name", "SS-UCB"), "which is a baseline's"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--name", "../up"), "name is '../up'"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--set", "arm=1"), "is not part.key=value"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--set", "channel.delay=1"), "['channel']"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--set", "policy.x=1e999"), "what JSON can say"),
        (("submit", "MINE", "--suite", "tiny", "--track", "silent", "--set", "policy.x=NaN"), "what JSON can say"),
        (
            ("submit", "MINE", "--suite", "tiny", "--track", "private-1", "--set", "privatizer.epsilon=9"),
            "['epsilon'], which are the track's",
        ),
        (
            ("submit", "MINE", "--suite", "tiny", "--track", "private-1", "--set", "channel.schedule=on_request",
             "--set", "privatizer.releases=5"),
            "epsilon is None",
        ),
        (
            ("submit", "MINE", "--suite", "tiny", "--track", "non-private", "--set", "channel.speed=5"),
            "unexpected keyword argument 'speed'",
        ),
    ],
)  # fmt: skip
def test_wrong_words_are_explained_before_anything_is_played(tmp_path, mine, words, message):
    out = tmp_path / "results"
    explained(call(*(str(mine) if word == "MINE" else word for word in words), "--out", out), message)
    assert not list(out.glob("*.json"))


def test_a_report_lists_who_was_withdrawn_and_renews_a_readme(tmp_path):
    out, readme = tmp_path / "results", tmp_path / "README.md"
    readme.write_text("no marks\n")
    call("run", "--suite", "tiny", "--out", out, "--workers", 1, "LinUCB", "random-arm")
    (gone,) = out.glob("*LinUCB*")
    call("withdraw", gone, "--reason", "its author asks for it")
    words = ("report", "--results", out, "--out", tmp_path / "page", "--readme", readme)
    explained(call(*words), "both are required")
    readme.write_text("<!-- leaderboard -->\n<!-- /leaderboard -->\n")
    done = call(*words)
    assert done.exit_code == 0, done.output
    # Tiny has no private row here.
    assert "leaderboard.png is not drawn: there is no private baseline" in done.stderr
    assert "| tiny | random-arm (LinUCB-tuned was not run) |" in readme.read_text()
    for name in ("leaderboard.md", "leaderboard.html"):
        assert "its author asks for it" in (tmp_path / "page" / name).read_text()
    explained(call(*words[:-1], tmp_path / "none.md"), "No such file")
    # What somebody has put there, or changed, is no row, and is not passed over in silence.
    forged = next(out.glob("*random-arm*"))
    forged.with_name("mine.json").write_text(forged.read_text().replace("random-arm", "mine"))
    done = call(*words)
    assert "left out: mine.json: no row on record" in done.stderr
    assert "| tiny | random-arm" in readme.read_text()


def test_an_open_row_is_reported_beside_the_published_ones(tmp_path, mine, monkeypatch):
    theirs, own, page = tmp_path / "theirs", tmp_path / "own", tmp_path / "page"
    call("run", "--suite", "tiny", "--out", theirs, "--workers", 1, "LinUCB", "LinUCB-tuned", "random-arm")
    lines = Records(theirs).lines()
    edition = {name: lines[0][name] for name in ("suite", "digest", "salt")}
    monkeypatch.setattr(published, "PUBLICATIONS", [{"seal": lines[-1]["seal"], "editions": [edition]}])
    words = ("--suite", "tiny", "--track", "silent", "--out", own, "--workers", 1, "--edition", "published")
    done = call("submit", mine, *words)
    assert done.exit_code == 0, done.output
    assert f"edition {lines[0]['id']}, open" in done.output
    (gone,) = theirs.glob("*LinUCB-tuned*")
    words = ("report", "--results", own, "--results", theirs, "--out", page)
    assert call(*words).stdout.startswith("4 rows")
    text = (page / "leaderboard.md").read_text()
    ranks = {name: rank for rank, name in re.findall(r"^\| (\d|open) \| (\S+) \|", text, re.MULTILINE)}
    assert ranks["mine"] == "open"
    assert {ranks["LinUCB"], ranks["LinUCB-tuned"]} <= {"1", "2", "3"}
    # A row that was withdrawn is so in an older copy of its folder too.
    shutil.copytree(theirs, tmp_path / "older")
    call("withdraw", gone, "--reason", "found wrong")
    assert call(*words, "--results", tmp_path / "older").stdout.startswith("3 rows")


def test_files_that_are_no_results_are_explained(tmp_path):
    nothing = tmp_path / "nothing.json"
    explained(call("verify", nothing), "No such file")
    nothing.write_text("{")
    explained(call("verify", nothing), "is no JSON")
    nothing.write_text(json.dumps({"schema": 1}))
    explained(call("verify", nothing), "is a required property")
    explained(call("withdraw", nothing, "--reason", "why not"), "is a required property")
    explained(call("report", "--results", Path("nowhere"), "--out", tmp_path), "no rows that stand")
