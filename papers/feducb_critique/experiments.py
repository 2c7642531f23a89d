"""Runs that check in numbers the errors that Zhou and Chowdhury (ICLR 2024) find in FedUCB.

Reference:
    X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024
    (arXiv 2302.13945).
"""

from typing import Any

from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.feducb.experiments import SHARED, linear_run
from fedbandit_envs.papers.feducb_critique.runs import ATTACKED, added_noise, first_messages
from fedbandit_envs.papers.reproduction.experiment import Experiment, Measurement, Plan, Scale

PRINTED, FIXED, TRUE = "FedUCB-printed-trigger", "FedUCB-printed", "FedUCB-nonprivate-trigger"
MADE, SEARCHED, DOUBLING = "its trigger, D made for it", "its trigger, printed D", "doubling rounds"
SUMMED = "noise"
FORMS = (FIXED, "FedUCB", "FedUCB-min", SHARED)
"""Baselines whose regret is measured for several numbers of agents."""

AGENTS, DIM, ARMS = 10, 10, 10
"""Numbers of agents, dimensions and arms of the federations whose synchronisations are counted."""

_ROUND = 50  # round in which a threshold, chosen for it, betrays whether the observation was made
_NOISY_ROUNDS = 16
_INBOXES = 200_000  # most inboxes in memory at once; a federation has one for each ordered pair of agents


def runs(plan: Plan) -> list[RunSpec | Measurement]:
    """Returns the runs of one panel.

    Panel ``times`` has attacks on the rounds in which messages are sent, panel ``noise`` sums of noise, and panel
    ``messages`` federations that synchronise when the FedUCB paper's trigger fires. Runs of the last panel have the
    label ``rate``, which is d T / D for dimension d and the trigger's threshold D, or None for the printed D.
    """
    sweeps = plan.scale.sweeps
    seeds = range(int(sweeps["samples"][0]))
    made: list[RunSpec | Measurement] = []
    if plan.panel == "times":
        first, last = map(int, sweeps["horizons"])
        attacks: dict[str, dict[str, Any]] = {
            MADE: {"baseline": PRINTED, "horizons": (first, first), "made_for": _ROUND},
            SEARCHED: {"baseline": PRINTED, "horizons": (first, last)},
            DOUBLING: {"baseline": FIXED, "horizons": (first, first), "made_for": _ROUND},
        }
        for line, attack in attacks.items():
            for epsilon in sweeps["epsilon"]:
                arguments, work = {**attack, "epsilon": epsilon}, 2 * ATTACKED * last
                labels = {"line": line, "epsilon": float(epsilon)}
                made.append(Measurement(first_messages, arguments, seeds, len(seeds), work, labels))
    elif plan.panel == "noise":
        for agents in map(int, sweeps["agents"]):
            arguments = {"baseline": FIXED, "agents": agents, "rounds": _NOISY_ROUNDS}
            per_shard, work = max(1, _INBOXES // agents**2), agents * _NOISY_ROUNDS
            labels = {"line": SUMMED, "agents": float(agents)}
            made.append(Measurement(added_noise, arguments, seeds, per_shard, work, labels))
        made += [linear_run(plan, form, agents=agents) for agents in sweeps["agents"] for form in FORMS]
    else:
        size: dict[str, Any] = {"agents": AGENTS, "dim": DIM, "arms": ARMS}
        for rate in (*map(float, sweeps["dT/D"]), None):
            policy = {} if rate is None else {"threshold": DIM * plan.scale.rounds / rate}
            made += [linear_run(plan, line, policy=policy, rate=rate, **size) for line in (PRINTED, TRUE)]
    return made


_TINY = {"epsilon": (1,), "samples": (200,), "horizons": (100, 250), "agents": (2, 5), "dT/D": (1, 64)}
_ATTACK = {"epsilon": (0.1, 1, 3), "samples": (2000,), "horizons": (100, 2000)}
_SMALL = {**_ATTACK, "agents": (2, 5, 10, 20), "dT/D": (1, 4, 16, 64, 256)}
_PAPER = {**_ATTACK, "agents": (*_SMALL["agents"], 50, 100), "dT/D": (*_SMALL["dT/D"], 1024)}

EXPERIMENTS = {
    "feducb-critique": Experiment(
        "FedUCB, as Zhou and Chowdhury criticise it: privacy, noise, communication",
        {"x": "epsilon promised", "y": "epsilon, at least", "yscale": "linear"},
        # Neither paper prints measured values, so the scale ``paper`` is only larger than ``small``.
        {
            "tiny": Scale(200, 2, _TINY),
            "small": Scale(20_000, 20, _SMALL),
            "paper": Scale(100_000, 20, _PAPER),
        },
        runs,
        {
            "times": "What the times of messages betray",
            "noise": "How the noise of M agents adds up",
            "messages": "Synchronisations against the printed bound",
        },
        panel_axes={
            "noise": {"x": "agents M", "y": "relative to the fewest agents", "yscale": "log"},
            "messages": {"x": "dT/D", "y": "synchronisations", "yscale": "log"},
        },
    )
}
