"""The page of regret with menus: its numbers are those of the grid, and it needs nothing else."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.lab.page import grid, numbers
from fedbandit_envs.leaderboard.lab.page.page import page
from fedbandit_envs.leaderboard.sweep.backends import Local
from fedbandit_envs.registration import REGISTRY

KEPT = Path(__file__).parents[3] / "docs" / "lab.json"


@pytest.fixture(scope="module")
def kept():
    return numbers.read(KEPT)


def test_the_grid_is_of_what_is_registered():
    every = list(grid.points())
    assert len(every) == len(set(every)) == 4 * (2 + 4 * (2 + 3 * 3))
    for name, problem in grid.PROBLEMS.items():
        assert problem.env_id in REGISTRY, name
        for kind, own in (
            ("silent", problem.silent),
            ("sharing", problem.sharing),
            ("private", problem.private),
        ):
            for algorithm in own:
                parts = {getattr(one.make, "layer", None) for one in BASELINES[algorithm].wrappers.values()}
                assert ("noise" in parts, "transport" in parts) == (kind == "private", kind != "silent"), (
                    algorithm
                )


@pytest.mark.parametrize(
    "point",
    [
        grid.Point("arms", "UCB1", None, None),
        grid.Point("arms", "UCB1-weighted", 1.0, "powers of two"),
        grid.Point("procurement", "P-FCB-weighted", 0.1, "every 100 rounds"),
    ],
)
def test_played_again_numbers_are_those_kept(kept, point):
    run = grid.run_of(point)
    again = numbers.curve(point, run.join([shard.play(lambda more: None) for shard in run.split()]))
    (found,) = [
        one
        for one in kept["problems"][point.problem]["curves"]
        if (one["algorithm"], one["epsilon"], one["schedule"]) == point[1:]
    ]
    assert again == found


def test_what_is_claimed_is_what_was_asked_for(kept):
    for problem in kept["problems"].values():
        for one in problem["curves"]:
            if one["epsilon"] is None:
                assert one["claim"] is None
            else:
                assert one["claim"]["epsilon"] == pytest.approx(one["epsilon"], rel=1e-3)
            assert (one["messages"] > 0) is (one["schedule"] is not None)
            low, mean, high = (np.array(one[name]) for name in ("low", "mean", "high"))
            assert (low <= mean).all()
            assert (mean <= high).all()
            assert len(mean) == len(problem["rounds"])


def test_the_page_is_whole_and_small(kept):
    text = page(kept)
    assert len(text.encode()) < 2.5e6
    own = text.replace(text[text.index("<script>") : text.rindex("<script>")], "")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", own)
    assert "default-src 'none'" in text


def test_the_text_says_what_the_numbers_say(kept):
    text = KEPT.with_name("lab.md").read_text()
    regret = {
        (name, one["algorithm"], one["epsilon"], one["schedule"]): one["mean"][-1]
        for name, own in kept["problems"].items()
        for one in own["curves"]
    }
    silence, tuned = (
        {name: regret[name, problem.silent[i], None, None] for name, problem in grid.PROBLEMS.items()}
        for i in (0, 1)
    )
    early = regret["procurement", "P-FCB", 1.0, "powers of two"] / silence["procurement"]
    assert f"{early:.1f} times the regret of untuned silence" in text
    weighed = {key: value / tuned[key[0]] for key, value in regret.items() if key[1].endswith("-weighted")}
    least, most = min(weighed, key=weighed.get), max(weighed, key=weighed.get)
    assert (least[0], *least[2:]) == ("linear", 10.0, "powers of two")
    assert (most[0], *most[2:]) == ("arms", 1.0, "every round")
    assert f"between {weighed[least]:.2f} (" in text
    assert f"and {weighed[most]:.2f} times (" in text
    curves = sum(len(own["curves"]) for own in kept["problems"].values())
    assert (
        f"{curves} curves in `docs/lab.json`, {kept['seeds']} seeds each, {kept['cpu_seconds']} CPU-seconds"
        in text
    )


def test_no_text_ends_the_data_early(kept):
    curve = {**kept["problems"]["arms"]["curves"][3], "schedule": "</script><b>"}
    wrong = {**kept, "problems": {**kept["problems"]}}
    wrong["problems"]["arms"] = {**wrong["problems"]["arms"], "curves": [curve]}
    assert "</script><b>" not in page(wrong)


def test_written_numbers_are_read_as_they_were(kept, tmp_path):
    path = tmp_path / "lab.json"
    path.write_text(numbers.written(kept))
    assert path.read_text() == KEPT.read_text()
    assert numbers.read(path) == kept


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda found: found["problems"].pop("arms"), "another grid"),
        (lambda found: found["problems"]["arms"]["curves"].pop(), "another grid"),
        (lambda found: found["problems"]["arms"]["curves"][0].update(epsilon=1.0), "another grid"),
        (lambda found: found.pop("problems"), "holds no numbers"),
        (lambda found: found.update(problems=[]), "holds no numbers"),
    ],
)
def test_other_files_are_refused(tmp_path, spoil, message):
    found = json.loads(KEPT.read_text())
    spoil(found)
    path = tmp_path / "lab.json"
    path.write_text(json.dumps(found))
    with pytest.raises(numbers.NumbersError, match=message):
        numbers.read(path)
    result = CliRunner().invoke(app, ["lab-page", "--numbers", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_the_command_writes_the_page(tmp_path):
    result = CliRunner().invoke(app, ["lab-page", "--numbers", str(KEPT), "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["lab-page.html"]
    assert (tmp_path / "lab-page.html").read_text() == page(numbers.read(KEPT))
    missing = CliRunner().invoke(app, ["lab-page", "--numbers", "nowhere.json", "--out", str(tmp_path)])
    assert missing.exit_code == 2
    assert "nowhere.json" in missing.output


def test_the_grid_is_played_shard_by_shard(tmp_path, monkeypatch, in_this_process):
    few = {"arms": replace(grid.PROBLEMS["arms"], rounds=20, sharing=(), private=("UCB1-weighted",))}
    for module in (grid, numbers):
        monkeypatch.setattr(module, "PROBLEMS", few)
    monkeypatch.setattr(grid, "SCHEDULES", {"every 100 rounds": {"name": "fixed_gap", "gap": 5}})
    monkeypatch.setattr(grid, "SEEDS", 3)
    left = numbers.size_left(tmp_path)
    assert left == (2 + 3) * 20 * 3 * 10
    told = []
    found = numbers.played(tmp_path, Local(1), told.append)
    assert sum(told) == left
    assert numbers.size_left(tmp_path) == 0
    assert [one["algorithm"] for one in found["problems"]["arms"]["curves"]] == [
        "UCB1", "UCB1-tuned", *["UCB1-weighted"] * 3
    ]  # fmt: skip
    again = numbers.played(tmp_path, Local(1), told.append)
    assert numbers.written(again) == numbers.written(found)
