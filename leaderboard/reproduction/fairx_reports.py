"""What the pages of the thesis' experiments on exposure fairness say."""

from math import log

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.reproduction.comparison import (
    Mean,
    all_hold,
    lies_within,
    ordered,
    ratio,
    regret_by_seed,
)
from fedbandit_envs.leaderboard.reproduction.experiment import Results
from fedbandit_envs.leaderboard.reproduction.fairx import (
    CONTROLS,
    FED,
    GREEDY,
    PLACEBO,
    PRIV,
    PROTOCOLS,
    SILENT,
    THESIS,
    WEIGHTED,
)
from fedbandit_envs.leaderboard.reproduction.page import Section, over_seeds, regret_text
from fedbandit_envs.leaderboard.sweep.runs import Result


def _chosen(name: str) -> str:
    """Says how a baseline looks for its optimistic parameter: solver, steps and scale of the radius."""
    arguments = BASELINES[name.removesuffix(PLACEBO)].policy_kwargs
    if "solver" not in arguments:
        return "-"
    radius = arguments["beta_scale"]
    return f"{arguments['solver']}, {arguments['steps']}, {radius:g}" if radius else "none, 0, 0"


def _releases(result: Result) -> str:
    messages = result.traffic.get("messages")
    if messages is None:
        return "-"
    return f"{messages.mean() / (result.regret.shape[2] - 1):,.0f}"


def _table(section: Section, results: Results, meanings: dict[str, str]) -> None:
    """Writes fairness regret and reward regret at T of every run, over B0's, and draws the curves."""
    row = section.table(
        "algorithm", "what it does", "solver, steps, beta scale", "releases an agent",
        "fairness regret at T (± 95 %)", "/ B0", "reward regret at T",
    )  # fmt: skip
    for name, result in results.items():
        value = ratio(result, results[SILENT])
        lost = result.info["reward_regret"].mean() * result.rounds[-1]
        row(
            name, meanings.get(name, "the same on noise alone"), _chosen(name), _releases(result),
            regret_text(result), "1" if name == SILENT else value, f"{lost:,.0f}",
        )  # fmt: skip
        section.draw_regret(name, result)


def _claims(section: Section, result: Result) -> None:
    """Sets what Priv-FairX-LinUCB promises beside what it spends."""
    section.text += [
        "",
        "What the agent that spent most has really spent of the (2, 0.1) that Priv-FairX-LinUCB promises for all its "
        "releases together; trust is `local`: noise is added before anything leaves the agent, and nobody else is "
        'trusted. The thesis promises that "each of the outgoing messages for an agent i is (ε, δ)'
        '-differentially private" (Claim 6.1), each single one. Every row is an upper bound on the same loss: `exact` '
        "is what is spent, `zcdp` says more of the same noise, since its conversion to epsilon is not tight. "
        "No adjacency covers an agent whose later draws change with the altered observation:",
    ]
    section.claims(result.claims)


def _growth(result: Result) -> Mean:
    """Returns like which power of the round regret grows over the last tenfold of rounds."""
    early = int(np.searchsorted(result.rounds, result.rounds[-1] / 10))
    grown = np.log(regret_by_seed(result) / regret_by_seed(result, early))
    return over_seeds(grown / log(result.rounds[-1] / result.rounds[early]), ".2f")


def exp1(section: Section, results: Results) -> None:
    """Fairness regret over rounds; what the thesis says of the order; what is spent; what controls have."""
    _table(section, results, {**THESIS, **CONTROLS})
    if section.panel == "controls":
        _controls(section, results)
        return
    fed, private, placebo = (ratio(results[name], results[SILENT]) for name in (FED, PRIV, PRIV + PLACEBO))
    owed = private.at_most(1) == "holds" and placebo.at_least(1) == "holds"
    section.text += [
        "",
        'The thesis says: "Both federated learning algorithms outperformed the single-agent baseline in terms of '
        'fairness regret."',
        "",
        f"* Fed < B0: {fed.at_most(1)} ({section.say(f'{FED} / B0', fed)}).",
        f"* Priv < B0: {private.at_most(1)} ({section.say(f'{PRIV} / B0', private)}).",
        f"* Noise alone has {section.say(f'{PRIV}{PLACEBO} / B0', placebo)} times B0's fairness regret"
        + (f": what {PRIV} gains is owed to what agents tell each other." if owed else "."),
        "",
        'And: "We show that both Fed-FairX-LinUCB and Priv-FairX-LinUCB achieve near-optimal fairness regret." It '
        "names no optimum. Its bounds grow like the square root of T; over the last tenfold of rounds here",
        "",
        *(
            f"* {name} grows like T^{section.say(f'{name}, power of T', _growth(results[name]))}."
            for name in (SILENT, FED, PRIV)
        ),
    ]
    _claims(section, results[PRIV])


def _controls(section: Section, results: Results) -> None:
    least = min(results, key=lambda name: float(regret_by_seed(results[name]).mean()))
    silent = [name for name in results if name.startswith("FairX-LinUCB")]
    best = min(silent, key=lambda name: float(regret_by_seed(results[name]).mean()))
    tuned = ratio(results[PRIV], results[best])

    def over(above: str, below: str) -> str:
        return section.say(f"{above} / {below}", ratio(results[above], results[below]))

    section.text += [
        "",
        'The thesis says that "Priv-FairX-LinUCB significantly improves over non-collaborative learning while '
        'maintaining privacy". Non-collaborative learning is B0 there, with the radius that its theory asks for:',
        "",
        f"* Priv < B0: {ratio(results[PRIV], results[SILENT]).at_most(1)} ({over(PRIV, SILENT)}).",
        f"* Priv < the best silence here ({best}): {tuned.at_most(1)} ({over(PRIV, best)}).",
        "",
        "Besides:",
        "",
        f"* Least fairness regret of all: {least}. Least in silence: {best}, {over(best, SILENT)} times B0's.",
        f"* Ours over the best silence here: {over(WEIGHTED, best)}; its placebo: {over(WEIGHTED + PLACEBO, best)}.",
        "* The rigorous private forms, whose radius has its term for the noise, over B0: on the sum "
        f"{over('Priv-FairX-LinUCB-on-sum', SILENT)}, printed {over('Priv-FairX-LinUCB-printed', SILENT)}.",
        f"* A best-arm learner over equal shares: {over('best-arm', 'equal-shares')}.",
    ]


def exp2(section: Section, results: Results) -> None:
    """Fairness regret over rounds by protocol of communication."""
    _table(section, results, {SILENT: "silent (B0)", **PROTOCOLS})
    first, second = (ratio(results[PRIV], results[name]) for name in ("B1", "B2"))
    beside = "may be either"
    if "holds" in (second.at_most(1), second.at_least(1)):
        beside = "is less" if second.at_most(1) == "holds" else "is more"
    section.text += [
        "",
        'The thesis says: "Priv-FairX-LinUCB outperforms B1 while producing comparable performance for B2. But unlike '
        "B2, Priv-FairX-LinUCB has bounded communication gaps, which is necessary for the theoretical guarantees "
        'provided."',
        "",
        f"* Priv < B1: {first.at_most(1)} ({section.say(f'{PRIV} / B1', first)}).",
        f"* Comparable to B2: the thesis names no measure. Priv / B2 is "
        f"{section.say(f'{PRIV} / B2', second)}: Priv's fairness regret {beside}.",
        f'* Of B2 it says that "in theory, fairness regrets could be as bad as O(T)": over the last tenfold of '
        f"rounds here B2 grows like T^{section.say('B2, power of T', _growth(results['B2']))}, Priv like "
        f"T^{section.say(f'{PRIV}, power of T', _growth(results[PRIV]))}.",
        "* B1 asks when its unnoised data say so: it has no claim of privacy (None), whatever its noise, which is made "
        "for a release in each round, since a trigger promises no fewer. B2 releases "
        f"{_releases(results['B2'])} times, Priv {_releases(results[PRIV])} times, at the same epsilon.",
    ]


def numbers(results: Results, name: str) -> dict[float, Result]:
    """Returns the runs of a sweep whose names are that name and a number, by the number."""
    found = {}
    for run, result in results.items():
        base, _, number = run.rpartition(" ")
        if base == name:
            found[float(number)] = result
    return found


def exp3(section: Section, results: Results) -> None:
    """Fairness regret at T against the number of agents."""
    names = (SILENT, FED, PRIV, PRIV + PLACEBO, GREEDY, WEIGHTED)
    sweeps = {name: numbers(results, name) for name in names}
    row = section.table("federation", *names)
    for agents in sweeps[FED]:
        row(f"{agents:g} agents", *(regret_text(sweeps[name][agents]) for name in names))
    for name in names:
        section.draw_points(name, sweeps[name])
        for agents, result in sweeps[name].items():
            section.add(f"{name} / B0", agents, ratio(result, sweeps[SILENT][agents]))
    section.text += [
        "",
        'The thesis says: "The fairness regret scales as expected with respect to the number of agents, validating '
        "theoretical results.\" Its bounds on the regret of all m agents grow like sqrt(m), so that an agent's falls "
        "like m^-0.5, and B0's like m^0. Powers are of a line through logarithms, fitted for each run, ± over runs.",
        "",
    ]
    for name, expected in ((FED, -0.5), (PRIV, -0.5), (SILENT, 0.0)):
        swept = sweeps[name]
        order = sorted(swept, reverse=True)
        logs = np.log([regret_by_seed(swept[agents]) for agents in order])
        power = over_seeds(np.polyfit(np.log(order), logs, 1)[0], ".3f")
        falls = "" if name == SILENT else (
            f"; falls at every step with the number of agents: {ordered([swept[m] for m in order])[0]}"
        )  # fmt: skip
        section.text.append(
            f"* {name}: from {order[-1]:g} to {order[0]:g} agents like "
            f"m^{section.say(f'{name}, power of m', power)}; "
            f"{lies_within(expected, power)}{falls}."
        )


def exp4(section: Section, results: Results) -> None:
    """Fairness regret at T against epsilon."""
    names = (PRIV, PRIV + PLACEBO, WEIGHTED)
    sweeps = {name: numbers(results, name) for name in names}
    row = section.table("budget", PRIV, "/ B0", "placebo / B0", WEIGHTED, f"/ {GREEDY}")
    for epsilon, result in sweeps[PRIV].items():
        row(
            f"epsilon {epsilon:g}", regret_text(result), ratio(result, results[SILENT]),
            ratio(sweeps[PRIV + PLACEBO][epsilon], results[SILENT]),
            regret_text(sweeps[WEIGHTED][epsilon]), ratio(sweeps[WEIGHTED][epsilon], results[GREEDY]),
        )  # fmt: skip
    for name in names:
        section.draw_points(name, sweeps[name])
    for epsilon, result in sweeps[WEIGHTED].items():
        section.add(f"{WEIGHTED} / B0", epsilon, ratio(result, results[SILENT]))
    for name in (SILENT, FED, GREEDY):
        section.draw_points(name, dict.fromkeys(sweeps[PRIV], results[name]))
    order = sorted(sweeps[PRIV], reverse=True)
    statement, _ = ordered([sweeps[PRIV][epsilon] for epsilon in order])
    private = {epsilon: ratio(sweeps[PRIV][epsilon], results[SILENT]) for epsilon in order if epsilon >= 1}
    silence = {epsilon: ratio(sweeps[PRIV][epsilon], results[GREEDY]) for epsilon in private}
    section.text += [
        "",
        'The thesis says: "The private algorithm achieved reasonable performance for ε values of 1 or '
        'greater, highlighting the trade-off between privacy and regret."',
        "",
        f"* The trade-off, {PRIV}'s fairness regret falls at every step with epsilon: {statement}.",
        "* What is reasonable is not said. At epsilon of 1 or greater it is "
        f"{min(v.value for v in private.values()):.2f} to {max(v.value for v in private.values()):.2f} times B0's (at "
        f"most B0's: {all_hold(v.at_most(1) for v in private.values())}), and "
        f"{min(v.value for v in silence.values()):.2f} to {max(v.value for v in silence.values()):.2f} times that of "
        f"silence with radius 0 (at most that: {all_hold(v.at_most(1) for v in silence.values())}).",
        f"* Silence with radius 0 ({GREEDY}): {section.say(GREEDY, regret_text(results[GREEDY]))}, "
        f"{section.say(f'{GREEDY} / B0', ratio(results[GREEDY], results[SILENT]))} times B0's.",
    ]
