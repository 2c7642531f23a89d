"""The experiments of the thesis on exposure fairness (Solanki 2024, section 6.5), and ours: which runs each needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from fedbandit_envs.leaderboard.reproduction.experiment import LINEAR, LOG_LOG, Experiment, Plan, Scale
from fedbandit_envs.leaderboard.runs.spec import RunSpec

THESIS_ROUNDS = 100_000

SILENT, FED, PRIV, WEIGHTED = "FairX-LinUCB", "Fed-FairX-LinUCB", "Priv-FairX-LinUCB", "Priv-FairX-weighted"
GREEDY = "FairX-LinUCB-greedy"
PLACEBO = ", placebo"
"""Ends the names of lines whose messages carry nothing but noise."""

THESIS = {
    SILENT: "silent (B0)",
    FED: "true data",
    PRIV: "noisy data, eigenvalues lifted; radius without a term for the noise",
    PRIV + PLACEBO: "the same on noise alone",
}
"""Lines of the thesis' first experiment, and what they do."""
CONTROLS = {
    SILENT: THESIS[SILENT],
    PRIV: THESIS[PRIV],
    "FairX-LinUCB-0.1": "silent, radius times 0.1",
    GREEDY: "silent, radius 0",
    "Fed-FairX-LinUCB-greedy": "true data, radius 0",
    "Fed-FairX-LinUCB-listing": "true data, ridge once an agent, as listed",
    "Priv-FairX-LinUCB-on-sum": "Priv's noise, rigorous: shift on the sum, radius with its term for the noise",
    "Priv-FairX-LinUCB-printed": "printed noise, shifts and radius, rigorous",
    WEIGHTED: "ours: own data exact, few noisy messages weighed by their noise, radius 0",
    WEIGHTED + PLACEBO: THESIS[PRIV + PLACEBO],
    "best-arm": "LinUCB, all on one arm",
    "equal-shares": "all arms alike",
}
PROTOCOLS = {
    PRIV: "gaps that double up to G and stay",
    "B1": "FedUCB's determinant trigger, no claim",
    "B2": "P-FCB's doubling rounds",
}
LEARNERS = {
    "best-arm": "best arm",
    SILENT: "fair, optimistic",
    GREEDY: "fair, radius 0",
    "equal-shares": "equal",
}
SOLVERS = {"frank_wolfe": (1, 2, 3, 5, 10), "projected_gradient": (3, 10, 30)}
"""Numbers of steps that are tried, by the solver of the optimistic parameter."""
AT_THE_ESTIMATE = "at the estimate"
"""The sweep, of one value, in which no solver is used: the estimate is the parameter."""


@dataclass(frozen=True)
class Grid:
    """The runs of each line at each combination of swept values.

    Attributes:
        lines: Names of baselines; with :data:`PLACEBO` at its end, a name means that the baseline's messages are noise.
        sweeps: What is varied: ``agents``, ``epsilon``, ``merit`` (the scale of merit), ``radius`` (its scale), or the
            steps of one of :data:`SOLVERS`. The plan's scale has the values; the runs have them as labels.
        panel: The panel to which the runs belong.
        env_id: The environment.
        env_kwargs: Changes to its preset.
        policy: Changes to the arguments of the policies.
    """

    lines: Iterable[str]
    sweeps: Sequence[str] = ()
    panel: str = "all"
    env_id: str = "FedExposure-v0"
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)

    def runs(self, scale: Scale) -> list[RunSpec]:
        """Returns the runs at a scale."""
        values = product(*(scale.sweeps[name] for name in self.sweeps))
        points = [dict(zip(self.sweeps, map(float, point), strict=True)) for point in values]
        return [self._run(scale, line, point) for line in self.lines for point in points]

    def _run(self, scale: Scale, line: str, point: Mapping[str, float]) -> RunSpec:
        """Returns the run of one line with one value of everything that is swept."""
        baseline = line.removesuffix(PLACEBO)
        env_kwargs, policy, wrappers = {**self.env_kwargs}, {**self.policy}, {}
        for name, value in point.items():
            match name:
                case "agents":
                    env_kwargs["num_agents"] = int(value)
                case "merit":
                    env_kwargs["merit"] = {"name": "exponential", "scale": value}
                case "epsilon":
                    wrappers["privatizer"] = {"epsilon": value}
                case "radius":
                    policy["beta_scale"] = value
                case _:
                    policy |= {"steps": int(value), **({"solver": name} if name in SOLVERS else {})}
        return RunSpec(
            baseline,
            self.env_id,
            scale.rounds,
            scale.trials,
            env_kwargs=env_kwargs,
            policy_kwargs=policy,
            wrapper_kwargs=wrappers,
            stack=[("fedbandit_envs.wrappers.placebo:Placebo", {})] if line != baseline else [],
            delta=0.1,
            labels={"line": line, **point},
        )


def _experiment(
    name: str,
    title: str,
    x: str,
    *grids: Grid,
    small: Mapping[str, tuple[float, ...]] = {},
    paper: Mapping[str, tuple[float, ...]] = {},
    panels: Mapping[str, str] = {"all": "All runs"},
    panel_axes: Mapping[str, Mapping[str, str]] = {},
    axes: Mapping[str, str] = {"y": "cumulative fairness regret per agent", **LOG_LOG},
) -> Experiment:
    """Returns an experiment; sweeps are the same at both scales where ``paper`` has no other values."""

    def runs(plan: Plan) -> list[RunSpec]:
        return [run for grid in grids if grid.panel == plan.panel for run in grid.runs(plan.scale)]

    scales = {"small": Scale(5_000, 5, small), "paper": Scale(THESIS_ROUNDS, 5, {**small, **paper})}
    return Experiment(
        f"Exposure fairness, {title}", {"x": x, **axes}, scales, panels, runs, f"{name}.md.j2",
        panel_axes=panel_axes,
    )  # fmt: skip


def _private(panel: str, env_id: str, noise_sd: float) -> list[Grid]:
    """Returns the runs that show whether private federation pays: ours and Priv beside tuned silence."""
    policy: dict[str, Any] = {"noise_sd": noise_sd}
    weighing = {**policy, "pool": {"name": "precision", "reward_variance": noise_sd**2}}
    return [
        Grid([GREEDY], ["agents"], panel, env_id, policy=policy),
        Grid([PRIV], ["agents", "epsilon"], panel, env_id, policy=policy),
        Grid([WEIGHTED, WEIGHTED + PLACEBO], ["agents", "epsilon"], panel, env_id, policy=weighing),
    ]


# Ten workers who are the same in every round, and what they are like.
_WORKERS = (np.random.default_rng(6).random((10, 5)) / np.sqrt(5)).round(3).tolist()

EXPERIMENTS = {
    "fairx-exp1": _experiment(
        "exp1",
        "Exp 1: silent, federated, private",
        "round",
        Grid(THESIS, panel="thesis"),
        Grid(CONTROLS, panel="controls"),
        panels={"thesis": "As in the thesis", "controls": "Controls, and ours"},
    ),
    "fairx-exp2": _experiment(
        "exp2",
        "Exp 2: protocols of communication",
        "round",
        Grid([SILENT, *(name + end for name in PROTOCOLS for end in ("", PLACEBO))]),
    ),
    "fairx-exp3": _experiment(
        "exp3",
        "Exp 3: against the number of agents",
        "agents",
        Grid([SILENT, FED, PRIV, PRIV + PLACEBO, GREEDY, WEIGHTED], ["agents"]),
        small={"agents": (2, 5, 10)},
        paper={"agents": (2, 5, 10, 20)},
    ),
    "fairx-exp4": _experiment(
        "exp4",
        "Exp 4: against epsilon",
        "epsilon",
        Grid([SILENT, FED, GREEDY]),
        Grid([PRIV, PRIV + PLACEBO, WEIGHTED], ["epsilon"]),
        small={"epsilon": (0.5, 2.0, 8.0)},
        paper={"epsilon": (0.5, 1.0, 2.0, 5.0, 10.0)},
    ),
    "fairx-solver": _experiment(
        "solver",
        "what the papers leave open: solver steps and radius",
        "steps of the solver",
        *(Grid([SILENT, FED], [sweep], "steps") for sweep in (*SOLVERS, AT_THE_ESTIMATE)),
        Grid([SILENT, FED, PRIV], ["radius"], "radius"),
        small={**SOLVERS, AT_THE_ESTIMATE: (0,), "radius": (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)},
        panels={
            "steps": "Against the solver's steps, radius as printed",
            "radius": "Against the radius' scale",
        },
        panel_axes={"radius": {"x": "scale of the radius"}},
    ),
    "fairx-private": _experiment(
        "private",
        "whether private federation pays",
        "epsilon",
        *_private("0.1", "FedExposure-v0", 0.1),
        *_private("0.5", "FedExposureNoisy-v0", 0.5),
        small={"epsilon": (0.5, 2.0, 8.0), "agents": (10,)},
        paper={"agents": (10, 40)},
        panels={"0.1": "Reward noise 0.1", "0.5": "Reward noise 0.5"},
    ),
    "fairx-shares": _experiment(
        "shares",
        "shares of the pulls against deserved shares",
        "worker, in order of merit",
        Grid(LEARNERS, env_kwargs={"contexts": _WORKERS, "instance_seed": 0}),
        axes={"y": "share of the pulls", **LINEAR},
    ),
    "fairx-price": _experiment(
        "price",
        "the price of fairness over merit scales",
        "fairness regret a round",
        Grid(LEARNERS, ["merit"]),
        small={"merit": (0.5, 2.0, 5.0, 10.0, 20.0, 50.0)},
        paper={"merit": (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)},
        axes={"y": "reward regret a round", **LINEAR},
    ),
}
