"""Reproductions: shards that resume, ratios with intervals, and the paper's headline at its own horizon."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.reproduction import cells, pfcb
from fedbandit_envs.leaderboard.reproduction.comparison import Ratio, ratio
from fedbandit_envs.leaderboard.reproduction.reproduce import EXPERIMENTS
from fedbandit_envs.leaderboard.run import run
from fedbandit_envs.leaderboard.statistics import ratio_with_interval

TINY = pfcb.Scale(600, 2, (0.5, 5.0), (2, 4))


@pytest.fixture
def tiny(monkeypatch):
    """A scale of seconds in place of the small one."""
    monkeypatch.setitem(pfcb.SCALES, "small", TINY)
    return pfcb.Planner(TINY, printed=False)


def reproduce(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)], env={"TERM": "dumb"})


@pytest.mark.parametrize("mode", ["default", "printed"])
def test_every_experiment_writes_its_page(tiny, tmp_path, mode):
    result = reproduce("all", "--out", tmp_path, "--mode", mode)
    assert result.exit_code == 0, result.output
    for name in EXPERIMENTS:
        stem = f"{name}-small" + ("-printed" if mode == "printed" else "")
        page = (tmp_path / f"{stem}.md").read_text()
        assert "## Uniform law" in page
        assert "## Normal law" in page
        assert f"{stem}.png" in page
        assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
        with (tmp_path / f"{stem}.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert rows
        for row in rows:
            low, value, high = (float(row[key]) for key in ("low", "value", "high"))
            assert 0 < low <= value <= high
    exp1 = (tmp_path / f"pfcb-exp1-small{'-printed' if mode == 'printed' else ''}.md").read_text()
    for number in ("2.36", "3.33", "3.35", "4.94"):
        assert number in exp1


def test_shards_resume_and_repeat_nothing_finished(tiny, tmp_path):
    settings = tiny.run("P-FCB", "uniform")
    parts = [
        cells.shards(settings, agents, pfcb.MARKETS) for agents in (10, 100)
    ]  # of one shard, and of two of five seeds each
    assert [len(part) for part in parts] == [1, 2]
    left = cells.missing_shards(parts[1] + parts[1], tmp_path)
    assert left == parts[1]
    told = []
    cells.play(left, tmp_path, 2, told.append)
    assert sum(told) <= 600 * 10 * 10
    assert cells.missing_shards(parts[1], tmp_path) == []
    files = sorted(tmp_path.iterdir())
    before = [(path.name, path.stat().st_mtime_ns) for path in files]
    whole = cells.load(parts[1], tmp_path)
    files[0].rename(files[0].with_suffix(".killed.partial"))
    (missing,) = cells.missing_shards(parts[1], tmp_path)
    cells.play_shard(missing, tmp_path)
    again = cells.load(parts[1], tmp_path)
    np.testing.assert_array_equal(again.regret, whole.regret)
    assert before[1] == (files[1].name, files[1].stat().st_mtime_ns)
    # What shards say is what the run says.
    simulation, result = run(settings)
    np.testing.assert_array_equal(whole.regret, simulation.regret)
    np.testing.assert_array_equal(whole.rounds, simulation.rounds)
    (basic,) = (
        claim
        for claim in whole.claims
        if claim["composition"] == "basic" and claim["adjacency"] == "one-quantity"
    )
    assert basic["epsilon"] == pytest.approx(result["privacy"]["epsilon"])


def test_markets_are_chosen_by_whether_the_constraint_binds():
    slack, binding, share = pfcb.market_seeds("uniform")
    assert len(slack) == 5
    assert binding == ()
    assert share == 0
    slack, binding, share = pfcb.market_seeds("normal")
    assert len(slack) == len(binding) == 5
    assert not set(slack) & set(binding)
    # About one normal market in twenty binds for some of ten agents.
    assert 0.02 < share < 0.1


def test_ratio_intervals_cover():
    """400 paired experiments with a true ratio of 0.7: below 355 of 380 expected is a four-sigma event."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        luck = rng.gamma(9.0, size=40)
        below, above = luck + rng.normal(0, 0.3, 40), 0.7 * luck + rng.normal(0, 0.3, 40)
        _, low, high = ratio_with_interval(above, below, np.arange(40) % 5, resamples=300)
        covered += low <= 0.7 <= high
    assert covered >= 355


def test_verdicts():
    value = Ratio(0.7, 0.68, 0.72, 0.6, 0.8)
    assert value.verdict(0.71) == "agrees"
    assert "markets' range" in value.verdict(0.65)
    assert value.verdict(0.9) == "**differs**"


@pytest.mark.parametrize(("words", "message"), [
    (("pfcb-exp9",), "EXPERIMENT is 'pfcb-exp9'"),
    (("pfcb-exp1", "--scale", "huge"), "--scale is 'huge'"),
    (("pfcb-exp1", "--law", "cauchy"), "--law is 'cauchy'"),
    (("pfcb-exp1", "--mode", "best"), "--mode is 'best'"),
])  # fmt: skip
def test_bad_words_are_explained(words, message, tmp_path):
    result = reproduce(*words, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("law", pfcb.LAWS)
def test_the_headline_at_the_paper_s_horizon(law, tmp_path):
    """T = 1e5, n = 10, m = 30, five slack markets, two runs each: P-FCB's regret is 0.60 to 0.75 of silence's."""
    planner = pfcb.Planner(pfcb.Scale(100_000, 2, (), ()), printed=False)
    results = {}
    for name in ("SS-UCB", "P-FCB", "FCB"):
        settings = planner.run(name, law)
        cells.play_shard(settings, tmp_path)
        results[name] = cells.load([settings], tmp_path)
    frr = ratio(results["P-FCB"], results["SS-UCB"], pfcb.MARKETS)
    print(f"\n{law}: FRR {frr}; FCB / silent {ratio(results['FCB'], results['SS-UCB'], pfcb.MARKETS)}")
    assert 0.60 <= frr.value <= 0.75
    assert ratio(results["FCB"], results["P-FCB"], pfcb.MARKETS).high < 1


@pytest.mark.slow
def test_the_paper_s_scale(tmp_path):
    """All experiments, both laws, at the paper's scale: under an hour on two cores."""
    result = reproduce("all", "--scale", "paper", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    for name in ("pfcb-exp2", "pfcb-exp3"):
        page = (tmp_path / f"{name}-paper.md").read_text()
        assert "**not**" not in page
    with (tmp_path / "pfcb-exp1-paper.csv").open() as file:
        frr = {
            row["law"]: float(row["value"]) for row in csv.DictReader(file) if row["name"] == "P-FCB / silent"
        }
    assert set(frr) == set(pfcb.LAWS)
    assert all(0.60 <= value <= 0.75 for value in frr.values())
