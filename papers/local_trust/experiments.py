"""Runs of Zhou and Chowdhury's federations, as released and corrected, beside agents who do not communicate.

The paper's figures have 100 agents who synchronise every 25 rounds over 10,000 rounds. The page on local trust varies
one quantity at a time about that setting.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from fedbandit_envs.baselines.linear.batched import NoiseName, released_constants
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import Experiment, Plan, Scale
from fedbandit_envs.papers.trust.experiments import Releases
from fedbandit_envs.wrappers.privacy.accounting.calibration import analytic_noise_multiplier

SILENT, PLACEBO, LOCAL, HALF = "silence", "placebo", "local", "aggregator, half honest"
MOST, SERVER, TRUE = "aggregator, all honest", "server", "true data"
EXACT, RELEASED = "true data, as released", "local, as released"
AMPLIFIED, VECTOR_SUM = "amplified, as released", "vector sum, as released"
LADDER = (TRUE, SERVER, MOST, HALF, LOCAL, SILENT)
"""Lines in the order in which regret should rise."""

BASELINE_OF = {
    SILENT: "LinUCB-0.3",
    PLACEBO: "LDP-FedLinUCB-placebo",
    LOCAL: "LDP-FedLinUCB",
    HALF: "SecureSum-FedLinUCB",
    MOST: "SecureSum-FedLinUCB",
    SERVER: "Central-FedLinUCB",
    TRUE: "LDP-FedLinUCB-true",
    EXACT: "Batched-FedLinUCB",
    RELEASED: "LDP-FedLinUCB-printed",
    AMPLIFIED: "SDP-FedLinUCB-amplified-printed",
    VECTOR_SUM: "SDP-FedLinUCB-vector-sum-printed",
}
"""The baseline of each line."""

NOISE_OF: Mapping[str, NoiseName] = {RELEASED: "local", AMPLIFIED: "amplified", VECTOR_SUM: "vector_sum"}
"""The noise of each line of the released program."""

USUAL = {"epsilon": 0.2, "delta": 0.1, "gap": 25.0, "agents": 100.0}
"""The setting about which one quantity is varied: epsilon and delta of all releases together, the number of rounds
between two synchronisations, and the number of agents."""

OF_AGENTS: Mapping[tuple[str, float], Releases] = {
    (LOCAL, 0.2): Releases(0.3, 32, 3),
    (LOCAL, 1.0): Releases(0.3, 32, 3),
    (LOCAL, 5.0): Releases(0.3, 32, 3),
    (LOCAL, 20.0): Releases(0.3, 32, 3),
    (MOST, 0.2): Releases(0.3, 32, 3),
    (MOST, 1.0): Releases(0.3, 32, 3),
    (MOST, 5.0): Releases(0.3, 32, 3),
    (MOST, 20.0): Releases(0.3, 32, 3),
}
"""How agents release where all their data are protected, by line and epsilon.

These are the best of a coarse search for the secure sum at epsilon 0.2, on other seeds, and are not tuned for each line
and epsilon; :mod:`.tuning` does that. A clip is given as a part of the first release's usual norm, which is about the
number of rounds before it.
"""

FIGURES: Mapping[str, tuple[float, ...]] = {"zhou-fig2a": (0.001, 0.0001), "zhou-fig2b": (0.2, 0.1)}
"""Epsilon and delta that the released program is given in each figure of the paper."""

TWIN = {("zhou-fig2b", RELEASED): 1108.0, ("zhou-fig2b", VECTOR_SUM): 824.0, ("zhou-fig2b", EXACT): 19.0}
"""Regret per agent at the horizon in a numpy twin of the released program, by figure and line.

It stands for the paper's figures, off which no number can be read."""


def run(line: str, scale: Scale, **varied: float) -> RunSpec:
    """Returns the run of one line.

    Args:
        line: Name of the line, a key of :data:`BASELINE_OF`.
        scale: The number of rounds and of instances.
        **varied: Quantities that differ from :data:`USUAL`, by name; they are the run's labels, besides ``line``.
    """
    at = {**USUAL, **varied}
    noise = {name: at[name] for name in ("epsilon", "delta")}
    agents, every = int(at["agents"]), {"name": "fixed_gap", "gap": int(at["gap"])}
    wrappers: dict[str, dict[str, Any]] = {} if line == SILENT else {"channel": {"schedule": every}}
    policy: dict[str, Any] = {}
    if line in NOISE_OF:
        policy = {**noise, "gap": int(at["gap"])}
        wrappers["privatizer"] = noise | {"gap": int(at["gap"])}
        if line != VECTOR_SUM:
            sizes = {"horizon": scale.rounds, "gap": int(at["gap"]), "agents": agents}
            deviation = released_constants(NOISE_OF[line], at["epsilon"], at["delta"], **sizes).deviation
            given = {"epsilon": None, "delta": at["delta"], "releases": every, "noise_multiplier": deviation}
            wrappers["privatizer"] = given
    elif line not in (SILENT, TRUE, EXACT):
        wrappers["privatizer"] = noise | {"releases": every}
    if line == HALF:
        wrappers["channel"]["stage"] = {"name": "aggregator", "honest": max(1, agents // 2)}
    return RunSpec(
        BASELINE_OF[line],
        "FedLinearSpherePrinted-v0" if line in (EXACT, *NOISE_OF) else "FedLinearSphere-v0",
        scale.rounds,
        scale.trials,
        env_kwargs={} if agents == USUAL["agents"] else {"num_agents": agents},
        policy_kwargs=policy,
        wrapper_kwargs=wrappers,
        delta=at["delta"],
        labels={"line": line, **varied},
    )


def protecting_agents(
    line: str, epsilon: float, rounds: int, seeds: int, releases: Releases | None = None, **changes: Any
) -> RunSpec:
    """Returns the run of a line in which a claim protects all data of an agent: a few clipped sums are released.

    Args:
        line: :data:`LOCAL` or :data:`MOST`.
        epsilon: Epsilon of the claim.
        rounds: Horizon.
        seeds: Number of instances.
        releases: How agents release; None as tuned.
        **changes: Further arguments of :class:`.RunSpec`.
    """
    how, delta = releases or OF_AGENTS[line, epsilon], USUAL["delta"]
    noise = {
        # A change of all data of an agent moves each release by two clips at most.
        "noise_multiplier": 2 * sqrt(how.number) * analytic_noise_multiplier(epsilon, delta),
        "delta": delta / how.number,
        "releases": how.number,
        "clip": how.clip * how.first,
        "budget": {"composition": "exact", "delta": delta, "adjacency": "agent"},
    }
    schedule = {"name": "doubling", "start": how.first, "stop": how.first * 2 ** (how.number - 1)}
    stage = {"stage": {"name": "aggregator", "honest": int(USUAL["agents"]) - 1}} if line == MOST else {}
    return RunSpec(
        BASELINE_OF[TRUE], "FedLinearSphere-v0", rounds, seeds,
        wrapper_kwargs={"channel": {"schedule": schedule, **stage}}, stack=[["GaussianPrivatizer", noise]], delta=delta,
        labels={"line": f"{line}, all data of an agent", "epsilon": epsilon}, **changes,
    )  # fmt: skip


def figure(plan: Plan) -> list[RunSpec]:
    """Returns the runs of a figure of the paper: the released program's federations, and silent agents."""
    epsilon, delta = FIGURES[plan.panel]
    private = AMPLIFIED if plan.panel == "zhou-fig2a" else VECTOR_SUM
    noisy = [run(line, plan.scale, epsilon=epsilon, delta=delta) for line in (RELEASED, private)]
    return [*noisy, *(run(line, plan.scale, delta=delta) for line in (EXACT, SILENT))]


def runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs.

    The panel ``order`` has all lines in the usual setting, under two deltas. The panel ``level`` varies epsilon, for
    claims about one observation and about all data of an agent. Each other panel varies the quantity of its name. Lines
    without noise do not depend on epsilon, and silence depends on the number of agents only.
    """
    scale, name = plan.scale, plan.panel
    deltas, noisy = scale.sweeps["delta"], (SERVER, MOST, HALF, LOCAL)
    if name == "order":
        without = [run(line, scale) for line in (TRUE, SILENT, EXACT)]
        private = [run(line, scale, delta=delta) for delta in deltas for line in (*noisy, PLACEBO)]
        return [*without, *private, *(run(line, scale, delta=0.1) for line in (RELEASED, VECTOR_SUM))]
    if name == "epsilon":
        without = [run(line, scale) for line in (TRUE, SILENT)]
        return without + [
            run(line, scale, delta=delta, epsilon=epsilon)
            for delta in deltas
            for epsilon in scale.sweeps[name]
            for line in noisy
        ]
    if name == "level":
        return [run(line, scale) for line in (TRUE, SILENT)] + [
            spec
            for epsilon in scale.sweeps[name]
            for line in (LOCAL, MOST)
            for spec in (
                run(line, scale, epsilon=epsilon),
                protecting_agents(line, epsilon, scale.rounds, scale.trials),
            )
        ]
    exact = (TRUE, SILENT) if name == "agents" else (TRUE,)
    swept = [run(line, scale, **{name: value}) for value in scale.sweeps[name] for line in (*exact, *noisy)]
    return swept if name == "agents" else [run(SILENT, scale), *swept]


_TITLE = "Zhou and Chowdhury"
_SWEEPS = {
    "delta": (0.1, 1e-5),
    "epsilon": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "gap": (5.0, 25.0, 100.0, 400.0),
    "agents": (10.0, 30.0, 100.0, 300.0),
    "level": (0.2, 1.0, 5.0, 20.0),
}
_SMALL = _SWEEPS | {"epsilon": (0.1, 0.2, 1.0, 10.0)}
_TINY = {"delta": (0.1,), "epsilon": (0.2, 10.0), "gap": (5.0, 25.0), "agents": (4.0,), "level": (5.0,)}

EXPERIMENTS = {
    **{
        name: Experiment(
            f"{_TITLE}, Figure {name[-2:]}: regret as released",
            {"x": "round", "y": "cumulative regret per agent"},
            {"tiny": Scale(200, 2), "small": Scale(10_000, 20), "paper": Scale(10_000, 25)},
            figure,
            {name: f"Figure {name[-2:]}"},
            "figure_setting.md.j2",
        )
        for name in FIGURES
    },
    "local-trust": Experiment(
        f"{_TITLE}: what local trust costs",
        {"x": "quantity", "y": "regret / silence's"},
        {
            "tiny": Scale(200, 2, _TINY),
            "small": Scale(10_000, 20, _SMALL),
            "paper": Scale(10_000, 25, _SWEEPS),
        },
        runs,
        {
            "order": "Order of trust",
            "epsilon": "Epsilon and delta",
            "gap": "Rounds between synchronisations",
            "agents": "Number of agents",
            "level": "One observation or all data of an agent",
        },
        panel_axes={
            "order": {"x": "delta"},
            "epsilon": {"x": "epsilon"},
            "gap": {"x": "rounds between synchronisations"},
            "agents": {"x": "number of agents"},
            "level": {"x": "epsilon"},
        },
    ),
}
