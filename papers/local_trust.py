"""Zhou and Chowdhury's federations, as released and corrected, beside agents who do not communicate.

The paper's figures have 100 agents who synchronise every 25 rounds over 10,000 rounds. Each other panel varies one
quantity about that setting.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise, product
from typing import Any

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE
from fedbandit_envs.baselines.linear.batched import NoiseName, released_constants
from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section
from fedbandit_envs.papers.stats import bounded, by_line, final_regret, over_line, pays_at, ratio
from fedbandit_envs.papers.trust import HALF, LOCAL, MOST, SERVER, Releases, against_fellow

SILENT, EXACT, RELEASED = "silence", "true data, as released", "local, as released"
AMPLIFIED, VECTOR_SUM = "amplified, as released", "vector sum, as released"
LADDER = (TRUE, SERVER, MOST, HALF, LOCAL, SILENT)
"""Lines in the order in which regret should rise."""
NOISY = (SERVER, MOST, HALF, LOCAL)

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
RELEASES = Releases(0.3, 32, 3)
"""How agents release where all their data are protected: the best of a coarse search for the secure sum at epsilon 0.2,
on other seeds. The usual norm of the first release is about the number of rounds before it."""
FIGURES = {"zhou-fig2a": (AMPLIFIED, 0.001, 0.0001), "zhou-fig2b": (VECTOR_SUM, 0.2, 0.1)}
"""The private line beside the local one, and the released program's epsilon and delta, in each figure of the paper."""
TWIN = {RELEASED: "1108", VECTOR_SUM: "824", EXACT: "19"}
"""Regret per agent in Figure 2b of a NumPy rewrite of the released program; no number can be read off the paper's."""
TARGETS = {(LOCAL, SILENT): 0.55, (LOCAL, RELEASED): 0.08, (MOST, TRUE): 1.25}
"""Largest ratios of two lines' regret that were set as targets before the runs."""


def run(line: str, scale: Scale, **varied: float) -> RunSpec:
    """Returns the run of one line.

    Args:
        line: Name of the line, a key of :data:`BASELINE_OF`.
        scale: The number of rounds and of instances.
        **varied: Quantities that differ from :data:`USUAL`, by name; they are the run's labels, besides ``line``.
    """
    at = {**USUAL, **varied}
    noise: dict[str, Any] = {name: at[name] for name in ("epsilon", "delta")}
    agents, gap = int(at["agents"]), int(at["gap"])
    every = {"name": "fixed_gap", "gap": gap}
    wrappers: dict[str, dict[str, Any]] = {} if line == SILENT else {"channel": {"schedule": every}}
    if line == VECTOR_SUM:
        wrappers["privatizer"] = {"epsilon_per_release": at["epsilon"], "delta": at["delta"], "gap": gap}
    elif line in NOISE_OF:
        sizes = {"horizon": scale.rounds, "gap": gap, "agents": agents}
        sd, _ = released_constants(NOISE_OF[line], **noise, **sizes)
        wrappers["privatizer"] = noise | {"epsilon": None, "releases": every, "noise_multiplier": sd}
    elif line not in (SILENT, TRUE, EXACT):
        wrappers["privatizer"] = noise | {"releases": every}
    if line == HALF:
        wrappers["channel"]["stage"] = {"name": "aggregator", "honest": max(1, agents // 2)}
    printed = "Printed" if line in (EXACT, *NOISE_OF) else ""
    return Plan("", scale).run(
        line, f"FedLinearSphere{printed}-v0", BASELINE_OF[line],
        env={} if agents == USUAL["agents"] else {"num_agents": agents},
        policy=noise | {"gap": gap} if line in NOISE_OF else {}, wrappers=wrappers,
        delta=at["delta"], labels=varied,
    )  # fmt: skip


def protecting_agents(line: str, epsilon: float, scale: Scale) -> RunSpec:
    """Returns the run of :data:`LOCAL` or :data:`MOST` with a claim of this epsilon about all data of an agent."""
    delta, agents = USUAL["delta"], int(USUAL["agents"])
    privatizer, schedule = RELEASES.settings(line, epsilon, delta, agents)
    stage = {"stage": {"name": "aggregator", "honest": agents - 1}} if line == MOST else {}
    return Plan("", scale).run(
        f"{line}, all data of an agent", "FedLinearSphere-v0", BASELINE_OF[TRUE], stack=[privatizer], delta=delta,
        wrappers={"channel": {"schedule": schedule, **stage}}, labels={"epsilon": epsilon},
    )  # fmt: skip


def _runs(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs.

    A figure has the released program's lines and silence. The panel ``order`` has all lines in the usual setting, under
    two deltas. The panel ``level`` varies epsilon, for claims about one observation and about all data of an agent.
    Each other panel varies the quantity of its name. Lines without noise do not depend on epsilon, and silence depends
    on the number of agents only.
    """
    scale, name = plan.scale, plan.panel
    if name in FIGURES:
        summed, epsilon, delta = FIGURES[name]
        noisy = [run(line, scale, epsilon=epsilon, delta=delta) for line in (RELEASED, summed)]
        return [*noisy, *(run(line, scale, delta=delta) for line in (EXACT, SILENT))]
    sweeps, exact = scale.sweeps, [run(line, scale) for line in (TRUE, SILENT)]
    if name == "order":
        order = product(sweeps["delta"], (*NOISY, PLACEBO))
        private = [run(line, scale, delta=delta) for delta, line in order]
        released = [run(line, scale, delta=0.1) for line in (RELEASED, VECTOR_SUM)]
        return [*exact, run(EXACT, scale), *private, *released]
    if name == "epsilon":
        claims = product(sweeps["delta"], sweeps[name], NOISY)
        return exact + [run(line, scale, delta=delta, epsilon=epsilon) for delta, epsilon, line in claims]
    if name == "level":
        levels = list(product(sweeps[name], (LOCAL, MOST)))
        agents = [protecting_agents(line, epsilon, scale) for epsilon, line in levels]
        return exact + [run(line, scale, epsilon=epsilon) for epsilon, line in levels] + agents
    lines = product(sweeps[name], (TRUE, SILENT, *NOISY) if name == "agents" else (TRUE, *NOISY))
    swept = [run(line, scale, **{name: value}) for value, line in lines]
    return swept if name == "agents" else [run(SILENT, scale), *swept]


def _columns(found: Mapping[str, RunResult], *rivals: str, **more: Any) -> dict[str, Any]:
    """Returns the columns of a table of lines: regret, more columns, regret over that of rivals, and the claim."""
    return {
        "baseline": lambda result: BASELINE_OF[result.labels["line"]],
        "regret per agent [95 %]": final_regret,
        **more,
        **{f"/ {rival}": partial(ratio, below=found[rival]) for rival in rivals},
        "claim against a fellow agent": against_fellow,
    }


def _figure(section: Section, runs: PanelRuns) -> None:
    """Reports regret and claim of each line of a figure, beside the regret of the program's rewrite."""
    more = {"regret per agent and round": lambda run: f"{final_regret(run).value / run.rounds[-1]:.4f}"}
    if runs.plan.panel == "zhou-fig2b":
        more["numpy twin"] = lambda run: TWIN.get(run.labels["line"], "-")
    section.table("lines", runs.table("line", _columns(runs.by(), SILENT, **more)))
    section.draw_over_rounds(runs)


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports regret over silence's by the panel's quantity; in the panel ``order`` also the order and the targets."""
    column = {"order": "delta", "level": "epsilon"}.get(runs.plan.panel, runs.plan.panel)
    curves = over_line(runs.lines(column, "delta"), SILENT)
    if runs.plan.panel == "order":
        _order(section, runs)
    else:
        head = "regret / silence's"
        rows = by_line(curves, head, "{:g}")
        section.table("ratios", [{**row, "below 1 at": pays_at(curves[row[head]])} for row in rows])
    section.draw(curves)


def _order(section: Section, runs: PanelRuns) -> None:
    for delta in runs.values("delta"):
        found = runs.where(delta=None).by() | runs.where(delta=delta).by()
        asked: list[tuple[tuple[str, str], float | None]] = [(pair, 1) for pair in pairwise(LADDER)]
        if delta == USUAL["delta"]:
            asked += [*TARGETS.items(), ((SERVER, TRUE), None), ((MOST, SERVER), None)]
        section.table(f"verdicts{delta:g}", [
            bounded("regret", f"{above} / {below}", ratio(found[above], found[below]), bound)
            for (above, below), bound in asked
        ])  # fmt: skip
        ranked = sorted(found, key=lambda line: final_regret(found[line]).value)
        table = PanelRuns(runs.plan, [({"line": line}, found[line]) for line in ranked])
        section.table(f"lines{delta:g}", table.table("line", _columns(found, SILENT, TRUE)))


_SWEEPS = {
    "delta": (0.1, 1e-5),
    "epsilon": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
    "gap": (5.0, 25.0, 100.0, 400.0),
    "agents": (10.0, 30.0, 100.0, 300.0),
    "level": (0.2, 1.0, 5.0, 20.0),
}
_TINY = {"delta": (0.1,), "epsilon": (0.2, 10.0), "gap": (5.0, 25.0), "agents": (4.0,), "level": (5.0,)}
_SCALES = {
    "tiny": Scale(200, 2, _TINY),
    "small": Scale(10_000, 20, _SWEEPS | {"epsilon": (0.1, 0.2, 1.0, 10.0)}),
    "paper": Scale(10_000, 25, _SWEEPS),
}

EXPERIMENTS = {
    **{
        name: Experiment(
            f"Zhou and Chowdhury, Figure {name[-2:]}: regret as released",
            "The curves of the released program, beside agents who do not communicate; 6 minutes.",
            {"x": "round", "y": "cumulative regret per agent"}, _SCALES, _runs, _figure,
            {name: f"Figure {name[-2:]}"},
        )
        for name in FIGURES
    },
    "local-trust": Experiment(
        "Zhou and Chowdhury: what local trust costs",
        "What agents pay who trust nobody with their noise; 3 hours.",
        {"x": "epsilon", "y": "regret / silence's"}, _SCALES, _runs, _report,
        {
            "order": "Order of trust",
            "epsilon": "Epsilon and delta",
            "gap": "Rounds between synchronisations",
            "agents": "Number of agents",
            "level": "One observation or all data of an agent",
        },
        panel_axes={
            "order": {"x": "delta"}, "gap": {"x": "rounds between synchronisations"},
            "agents": {"x": "number of agents"},
        },
    ),
}  # fmt: skip
