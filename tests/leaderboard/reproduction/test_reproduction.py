"""Reproductions: shards that resume, ratios with intervals, and the paper's headline at its own horizon."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from pages import check_page
from scipy.stats import t as student
from typer.testing import CliRunner

from fedbandit_envs.leaderboard.cli import app
from fedbandit_envs.leaderboard.reproduction import (
    pfcb,
    pfcb_exp1_report,
    pfcb_reports,
    pfcb_setting,
)
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Interval,
    Ratio,
    all_hold,
    instance_ratios,
    ordered,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan, Scale
from fedbandit_envs.leaderboard.reproduction.experiments import EXPERIMENTS
from fedbandit_envs.leaderboard.reproduction.page import over_seeds
from fedbandit_envs.leaderboard.reproduction.reproduce import Reproduction
from fedbandit_envs.leaderboard.run import Settings, build, run
from fedbandit_envs.leaderboard.simulation import simulate
from fedbandit_envs.leaderboard.statistics import (
    mean_and_half_width,
    ratio_in_other_strata,
    ratio_with_interval,
    stratum_means,
)
from fedbandit_envs.leaderboard.sweep import runs, store
from fedbandit_envs.leaderboard.sweep.backends import Local
from fedbandit_envs.leaderboard.sweep.engine import play
from fedbandit_envs.leaderboard.sweep.runs import Result, Run, Strata

TINY = Scale(600, 2)
TINY_PLAN = Plan("uniform", TINY, "default")


def reproduce(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)], env={"TERM": "dumb"})


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("mode", ["default", "printed"])
def test_every_experiment_of_p_fcb_writes_its_page(tmp_path, mode):
    names = [name for name in EXPERIMENTS if name.startswith("pfcb")]
    for name in names:
        result = reproduce(name, "--out", tmp_path, "--mode", mode, "--rounds", 600, "--trials", 2)
        assert result.exit_code == 0, result.output
    suffix = "small-rounds600-trials2" + ("-printed" if mode == "printed" else "")
    for name in names:
        stem = f"{name}-{suffix}"
        page = (tmp_path / f"{stem}.md").read_text()
        assert "Scale `small-rounds600-trials2`: T = 600, 5 markets x 2 runs" in page
        assert "## Uniform law" in page
        assert "## Normal law" in page
        assert f"{stem}.png" in page
        assert (tmp_path / f"{stem}.png").stat().st_size > 10_000
        assert {row["panel"] for row in check_page(tmp_path / f"{stem}.md")} == set(pfcb.PANELS)
        # Of another horizon than the paper's nothing is said.
        assert "agrees" not in page
        assert "differs |" not in page
        assert "**differs**" not in page
        # Every interval says which kind it is.
        for line in page.splitlines():
            if line.startswith("| ") and "±" in line and not any(letter.isdigit() for letter in line):
                assert all("± runs" in head or "± markets" in head for head in line.split("|") if "±" in head)
    exp1 = (tmp_path / f"pfcb-exp1-{suffix}.md").read_text()
    if mode == "printed":
        assert "| the eight more communications |" in exp1
        assert "What breaks." in exp1
    else:
        for text in ("2.36", "3.33", "3.35", "4.94", "SS-UCB / FCB-checked", "unchecked"):
            assert text in exp1


def test_verdicts_are_given_at_the_paper_s_horizon_alone():
    at_end, elsewhere = (replace(played(np.ones(2)), rounds=np.array([last])) for last in (100_000, 99_999))
    assert [pfcb_setting.verdict(s, at_end) for s in ("holds", "does **not** hold", "undecided")] == [
        "agrees", "**differs**", "undecided",
    ]  # fmt: skip
    assert pfcb_setting.verdict("holds", elsewhere) == "not the paper's setting"


def test_the_setting_says_where_it_is_not_the_paper_s():
    paper = pfcb_setting.describe(pfcb.SCALES["paper"], "default")
    assert "T = 100,000, 5 markets x 20 runs (as in the paper)" in paper
    for other in (replace(pfcb.SCALES["paper"], trials=19), pfcb.SCALES["small"]):
        assert "(the paper: T = 100,000, 5 instances x 20 runs)" in pfcb_setting.describe(other, "default")
    for text in ("N(alpha, 0)", "omega2", "1.2 epsilon", "± markets", "[runs]"):
        assert text in paper
    assert "Algorithm 2" in pfcb_setting.describe(pfcb.SCALES["paper"], "printed")


def test_a_run_between_two_and_what_fits_a_sweep():
    low, high = played(np.ones(4)), played(np.full(4, 5.0))
    np.testing.assert_allclose(regret_by_seed(pfcb_reports._between(low, high, 0.25)), 2.0)
    sizes = np.array([2.0, 5, 10, 40])
    assert pfcb_reports._fits(sizes, 100 - 2 * sizes)[0] == pytest.approx(1)
    straight, power = pfcb_reports._fits(sizes, 7 / np.sqrt(sizes))
    assert straight < 0.9
    assert power == pytest.approx(1)


def test_ratios_of_markets_and_without_one():
    regrets = np.array([[1.0, 10, 100], [3, 30, 300]]).ravel()
    above, below = played(2 * regrets, Strata(3, "markets")), played(regrets, Strata(3, "markets"))
    below = replace(below, regret=below.regret * np.tile([1.0, 2, 4], 2)[:, np.newaxis])
    np.testing.assert_allclose(instance_ratios(above, below), [2, 1, 0.5])
    kept = [pfcb_exp1_report._without(run, 2) for run in (above, below)]
    np.testing.assert_allclose(instance_ratios(*kept), [2, 1])
    assert ratio(*kept).value == pytest.approx(2 * 11 / 21)
    assert pfcb_setting.median_market(above, below) == "1.000"


def test_all_leaves_out_what_lacks_the_mode(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(Reproduction, "play", lambda self, work, *rest: played.append(len(work.shards)))
    monkeypatch.setattr(Reproduction, "report", lambda self: [self._file("md")])
    result = reproduce("all", "--out", tmp_path, "--mode", "printed", "--rounds", 50, "--trials", 2)
    assert result.exit_code == 0, result.output
    assert len(played) == sum("printed" in experiment.modes for experiment in EXPERIMENTS.values()) == 4
    refused = reproduce("all", "--out", tmp_path, "--mode", "odd")
    assert refused.exit_code == 2
    assert "is 'odd'; one of" in " ".join(refused.output.split())


def test_shards_resume_and_repeat_nothing_finished(tmp_path):
    cell = pfcb.exp1(TINY_PLAN)["P-FCB"]
    assert len(cell.split()) == 1
    # Ten seeds of ten agents fit one shard; as if they did not:
    parts = [replace(cell, settings=replace(cell.settings, seeds=5, first_seed=first)) for first in (0, 5)]
    left = store.missing_shards(parts + parts, tmp_path)
    assert left == parts
    told = []
    play(left, tmp_path, Local(2), told.append)
    assert sum(told) <= 600 * 10 * 10
    assert store.missing_shards(parts, tmp_path) == []
    files = sorted(tmp_path.iterdir())
    before = [(path.name, path.stat().st_mtime_ns) for path in files]
    whole = store.load(parts, tmp_path)
    files[0].rename(files[0].with_suffix(".npz.partial"))
    assert len(store.missing_shards(parts, tmp_path)) == 1
    play(parts, tmp_path)
    again = store.load(parts, tmp_path)
    np.testing.assert_array_equal(again.regret, whole.regret)
    assert before[1] == (files[1].name, files[1].stat().st_mtime_ns)
    assert sorted(tmp_path.iterdir()) == files
    # What shards say is what the run says.
    simulation, result = run(cell.settings)
    np.testing.assert_array_equal(whole.regret, simulation.regret)
    np.testing.assert_array_equal(whole.rounds, simulation.rounds)
    assert whole.info.keys() == simulation.info.keys() > {"violation"}
    for name, means in simulation.info.items():
        np.testing.assert_array_equal(whole.info[name], means)
    (basic,) = (
        claim
        for claim in whole.claims
        if claim["composition"] == "basic" and claim["adjacency"] == "one-quantity"
    )
    assert basic["epsilon"] == pytest.approx(result["privacy"]["epsilon"])


@pytest.mark.parametrize(
    ("agents", "seeds", "strata", "sizes"),
    [
        (10, 100, 5, [50, 50]),
        (10, 120, 1, [50, 50, 20]),
        (7, 100, 5, [70, 30]),
        (40, 20, 5, [10, 10]),
        (3, 20, 1, [20]),
    ],
)
def test_shards_have_about_five_hundred_rows_and_whole_turns(agents, seeds, strata, sizes):
    settings = Settings("SS-UCB", "FedProcurement-v0", 9, seeds, 0, {"num_agents": agents})
    cell = Run(settings, Strata(strata))
    parts = cell.split()
    assert [part.settings.seeds for part in parts] == sizes
    played = [part.settings.first_seed + i for part in parts for i in range(part.settings.seeds)]
    assert played == list(range(seeds))
    assert sum(part.size for part in parts) == cell.size == 9 * seeds * agents


def test_a_shard_s_file_is_known_by_what_it_says(tmp_path):
    cell = Run(Settings("P-FCB", "FedProcurement-v0", 300, 2, 0))
    play([cell], tmp_path)
    assert store.missing_shards([cell, replace(cell, strata=Strata(2, "markets"))], tmp_path) == []
    for other in (replace(cell, delta=0.1), replace(cell, settings=replace(cell.settings, rounds=301))):
        assert store.missing_shards([other], tmp_path) == [other]


def test_shards_keep_claims_and_traffic(tmp_path):
    settings = Settings("P-FCB", "FedProcurement-v0", 600, 2, 0)
    cell = Run(settings, delta=0.1)
    play([cell], tmp_path)
    result = store.load([cell], tmp_path)
    env, policy = build(settings)
    simulate(env, policy, range(2))
    accountant = env.env.accountant
    assert {claim["adjacency"] for claim in result.claims} >= {"one-quantity", "one-round"}
    for claim in result.claims:
        delta = None if claim["composition"] == "basic" else 0.1
        expected = accountant.epsilon(delta, composition=claim["composition"], adjacency=claim["adjacency"])
        assert claim == vars(expected)
    # In rounds 256 and 512 each of ten agents reaches nine others, with two numbers a producer, their noise, a header.
    np.testing.assert_array_equal(result.traffic["messages"], np.full((2, 10), 18))
    np.testing.assert_array_equal(result.traffic["bytes"], np.full((2, 10), 18 * (16 + 8 * 120)))
    np.testing.assert_allclose(result.traffic["messages"], result.info["messages"] * 600)


def test_silence_has_neither_claims_nor_traffic(tmp_path):
    cell = Run(Settings("SS-UCB", "FedProcurement-v0", 10, 1, 0))
    play([cell], tmp_path)
    result = store.load([cell], tmp_path)
    assert result.claims == []
    assert result.traffic == {}


def test_a_privatizer_that_released_nothing_says_so(tmp_path):
    cell = Run(Settings("P-FCB", "FedProcurement-v0", 10, 1, 0))
    play([cell], tmp_path)
    claims = store.load([cell], tmp_path).claims
    # Four compositions under each of the environment's four adjacencies.
    assert [claim["epsilon"] for claim in claims] == [0.0] * 16
    assert {claim["reason"] for claim in claims} == {"nothing has been released"}


def test_claims_are_those_of_the_shard_that_spent_most():
    def claim(epsilon, delta=1e-5, reason="", composition="zcdp"):
        names = {"adjacency": "one-round", "composition": composition}
        return {"epsilon": epsilon, "delta": delta, "reason": reason, **names}

    def worst(*claims):
        return runs._worst_claims([[one] for one in claims])

    assert worst(claim(1.0), claim(2.0), claim(0.5)) == [claim(2.0)]
    assert worst(claim(2.0, 0.1), claim(1.0, 0.2)) == [claim(2.0, 0.2)]
    assert worst(claim(0.0), claim(0.0)) == [claim(0.0)]
    infinite, unknown = claim(float("inf"), reason="without noise"), claim(None, reason="no answer")
    assert worst(claim(1.0), infinite) == [infinite]
    assert worst(infinite, unknown, claim(1.0)) == [unknown]
    assert worst(claim(1.0), claim(2.0, composition="basic")) == [
        claim(1.0), claim(2.0, composition="basic"),
    ]  # fmt: skip


def toy():
    """An experiment that is not the paper's: one panel, seeds with markets of their own, one mode."""

    def describe(scale, mode):
        return f"T = {scale.rounds}, {mode} algorithms."

    def plan(plan):
        return {
            f"{name} {radius:g}": Run(
                Settings(
                    name, "FedProcurement-v0", plan.scale.rounds, plan.scale.trials, 0,
                    {}, {"radius_scale": radius},
                ),
                delta=0.1,
            )
            for name in ("SS-UCB", "P-FCB")
            for radius in plan.scale.sweeps["radius"]
        }  # fmt: skip

    def report(section, results):
        narrow, wide = (results[f"SS-UCB {radius:g}"] for radius in (0.5, 1))
        order, (link,) = ordered([narrow, wide])
        section.text += [f"Order: {order}; {link}."]
        section.add("narrow / wide", "", link)
        section.claims(results["P-FCB 1"].claims)
        for name, result in results.items():
            section.draw_regret(name, result)

    return Experiment(
        "Radius of confidence",
        {"x": "round", "y": "regret", "xscale": "log", "yscale": "log"},
        {"small": Scale(300, 8, {"radius": (0.5, 1.0)})},
        {"federation": "The federation"},
        describe,
        plan,
        report,
    )


@pytest.mark.usefixtures("in_this_process")
def test_an_experiment_is_data_and_a_report(monkeypatch, tmp_path):
    monkeypatch.setitem(EXPERIMENTS, "toy", toy())
    result = reproduce("toy", "--out", tmp_path, "--trials", 6)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "toy-small-trials6.md").read_text()
    assert "Scale `small-trials6`: T = 300, default algorithms." in page
    assert "## The federation\nOrder: holds; 0." in page
    assert "| one-round | zcdp |" in page
    assert "| 0.1 |" in page
    assert "instances" not in page
    rows = check_page(tmp_path / "toy-small-trials6.md")
    (row,) = (row for row in rows if row["quantity"] == "ratio")
    assert (row["panel"], row["least"], row["most"]) == ("federation", row["value"], row["value"])
    shards = sorted((tmp_path / "shards").iterdir())
    assert len(shards) == 4
    # Other settings are other files, and what they share is not played again.
    stamps = {path: path.stat().st_mtime_ns for path in shards}
    assert reproduce("toy", "--out", tmp_path, "--trials", 6, "--panel", "federation").exit_code == 0
    assert (tmp_path / "toy-small-trials6-federation.md").exists()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "shards").iterdir()} == stamps
    for words, message in (
        (("--mode", "printed"), "mode of toy is 'printed'; one of 'default' is required"),
        (("--panel", "uniform"), "panel of toy is 'uniform'; one of 'federation', 'all' is required"),
        (("--scale", "paper"), "scale of toy is 'paper'; one of 'small' is required"),
    ):
        refused = reproduce("toy", "--out", tmp_path, *words)
        assert refused.exit_code == 2
        assert message in " ".join(refused.output.replace("│", " ").split())


def test_what_is_planned_is_what_is_asked_for(tmp_path):
    whole = Reproduction("toy", toy(), tmp_path, scale="small").work()
    assert whole.size == 4 * 300 * 8 * 10
    assert Reproduction("toy", toy(), tmp_path, scale="small", rounds=20, trials=2).work().size == (
        4 * 20 * 2 * 10
    )


def test_markets_are_chosen_by_whether_the_constraint_binds():
    slack, binding, share, surplus = pfcb.choose_markets("uniform")
    assert len(slack) == 5
    assert binding == ()
    assert share == 0
    assert min(surplus) > 0
    slack, binding, share, _ = pfcb.choose_markets("normal")
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


def test_intervals_hold_strata_fixed_or_take_them_as_drawn():
    """400 experiments of 5 markets x 8 runs: of 380 expected, below 355 (runs) and 340 (markets) are beyond 4 sigma."""
    rng = np.random.default_rng(2)
    strata = np.arange(40) % 5
    covered = {"runs": 0, "markets": 0}
    for _ in range(400):
        markets, spread = rng.normal(10, 2, 5), rng.uniform(0.2, 1, 5)
        values = markets[strata] + spread[strata] * rng.normal(size=40)
        mean, half = mean_and_half_width(values, strata=strata)
        covered["runs"] += abs(mean - markets.mean()) <= half
        mean, half = mean_and_half_width(stratum_means(values, strata))
        covered["markets"] += abs(mean - 10) <= half
    assert covered["runs"] >= 355
    assert covered["markets"] >= 340
    # A single stratum is Student's interval; far strata do not widen the fixed one; a stratum of one has none.
    alone = mean_and_half_width(values[:8], strata=np.zeros(8))
    assert alone == mean_and_half_width(values[:8])
    assert alone[1] == pytest.approx(student.ppf(0.975, 7) * values[:8].std(ddof=1) / np.sqrt(8))
    near, far = (mean_and_half_width(values + s * strata, strata=strata)[1] for s in (0, 100))
    assert near == pytest.approx(far)
    assert np.isnan(mean_and_half_width(values[:9], strata=np.arange(9) // 8)[1])
    assert mean_and_half_width(np.ones(10), strata=strata[:10])[1] == 0


def test_ratios_elsewhere_are_predicted():
    """400 pairs of five markets: the others' ratio lies within for 380 expected; below 350 is beyond six sigma."""
    rng = np.random.default_rng(3)
    strata = np.arange(20) % 5

    def five():
        size, factor = rng.gamma(9.0, size=5), rng.uniform(0.5, 0.9, 5)
        below = (size[strata] + rng.normal(0, 0.3, 20)).clip(0.1)
        return factor[strata] * below, below

    within = 0
    for _ in range(400):
        low, high = ratio_in_other_strata(*five(), strata)
        above, below = five()
        within += low <= above.mean() / below.mean() <= high
    assert within >= 350
    assert np.isnan(ratio_in_other_strata(*five(), np.zeros(20))).all()


def test_measures_write_themselves():
    value = Ratio(0.7, 0.68, 0.72, 0.6, 0.8, "markets")
    assert str(value) == "0.700 [0.680, 0.720], markets 0.60 to 0.80"
    assert str(replace(value, instances="")) == "0.700 [0.680, 0.720]"
    span = Interval(0.6, 0.8)
    assert str(span) == "[0.60, 0.80]"
    assert [span.holds(number) for number in (0.6, 0.8, 0.59, 0.81)] == [
        "holds", "holds", "does **not** hold", "does **not** hold",
    ]  # fmt: skip


def test_two_trials_make_no_interval():
    above, below = played([3.0, 5.0]), played([2.0, 2.0])
    value = ratio(above, below)
    assert (value.value, value.least, value.most) == (2.0, 1.5, 2.5)
    assert str(value) == "2.000, trials 1.50 to 2.50"
    assert value.at_most(100) == value.at_least(0) == "undecided"
    assert value.numbers() == {"value": 2.0, "least": 1.5, "most": 2.5}
    mean = over_seeds(np.array([3.0, 5.0]))
    assert str(mean) == "4, trials 3 to 5"
    assert mean.numbers() == {"value": 4.0, "least": 3.0, "most": 5.0}
    assert str(over_seeds(np.array([3.0, 5.0, 4.0]))) == "4 ± 2"


def test_bounds_hold_do_not_or_are_undecided():
    value = Ratio(0.7, 0.68, 0.72, 0.6, 0.8)
    assert [value.at_most(bound) for bound in (0.6, 0.7, 0.72, 0.8)] == [
        "does **not** hold", "undecided", "holds", "holds",
    ]  # fmt: skip
    assert [value.at_least(bound) for bound in (0.6, 0.68, 0.7, 0.8)] == [
        "holds", "holds", "undecided", "does **not** hold",
    ]  # fmt: skip
    assert all_hold(["holds", "holds"]) == "holds"
    assert all_hold(["holds", "undecided"]) == "undecided"
    assert all_hold(["undecided", "does **not** hold", "holds"]) == "does **not** hold"


def played(regret, strata=runs.ONE_STRATUM):
    return Result(np.array([1]), np.asarray(regret)[np.newaxis, :, np.newaxis], {}, {}, [], 0.0, strata)


def test_orders_are_those_of_the_means():
    rng = np.random.default_rng(0)
    luck = rng.gamma(9.0, size=40)
    low, middle, high = (played(factor * luck + rng.normal(0, 0.1, 40)) for factor in (1.0, 1.5, 2.0))
    holds, ratios = ordered([low, middle, high])
    assert holds == "holds"
    assert [link.value for link in ratios] == pytest.approx([1 / 1.5, 1.5 / 2], abs=0.02)
    assert ordered([low, high, middle])[0] == "does **not** hold"
    assert ordered([low, low, high])[0] == "holds"  # at most means at most
    assert ordered([low, played(luck[::-1]), high])[0] != "holds"


def test_bounds_on_equal_runs_are_mostly_undecided():
    """400 pairs of a true ratio of 1: each side decides 10 of them by chance; beyond 30 is a six-sigma event."""
    rng = np.random.default_rng(1)
    decided = {"holds": 0, "does **not** hold": 0, "undecided": 0}
    for _ in range(400):
        luck = rng.gamma(9.0, size=40)
        link = ratio(played(luck + rng.normal(0, 0.3, 40)), played(luck + rng.normal(0, 0.3, 40)))
        decided[link.at_most(1)] += 1
    assert decided["holds"] <= 30
    assert decided["does **not** hold"] <= 30


def test_only_runs_of_the_same_instances_are_compared():
    with pytest.raises(ValueError, match="denominator has"):
        ratio(played(np.ones(4)), played(np.ones(6)))
    with pytest.raises(ValueError, match="denominator has"):
        ratio(played(np.ones(4)), played(np.ones(4), Strata(2, "markets")))


@pytest.mark.parametrize(("words", "message"), [
    (("pfcb-exp9",), "EXPERIMENT is 'pfcb-exp9'"),
    (("pfcb-exp1", "--scale", "huge"), "scale of pfcb-exp1 is 'huge'"),
    (("pfcb-exp1", "--panel", "cauchy"), "panel of pfcb-exp1 is 'cauchy'; one of 'uniform', 'normal', 'all'"),
    (("pfcb-exp1", "--mode", "best"), "mode of pfcb-exp1 is 'best'; one of 'default', 'printed'"),
    (("pfcb-exp1", "--rounds", 0), "rounds is 0; an integer >= 1"),
    (("pfcb-exp1", "--trials", 1), "trials is 1; an integer >= 2"),
])  # fmt: skip
def test_bad_words_are_explained(words, message, tmp_path):
    result = reproduce(*words, "--out", tmp_path)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("law", pfcb.PANELS)
def test_the_headline_at_the_paper_s_horizon(law, tmp_path):
    """T = 1e5, n = 10, m = 30, five slack markets, two runs each: P-FCB's regret is 0.60 to 0.75 of silence's."""
    runs = pfcb.exp1(Plan(law, Scale(100_000, 2), "default"))
    results = {}
    for name in ("SS-UCB", "P-FCB", "FCB"):
        play([runs[name]], tmp_path)
        results[name] = store.load([runs[name]], tmp_path)
    frr = ratio(results["P-FCB"], results["SS-UCB"])
    print(f"\n{law}: FRR {frr}; FCB / silent {ratio(results['FCB'], results['SS-UCB'])}")
    assert 0.60 <= frr.value <= 0.75
    assert ratio(results["FCB"], results["P-FCB"]).high < 1


@pytest.mark.slow
def test_p_fcb_at_the_paper_s_scale(tmp_path):
    """All experiments, both laws, at the paper's scale: under an hour on two cores."""
    for name in ("pfcb-exp1", "pfcb-exp2", "pfcb-exp3", "pfcb-fig2"):
        result = reproduce(name, "--scale", "paper", "--out", tmp_path)
        assert result.exit_code == 0, result.output
        check_page(tmp_path / f"{name}-paper.md")
    with (tmp_path / "pfcb-exp1-paper.csv").open() as file:
        frr = {
            row["panel"]: float(row["value"])
            for row in csv.DictReader(file)
            if (row["name"], row["quantity"]) == ("P-FCB", "/ SS-UCB (FRR) [runs]")
        }
    assert set(frr) == set(pfcb.PANELS)
    assert all(0.60 <= value <= 0.75 for value in frr.values())
