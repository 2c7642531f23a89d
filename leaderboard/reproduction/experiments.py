"""Every experiment that can be reproduced, by name."""

from collections.abc import Callable

from fedbandit_envs.leaderboard.reproduction import (
    byzantine,
    byzantine_reports,
    fedlinucb,
    fedlinucb_reports,
    feducb,
    feducb_reports,
    pfcb,
    pfcb_reports,
)
from fedbandit_envs.leaderboard.reproduction.cells import Cell
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan, Results
from fedbandit_envs.leaderboard.reproduction.page import Section

_REGRET = {"y": "cumulative regret per agent", "xscale": "log", "yscale": "log"}
_FRR = {"y": "regret / silent regret (FRR)", "xscale": "log", "yscale": "linear"}

_OVER_SILENT = {"y": "regret / silent regret", "xscale": "log", "yscale": "log"}


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
    "feducb-fig1a": Experiment(
        "FedUCB, Figure 1 A: regret against epsilon and agents",
        {"x": "epsilon, or agents", **_OVER_SILENT},
        feducb.FIG1A_SCALES,
        feducb.FIG1A_PANELS,
        feducb.describe,
        feducb.fig1a,
        feducb_reports.fig1a,
    ),
    "feducb-fig1b": Experiment(
        "FedUCB, Figure 1 B: regret for three budgets of communication",
        {"x": "round", **_REGRET},
        feducb.FIG1B_SCALES,
        feducb.FIG1B_PANELS,
        feducb.describe,
        feducb.fig1b,
        feducb_reports.fig1b,
    ),
    "feducb-fig1c": Experiment(
        "FedUCB, Figure 1 C: regret against the dimension",
        {"x": "d", **_REGRET},
        feducb.FIG1C_SCALES,
        feducb.ONE_PANEL,
        feducb.describe,
        feducb.fig1c,
        feducb_reports.fig1c,
    ),
    "feducb-fig2": Experiment(
        "FedUCB, Figure 2: regret against the gap",
        {"x": "gap", **_REGRET},
        feducb.FIG2_SCALES,
        feducb.ONE_PANEL,
        feducb.describe,
        feducb.fig2,
        feducb_reports.fig2,
    ),
    "feducb-horizon": Experiment(
        "FedUCB: regret up to the paper's horizon",
        {"x": "round", **_REGRET},
        feducb.HORIZON_SCALES,
        feducb.ONE_PANEL,
        feducb.describe,
        feducb.horizon,
        feducb_reports.horizon,
    ),
    "feducb-graphs": Experiment(
        "FedUCB, Algorithm 3 on graphs: complete, star, ring, line",
        {"x": "round", **_REGRET},
        feducb.GRAPHS_SCALES,
        feducb.GRAPHS_PANELS,
        feducb.describe,
        feducb.graphs,
        feducb_reports.graphs,
    ),
    "byzantine": Experiment(
        "Liars: honest agents' regret against their share",
        {"x": "share of liars", "y": "honest agents' regret at T", "xscale": "linear", "yscale": "log"},
        byzantine.SCALES,
        byzantine.PANELS,
        byzantine.describe,
        byzantine.byzantine,
        byzantine_reports.byzantine,
    ),
    "fedlinucb": Experiment(
        "FedLinUCB and Async-LinUCB: asynchronous agents and a server",
        {"x": "round", "y": "of the federation, cumulative", "xscale": "log", "yscale": "log"},
        fedlinucb.SCALES,
        fedlinucb.PANELS,
        fedlinucb.describe,
        fedlinucb.cells,
        fedlinucb_reports.report,
    ),
}
