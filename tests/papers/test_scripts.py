"""The scripts on exposure fairness, FedUCB, liars, digits and FedLinUCB: their runs, and single figures."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from paper_runs import labelled, played

from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.papers import fairx
from fedbandit_envs.papers.byzantine import EXPERIMENTS as BYZANTINE
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.classification import ALPHA, EXPERIMENTS
from fedbandit_envs.papers.experiment import PanelRuns, Plan, Scale, Section
from fedbandit_envs.papers.fedlinucb import EXPERIMENTS as FEDLINUCB
from fedbandit_envs.papers.feducb import EXPERIMENTS as FEDUCB
from fedbandit_envs.papers.feducb import budgets, nearer_to_one
from fedbandit_envs.papers.stats import Ratio, bounded
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import NOISES
from fedbandit_envs.wrappers.transport.schedule import make_schedule


def test_placebos_are_the_same_runs_on_noise():
    plan = Plan("all", Scale(50, 2), "default")
    runs = experiments()["fairx-exp2"].runs(plan)
    for name in fairx.PROTOCOLS:
        ((real,), (placebo,)) = (labelled(runs, line=name + end) for end in ("", fairx.PLACEBO))
        assert placebo.stack == [("Placebo", {})]
        assert (real.baseline, real.wrapper_kwargs) == (placebo.baseline, placebo.wrapper_kwargs)


def test_shares_are_by_merit():
    pulls = np.array([[[10.0, 70, 20]], [[30.0, 50, 20]]])
    deserved = np.array([[[20.0, 50, 30]], [[20.0, 50, 30]]])
    result = SimpleNamespace(totals={"pulls": pulls, "deserved": deserved}, rounds=np.array([1, 100]))
    runs = PanelRuns(Plan("all", Scale(100, 2), "default"), [({"line": "best-arm"}, result)])
    assert fairx.shares(runs) == {
        "best-arm": {1: pytest.approx(0.6), 2: pytest.approx(0.2), 3: pytest.approx(0.2)},
        "deserved": {1: pytest.approx(0.5), 2: pytest.approx(0.3), 3: pytest.approx(0.2)},
    }


@pytest.mark.parametrize("name", ["feducb-fig1b", "feducb-fig1c", "feducb-fig2"])
def test_medium_has_the_paper_s_agents_and_keeps_each_trial(name):
    experiment = FEDUCB[name]
    scale = experiment.scales["medium"]
    for panel in experiment.panels:
        three, ten = (
            experiment.runs(Plan(panel, scale._replace(trials=trials), "default")) for trials in (3, 10)
        )
        assert [run.labels for run in three] == [run.labels for run in ten]
        for run, longer in zip(three, ten, strict=True):
            assert run.agents == 100
            assert run.rounds == 100_000
            assert run.env_kwargs["num_arms"] == min(100, run.env_kwargs["dim"] ** 2)
            shards = [part.key for part in run.split()]
            assert len(shards) == 3
            assert shards == [part.key for part in longer.split()][:3]


def test_one_mechanism_serves_all_budgets_of_communication():
    experiment = FEDUCB["feducb-fig1b"]
    for panel, mechanism in {"printed": "tree", "mended": "blt", "least": "blt"}.items():
        runs = experiment.runs(Plan(panel, Scale(64, 3, {"agents": (4,)}), "default"))
        federated = [run for run in runs if "budget" in run.labels]
        assert len(federated) == 3
        for run in federated:
            env, _ = run.build()
            privatizer = find_layer(env, "noise")
            assert isinstance(privatizer.mechanism._noise, NOISES[mechanism])
            # As many releases are planned as there are messages.
            changed = run.wrapper_kwargs.get("channel", {"schedule": budgets(4, 64)["log T"]})
            assert privatizer.mechanism.max_releases == make_schedule(changed["schedule"]).count(64)


@pytest.mark.parametrize(("first", "last", "says"), [
    ((1.4, 1.6), (1.1, 1.2), "holds"),
    ((0.5, 0.6), (0.8, 1.1), "holds"),
    ((0.99, 1.01), (0.90, 0.92), "does **not** hold"),
    ((1.4, 1.6), (0.5, 0.8), "undecided"),
    # An interval beyond 1 is at its nearer end from 1, not at 1.
    ((1.4, 1.6), (1.5, 2.5), "undecided"),
    ((1.2, 1.4), (1.5, 2.5), "does **not** hold"),
    ((math.nan, math.nan), (1.1, 1.2), "undecided"),
])  # fmt: skip
def test_sensitivity_is_how_far_a_ratio_is_from_1(first, last, says):
    ratios = [Ratio(sum(ends) / 2, *ends, 20) for ends in (first, last)]
    assert nearer_to_one(*ratios) == says


def test_a_row_of_verdicts_has_a_bound_or_none():
    value = Ratio(0.9, 0.8, 0.95, 20)
    row = bounded("regret", "a / b", value, 1)
    assert row == {"regret": "a / b", "here": value, "bound": "at most 1", "verdict": "holds"}
    assert bounded("regret", "a / b", value, 0.7)["verdict"] == "does **not** hold"
    assert bounded("regret", "a / b", value) == row | {"bound": "", "verdict": ""}


def test_results_of_a_group_are_those_of_its_agents(tmp_path):
    plan = Plan("garbage", Scale(30, 2), "default")
    runs = labelled(BYZANTINE["byzantine"].runs(plan), line="FedUCB-trimmed", liars=0.2)
    result = played(runs, plan, tmp_path).one("FedUCB-trimmed")
    assert result.groups == {"liars": [8, 9], "honest": list(range(8))}
    np.testing.assert_array_equal(result.of("liars").regret, result.regret[:, :, 8:])
    np.testing.assert_array_equal(result.of("liars").traffic["messages"], result.traffic["messages"][:, 8:])


@pytest.mark.parametrize("panel", EXPERIMENTS["classification"].panels)
def test_all_runs_are_of_the_same_digits_in_one_form_or_the_other(panel):
    pytest.importorskip("sklearn")
    for run in EXPERIMENTS["classification"].runs(Plan(panel, Scale(30, 2), "default")):
        contexts = run.env_kwargs["contexts"]
        assert contexts.get("alpha") == (ALPHA if panel == "unlike" else None)
        assert contexts.get("features") == ("shared" if run.baseline == "LinUCB-disjoint" else None)


def test_messages_are_set_beside_d_m_squared(tmp_path):
    plan = Plan("in-turn", Scale(200, 3), "default")
    runs = played(FEDLINUCB["fedlinucb"].runs(plan), plan, tmp_path)
    section = Section(plan)
    FEDLINUCB["fedlinucb"].report(section, runs)
    result, verdicts = runs["FedLinUCB"], section.tables["verdicts"]
    total = result.messages.sum(axis=2).mean(axis=1)
    at = dict(zip(result.rounds, total, strict=True))
    early = at[min(rounds for rounds in at if rounds >= 20)]
    assert f"| messages, FedLinUCB / d M^2 = 3,375 | {total[-1] / (15 * 15**2):.3f} |" in verdicts
    assert f"| messages, FedLinUCB, at T / at T / 10 | {total[-1] / early:.2f} |" in verdicts
