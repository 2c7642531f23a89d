"""Every experiment writes its tables, numbers and picture at a tiny size, and no two runs of a panel are alike."""

import pytest
from pages import check_paper
from paper_runs import reproduce

from fedbandit_envs.papers import fairx, feducb
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import Plan

# Panel and rounds, and texts that are on the page. In 300 rounds of P-FCB and more what is shared changes regret.
CASES = {
    "pfcb-exp1": ("all", 300, ["2.36", "3.33", "3.35", "4.94", "SS-UCB / FCB-checked"]),
    **{name: ("normal-20", 300, []) for name in ("pfcb-exp2", "pfcb-omegas")},
    "pfcb-exp3": ("uniform", 300, []),
    "pfcb-fig2": ("normal", 300, []),
    "pfcb-naive": ("all", 300, ["| 0 of 1,000 | holds |"]),
    "pfcb-theorem": ("uniform-20", 300, ["| FCB-printed, power of m |"]),
    **{name: ("all", 30, ["FairX-LinUCB"]) for name in fairx.EXPERIMENTS},
    **{name: ("all", 20, ["random-arm", "| LinUCB"]) for name in feducb.EXPERIMENTS},
    "pfcb-exp1, printed": ("uniform-20", 300, ["| regret with the eight more communications |"]),
    "feducb-critique": ("all", 200, []),
    "byzantine": ("garbage", 30, []),
    "classification": ("alike", 4, []),
    "fed-pe": ("all", 20, []),
    "fedglb": ("all", 20, []),
    "local-trust": ("order", 26, []),
    "private-budget": ("procurement", 150, []),
    "private-federation": ("arms", 150, []),
    "trust": ("procurement-event", 400, []),
    "zhou-fig2b": ("all", 26, []),
}
# Ordinary runs try one experiment of each paper.
OFTEN = ("pfcb-exp2", "fairx-exp2", "feducb-fig1b", "feducb-critique")
IN_CI = [case for case in CASES if case.startswith(("pfcb", "fairx", "feducb")) and case not in OFTEN]


# The paper's budgets are beyond what its calibration is proven for.
@pytest.mark.filterwarnings("ignore:calibration is 'classic'")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.ci if case in IN_CI else ()) for case in CASES]
)
def test_an_experiment_writes_its_tables_numbers_and_picture(tmp_path, case):
    if case == "classification":
        pytest.importorskip("sklearn")
    (panel, rounds, texts), (name, _, mode) = CASES[case], case.partition(", ")
    experiment = experiments()[name]
    scale = "tiny" if "tiny" in experiment.scales else "small"
    words = [name, "--scale", scale, "--rounds", rounds, "--trials", 2, "--panel", panel, "--out", tmp_path]
    ran = reproduce(*words, "--mode", mode or "default")
    assert ran.exit_code == 0, ran.output
    chosen = [one for one in (panel, mode) if one not in ("all", "")]
    stem = "-".join([name, scale, f"rounds{rounds}", "trials2", *chosen])
    parts, rows = check_paper(tmp_path, experiment.paper, stem)
    assert {row["panel"] for row in rows} == ({panel} if panel != "all" else {*experiment.panels})
    assert all(text in "".join(parts.values()) for text in texts)
    if name == "byzantine":
        found = {(row["name"], row["x"]): row["value"] for row in rows if row["quantity"] == "ratio"}
        assert {found[of] for of in found if of[0].endswith("without liars") and of[1] == "0.0"} == {"1.0"}
        assert {found["LinUCB / silent", share] for share in ("0.0", "0.2", "0.4")} == {"1.0"}


@pytest.mark.parametrize(
    "name",
    ["byzantine", "classification", "fed-pe", "fed-ucb", "fedglb", "local-trust", "pf-ucb", "zhou-fig2b"],
)
def test_no_two_runs_of_a_panel_are_alike(name):
    experiment = experiments()[name]
    for panel in experiment.panels:
        if panel not in experiment.needs_data:
            runs = experiment.runs(Plan(panel, experiment.scales["small"]))
            assert len({tuple(sorted(run.labels.items())) for run in runs}) == len(runs)
            assert len({str(run.key) for run in runs}) == len(runs)
