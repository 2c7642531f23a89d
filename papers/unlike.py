"""Fed1-UCB, Fed2-UCB and PF-UCB, beside agents who do not communicate and controls without phases."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.arms.ratings import RatedItems, mean_ratings
from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.basics.entry_points import make
from fedbandit_envs.experiments import RunResult, RunSpec
from fedbandit_envs.papers import stats
from fedbandit_envs.papers.experiment import Experiment, PanelRuns, Plan, Scale, Section, baseline_of, named
from fedbandit_envs.papers.servers import sent
from fedbandit_envs.papers.trust import against_fellow

HORIZON = 1_000_000
"""T in the papers' experiments."""

KNOWN: Mapping[tuple[str, int], tuple[float, float, float]] = {
    ("Fed1-UCB", HORIZON): (13_300, 900, 0),
    ("Fed2-UCB", HORIZON): (15_800, 700, 0),
    ("Fed2-UCB, short", 10_000): (16_000, 900, 0),
    ("PF-UCB, alpha 0.5", HORIZON): (31_800, 3_400, 0),
    ("PF-UCB, alpha 0", HORIZON): (22_197, 1_662, 23_100),
    ("PF-UCB, alpha 0.2", HORIZON): (14_799, 796, 15_300),
    ("PF-UCB, alpha 0.9", HORIZON): (16_841, 770, 15_700),
    ("PF-UCB, alpha 1", HORIZON): (7_363, 215, 7_400),
}
"""Regret of all agents, half of its 95 % interval, and the regret in the authors' curves, by line and horizon.

Where the last is 0, the runs are of the authors' released programs. Else they are 50 runs of a plain program written
after the released one (``pf_by_phases`` in ``tests/support/shi_reference.py``), and the last is read off curves that
are stored with the authors' program (10 runs, no interval). Regret contains 1 for each message of an agent up and down.
"""

BASELINES = {
    "10 agents from the start": "Fed2-UCB",
    "alone": "Gaussian-UCB",
    "shared": "Gaussian-UCB-shared",
    "epochs": "Gaussian-epochs",
    "true data": "Gaussian-epochs",
    "placebo": "Gaussian-epochs-placebo",
    "private": "Gaussian-epochs-private",
    "silence": "Gaussian-UCB-tuned",
    "growth 1.2": "PF-UCB-1.2",
    "leader against challenger": "PF-leader",
}
"""The baseline of a line, by the line's name up to a comma, where that is not the baseline's own name."""

_LONG: dict[str, Any] = {"env_id": "FedGaussianSampled-v0", "env": {"num_agents": 1022}}
_TEN = {**_LONG, "env": {"num_agents": 10}}
# All agents have the same means, so that silence can find the best arm. Rewards are clipped at three standard
# deviations of the mean .75.
_SAME: dict[str, Any] = {"env": {"law": "exact", "reward_bound": 2.25, "num_agents": 10}}
# Without given means each agent's are drawn.
_DRAWN = {"means": None, "num_agents": 4, "num_arms": 9, "regret": 0.5}
LINES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "exact": {
        "Fed1-UCB": {},
        "Fed1-UCB, 10 agents": {"env": {"num_agents": 10}},
        "Fed1-UCB, 1 agent": {"env": {"num_agents": 1}},
        "Fed1-UCB, a pull a phase": {"pulls": 1},
        **{line: {} for line in ("Fed1-UCB-printed", "alone", "shared", "epochs")},
    },
    # After its last phase Fed2-UCB changes nothing any more: the rest of the horizon is added on the page.
    "approximate": {
        "Fed2-UCB": {**_LONG, "played": 50},
        "Fed2-UCB, short": {**_LONG, "shorter": 100, "pulls": 50, "c1": 2.0},
        "Fed2-UCB-printed": {**_LONG, "env": {"num_agents": 4094}, "played": 50},
        "10 agents from the start": {**_TEN, "joins": 10, "growth": 0.0},
        "alone": _TEN,
    },
    "tuned": {"Fed1-UCB": {}, "Fed1-UCB-tuned": {}, "Fed2-UCB": _LONG, "Fed2-UCB-tuned": _LONG},
    "private": dict.fromkeys(("true data", "placebo", "silence, tuned"), _SAME),
}
"""The lines of panels that vary no quantity, with what they change."""
BY_ALPHA = {
    "alpha": ("alone",),
    "controls": ("PF-UCB-printed", "growth 1.2", "leader against challenger"),
    "tuned": ("PF-UCB-tuned",),
    "films": ("alone", "shared"),
}
"""The lines beside PF-UCB in panels that vary alpha."""


def _run(
    plan: Plan, line: str, *,
    labels: Mapping[str, Any] = {},
    env_id: str = "FedGaussian-v0",
    env: Mapping[str, Any] = {},
    wrappers: Mapping[str, dict[str, Any]] = {},
    shorter: int = 1,
    played: int = 1,
    **server: Any,
) -> RunSpec:  # fmt: skip
    """Returns the run of one line.

    Args:
        plan: The panel and the scale.
        line: Name of the line.
        labels: Further labels.
        env_id: Id of the environment.
        env: Arguments of the environment.
        wrappers: Arguments of the baseline's wrappers.
        shorter: How many times the scale's horizon is longer than the line's.
        played: How many times the horizon is longer than what is simulated.
        **server: Arguments of the server's policy.
    """
    stem, horizon = line.partition(",")[0], plan.scale.rounds // shorter
    name = BASELINES.get(stem, stem)
    known = baseline_of(name).wrappers
    if "server" in known:
        policy = known["server"].kwargs["policy"]
        named = policy if isinstance(policy, dict) else {"name": policy}
        wrappers = {**wrappers, "server": {"policy": {**named, "horizon": horizon, **server}}}
    labels = {"horizon": float(horizon), **labels}
    return plan.run(line, env_id, name, env=env, wrappers=wrappers, rounds=horizon // played, labels=labels)


def _films(plan: Plan, arms: int, users: int | None = None) -> list[Any]:
    """Returns means of the most rated films of the user's table: of all users, or of each of those who rated most."""
    read = partial(mean_ratings, num_arms=arms, num_agents=users)
    return list(make("data", plan.data or {}, {"ratings": read}, RatedItems).means.tolist())


def _film_fans(plan: Plan) -> list[RunSpec]:
    """Returns the runs of 200 agents who look for the best of 100 films: drawn around its means, or real users."""
    # The means themselves and not the path make a stored run known, so that another table is not taken for it.
    fans = {"num_agents": 200, "reward_sd": 0.2}
    drawn = {**fans, "means": _films(plan, 100), "law": "approximate", "spread": 0.1}
    real = {**fans, "means": _films(plan, 100, 200), "law": "exact"}
    many = {**drawn, "num_agents": 254}
    runs = [_run(plan, "Fed2-UCB", env=many, pulls=200, c2=0.25)]
    runs += [_run(plan, "Fed2-UCB, spread 0.02", env={**many, "spread": 0.02}, pulls=200, c2=0.25)]
    for whose, env in (("", drawn), (", real users", real)):
        runs += [_run(plan, f"Fed1-UCB{whose}", env=env, c1=1.0, c2=0.0)]
        runs += [_run(plan, line + whose, env=env) for line in ("alone", "epochs")]
    return runs


def global_aim(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of agents who all look for the globally best arm.

    The panel ``exact`` has the exact model, ``approximate`` agents drawn from a population, ``tuned`` tuned radii,
    ``private`` noisy sums, ``films`` means from the user's table of ratings, and ``constant`` varies the constant of
    the radius.
    """
    if plan.panel == "films":
        return _film_fans(plan)
    sweeps = plan.scale.sweeps
    runs = [_run(plan, line, **changes) for line, changes in LINES.get(plan.panel, {}).items()]
    if plan.panel == "private":
        for at in sweeps["epsilon"]:
            noise = {"privatizer": {"epsilon": at}}
            runs.append(_run(plan, "private", labels={"epsilon": at}, wrappers=noise, **_SAME))
    if plan.panel == "constant":
        for at in sweeps["constant"]:
            runs.append(_run(plan, "Fed1-UCB", labels={"constant": at}, c1=at))
            # The radius of epochs is that of the constant 2 if its scale is 1.
            runs.append(_run(plan, "epochs", labels={"constant": at}, radius_scale=(at / 2) ** 0.5))
    return runs


def mixed_aims(plan: Plan) -> list[RunSpec]:
    """Returns a panel's runs of agents with mixed aims.

    The panel ``alpha`` has PF-UCB and agents alone, ``controls`` other constants and algorithms without phases,
    ``tuned`` the tuned radius, ``enhanced`` the enhanced form, and in ``films`` agents are ten users of the user's
    table of ratings.
    """
    run = partial(_run, plan, env_id="FedMixed-v0")
    if plan.panel == "enhanced":
        return [run(line, env=_DRAWN) for line in ("PF-UCB", "PF-UCB-enhanced")]
    lines, alphas = ["PF-UCB", *BY_ALPHA[plan.panel]], plan.scale.sweeps["alpha"]
    env: dict[str, Any] = {}
    if plan.panel == "films":
        alphas, env = (0.0, 0.1, 0.9, 1.0), {"means": _films(plan, 40, 10), "num_agents": 10}
    return [run(line, labels={"alpha": at}, env={**env, "regret": at}) for at in alphas for line in lines]


def regret_at_horizon(result: RunResult) -> Array:
    """Returns regret of all agents until the horizon, ``(seeds,)``.

    The horizon is the run's label of this name. What is not simulated goes on as it did at the end.
    """
    played = result.regret[-1].sum(axis=1)
    return np.asarray(played + (result.labels["horizon"] - result.rounds[-1]) * slope(result))


def slope(result: RunResult) -> Array:
    """Returns regret of all agents in a round at the end of a run, ``(seeds,)``: since the last checkpoint but one.

    That is over about the last fifth of its rounds, or from the start where there is one checkpoint.
    """
    regret = np.diff(result.regret.sum(axis=2), axis=0, prepend=0)
    return np.asarray(regret[-1] / np.diff(result.rounds, prepend=0)[-1])


def cost(result: RunResult) -> Array:
    """Returns what communication costs at 1 for an agent's message up and down together, ``(seeds,)``."""
    return sent(result)[0] / 2


def total(result: RunResult) -> Array:
    """Returns regret of all agents until the horizon and the cost of their messages, ``(seeds,)``."""
    return regret_at_horizon(result) + cost(result)


def _unsettled(result: RunResult) -> str:
    """Returns in how many runs agents still had regret since the last checkpoint but one, as text."""
    regretting = slope(result) > 1e-9
    return f"{int(regretting.sum())} of {regretting.size}"


def _thousands(measure: Callable[[RunResult], Array]) -> Callable[[RunResult], stats.Mean]:
    return lambda result: stats.mean_of(measure(result), ",.0f")


def _median(measure: Callable[[RunResult], Array]) -> Callable[[RunResult], str]:
    return lambda result: f"{np.median(measure(result)):,.0f}"


def _known(result: RunResult) -> tuple[float, float, float] | None:
    return KNOWN.get((named(result.labels, "alpha"), result.labels["horizon"]))


def released(result: RunResult) -> str:
    """Returns the regret in runs of the authors' released program or of a plain one, with its interval, as text."""
    if (known := _known(result)) is None:
        return "-"
    text = f"{known[0]:,.0f} ± {known[1]:,.0f}"
    return f"{known[2]:,.0f} (read off); plain program {text}" if known[2] else text


def agrees(result: RunResult) -> str:
    """Returns whether our mean and the other program's differ by no more than both intervals together, as text."""
    if (known := _known(result)) is None:
        return "-"
    own = stats.mean_of(total(result))
    close = abs(own.value - known[0]) <= float(np.hypot(known[1], (own.high - own.low) / 2))
    return "exploratory" if own.instances < stats.ENOUGH else "agrees" if close else "does **not** agree"


def regret_table(runs: PanelRuns) -> list[stats.Row]:
    """Returns a table with a line for each algorithm (and aim): regret, messages, and the released program's number."""
    known = {"released program": released, "joint interval": agrees}
    columns = {
        "T": lambda result: f"{result.labels['horizon']:,.0f}",
        "regret [95 %]": _thousands(regret_at_horizon),
        "median": _median(regret_at_horizon),
        "messages": _thousands(cost),
        "regret and messages [95 %]": _thousands(total),
        # What is known is not of the user's means.
        **(known if runs.plan.panel != "films" else {}),
        "still regretting": _unsettled,
    }
    return runs.table("line", columns, "alpha")


def _ratio(above: RunResult, below: RunResult) -> stats.Ratio:
    """Returns the ratio of two runs' regret of all agents until the horizon, without messages."""
    return stats.compare(regret_at_horizon(above), regret_at_horizon(below))


def _report_global(page: Section, runs: PanelRuns) -> None:
    panel = runs.plan.panel
    if panel == "constant":
        lines = runs.lines("constant")
        measures = {
            "regret and messages [95 %]": _thousands(total),
            "median of both": _median(total),
            "still regretting": _unsettled,
        }
        cells = {name: stats.each(lines, measure) for name, measure in measures.items()}
        both = {f"{line}, {name}": found[line] for line in lines for name, found in cells.items()}
        page.table("regrets", stats.by_x(both, "constant", "{:g}"))
        page.draw(cells["regret and messages [95 %]"])
        return
    if panel == "private":
        columns: dict[str, Any] = {
            "regret [95 %]": stats.of_all_agents,
            "/ silence": partial(stats.ratio, below=runs["silence, tuned"]),
            "claim against a fellow agent": against_fellow,
        }
        page.table("regrets", runs.table("line", columns, "epsilon"))
        page.draw(stats.over_line(runs.lines("epsilon"), "silence, tuned"))
        return
    page.table("regrets", regret_table(runs))
    if panel in ("exact", "films"):
        page.draw_over_rounds(runs)
    else:
        page.draw({own["line"]: stats.curve_of(run, run.regret.sum(axis=2)) for own, run in runs.rows})
    whose = {"exact": ("",), "films": ("", ", real users")}.get(panel, ())
    pairs = [(line + end, f"Fed1-UCB{end}") for end in whose for line in ("alone", "epochs")]
    if panel == "tuned":
        pairs = [(f"{line}-tuned", line) for line in ("Fed1-UCB", "Fed2-UCB")]
    if pairs:
        page.judge({f"{a} / {b}": _ratio(runs[a], runs[b]) for a, b in pairs})


def _report_mixed(page: Section, runs: PanelRuns) -> None:
    page.table("regrets", regret_table(runs))
    if runs.plan.panel == "enhanced":
        page.draw_over_rounds(runs)
        page.judge({"PF-UCB-enhanced / PF-UCB": _ratio(runs["PF-UCB-enhanced"], runs["PF-UCB"])})
        return
    lines = runs.lines("alpha")
    page.draw(stats.each(lines, _thousands(total)))
    rivals = BY_ALPHA[runs.plan.panel]
    short = {line: line.removeprefix("PF-UCB-").partition(" against")[0] for line in rivals}
    found = {
        f"{name} / PF-UCB, alpha {alpha:g}": _ratio(lines[line][alpha], ours)
        for alpha, ours in lines["PF-UCB"].items()
        for line, name in short.items()
    }
    page.judge(found)


_ROUNDS = {"x": "round", "y": "regret per agent, without messages"}
_ALL_ROUNDS = {"x": "round", "y": "regret of all agents, without messages"}


def _scales(tiny: Mapping[str, Any], sweeps: Mapping[str, Any]) -> dict[str, Scale]:
    small, paper = Scale(100_000, 20, sweeps), Scale(HORIZON, 50, sweeps)
    return {"tiny": Scale(2_000, 2, tiny), "small": small, "paper": paper}


EXPERIMENTS = {
    "fed-ucb": Experiment(
        "Fed1-UCB and Fed2-UCB: unlike agents, one aim",
        "Whether phases and elimination save regret and messages; half an hour",
        {"x": "constant of the radius", "y": "regret of all agents, with messages"},
        _scales(
            {"constant": (1.0, 4.0), "epsilon": (1.0,)},
            {"constant": (0.25, 0.5, 1.0, 2.0, 4.0, 6.0), "epsilon": (0.1, 1.0, 10.0)},
        ),
        global_aim, _report_global,
        {
            "exact": "The exact model", "approximate": "Agents drawn from a population",
            "constant": "The constant of the radius", "tuned": "Tuned radii", "private": "Private epochs",
            "films": "Films",
        },
        panel_axes={
            "exact": _ROUNDS, "films": _ROUNDS, "approximate": _ALL_ROUNDS, "tuned": _ALL_ROUNDS,
            "private": {"x": "epsilon", "y": "regret / silence's"},
        },
        needs_data=("films",),
    ),
    "pf-ucb": Experiment(
        "PF-UCB: aims between an agent's own and the global means",
        "What sharing gains where agents want different arms; 20 minutes",
        {"x": "alpha", "y": "regret of all agents, with messages"},
        _scales({"alpha": (0.5,)}, {"alpha": (0.0, 0.2, 0.5, 0.9, 1.0)}),
        mixed_aims, _report_mixed,
        {
            "alpha": "Values of alpha", "controls": "Other constants, other lengths of phases, no phases",
            "tuned": "The tuned radius", "enhanced": "The enhanced form", "films": "Films",
        },
        panel_axes={panel: {"xscale": "linear"} for panel in BY_ALPHA} | {"enhanced": _ROUNDS},
        needs_data=("films",),
    ),
}  # fmt: skip
