"""Every experiment that can be reproduced, by name."""

from collections.abc import Callable

from fedbandit_envs.leaderboard.reproduction import pfcb, pfcb_reports
from fedbandit_envs.leaderboard.reproduction.cells import Cell
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan, Results
from fedbandit_envs.leaderboard.reproduction.page import Section

_REGRET = {"y": "cumulative regret per agent", "xscale": "log", "yscale": "log"}
_FRR = {"y": "regret / silent regret (FRR)", "xscale": "log", "yscale": "linear"}


def _pfcb(
    title: str,
    axes: dict[str, str],
    cells: Callable[[Plan], dict[str, Cell]],
    report: Callable[[Section, Results], None],
) -> Experiment:
    return Experiment(
        f"P-FCB, {title}", axes, pfcb.SCALES, pfcb.PANELS, pfcb.describe, cells, report, pfcb.MODES
    )


EXPERIMENTS = {
    "pfcb-exp1": _pfcb(
        "EXP1 (Figure 3): regret over rounds", {"x": "round", **_REGRET}, pfcb.exp1, pfcb_reports.exp1
    ),
    "pfcb-exp2": _pfcb(
        "EXP2 (Figure 4): regret against epsilon", {"x": "epsilon", **_FRR}, pfcb.exp2, pfcb_reports.exp2
    ),
    "pfcb-exp3": _pfcb(
        "EXP3 (Figure 5): regret against agents", {"x": "agents", **_FRR}, pfcb.exp3, pfcb_reports.exp3
    ),
    "pfcb-fig2": _pfcb(
        "Figure 2: sharing true data every round", {"x": "round", **_FRR}, pfcb.fig2, pfcb_reports.fig2
    ),
}
