"""The FedUCB paper's experiments as data: which runs each needs (Dubey and Pentland 2020, section 4.4 and appendix)."""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.announcement import variance_of
from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.run import Settings
from fedbandit_envs.leaderboard.sweep.runs import Run
from fedbandit_envs.linear_v0 import parallel_env

DELTA = 0.1

SILENT = {
    "random-arm": "an arm at random",
    "LinUCB": "silent, not private towards itself",
    "LinUCB-0.5": "silent, radius times 0.5",
    "LinUCB-private": "silent, private towards itself (Shariff and Sheffet)",
}
"""Baselines that tell nobody anything."""

PRIVATE = {
    "FedUCB-printed": "printed noise, shifts and radius",
    "FedUCB": "exact sigma, buffered Toeplitz noise, shift on the sum, root-M bias",
    "FedUCB-floor": "the same noise, eigenvalues lifted, the error's Euclidean bound",
    "FedUCB-min": "FedUCB-floor, never more optimistic than own data alone",
}
"""Private federations, all in the same rounds."""

PLACEBO = "FedUCB-placebo"
SHARED = "FedUCB-nonprivate"
TRIGGERED = {
    "FedUCB-printed-trigger": "as printed, trigger included: no claim of privacy",
    "FedUCB-nonprivate-trigger": "true data once determinants have grown",
}
"""Federations that synchronise when some agent asks."""

FIG1A_SCALES = {
    "small": Scale(20_000, 5, {"epsilon": (0.1, 1.0, 10.0), "agents": (2, 5, 10)}),
    "paper": Scale(10_000_000, 100, {"epsilon": (0.1, 0.3, 1.0, 3.0, 10.0), "agents": (2, 5, 10, 50, 100)}),
}
FIG1A_PANELS = {
    "epsilon": "Against epsilon, 10 agents",
    "agents": "Against the number of agents, epsilon = 1",
}

FIG1B_SCALES = {
    "small": Scale(5_000, 5, {"agents": (16,)}),
    "medium": Scale(100_000, 3, {"agents": (100,)}, lean=True),
    "paper": Scale(10_000_000, 100, {"agents": (100,)}),
}
FIG1B_PANELS = {
    "nonprivate": "True data",
    "printed": "Private as printed, epsilon = 1",
    "mended": "Private, mended, epsilon = 1",
    "least": "Mended, never more optimistic than silence, epsilon = 1",
}
FIG1B_FORMS = {"nonprivate": SHARED, "printed": "FedUCB-printed", "mended": "FedUCB", "least": "FedUCB-min"}
"""What is federated in a panel of Figure 1 B."""

FIG1C_SCALES = {
    "small": Scale(20_000, 5, {"agents": (10,), "dim": (3.0, 5.0, 10.0)}),
    "medium": Scale(100_000, 3, {"agents": (100,), "dim": (5.0, 10.0, 20.0), "most arms": (100,)}, lean=True),
    "paper": Scale(10_000_000, 100, {"agents": (100,), "dim": (5.0, 10.0, 15.0, 20.0)}),
}

FIG2_SCALES = {
    "small": Scale(20_000, 5, {"agents": (10,), "gap": (0.05, 0.1, 0.2, 0.3), "epsilon": (0.1, 1.0)}),
    "medium": Scale(100_000, 3, {"agents": (100,), "gap": (0.1, 0.3), "epsilon": (0.1, 1.0)}, lean=True),
    "paper": Scale(
        10_000_000,
        100,
        {"agents": (10,), "gap": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3), "epsilon": (0.1, 1.0, 10.0)},
    ),
}
ONE_PANEL = {"all": "All runs"}

HORIZON_SCALES = {"small": Scale(100_000, 2), "paper": Scale(10_000_000, 100)}

GRAPHS_SCALES = {"small": Scale(10_000, 5), "paper": Scale(10_000_000, 100)}
GRAPHS_PANELS = {"nonprivate": "True data every round", "private": "Private, epsilon = 1, in doubling rounds"}

MEDIUM = (
    "Scale `medium` has the paper's 100 agents, d up to 20 and up to 100 arms, over a hundredth of its rounds. Figures "
    "1 B, 1 C and 2 together were to fit into about 100 minutes of two cores, where ten trials take five hours: so "
    "there are three, the fewest that make an interval, and `--trials 10` goes on from them. Left out are silence with "
    "half the radius, private silence, `FedUCB-floor`, triggers (`feducb-critique`), and `FedUCB-min` with a release a "
    "round and against d and gap: they are at the other scales."
)

_SAID = {
    "rounds T": "10,000,000 in Experiment 1, not said of the others",
    "trials": "100",
    "agents M": "100",
    "dimension d": "10 in Experiment 1, not said of the others",
    "arms a round K": "at most d^2; how many is not said",
    "gap": "at least 0.1",
    "epsilon": "1",
    "delta": "0.1",
    "theta*": "at random in the unit ball",
    "synchronisations": "n = O(M log T)",
}
"""What the paper says of its settings, where an experiment has nothing of its own to say."""


def setting(said: Mapping[str, str], here: Mapping[str, str]) -> Callable[[Scale, str], str]:
    """Makes what says of an experiment which settings the paper has, and which are ours.

    Args:
        said: What the paper says of this experiment, where that differs from the others.
        here: What is had here and no scale says.
    """

    def describe(scale: Scale, mode: str) -> str:
        def swept(name: str, otherwise: float) -> str:
            return ", ".join(f"{x:g}" for x in scale.sweeps.get(name, (otherwise,)))

        most = scale.sweeps.get("most arms")
        ours = {
            "rounds T": f"{scale.rounds:,}",
            "trials": str(scale.trials),
            "agents M": swept("agents", 10),
            "dimension d": swept("dim", 10),
            "arms a round K": f"d^2, at most {most[0]:g}" if most else "d^2",
            "gap": swept("gap", 0.1),
            "epsilon": swept("epsilon", 1),
            "delta": f"{DELTA:g}",
            "theta*": "of length 1, at random, another in each trial",
            "synchronisations": "in doubling rounds, log2 T of them",
            **here,
        }
        settings = [f"* {what}: {text}; here {ours[what]}." for what, text in {**_SAID, **said}.items()]
        lean = [MEDIUM] if scale.lean else []
        return "\n".join(
            [
                f"T = {scale.rounds:,}, {scale.trials} trials. All algorithms meet the same contexts and the same "
                "luck. Silence is `LinUCB`, which tells nobody anything; adjacency is `one-observation` (replaced). "
                "Brackets are 95 % bootstrap intervals over trials, somewhat too narrow where trials are few; fewer "
                "than three make none. The paper draws curves and prints no numbers, so that its sentences are what "
                "can be compared.",
                *lean,
                "",
                "What the paper has, and what there is here:",
                "",
                *settings,
            ]
        )

    return describe


_EPSILON_IN_FIGURE = {"epsilon": "in the figure alone"}
FIG1A_SETTING = setting({"agents M": "in the figure alone", **_EPSILON_IN_FIGURE}, {})
FIG1B_SETTING = setting(
    {"synchronisations": "n = O(M^1.5), O(M log T), O(M T)"},
    {"synchronisations": "about sqrt(M) in geometric progression, log2 T in doubling rounds, T"},
)
FIG1C_SETTING = setting({"dimension d": "in the figure alone"}, {})
FIG2_SETTING = setting(
    {
        "agents M": "10",
        "gap": "in the figure alone, and not how it is varied",
        "epsilon": "in the figure alone, as values of rho_min",
    },
    {},
)
HORIZON_SETTING = setting(
    {"agents M": "in the figure alone, as of Experiment 1"}, {"arms a round K": "10, for that many rounds"}
)
GRAPHS_SETTING = setting(
    {
        "agents M": "no experiment has graphs",
        "synchronisations": "once determinants have grown (Algorithm 3)",
    },
    {"synchronisations": "every round on true data, in doubling rounds behind noise"},
)


def cell(
    plan: Plan, baseline: str, *, agents: int = 10, dim: int = 10, arms: int | None = None, gap: float = 0.1,
    wrappers: dict[str, dict[str, Any]] | None = None, policy: dict[str, Any] | None = None,
) -> Run:  # fmt: skip
    """Returns a run of a baseline.

    Args:
        plan: Says for how long, and how often.
        baseline: Its name.
        agents: M.
        dim: d.
        arms: K; None for d^2.
        gap: Between the best arm's mean and the others'.
        wrappers: What is changed of the baseline's wrappers, by their part.
        policy: What is changed of its policy.
    """
    env_kwargs = {"num_agents": agents, "dim": dim, "num_arms": arms or dim * dim, "gap": gap}
    settings = Settings(
        baseline=baseline,
        env_id="FedLinear-v0",
        rounds=plan.scale.rounds,
        seeds=plan.scale.trials,
        env_kwargs=env_kwargs,
        policy_kwargs=policy or {},
        wrapper_kwargs=wrappers or {},
    )
    # A trial of a lean scale takes minutes: a shard each, which more trials find.
    return Run(settings, delta=DELTA, rows=agents) if plan.scale.lean else Run(settings, delta=DELTA)


_COSTLY = ("LinUCB-0.5", "LinUCB-private", "FedUCB-floor", "FedUCB-min", *TRIGGERED)


def _names(plan: Plan, *names: str) -> list[str]:
    """Returns what is compared, without what a lean scale leaves out."""
    return [name for name in names if not (plan.scale.lean and name in _COSTLY)]


def _at(epsilon: float) -> dict[str, dict[str, Any]]:
    return {"privatizer": {"epsilon": epsilon}}


def noise_sd(baseline: str, rounds: int) -> float:
    """Returns the largest standard deviation that the noise on a sum of released statistics comes to have.

    On the diagonal, for the baseline's own epsilon; off it, 1 / sqrt(2) of that.
    """
    released = BASELINES[baseline].wrap(parallel_env(max_cycles=rounds)).policy_spaces.release
    variance = released[variance_of("statistic")]
    assert isinstance(variance, spaces.Box)
    return float(np.sqrt(variance.high.max()))


def fig1a(plan: Plan) -> dict[str, Run]:
    """Figure 1 A: regret at T against epsilon, or against the number of agents."""
    runs = {}
    if plan.panel == "epsilon":
        for name in ("random-arm", "LinUCB", "LinUCB-0.5", SHARED):
            runs[name] = cell(plan, name)
        for epsilon in plan.scale.sweeps["epsilon"]:
            for name in ("LinUCB-private", *PRIVATE, PLACEBO):
                runs[f"{name} {epsilon:g}"] = cell(plan, name, wrappers=_at(epsilon))
        return runs
    for agents in map(int, plan.scale.sweeps["agents"]):
        for name in (*SILENT, SHARED, *PRIVATE, PLACEBO):
            runs[f"{name} {agents}"] = cell(plan, name, agents=agents)
    return runs


def budgets(agents: int, rounds: int) -> dict[str, Any]:
    """Returns schedules with about sqrt(M), log2 T and T synchronisations: O(M^1.5), O(M log T), O(M T) messages."""
    return {
        "sqrt M": {"name": "geometric", "count": isqrt(agents), "horizon": rounds},
        "log T": {"name": "doubling", "start": 1, "stop": None},
        "T": "every_round",
    }


def fig1b(plan: Plan) -> dict[str, Run]:
    """Figure 1 B: regret over rounds for three budgets of communication, each form with one mechanism for all."""
    agents = int(plan.scale.sweeps["agents"][0])
    form = FIG1B_FORMS[plan.panel]
    names = ["random-arm", "LinUCB", "LinUCB-0.5"]
    if form != SHARED:
        names.append("LinUCB-private")
    names += [name for name in TRIGGERED if name == f"{form}-trigger"]
    runs = {name: cell(plan, name, agents=agents) for name in _names(plan, *names)}
    for budget, schedule in budgets(agents, plan.scale.rounds).items():
        if plan.scale.lean and (form, budget) == ("FedUCB-min", "T"):
            continue
        wrappers = {"channel": {"schedule": schedule}}
        if form != SHARED:
            wrappers["privatizer"] = {"releases": schedule}
        # Doubling rounds are the baselines' own, and their runs those of Figure 1 C.
        runs[f"{form}, {budget}"] = cell(
            plan, form, agents=agents, wrappers=wrappers if budget != "log T" else None
        )
    return runs


def fig1c(plan: Plan) -> dict[str, Run]:
    """Figure 1 C: regret at T against the dimension."""
    agents = int(plan.scale.sweeps["agents"][0])
    most = plan.scale.sweeps.get("most arms", (np.inf,))[0]
    return {
        f"{name} {dim}": cell(plan, name, agents=agents, dim=dim, arms=int(min(dim * dim, most)))
        for dim in map(int, plan.scale.sweeps["dim"])
        for name in _names(plan, *SILENT, SHARED, *PRIVATE)
    }


def fig2(plan: Plan) -> dict[str, Run]:
    """Figure 2: regret at T against the gap, for several epsilons."""
    runs = {}
    agents = int(plan.scale.sweeps["agents"][0])
    for gap in plan.scale.sweeps["gap"]:
        for name in _names(plan, "random-arm", "LinUCB", "LinUCB-0.5", SHARED):
            runs[f"{name} {gap:g}"] = cell(plan, name, agents=agents, gap=gap)
        for epsilon in plan.scale.sweeps["epsilon"]:
            # As registered they have epsilon 1; so runs are those of the other figures.
            wrappers = None if epsilon == 1 else _at(epsilon)
            for name in _names(plan, "LinUCB-private", "FedUCB-printed", "FedUCB", "FedUCB-min"):
                runs[f"{name}, epsilon {epsilon:g} {gap:g}"] = cell(
                    plan, name, agents=agents, gap=gap, wrappers=wrappers
                )
    return runs


def horizon(plan: Plan) -> dict[str, Run]:
    """Regret over as many rounds as the paper has, with ten arms a round to make that many affordable."""
    names = ("random-arm", "FedUCB-printed", "FedUCB", "FedUCB-min", "LinUCB", SHARED)
    return {name: cell(plan, name, arms=10) for name in names}


GRAPHS: dict[str, tuple[Any, int]] = {
    "complete": ("complete", 1),
    "star": ({"edges": [[0, leaf] for leaf in range(1, 10)]}, 2),
    "ring": ("ring", 5),
    "line": ("line", 9),
}
"""Graphs over ten agents with their diameters; the star's hub is an agent."""


def graphs(plan: Plan) -> dict[str, Run]:
    """Algorithm 3 over graphs: a hop a round, time to live and number of estimators equal to the diameter."""
    names = ["random-arm", "LinUCB", "LinUCB-0.5"]
    if plan.panel == "private":
        names.append("LinUCB-private")
    runs = {name: cell(plan, name) for name in names}
    decentralised = "FedUCB-decentralised" + ("-private" if plan.panel == "private" else "")
    for graph, (topology, diameter) in GRAPHS.items():
        wrappers = {
            "interleaved": {"period": diameter},
            "channel": {"topology": topology, "time_to_live": diameter},
        }
        runs[graph] = cell(plan, decentralised, wrappers=wrappers)
    return runs
