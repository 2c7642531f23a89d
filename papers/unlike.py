"""Fed1-UCB, Fed2-UCB and PF-UCB, beside agents who do not communicate and controls without phases."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.arms.ratings import RatedItems, mean_ratings
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.comparison import (
    ENOUGH,
    Mean,
    Ratio,
    compare,
    mean_of,
    over_line,
    over_rounds,
    ratio,
)
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale
from fedbandit_envs.papers.page import Section, Table, all_over_rounds
from fedbandit_envs.papers.trust import against_fellow
from fedbandit_envs.papers.variants import baseline_of, run_of

HORIZON = 1_000_000
"""T in the papers' experiments."""

RELEASED: Mapping[tuple[str, float], tuple[float, float]] = {
    ("Fed1-UCB", HORIZON): (13_300.0, 900.0),
    ("Fed2-UCB", HORIZON): (15_800.0, 700.0),
    ("Fed2-UCB, short", 10_000): (16_000.0, 900.0),
    ("PF-UCB, alpha 0.5", HORIZON): (31_800.0, 3_400.0),
}
"""Regret of all agents at the horizon, with half of its 95 % interval, in runs of the authors' released programs, by
line and horizon. It contains 1 for each message of an agent up and down."""

READ_OFF: Mapping[tuple[str, float], float] = {
    ("PF-UCB, alpha 0", HORIZON): 23_100.0,
    ("PF-UCB, alpha 0.2", HORIZON): 15_300.0,
    ("PF-UCB, alpha 0.9", HORIZON): 15_700.0,
    ("PF-UCB, alpha 1", HORIZON): 7_400.0,
}
"""The same, read off curves that are stored with the authors' program (10 runs, no interval)."""

PLAIN: Mapping[tuple[str, float], tuple[float, float]] = {
    ("PF-UCB, alpha 0", HORIZON): (22_197.0, 1_662.0),
    ("PF-UCB, alpha 0.2", HORIZON): (14_799.0, 796.0),
    ("PF-UCB, alpha 0.9", HORIZON): (16_841.0, 770.0),
    ("PF-UCB, alpha 1", HORIZON): (7_363.0, 215.0),
}
"""The same, with half of a 95 % interval, in 50 runs of a plain program written after the released one
(``pf_by_phases`` in ``tests/support/shi_reference.py``), where no run of the released program itself is known."""

_LONG = {"env_id": "FedGaussianSampled-v0", "agents": 1022}


def _run(line: str, baseline: str, plan: Plan, labels: dict[str, Any], **changes: Any) -> RunSpec:
    """Returns the run of one line.

    Args:
        line: Name of the line.
        baseline: Name of its baseline.
        plan: The panel and the scale.
        labels: Further labels.
        **changes: ``env_id``, ``agents``, ``env`` (arguments of the environment), ``rounds`` (if the simulation ends
            before the scale's horizon), ``noise`` (epsilon of a privatizer) and, as anything else, arguments of the
            server's policy.
    """
    horizon = changes.pop("horizon", plan.scale.rounds)
    rounds = min(changes.pop("rounds", horizon), horizon)
    env_id = changes.pop("env_id", "FedGaussian-v0")
    env = changes.pop("env", {})
    if "agents" in changes:
        env = {**env, "num_agents": changes.pop("agents")}
    wrappers: dict[str, dict[str, Any]] = {}
    if "noise" in changes:
        wrappers["privatizer"] = {"epsilon": changes.pop("noise")}
    if "server" in baseline_of(baseline).wrappers:
        policy = baseline_of(baseline).wrappers["server"].kwargs["policy"]
        policy = dict(policy) if isinstance(policy, dict) else {"name": policy}
        wrappers["server"] = {"policy": {**policy, "horizon": horizon, **changes}}
    return run_of(
        baseline, env_id, rounds, plan.scale.trials, env_kwargs=env,
        wrapper_kwargs=wrappers, labels={"line": line, "horizon": float(horizon), **labels},
    )  # fmt: skip


def _films(plan: Plan, arms: int, users: int | None = None) -> RatedItems:
    """Returns the most rated films of the user's table, with their means or with those of the users who rated most."""
    read = partial(mean_ratings, num_arms=arms, num_agents=users)
    found: RatedItems = make("data", plan.data or {}, {"ratings": read}, RatedItems)
    return found


def _film_fans(plan: Plan) -> list[RunSpec]:
    """Returns the runs of 200 agents who look for the best of 100 films: drawn around its means, or real users."""
    films, users = _films(plan, 100), _films(plan, 100, 200)
    # The means themselves and not the path make a stored run known, so that another table is not taken for it.
    drawn = {"means": films.means.tolist(), "reward_sd": 0.2, "law": "approximate", "spread": 0.1}
    real = {"means": users.means.tolist(), "reward_sd": 0.2, "law": "exact"}
    fed1: dict[str, Any] = {"c1": 1.0, "c2": 0.0}
    fed2 = {"agents": 254, "pulls": 200, "c2": 0.25}
    lines = [("Fed2-UCB", drawn, fed2), ("Fed2-UCB, spread 0.02", {**drawn, "spread": 0.02}, fed2)]
    for whose, env in (("", drawn), (", real users", real)):
        lines += [(f"Fed1-UCB{whose}", env, fed1), (f"alone{whose}", env, {}), (f"epochs{whose}", env, {})]
    names = {"alone": "Gaussian-UCB", "epochs": "Gaussian-epochs"}
    filled = {"filled": users.filled}
    return [
        _run(line, names.get(of := line.partition(",")[0], of), plan, filled, env=env, **{"agents": 200, **changes})
        for line, env, changes in lines
    ]  # fmt: skip


def global_aim(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of agents who all look for the globally best arm.

    The panel ``exact`` has the exact model, ``approximate`` agents drawn from a population, ``tuned`` tuned radii,
    ``private`` noisy sums, ``films`` means from the user's table of ratings, and ``constant`` varies the constant of
    the radius.
    """
    if plan.panel == "films":
        return _film_fans(plan)
    panel, sweeps = plan.panel, plan.scale.sweeps
    if panel == "exact":
        lines: list[tuple[str, str, dict[str, Any]]] = [
            ("Fed1-UCB", "Fed1-UCB", {}),
            ("Fed1-UCB, 10 agents", "Fed1-UCB", {"agents": 10}),
            ("Fed1-UCB, 1 agent", "Fed1-UCB", {"agents": 1}),
            ("Fed1-UCB, a pull a phase", "Fed1-UCB", {"pulls": 1}),
            ("Fed1-UCB-printed", "Fed1-UCB-printed", {}),
            ("alone", "Gaussian-UCB", {}),
            ("shared", "Gaussian-UCB-shared", {}),
            ("epochs", "Gaussian-epochs", {}),
        ]
        return [_run(line, name, plan, {}, **changes) for line, name, changes in lines]
    if panel == "approximate":
        # After its last phase Fed2-UCB changes nothing any more: the rest of the horizon is added on the page.
        early = {"rounds": plan.scale.rounds // 50}
        short = {"horizon": plan.scale.rounds // 100, "pulls": 50, "c1": 2.0}
        ten = {**_LONG, "agents": 10}
        return [
            _run("Fed2-UCB", "Fed2-UCB", plan, {}, **_LONG, **early),
            _run("Fed2-UCB, short", "Fed2-UCB", plan, {}, **_LONG, **short),
            _run("Fed2-UCB-printed", "Fed2-UCB-printed", plan, {}, **{**_LONG, "agents": 4094}, **early),
            _run("10 agents from the start", "Fed2-UCB", plan, {}, **ten, joins=10, growth=0.0),
            _run("alone", "Gaussian-UCB", plan, {}, **ten),
        ]
    if panel == "tuned":
        names = {"Fed1-UCB": {}, "Fed2-UCB": _LONG}
        return [
            _run(name, name, plan, {}, **changes)
            for of, changes in names.items()
            for name in (of, f"{of}-tuned")
        ]
    if panel == "private":
        # All agents have the same means, so that silence can find the best arm. Rewards are clipped at three standard
        # deviations of the mean .75.
        env = {"law": "exact", "reward_bound": 2.25}
        lines = [
            ("true data", "Gaussian-epochs", {}),
            ("placebo", "Gaussian-epochs-placebo", {}),
            ("silence, tuned", "Gaussian-UCB-tuned", {}),
        ]
        return [
            _run(line, name, plan, {}, env=env, agents=10, **changes) for line, name, changes in lines
        ] + [
            _run(
                "private",
                "Gaussian-epochs-private",
                plan,
                {"epsilon": epsilon},
                env=env,
                agents=10,
                noise=epsilon,
            )
            for epsilon in sweeps["epsilon"]
        ]
    fed1 = [_run("Fed1-UCB", "Fed1-UCB", plan, {"constant": c}, c1=c) for c in sweeps["constant"]]
    # The radius of epochs is that of the constant 2 if its scale is 1.
    return fed1 + [
        _run("epochs", "Gaussian-epochs", plan, {"constant": c}, radius_scale=(c / 2) ** 0.5)
        for c in sweeps["constant"]
    ]


def mixed_aims(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of agents with mixed aims.

    The panel ``alpha`` has PF-UCB and agents alone, ``controls`` other constants and algorithms without phases,
    ``tuned`` the tuned radius,
    ``enhanced`` the enhanced form, and in ``films`` agents are ten users of the user's table of ratings.
    """
    if plan.panel == "films":
        users = _films(plan, 40, 10)
        names = {"PF-UCB": "PF-UCB", "alone": "Gaussian-UCB", "shared": "Gaussian-UCB-shared"}
        aims = [{"means": users.means.tolist(), "num_agents": 10, "regret": alpha} for alpha in _FILM_ALPHAS]
        return [
            _run(line, name, plan, {"alpha": aim["regret"], "filled": users.filled}, env_id="FedMixed-v0", env=aim)
            for aim in aims
            for line, name in names.items()
        ]  # fmt: skip
    if plan.panel == "enhanced":
        # Without given means each agent's are drawn.
        env = {"means": None, "num_agents": 4, "num_arms": 9, "regret": 0.5}
        return [
            _run(line, line, plan, {}, env_id="FedMixed-v0", env=env)
            for line in ("PF-UCB", "PF-UCB-enhanced")
        ]
    lines = {"PF-UCB": "PF-UCB", "alone": "Gaussian-UCB"}
    if plan.panel == "tuned":
        lines = {name: name for name in ("PF-UCB", "PF-UCB-tuned")}
    if plan.panel == "controls":
        lines = {
            "PF-UCB": "PF-UCB",
            "PF-UCB-printed": "PF-UCB-printed",
            "growth 1.2": "PF-UCB-1.2",
            "leader against challenger": "PF-leader",
        }
    return [
        _run(line, name, plan, {"alpha": alpha}, env_id="FedMixed-v0", env={"regret": alpha})
        for alpha in plan.scale.sweeps["alpha"]
        for line, name in lines.items()
    ]


def regret_at(result: RunResult, horizon: float) -> Array:
    """Returns regret of all agents until a horizon, ``(seeds,)``; what is not simulated goes on as it did at the end.

    Args:
        result: The result of a run that may have ended before the horizon.
        horizon: T.
    """
    regret = result.regret.sum(axis=2)
    return np.asarray(regret[-1] + (horizon - result.rounds[-1]) * slope(result))


def slope(result: RunResult) -> Array:
    """Returns regret of all agents in a round at the end of a run, ``(seeds,)``: over the last tenth of its rounds."""
    regret = result.regret.sum(axis=2)
    before = int(np.searchsorted(result.rounds, 0.9 * result.rounds[-1]))
    before = min(before, len(result.rounds) - 2)
    return np.asarray((regret[-1] - regret[before]) / (result.rounds[-1] - result.rounds[before]))


def cost(result: RunResult) -> Array:
    """Returns what communication costs at 1 for an agent's message up and down together, ``(seeds,)``."""
    if result.messages is None:
        return np.zeros(result.regret.shape[1])
    return np.asarray(result.messages[-1].sum(axis=1) / 2)


def total(result: RunResult, horizon: float) -> Array:
    """Returns regret of all agents until a horizon and the cost of their messages, ``(seeds,)``."""
    return regret_at(result, horizon) + cost(result)


def horizon_of(runs: PanelRuns, result: RunResult) -> float:
    """Returns the horizon T of a result, which is among its labels."""
    return float(next(labels["horizon"] for labels, own in runs.rows if own is result))


def unsettled(result: RunResult) -> str:
    """Returns in how many runs agents still had regret in the last tenth of the rounds, as text."""
    regretting = slope(result) > 1e-9
    return f"{int(regretting.sum())} of {regretting.size}"


def released(line: str, horizon: float) -> str:
    """Returns the regret in runs of the authors' released program or of a plain one, with its interval, as text."""
    if (line, horizon) in RELEASED:
        value, half = RELEASED[line, horizon]
        return f"{value:,.0f} ± {half:,.0f}"
    if (line, horizon) in PLAIN:
        value, half = PLAIN[line, horizon]
        return f"{READ_OFF[line, horizon]:,.0f} (read off); plain program {value:,.0f} ± {half:,.0f}"
    return "-"


def agrees(line: str, horizon: float, result: RunResult) -> str:
    """Returns whether our mean and the other program's differ by no more than both intervals together, as text."""
    if (line, horizon) not in {**PLAIN, **RELEASED}:
        return "-"
    value, half = {**PLAIN, **RELEASED}[line, horizon]
    own = mean_of(total(result, horizon))
    close = abs(own.value - value) <= float(np.hypot(half, (own.high - own.low) / 2))
    return "exploratory" if own.instances < ENOUGH else "agrees" if close else "does **not** agree"


def regret_table(runs: PanelRuns) -> Table:
    """Yields a table with a line for each algorithm (and aim): regret, messages, and the released program's number."""
    for labels, result in runs.rows:
        horizon = labels["horizon"]
        line = ", ".join(
            [labels["line"], *(f"{of} {labels[of]:g}" for of in ("alpha", "epsilon") if of in labels)]
        )
        known = {"released program": released(line, horizon), "joint interval": agrees(line, horizon, result)}
        yield {
            "line": line,
            "T": f"{horizon:,.0f}",
            "regret (± 95 %)": mean_of(regret_at(result, horizon), ",.0f"),
            "median": f"{np.median(regret_at(result, horizon)):,.0f}",
            "messages": mean_of(cost(result), ",.0f"),
            "regret and messages (± 95 %)": mean_of(total(result, horizon), ",.0f"),
            # What is known is not of the user's means.
            **(known if runs.panel != "films" else {}),
            "still regretting": unsettled(result),
        }


def _over(page: Section, runs: PanelRuns, above: str, below: str, name: str) -> Ratio:
    """Returns the ratio of two lines' regret without messages, and adds it to the numbers."""
    one, two = runs[above], runs[below]
    value = compare(regret_at(one, horizon_of(runs, one)), regret_at(two, horizon_of(runs, two)))
    page.say(**{name: value})
    return value


def _curves(runs: PanelRuns, column: str) -> dict[str, dict[float, Mean]]:
    """Returns a curve for each line over a quantity: regret with messages."""
    return {
        line: {x: mean_of(total(result, horizon_of(runs, result)), ",.0f") for x, result in points.items()}
        for line, points in runs.lines(column).items()
    }


def _less(name: str, value: Ratio) -> dict[str, str]:
    return {"regret without messages": name, "it is less": value.at_most(1)}


def _report_global(page: Section, runs: PanelRuns) -> None:
    panel, less = runs.panel, []
    if panel == "constant":
        page.table("regrets", _constants(runs))
        page.draw(_curves(runs, "constant"))
        return
    if panel == "private":
        silence, lines = runs["silence, tuned"], []
        for labels, result in runs.rows:
            epsilon = f", epsilon {labels['epsilon']:g}" if "epsilon" in labels else ""
            lines.append({
                "line": f"{labels['line']}{epsilon}",
                "regret (± 95 %)": mean_of(result.regret[-1].sum(axis=1), ",.0f"),
                "/ silence": "1" if result is silence else ratio(result, silence),
                "claim against a fellow agent": against_fellow(result),
            })  # fmt: skip
        page.table("regrets", lines)
        page.draw(over_line(runs.lines("epsilon"), "silence, tuned"))
        return
    page.table("regrets", regret_table(runs))
    if panel in ("exact", "films"):
        page.draw(all_over_rounds(runs))
    else:
        summed = {
            labels["line"]: replace(result, regret=result.regret.sum(axis=2, keepdims=True))
            for labels, result in runs.rows
        }
        page.draw({line: over_rounds(result) for line, result in summed.items()})
    if panel == "tuned":
        pairs = [(f"{line}-tuned", line, f"{line}-tuned / {line}") for line in ("Fed1-UCB", "Fed2-UCB")]
    else:
        ends = {"films": ("", ", real users"), "exact": ("",)}.get(panel, ())
        pairs = [
            (line + whose, f"Fed1-UCB{whose}", f"{line} / Fed1-UCB{whose}")
            for whose in ends
            for line in ("alone", "epochs")
        ]
    for above, below, name in pairs:
        less.append(_less(name, _over(page, runs, above, below, name)))
    if less:
        page.table("verdicts", less)


def _constants(runs: PanelRuns) -> Table:
    for constant in runs.values("constant"):
        row: dict[str, Any] = {"constant": f"{constant:g}"}
        for line, result in runs.where(constant=constant).by("line").items():
            both = total(result, horizon_of(runs, result))
            row[f"{line}, regret and messages (± 95 %)"] = mean_of(both, ",.0f")
            row[f"{line}, median of both"] = f"{np.median(both):,.0f}"
            row[f"{line}, still regretting"] = unsettled(result)
        yield row


_AGAINST_PF = {
    "controls": {
        "printed": "PF-UCB-printed", "growth 1.2": "growth 1.2", "leader": "leader against challenger",
    },
    "tuned": {"tuned": "PF-UCB-tuned"},
    "alpha": {"alone": "alone"},
    "films": {"alone": "alone", "shared": "shared"},
}  # fmt: skip


def _report_mixed(page: Section, runs: PanelRuns) -> None:
    page.table("regrets", regret_table(runs))
    if runs.panel == "enhanced":
        page.draw(all_over_rounds(runs))
        name = "PF-UCB-enhanced / PF-UCB"
        page.table("verdicts", [_less(name, _over(page, runs, "PF-UCB-enhanced", "PF-UCB", name))])
        return
    page.draw(_curves(runs, "alpha"))
    less = []
    for alpha in runs.values("alpha"):
        for short, line in _AGAINST_PF[runs.panel].items():
            name = f"{short} / PF-UCB, alpha {alpha:g}"
            less.append(_less(name, _over(page, runs.where(alpha=alpha), line, "PF-UCB", name)))
    page.table("verdicts", less)


_ALPHAS = (0.0, 0.2, 0.5, 0.9, 1.0)
_FILM_ALPHAS = (0.0, 0.1, 0.9, 1.0)
_ROUNDS = {"x": "round", "y": "regret per agent, without messages"}
_ALL_ROUNDS = {"x": "round", "y": "regret of all agents, without messages"}
_CONSTANTS = (0.25, 0.5, 1.0, 2.0, 4.0, 6.0)

EXPERIMENTS = {
    "fed-ucb": Experiment(
        "Fed1-UCB and Fed2-UCB: unlike agents, one aim",
        "Whether phases and elimination save regret and messages; half an hour",
        {"x": "constant of the radius", "y": "regret of all agents, with messages"},
        {
            "tiny": Scale(2_000, 2, {"constant": (1.0, 4.0), "epsilon": (1.0,)}),
            "small": Scale(100_000, 20, {"constant": _CONSTANTS, "epsilon": (0.1, 1.0, 10.0)}),
            "paper": Scale(HORIZON, 50, {"constant": _CONSTANTS, "epsilon": (0.1, 1.0, 10.0)}),
        },
        global_aim,
        _report_global,
        {
            "exact": "The exact model",
            "approximate": "Agents drawn from a population",
            "constant": "The constant of the radius",
            "tuned": "Tuned radii",
            "private": "Private epochs",
            "films": "Films",
        },
        panel_axes={
            **dict.fromkeys(("exact", "films"), _ROUNDS),
            **dict.fromkeys(("approximate", "tuned"), _ALL_ROUNDS),
            "private": {"x": "epsilon", "y": "regret / silence's"},
        },
        needs_data=("films",),
    ),
    "pf-ucb": Experiment(
        "PF-UCB: aims between an agent's own and the global means",
        "What sharing gains where agents want different arms; 20 minutes",
        {"x": "alpha", "y": "regret of all agents, with messages"},
        {
            "tiny": Scale(2_000, 2, {"alpha": (0.5,)}),
            "small": Scale(100_000, 20, {"alpha": _ALPHAS}),
            "paper": Scale(HORIZON, 50, {"alpha": _ALPHAS}),
        },
        mixed_aims,
        _report_mixed,
        {
            "alpha": "Values of alpha",
            "controls": "Other constants, other lengths of phases, no phases",
            "tuned": "The tuned radius",
            "enhanced": "The enhanced form",
            "films": "Films",
        },
        panel_axes={
            **{panel: {"xscale": "linear"} for panel in ("alpha", "controls", "tuned", "films")},
            "enhanced": _ROUNDS,
        },
        needs_data=("films",),
    ),
}
