"""The pages on Fed1-UCB, Fed2-UCB and PF-UCB: their runs, the rest of the horizon, and pages at a tiny scale."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pages import check_paper
from paper_runs import reproduce
from scipy.stats import ttest_ind
from shi_reference import PF, pf_by_phases
from typed import assert_explained

from fedbandit_envs.experiments import RunSpec
from fedbandit_envs.gaussian.registered import PROBLEM
from fedbandit_envs.papers.experiment import Plan
from fedbandit_envs.papers.page import Reproduction
from fedbandit_envs.papers.unlike import EXPERIMENTS, HORIZON, KNOWN, cost, regret_at_horizon, slope, total

PLAIN = {line: known[:2] for (line, _), known in KNOWN.items() if known[2]}
MEANS = np.array(PROBLEM.presets["FedMixed-v0"].kwargs["means"])


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A table of ratings of 120 films by 230 people, of which four of ten are missing."""
    pytest.importorskip("pandas")
    rng, path = np.random.default_rng(3), tmp_path_factory.mktemp("films") / "films.csv"
    who, what = np.nonzero(rng.random((230, 120)) < 0.6)
    stars = np.clip(np.round(rng.normal(2.5 + what / 120, 1)), 1, 5)
    rows = np.column_stack([who, what, stars])
    np.savetxt(path, rows, "%d", ",", header="user,item,rating", comments="")
    return path


def spec_of(path):
    return {"name": "ratings", "table": str(path), "scale": [1, 5]}


def runs_of(panel):
    experiment = EXPERIMENTS["fed-ucb"]
    return {run.labels["line"]: run for run in experiment.runs(Plan(panel, experiment.scales["tiny"]))}


def test_what_is_not_simulated_goes_on_as_before():
    alone = runs_of("exact")["alone"].run()
    rate = slope(alone)
    early = alone.rounds[-2]
    assert 1500 < early < 2000
    regret = alone.regret.sum(axis=2)
    np.testing.assert_allclose(rate, (regret[-1] - regret[-2]) / (2000 - early))
    longer = replace(alone, labels={"horizon": 5000.0})
    np.testing.assert_allclose(regret_at_horizon(longer), regret[-1] + 3000 * rate)
    assert (rate > 0).all()
    assert not cost(alone).any()
    shared = runs_of("exact")["shared"].run()
    # Five agents send to four others in each round.
    np.testing.assert_array_equal(cost(shared), 2000 * 5 * 4 / 2)
    np.testing.assert_allclose(total(shared), shared.regret[-1].sum(axis=1) + cost(shared))


def test_a_run_that_ends_early_decides_by_the_whole_horizon():
    spec = runs_of("approximate")["Fed2-UCB"]
    assert spec.rounds == 40
    assert spec.wrapper_kwargs["server"]["policy"]["horizon"] == 2000
    assert spec.labels["horizon"] == 2000


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize(
    ("name", "rounds"), [pytest.param("fed-ucb", 700, marks=pytest.mark.ci), ("pf-ucb", 300)]
)
def test_the_tables_are_made(tmp_path, films, name, rounds):
    # In so many rounds some lines of either page have sent messages.
    found = reproduce(name, "--scale", "tiny", "--rounds", rounds, "--data", films, "--out", tmp_path)
    assert found.exit_code == 0, found.output
    stem = f"{name}-tiny-rounds{rounds}"
    parts, rows = check_paper(tmp_path, "unlike", stem)
    assert {row["panel"] for row in rows} == {*EXPERIMENTS[name].panels}
    assert f"--data '{json.dumps(spec_of(films))}'`" in (tmp_path / "unlike.md").read_text()
    # What released programs gave on other means is not set beside these.
    assert "released program" not in parts["films regrets"]
    assert "released program" in "".join(parts.values())


@pytest.mark.parametrize("name", ["fed-ucb", "pf-ucb"])
def test_without_data_a_panel_that_needs_them_is_left_out(tmp_path, films, name):
    experiment, of = EXPERIMENTS[name], {"scale": "tiny"}
    without = Reproduction(name, experiment, tmp_path, **of).cells
    panels = [panel for panel in experiment.panels if panel != "films"]
    each = [Reproduction(name, experiment, tmp_path, panel=panel, **of).cells for panel in panels]
    assert without == [cell for cells in each for cell in cells]
    alone = Reproduction(name, experiment, tmp_path, panel="films", data=spec_of(films), **of).cells
    assert len({str(run.key) for run in alone}) == len(alone)
    assert Reproduction(name, experiment, tmp_path, data=spec_of(films), **of).cells == without + alone


def test_films_of_another_table_are_other_runs(films, tmp_path):
    path = tmp_path / "films.csv"
    path.write_text(films.read_text())
    experiment = EXPERIMENTS["pf-ucb"]
    plan = Plan("films", experiment.scales["tiny"]._replace(trials=3), "default", spec_of(path))
    before = [run.key for run in experiment.runs(plan)]
    assert before == [run.key for run in experiment.runs(plan)]
    path.write_text("\n".join(films.read_text().splitlines()[:-3]))
    assert all(run.key not in before for run in experiment.runs(plan))


@pytest.mark.parametrize(("words", "message"), [
    (("pf-ucb", "--panel", "films"), "data of pf-ucb is None; a table of your own is required"),
    (("fed-pe", "--data", "FILMS"), "data of fed-pe is {'name': 'ratings'"),
    (("pf-ucb", "--data", "FILMS", "--panel", "alpha"), "None is required"),
    (("pf-ucb", "--data", "nowhere.csv"), "nowhere.csv"),
    (("pf-ucb", "--data", '{"table": "FILMS"}'), "data name is None; one of ['ratings']"),
    (("all", "--data", '{"name": "ratings", "table": "FILMS", "scale": [2, 5]}'), "'rating' is 1; numbers in [2, 5]"),
])  # fmt: skip
def test_wrong_data_are_explained_before_anything_is_played(films, tmp_path, words, message):
    typed = [word.replace("FILMS", str(films)) for word in words]
    assert_explained(reproduce(*typed, "--out", tmp_path / "out"), message)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=pytest.mark.slow if line in ("PF-UCB, alpha 0", "PF-UCB, alpha 0.2") else ())
        for line in PLAIN
    ],
)
def test_the_plain_program_gives_the_figures_that_pages_print(line):
    """Half of the lines; slow runs have all of them."""
    alpha = float(line.split()[-1])
    totals = [
        sum(pf_by_phases(MEANS, alpha, HORIZON, np.random.default_rng([7, seed]))) for seed in range(50)
    ]
    found = np.mean(totals), 1.96 * np.std(totals, ddof=1) / 50**0.5
    np.testing.assert_allclose(found, PLAIN[line], atol=1)


@pytest.mark.ci
def test_the_plain_program_plays_by_phases_what_it_plays_by_rounds():
    """False alarm: 1 in 10,000. A radius half as large again is found."""
    worth = 0.5 * MEANS + 0.5 * MEANS.mean(axis=0)
    gap = worth.max(axis=1, keepdims=True) - worth

    def by_rounds(rng):
        program, regret = PF(4, 9, 2000, 0.5, 1.0, 1.0), 0.0
        for _ in range(2000):
            arms = program.arms()
            regret += gap[np.arange(4), arms].sum()
            program.learn(rng.normal(MEANS[np.arange(4), arms]))
        return regret

    one = [by_rounds(np.random.default_rng([1, seed])) for seed in range(15)]
    two = [pf_by_phases(MEANS, 0.5, 2000, np.random.default_rng([2, seed]))[0] for seed in range(100)]
    assert ttest_ind(one, two, equal_var=False).pvalue > 1e-4


def test_the_slope_of_a_run_of_one_round_is_its_regret():
    result = RunSpec("uniform-arms", "FedArms-v0", 1, 2).run()
    np.testing.assert_array_equal(slope(result), result.regret[0].sum(axis=-1))
