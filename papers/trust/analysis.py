"""Tables and curves of the page on trust: what each step from local noise to a trusted server buys."""

from itertools import pairwise

from fedbandit_envs.baselines.comparison_lines import PLACEBO, TRUE, TUNED
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.papers.reproduction.comparison import Ratio, final_regret, ratio
from fedbandit_envs.papers.reproduction.experiment import PanelRuns
from fedbandit_envs.papers.reproduction.page import Table
from fedbandit_envs.papers.trust.experiments import (
    AGENT,
    HALF,
    LADDER,
    MOST,
    PROBLEMS,
    SERVER,
    tuned_releases,
)

NEAR = 1.1
"""A secure sum counts as close to true data where its regret is at most this multiple of it."""


def at(runs: PanelRuns, agents: float, epsilon: float) -> dict[str, RunResult]:
    """Returns the results at a number of agents and an epsilon by line, with those of the lines without noise."""
    here = runs.where(agents=agents)
    return here.where(epsilon=None).by("line") | here.where(epsilon=epsilon).by("line")


def _ratio(runs: PanelRuns, above: RunResult, below: RunResult) -> Ratio:
    return ratio(above, below, middle=PROBLEMS[runs.panel.partition("-")[0]].middle)


def ladder(runs: PanelRuns, agents: float) -> Table:
    """Yields a table with a line for each epsilon and line: regret, its ratio to silence, and what the step buys.

    Where all data of an agent are protected, a column has the rounds of release and the clip, as a norm.

    Args:
        runs: The results of the panel.
        agents: Number of agents.
    """
    name, _, level = runs.panel.partition("-")
    for epsilon in runs.values("epsilon"):
        found = at(runs, agents, epsilon)
        steps = [line for line in LADDER if line in found]
        before = {line: earlier for earlier, line in pairwise(steps)}
        for line in (TUNED, PLACEBO, *steps):
            step = before.get(line)
            releases = {}
            if level == AGENT:
                noisy = line not in (TUNED, TRUE)
                releases["releases in rounds; clip"] = (
                    _released(name, line, epsilon, agents) if noisy else "-"
                )
            yield {
                "epsilon: line": f"{epsilon:g}: {line}",
                "regret per agent (± 95 %)": final_regret(found[line]),
                f"/ {TUNED}": "1" if line == TUNED else _ratio(runs, found[line], found[TUNED]),
                "/ the step before": _ratio(runs, found[line], found[step]) if step else "-",
                "claim against a fellow agent": claim(found[line].privacy),
                **releases,
            }


def _released(name: str, line: str, epsilon: float, agents: float) -> str:
    releases = tuned_releases(name, line, epsilon, int(agents))
    rounds = ", ".join(str(releases.first * 2**number) for number in range(releases.number))
    return f"{rounds}; {releases.clip * releases.first * PROBLEMS[name].unit:.3g}"


def claim(made: Claim) -> str:
    """Returns a claim as the text of a table's cell."""
    return f"none: {made.reason}" if made.epsilon is None else f"{made.epsilon:.3g}, trust: {made.trust}"


def against_fellow(result: RunResult) -> str:
    """Returns the exact claim of a run against a fellow agent, as the text of a table's cell."""
    exact = [claim for claim in result.claims if claim.composition == "exact"]
    fellow = [claim for claim in exact if claim.observer == "fellow" and claim.epsilon is not None]
    return claim((fellow or exact or [result.privacy])[0])


def curves(runs: PanelRuns) -> dict[str, dict[float, Ratio]]:
    """Returns a curve for each line at the middle epsilon: regret, divided by tuned silence's, over agents."""
    epsilons = runs.values("epsilon")
    epsilon = epsilons[len(epsilons) // 2]
    points: dict[str, dict[float, Ratio]] = {}
    for agents in runs.values("agents"):
        found = at(runs, agents, epsilon)
        for line in (PLACEBO, *LADDER):
            if line in found:
                points.setdefault(line, {})[agents] = _ratio(runs, found[line], found[TUNED])
    return points


def near_truth(runs: PanelRuns, line: str, epsilon: float) -> str:
    """Returns a text: at which numbers of agents a line's regret is at most :data:`NEAR` times that on true data."""
    ratios = {agents: at(runs, agents, epsilon) for agents in runs.values("agents")}
    cells = {agents: _ratio(runs, found[line], found[TRUE]) for agents, found in ratios.items()}
    return "; ".join(f"{agents:g} agents {value}: {value.at_most(NEAR)}" for agents, value in cells.items())


SUMS = (HALF, MOST, SERVER)
"""The lines whose regret is compared with that on true data."""
