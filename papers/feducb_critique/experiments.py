"""Runs that check in numbers the errors that Zhou and Chowdhury (ICLR 2024) find in FedUCB.

Reference:
    X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024
    (arXiv 2302.13945).
"""

from typing import Any

from fedbandit_envs.leaderboard.reproduction.experiment import (
    LOG_LINEAR,
    Experiment,
    LabelledCell,
    Plan,
    Scale,
)
from fedbandit_envs.papers.feducb.experiments import SHARED, linear_run
from fedbandit_envs.papers.feducb_critique.runs import AddedNoise, SendTimes

PRINTED, FIXED, TRUE = "FedUCB-printed-trigger", "FedUCB-printed", "FedUCB-nonprivate-trigger"
MADE, SEARCHED, DOUBLING = "its trigger, D made for it", "its trigger, printed D", "doubling rounds"
SUMMED = "noise"
FORMS = (FIXED, "FedUCB", "FedUCB-min", SHARED)
"""Federations whose regret is set against the number of agents."""

AGENTS, DIM, ARMS = 10, 10, 10
"""Size of the federations whose synchronisations are counted."""

_ROUND = 50  # that a threshold is made for
_NOISY_ROUNDS = 16


def runs(plan: Plan) -> list[LabelledCell]:
    """Returns a panel's runs: attacks on the times of messages, sums of noise, or federations with a trigger."""
    return {"times": _times, "noise": _noise, "messages": _messages}[plan.panel](plan)


def _times(plan: Plan) -> list[LabelledCell]:
    sweeps = plan.scale.sweeps
    samples, first, last = map(int, (*sweeps["samples"], *sweeps["horizons"]))
    attacks = {
        MADE: (PRINTED, (first, first), _ROUND),
        SEARCHED: (PRINTED, (first, last), None),
        DOUBLING: (FIXED, (first, first), _ROUND),
    }
    return [
        SendTimes(name, epsilon, samples, horizons, made_for, {"line": line, "epsilon": float(epsilon)})
        for line, (name, horizons, made_for) in attacks.items()
        for epsilon in sweeps["epsilon"]
    ]


def _noise(plan: Plan) -> list[LabelledCell]:
    sweeps = plan.scale.sweeps
    samples = int(sweeps["samples"][0])
    return [
        *(
            AddedNoise(FIXED, int(agents), _NOISY_ROUNDS, samples, {"line": SUMMED, "agents": float(agents)})
            for agents in sweeps["agents"]
        ),
        *(linear_run(plan, form, agents=agents) for agents in sweeps["agents"] for form in FORMS),
    ]


def _messages(plan: Plan) -> list[LabelledCell]:
    """Returns runs with thresholds D by their label ``rate``, which is d T / D; it is None for the printed D."""
    size: dict[str, Any] = {"agents": AGENTS, "dim": DIM, "arms": ARMS}
    lines = PRINTED, TRUE
    made = [
        linear_run(plan, line, policy={"threshold": DIM * plan.scale.rounds / rate}, rate=float(rate), **size)
        for rate in plan.scale.sweeps["dT/D"]
        for line in lines
    ]
    return [*made, *(linear_run(plan, line, rate=None, **size) for line in lines)]


_TINY = {"epsilon": (1,), "samples": (200,), "horizons": (100, 250), "agents": (2, 5), "dT/D": (1, 64)}
_ATTACK = {"epsilon": (0.1, 1, 3), "samples": (2000,), "horizons": (100, 2000)}

EXPERIMENTS = {
    "feducb-critique": Experiment(
        "FedUCB, as Zhou and Chowdhury criticise it: privacy, noise, communication",
        {"x": "epsilon promised", "y": "epsilon, at least", **LOG_LINEAR},
        # Neither paper prints numbers to be met; ``paper`` has more of everything.
        {
            "tiny": Scale(200, 2, _TINY),
            "small": Scale(20_000, 5, _ATTACK | {"agents": (2, 5, 10, 20), "dT/D": (1, 4, 16, 64, 256)}),
            "paper": Scale(
                100_000,
                20,
                _ATTACK | {"agents": (2, 5, 10, 20, 50, 100), "dT/D": (1, 4, 16, 64, 256, 1024)},
            ),
        },
        {
            "times": "What the times of messages betray",
            "noise": "How the noise of M agents adds up",
            "messages": "Synchronisations against the printed bound",
        },
        runs,
        "panel.md.j2",
        panel_axes={
            "noise": {"x": "agents M", "y": "relative to the fewest agents", "yscale": "log"},
            "messages": {"x": "dT/D", "y": "synchronisations", "yscale": "log"},
        },
    )
}
