"""Every experiment writes its tables, numbers and picture at a tiny size, and no two runs of a panel are alike."""

import pytest
from pages import check_paper
from typer.testing import CliRunner

from fedbandit_envs.cli import app
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.experiment import Plan

# Panel and rounds, and texts that are on the page. In 300 rounds of P-FCB and more what is shared changes regret.
SMALL = {
    "pfcb-exp1": ("all", 300, ["2.36", "3.33", "3.35", "4.94", "SS-UCB / FCB-checked"]),
    "pfcb-exp2": ("normal-20", 300, []),
    "pfcb-exp3": ("uniform", 300, []),
    "pfcb-fig2": ("normal", 300, []),
    **{name: ("all", 30, ["FairX-LinUCB"]) for name in experiments() if name.startswith("fairx")},
    **{name: ("all", 20, ["random-arm", "| LinUCB"]) for name in experiments() if name.startswith("feducb-")},
    "byzantine": ("garbage", 30, []),
}
TINY = {
    "classification": ("alike", 8, []),
    "fed-pe": ("all", 20, []),
    "fedglb": ("all", 20, []),
    "feducb-critique": ("all", 200, []),
    "local-trust": ("order", 30, []),
    "private-budget": ("procurement", 150, []),
    "private-federation": ("arms", 150, []),
    "trust": ("procurement-event", 400, []),
    "zhou-fig2b": ("all", 30, []),
}
CASES = [
    *(("small", "default", name, *of) for name, of in SMALL.items() if name not in TINY),
    ("small", "printed", "pfcb-exp1", "uniform-20", 300, ["| regret with the eight more communications |"]),
    *(("tiny", "default", name, *of) for name, of in TINY.items()),
]
IN_CI = [case for case in CASES if case[2].startswith(("pfcb", "fairx", "feducb"))][::2]


# The paper's budgets are beyond what its calibration is proven for.
@pytest.mark.filterwarnings("ignore:the classic calibration")
@pytest.mark.parametrize(
    ("scale", "mode", "name", "panel", "rounds", "texts"),
    [pytest.param(*case, marks=pytest.mark.ci if case in IN_CI else ()) for case in CASES],
)
def test_an_experiment_writes_its_tables_numbers_and_picture(
    tmp_path, scale, mode, name, panel, rounds, texts
):
    if name == "classification":
        pytest.importorskip("sklearn")
    experiment = experiments()[name]
    words = ["reproduce", name, "--scale", scale, "--rounds", str(rounds), "--trials", "2", "--mode", mode]
    ran = CliRunner().invoke(app, [*words, "--panel", panel, "--out", str(tmp_path)], env={"TERM": "dumb"})
    assert ran.exit_code == 0, ran.output
    chosen = [one for one in (panel, mode) if one not in ("all", experiment.modes[0])]
    parts, rows = check_paper(
        tmp_path, experiment.paper, "-".join([name, scale, f"rounds{rounds}", "trials2", *chosen])
    )
    assert {row["panel"] for row in rows} == ({panel} if panel != "all" else {*experiment.panels})
    page = "".join(parts.values())
    for text in texts:
        assert text in page


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
