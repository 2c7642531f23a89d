"""Every experiment that can be reproduced, by name."""

from collections.abc import Callable, Mapping

from fedbandit_envs.leaderboard.reproduction import (
    byzantine,
    byzantine_reports,
    fairx,
    fairx_questions_reports,
    fairx_reports,
    fedlinucb,
    fedlinucb_reports,
    feducb,
    feducb_appendix_reports,
    feducb_critique,
    feducb_critique_reports,
    feducb_reports,
    pfcb,
    pfcb_exp1_report,
    pfcb_reports,
    pfcb_setting,
    private_budget,
    private_budget_reports,
    private_federation,
    private_federation_reports,
    samba,
    samba_privacy_reports,
    samba_reports,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Experiment, Plan, Results, Scale
from fedbandit_envs.leaderboard.reproduction.page import Section
from fedbandit_envs.leaderboard.sweep.cell import Cell

_REGRET = {"y": "cumulative regret per agent", "xscale": "log", "yscale": "log"}
_FRR = {"y": "regret / SS-UCB's (FRR)", "xscale": "log", "yscale": "linear"}

_TIME = {"y": "CPU seconds", "xscale": "linear", "yscale": "log"}
_FAIRNESS = {"y": "cumulative fairness regret per agent", "xscale": "log", "yscale": "log"}
_OVER_SILENT = {"y": "regret / silent regret", "xscale": "log", "yscale": "log"}
_AGENTS = {"agents": {"x": "agents"}}


def _pfcb(
    title: str,
    axes: dict[str, str],
    cells: Callable[[Plan], Mapping[str, Cell]],
    report: Callable[[Section, Results], None],
) -> Experiment:
    return Experiment(
        f"P-FCB, {title}", axes, pfcb.SCALES, pfcb.PANELS, pfcb_setting.describe, cells, report, pfcb.MODES
    )


def _fairx(
    title: str,
    axes: dict[str, str],
    cells: Callable[[Plan], Mapping[str, Cell]],
    report: Callable[[Section, Results], None],
    scales: dict[str, Scale] = fairx.SCALES,
    panels: dict[str, str] = fairx.ONE_PANEL,
    panel_axes: Mapping[str, Mapping[str, str]] = {},
) -> Experiment:
    return Experiment(
        f"Exposure fairness, {title}", axes, scales, panels, fairx.describe, cells, report,
        panel_axes=panel_axes,
    )  # fmt: skip


def _samba(
    title: str,
    axes: dict[str, str],
    scales: dict[str, Scale],
    cells: Callable[[Plan], Mapping[str, Cell]],
    report: Callable[[Section, samba_reports.Results], None],
) -> Experiment:
    return Experiment(f"SAMBA, {title}", axes, scales, samba.PANELS, samba.describe, cells, report)


EXPERIMENTS = {
    "pfcb-exp1": _pfcb(
        "EXP1 (Figure 3): regret over rounds", {"x": "round", **_REGRET}, pfcb.exp1, pfcb_exp1_report.exp1
    ),
    "pfcb-exp2": _pfcb(
        "EXP2 (Figure 4): regret against epsilon", {"x": "epsilon", **_FRR}, pfcb.exp2, pfcb_reports.exp2
    ),
    "pfcb-exp3": _pfcb(
        "EXP3 (Figure 5): regret against agents",
        {"x": "agents", "y": "regret per agent at T", "xscale": "linear", "yscale": "linear"},
        pfcb.exp3,
        pfcb_reports.exp3,
    ),
    "pfcb-fig2": _pfcb(
        "Figure 2: sharing true data every round", {"x": "round", **_FRR}, pfcb.fig2, pfcb_reports.fig2
    ),
    "feducb-fig1a": Experiment(
        "FedUCB, Figure 1 A: regret against epsilon and agents",
        {"x": "epsilon", **_OVER_SILENT},
        feducb.FIG1A_SCALES,
        feducb.FIG1A_PANELS,
        feducb.FIG1A_SETTING,
        feducb.fig1a,
        feducb_reports.fig1a,
        panel_axes=_AGENTS,
    ),
    "feducb-fig1b": Experiment(
        "FedUCB, Figure 1 B: regret for three budgets of communication",
        {"x": "round", **_REGRET},
        feducb.FIG1B_SCALES,
        feducb.FIG1B_PANELS,
        feducb.FIG1B_SETTING,
        feducb.fig1b,
        feducb_reports.fig1b,
    ),
    "feducb-fig1c": Experiment(
        "FedUCB, Figure 1 C: regret against the dimension",
        {"x": "d", **_REGRET},
        feducb.FIG1C_SCALES,
        feducb.ONE_PANEL,
        feducb.FIG1C_SETTING,
        feducb.fig1c,
        feducb_reports.fig1c,
    ),
    "feducb-fig2": Experiment(
        "FedUCB, Figure 2: regret against the gap",
        {"x": "gap", **_REGRET},
        feducb.FIG2_SCALES,
        feducb.ONE_PANEL,
        feducb.FIG2_SETTING,
        feducb.fig2,
        feducb_appendix_reports.fig2,
    ),
    "feducb-horizon": Experiment(
        "FedUCB: regret, decade by decade",
        {"x": "round", **_REGRET},
        feducb.HORIZON_SCALES,
        feducb.ONE_PANEL,
        feducb.HORIZON_SETTING,
        feducb.horizon,
        feducb_appendix_reports.horizon,
    ),
    "feducb-graphs": Experiment(
        "FedUCB, Algorithm 3 on graphs: complete, star, ring, line",
        {"x": "round", **_REGRET},
        feducb.GRAPHS_SCALES,
        feducb.GRAPHS_PANELS,
        feducb.GRAPHS_SETTING,
        feducb.graphs,
        feducb_appendix_reports.graphs,
    ),
    "feducb-critique": Experiment(
        "FedUCB, as Zhou and Chowdhury criticise it: privacy, noise, communication",
        {"x": "epsilon promised", "y": "epsilon, at least", "xscale": "log", "yscale": "linear"},
        feducb_critique.SCALES,
        feducb_critique.PANELS,
        feducb_critique.describe,
        feducb_critique.cells,
        feducb_critique_reports.report,
        panel_axes={
            "noise": {"x": "agents M", "y": "relative to the fewest agents", "yscale": "log"},
            "messages": {"x": "dT/D", "y": "synchronisations", "yscale": "log"},
        },
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
    "fairx-exp1": _fairx(
        "Exp 1: silent, federated, private",
        {"x": "round", **_FAIRNESS},
        fairx.exp1,
        fairx_reports.exp1,
        panels=fairx.EXP1_PANELS,
    ),
    "fairx-exp2": _fairx(
        "Exp 2: protocols of communication", {"x": "round", **_FAIRNESS}, fairx.exp2, fairx_reports.exp2
    ),
    "fairx-exp3": _fairx(
        "Exp 3: against the number of agents",
        {"x": "agents", **_FAIRNESS},
        fairx.exp3,
        fairx_reports.exp3,
        fairx.EXP3_SCALES,
    ),
    "fairx-exp4": _fairx(
        "Exp 4: against epsilon",
        {"x": "epsilon", **_FAIRNESS},
        fairx.exp4,
        fairx_reports.exp4,
        fairx.EXP4_SCALES,
    ),
    "fairx-solver": _fairx(
        "what the papers leave open: solver steps and radius",
        {"x": "steps of the solver", **_FAIRNESS},
        fairx.solver,
        fairx_questions_reports.solver,
        panels=fairx.SOLVER_PANELS,
        panel_axes={"radius": {"x": "scale of the radius"}},
    ),
    "fairx-private": _fairx(
        "whether private federation pays",
        {"x": "epsilon", **_FAIRNESS},
        fairx.private,
        fairx_questions_reports.private,
        fairx.PRIVATE_SCALES,
        fairx.PRIVATE_PANELS,
    ),
    "fairx-shares": _fairx(
        "shares of the pulls against deserved shares",
        {"x": "worker, in order of merit", "y": "share of the pulls", "xscale": "linear", "yscale": "linear"},
        fairx.shares,
        fairx_questions_reports.shares,
    ),
    "fairx-price": _fairx(
        "the price of fairness over merit scales",
        {
            "x": "fairness regret a round",
            "y": "reward regret a round",
            "xscale": "linear",
            "yscale": "linear",
        },
        fairx.price,
        fairx_questions_reports.price,
        fairx.PRICE_SCALES,
    ),
    "private-federation": Experiment(
        "Private federation: whether it pays against tuned silence",
        {"x": "epsilon", "y": "regret / tuned silence's", "xscale": "log", "yscale": "log"},
        private_federation.SCALES,
        private_federation.PANELS,
        private_federation.describe,
        private_federation.cells,
        private_federation_reports.report,
        panel_axes=_AGENTS,
    ),
    "private-budget": Experiment(
        "Private federation: what one budget buys",
        {"x": "releases", "y": "regret / tuned silence's", "xscale": "log", "yscale": "linear"},
        private_budget.SCALES,
        private_budget.PANELS,
        private_budget.describe,
        private_budget.cells,
        private_budget_reports.report,
    ),
    "samba-fig8a": _samba(
        "Figure 8 (a): execution time against N, K = 100",
        {"x": "N", **_TIME},
        samba.FIG8A_SCALES,
        samba.fig8a,
        samba_reports.fig8a,
    ),
    "samba-fig8b": _samba(
        "Figure 8 (b): execution time against K",
        {"x": "K", **_TIME},
        samba.FIG8B_SCALES,
        samba.fig8b,
        samba_reports.fig8b,
    ),
    "samba-fig8c": _samba(
        "Figure 8 (c): cumulative reward against N, K = 100",
        {"x": "N", "y": "cumulative reward", "xscale": "linear", "yscale": "linear"},
        samba.FIG8C_SCALES,
        samba.fig8c,
        samba_reports.fig8c,
    ),
    "samba-fig8d": _samba(
        "Figure 8 (d): shares of the CPU time by participant",
        {
            "x": "1: one owner, 2: Controller, 3: data customer, 4: Comp",
            "y": "% of the CPU time",
            "xscale": "linear",
            "yscale": "linear",
        },
        samba.FIG8D_SCALES,
        samba.fig8d,
        samba_reports.fig8d,
    ),
    "samba-privacy": Experiment(
        "Noise beside encryption: differential privacy and SAMBA on the same arms",
        {"x": "epsilon", "y": "regret a pull", "xscale": "log", "yscale": "linear"},
        samba.PRIVACY_SCALES,
        samba.PANELS,
        samba.describe_privacy,
        samba.privacy,
        samba_privacy_reports.privacy,
    ),
}
