"""The runs of the SAMBA paper's experiments (Ciucanu et al. 2022, Figure 8), and of one that compares it with noise."""

from typing import Any

from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.papers.reproduction.experiment import LINEAR, Experiment, Measurement, Plan, Scale
from fedbandit_envs.papers.samba.runs import select
from fedbandit_envs.samba.ciphers import require_extra

ALGORITHMS = {
    "epsilon-greedy": "fixed epsilon",
    "epsilon-decreasing": "decreasing epsilon",
    "ucb": "UCB",
    "thompson": "Thompson",
    "softmax": "Softmax",
    "pursuit": "Pursuit",
}
PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    panel: {
        "epsilon-greedy": {"epsilon": 0.1},
        "softmax": {"temperature": temperature},
        "pursuit": {"rate": rate},
    }
    for panel, temperature, rate in (("movielens", 0.06, 0.1), ("jester", 0.02, 0.2))
}
PANELS = {"movielens": "MovieLens", "jester": "Jester"}
PAPER_ROUNDS, MOST_ARMS = 100_000, 100

TIMED = 20
"""Number of runs of which CPU time is measured, for each setting."""

AGENTS, DELTA = 10, 1e-5
SILENT, SHARED, PRIVATE, PLACEBO = "UCB1", "Fed-UCB1", "Priv-UCB1", "Priv-UCB1-placebo"
OPEN, ENCRYPTED = "owners in the open", "SAMBA"
RANDOM = "uniform-arms"

_SEEDS_PER_SHARD = 5  # of runs without encryption; an encrypted run is a shard of its own
_ENCRYPTION = 50
"""Roughly the time of an encrypted round divided by the time of a round without encryption."""


def _run(
    plan: Plan,
    algorithm: str,
    arms: int,
    budget: int,
    *,
    plain: bool,
    seeds: int = TIMED,
    line: str = "",
    **others: Any,
) -> Measurement:
    """Returns the runs of an algorithm on a vertical federation.

    Args:
        plan: The panel's settings; the panel's name is the data set of ratings from which the arms are made.
        algorithm: Name of the algorithm.
        arms: Number of arms K, each with an owner.
        budget: Number of rounds N.
        plain: Whether the run is without encryption.
        seeds: Number of runs; the scale's number of trials if that is smaller.
        line: Name of the runs on the page; the algorithm's name if empty.
        **others: Other arguments of :func:`~fedbandit_envs.papers.samba.runs.select`.

    Raises:
        MissingExtraError: The runs are encrypted, and the ``[secure]`` extra is not installed.
        ValueError: There are fewer rounds than arms.
    """
    require_integer("rounds", budget, arms)
    if not plain:
        require_extra()
    settings = {
        "algorithm": algorithm,
        "ratings": plan.panel,
        "arms": arms,
        "budget": budget,
        "parameters": PARAMETERS[plan.panel].get(algorithm, {}),
        "plain": plain,
        **others,
    }
    return Measurement(
        select,
        settings,
        range(min(seeds, plan.scale.trials)),
        _SEEDS_PER_SHARD if plain else 1,
        arms * budget * (1 if plain else _ENCRYPTION),
        {"line": line or algorithm, "arms": arms, "budget": budget, "plain": plain},
    )


def _sizes(scale: Scale) -> list[tuple[int, int]]:
    """Returns the pairs of number of arms K and number of rounds N that are compared.

    Raises:
        ValueError: The smallest N is smaller than K, though each owner's arm has to be pulled once.
    """
    if "arms" in scale.sweeps:
        return [(int(arms), scale.rounds) for arms in scale.sweeps["arms"]]
    shares = scale.sweeps["share"]
    require_integer("rounds", scale.rounds, round(MOST_ARMS / shares[0]))
    return [(MOST_ARMS, round(share * scale.rounds)) for share in shares]


def times(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figures 8 (a) and (b): CPU time against N or K, with encryption and without."""
    return [
        _run(plan, algorithm, *size, plain=plain)
        for algorithm in ALGORITHMS
        for size in _sizes(plan.scale)
        for plain in (False, True)
    ]


def rewards(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figure 8 (c): cumulative reward for K = 100 arms against the number of rounds N.

    One run of each algorithm gives the rewards for all N: no algorithm depends on N, so the reward after the first N
    rounds of a longer run is that of a run with N rounds.
    """
    noted = [budget for _, budget in _sizes(plan.scale)]
    return [
        _run(plan, algorithm, MOST_ARMS, noted[-1], plain=True, seeds=plan.scale.trials, noted=noted)
        for algorithm in ALGORITHMS
    ]


def shares(plan: Plan) -> list[Measurement]:
    """Returns the runs of Figure 8 (d): shares of the CPU time by participant; each owner is a role of its own."""
    return [
        _run(plan, algorithm, *size, plain=False, owners_per_role=1)
        for algorithm in ALGORITHMS
        for size in _sizes(plan.scale)
    ]


def privacy(plan: Plan) -> list[RunSpec | Measurement]:
    """Returns the runs that compare noise with encryption on the same arms.

    Agents with UCB1 do not communicate, share true data, or share noisy data. Data owners with UCB are played with
    encryption and without.
    """
    scale, arms = plan.scale, int(plan.scale.sweeps["arms"][0])
    lines: list[tuple[str, dict[str, float]]] = [(name, {}) for name in (RANDOM, SILENT, SHARED)]
    lines += [(name, {"epsilon": at}) for at in scale.sweeps["epsilon"] for name in (PRIVATE, PLACEBO)]
    agents = [
        RunSpec(
            name, "FedArms-v0", scale.rounds, scale.trials,
            env_kwargs={"means": plan.panel, "num_arms": arms, "num_agents": AGENTS},
            wrapper_kwargs={"privatizer": {**epsilon, "delta": DELTA}} if epsilon else {},
            delta=DELTA, labels={"line": name, **epsilon},
        )
        for name, epsilon in lines
    ]  # fmt: skip
    pulls = AGENTS * scale.rounds
    return [
        *agents,
        _run(plan, "ucb", arms, pulls, plain=True, seeds=scale.trials, line=OPEN),
        _run(plan, "ucb", arms, pulls, plain=False, line=ENCRYPTED),
    ]


_SHARES = {"share": (0.25, 0.5, 0.75, 1.0)}
_TENTHS = Scale(PAPER_ROUNDS, 50, {"share": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)})
_BY_ARMS = Scale(PAPER_ROUNDS, 50, {"arms": (10, 20, 40, 60, 80, 100)})
_ENDS = {"arms": (10, 100)}
_TIME = {"y": "CPU seconds", "xscale": "linear"}

EXPERIMENTS = {
    "samba-fig8a": Experiment(
        "SAMBA, Figure 8 (a): execution time against N, K = 100",
        {"x": "N", **_TIME},
        {"small": Scale(2_000, 20, _SHARES), "paper": _TENTHS},
        times,
        PANELS,
    ),
    "samba-fig8b": Experiment(
        "SAMBA, Figure 8 (b): execution time against K",
        {"x": "K", **_TIME},
        {"small": Scale(1_000, 20, {"arms": (10, 40, 70, 100)}), "paper": _BY_ARMS},
        times,
        PANELS,
    ),
    "samba-fig8c": Experiment(
        "SAMBA, Figure 8 (c): cumulative reward against N, K = 100",
        {"x": "N", "y": "cumulative reward", **LINEAR},
        {"small": Scale(20_000, 20, _SHARES), "paper": _TENTHS},
        rewards,
        PANELS,
    ),
    "samba-fig8d": Experiment(
        "SAMBA, Figure 8 (d): shares of the CPU time by participant",
        {"x": "1: one owner, 2: Controller, 3: data customer, 4: Comp", "y": "% of the CPU time", **LINEAR},
        {"small": Scale(500, 20, _ENDS), "paper": Scale(PAPER_ROUNDS, 50, _ENDS)},
        shares,
        PANELS,
    ),
    "samba-privacy": Experiment(
        "Noise beside encryption: differential privacy and SAMBA on the same arms",
        {"x": "epsilon", "y": "regret a pull", "yscale": "linear"},
        {
            "small": Scale(2_000, 20, {"arms": (10,), "epsilon": (0.5, 2.0, 8.0)}),
            "paper": Scale(10_000, 50, {"arms": (100,), "epsilon": (0.1, 0.5, 1.0, 2.0, 8.0)}),
        },
        privacy,
        PANELS,
        "privacy_setting.md.j2",
    ),
}
