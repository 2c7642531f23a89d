"""What Zhou and Chowdhury (ICLR 2024) find wrong with FedUCB, as data: which runs check it in numbers.

Reference:
    X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024
    (arXiv 2302.13945).
"""

from collections.abc import Mapping
from math import log, sqrt

from fedbandit_envs.leaderboard.reproduction.experiment import Plan, Scale
from fedbandit_envs.leaderboard.reproduction.feducb import DELTA, SHARED, cell
from fedbandit_envs.leaderboard.reproduction.feducb_attacks import AddedNoise, SendTimes
from fedbandit_envs.leaderboard.sweep.cell import Cell

PANELS = {
    "times": "What the times of messages betray",
    "noise": "How the noise of M agents adds up",
    "messages": "Synchronisations against the printed bound",
}
_ATTACK = {"epsilon": (0.1, 1.0, 3.0), "samples": (2000,), "horizons": (100, 2000)}
SCALES = {
    "tiny": Scale(
        200,
        2,
        {"epsilon": (1,), "samples": (200,), "horizons": (100, 250), "agents": (2, 5), "dT/D": (1, 64)},
    ),
    "small": Scale(20_000, 5, {**_ATTACK, "agents": (2, 5, 10, 20), "dT/D": (1, 4, 16, 64, 256)}),
    "paper": Scale(
        100_000, 20, {**_ATTACK, "agents": (2, 5, 10, 20, 50, 100), "dT/D": (1, 4, 16, 64, 256, 1024)}
    ),
}
"""Neither paper prints numbers to be met; ``paper`` has more of everything."""

PRINTED, FIXED, TRUE = "FedUCB-printed-trigger", "FedUCB-printed", "FedUCB-nonprivate-trigger"
MADE, SEARCHED, DOUBLING = "its trigger, D made for it", "its trigger, printed D", "doubling rounds"
SUMMED = "noise"
FORMS = ("FedUCB-printed", "FedUCB", "FedUCB-min", SHARED)
"""Whose regret is set against the number of agents."""

_ROUND = 50  # that a threshold is made for
_NOISY_ROUNDS = 16
AGENTS, DIM, ARMS = 10, 10, 10
"""Of the federations whose synchronisations are counted."""


def describe(scale: Scale, mode: str) -> str:
    """Describes what is checked, and what of the paper was at hand."""
    return (
        f"T = {scale.rounds:,}, {scale.trials} trials where regret or messages are counted. Zhou and Chowdhury (ICLR "
        '2024, arXiv 2302.13945) write in their abstract: "We identify three issues in the state-of-the-art (Dubey & '
        "Pentland, 2020): (i) failure of claimed privacy protection, (ii) incorrect regret bound due to noise "
        'miscalculation and (iii) ungrounded communication cost." That is all of their paper that was at hand for this '
        "page. Summaries of its reviews have it that the rule of synchronisation lets a malicious silo learn of "
        "another's users by the trigger alone; that the variance of all noise is M sigma^2 and not sigma^2; and that "
        "regret of order M^(3/4) sqrt(T/epsilon) is what can be had so, where Dubey and Pentland print "
        "sqrt(MT/epsilon). How each is checked below is this page's own doing, and where it quotes Dubey and Pentland "
        "it does so word by word. Whether the bounds of either paper are the least there are is not asked."
    )


def cells(plan: Plan) -> Mapping[str, Cell]:
    """Returns a panel's runs."""
    runs: dict[str, Cell] = {}
    sweeps = plan.scale.sweeps
    if plan.panel == "times":
        samples, first, last = map(int, (*sweeps["samples"], *sweeps["horizons"]))
        for epsilon in sweeps["epsilon"]:
            runs[f"{MADE} {epsilon:g}"] = SendTimes(PRINTED, epsilon, samples, (first, first), _ROUND)
            runs[f"{SEARCHED} {epsilon:g}"] = SendTimes(PRINTED, epsilon, samples, (first, last))
            runs[f"{DOUBLING} {epsilon:g}"] = SendTimes(FIXED, epsilon, samples, (first, first), _ROUND)
    elif plan.panel == "noise":
        for agents in map(int, sweeps["agents"]):
            runs[f"{SUMMED} {agents}"] = AddedNoise(FIXED, agents, _NOISY_ROUNDS, int(sweeps["samples"][0]))
            for form in FORMS:
                runs[f"{form} {agents}"] = cell(plan, form, agents=agents)
    else:
        for ratio in sweeps["dT/D"]:
            threshold = DIM * plan.scale.rounds / ratio
            for name in (PRINTED, TRUE):
                runs[f"{name} {ratio:g}"] = cell(
                    plan, name, agents=AGENTS, dim=DIM, arms=ARMS, policy={"threshold": threshold}
                )
        for name in (PRINTED, TRUE):
            runs[f"{name} printed"] = cell(plan, name, agents=AGENTS, dim=DIM, arms=ARMS)
    return runs


def regularisers(rounds: int, private: bool) -> tuple[float, float]:
    """Returns rho_min and rho_max: of Proposition 4 for epsilon = 1, or what share of the ridge an agent has.

    Proposition 4 has Lambda = sqrt(32) m (L^2 + 1) ln(4/delta) (4 sqrt(d) + 2 ln(2nM/alpha))/epsilon, with n = T and
    alpha = 0.01 here, as the policy has it.
    """
    if not private:
        return 1 / AGENTS, 1 / AGENTS
    depth = 1 + (rounds - 1).bit_length()
    reach = sqrt(32) * depth * 2 * log(4 / DELTA) * (4 * sqrt(DIM) + 2 * log(2 * rounds * AGENTS / 0.01))
    return reach, 3 * reach


def printed_bound(ratio: float, rounds: int, private: bool) -> float:
    """Returns Proposition 1's bound of the number of synchronisations, given d T / D."""
    least, most = regularisers(rounds, private)
    return 2 * sqrt(ratio * log(most / least + rounds / (DIM * least))) + 4


def printed_ratio(rounds: int, private: bool) -> float:
    """Returns d T / D for the D of Theorem 1."""
    least, most = regularisers(rounds, private)
    return (log(most / least + rounds / (DIM * least)) + 1) / 2
