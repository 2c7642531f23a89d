"""The errors that Zhou and Chowdhury find in FedUCB, checked in numbers.

Reference:
    X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024
    (arXiv 2302.13945).
"""

from collections.abc import Sequence
from itertools import product
from math import ceil, isnan, log, log1p, nan, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.baselines.linear.feducb import FedUCB
from fedbandit_envs.baselines.linear.regressions import regularise
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.papers import experiment, stats
from fedbandit_envs.papers.experiment import Experiment, Measurement, PanelRuns, Plan, Scale, Section
from fedbandit_envs.papers.feducb import DELTA, SHARED, largest_sd, linear_run
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers.privacy.audit import epsilon_from_rates, rate_at_least, rate_at_most

PRINTED, FIXED, TRUE = "FedUCB-printed-trigger", "FedUCB-printed", "FedUCB-nonprivate-trigger"
MADE, SEARCHED, DOUBLING = "its trigger, D made for it", "its trigger, printed D", "doubling rounds"
NOISE = "noise"
FORMS = (FIXED, "FedUCB", "FedUCB-min", SHARED)
"""Baselines whose regret is measured for several numbers of agents."""
AGENTS, DIM, ARMS = 10, 10, 10
"""Numbers of agents, dimensions and arms of the federations whose synchronisations are counted."""
ATTACKED = 2
"""Number of agents in a federation whose first messages are observed."""
ERROR = 1e-4
"""Largest probability with which a lower bound of epsilon may be above the true epsilon."""

_ROUND = 50  # round in which a threshold, chosen for it, betrays whether the observation was made
_NOISY_ROUNDS = 16
_SMALL_DIM, _FAILURE = 2, 0.01
# The two arms: a context of the largest norm, with reward 1, and the zero context, with reward 0.
_LONG, _NOTHING = 0, 1


def _federation(baseline: str, agents: int, horizon: int, **wrappers: dict[str, Any]) -> FederatedEnv:
    """Returns a linear bandit with a baseline's wrappers, in which only the noise of privatizers is random."""
    env = parallel_env(
        num_agents=agents, contexts=[[1.0, 0.0], [0.0, 0.0]], parameter=[1.0, 0.0], reward="normal",
        reward_sd=0.0, reward_bound=1.0, max_cycles=horizon,
    )  # fmt: skip
    return experiment.baseline_of(baseline).wrap(env, wrappers)


class _ScriptedFedUCB(FedUCB):
    """FedUCB whose agents always pull the zero context, except that the first agent's first pull is prescribed."""

    def __init__(self, first: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._first = first

    def _pull(self, observation: Arrays) -> Array:
        arm = np.full(observation["round"].shape[:2], _NOTHING)
        if observation["round"].flat[0] == 0:
            arm[:, 0] = self._first
        return arm


def first_messages(
    seeds: range, baseline: str, epsilon: float, horizons: tuple[int, int], made_for: int | None = None
) -> dict[str, Any]:
    """Measures when a federation synchronises first, under two histories of one agent that differ in one observation.

    In one history the agent observes a context of the largest norm in round 1, in the other the zero context. Agents
    have received no noise before the first synchronisation, so its round is a function of the history. An attacker sees
    that round and nothing else.

    Args:
        seeds: One seed for each run without the observation; the runs with it have as many seeds that follow these.
        baseline: Name of the federation's baseline.
        epsilon: The epsilon that all releases together promise.
        horizons: First and last horizon T. The paper's threshold depends on T: the first T is played at which the
            trigger fires in different rounds under the two histories, or the last if there is no such T.
        made_for: If given, the first T is played with a threshold that is chosen so that the trigger fires in this
            round under one history only; None for the paper's threshold.

    Returns:
        ``without`` and ``including``: rounds of the first synchronisation without the observation and with it,
        ``(seeds,)`` each, 0 for none; ``horizon``: T that was played; ``share``: share of the horizons at which the two
        histories' rounds differ, NaN if ``made_for`` is given; ``reason``: why the federation claims no privacy, empty
        if it claims some.
    """
    (horizon, last), share, threshold = horizons, nan, None
    if made_for is None:
        betraying = []
        for tried in range(horizon, last + 1):
            printed, *sides = printed_trigger(baseline, epsilon, tried)
            if len({ceil(printed / side) for side in sides}) == 2:
                betraying.append(tried)
        horizon, share = (betraying or [last])[0], len(betraying) / (last + 1 - horizon)
    else:
        threshold = made_for * sum(printed_trigger(baseline, epsilon, horizon)[1:]) / 2
    rounds = []
    for pull, own in ((_NOTHING, seeds), (_LONG, range(seeds.stop, seeds.stop + len(seeds)))):
        env = _federation(baseline, ATTACKED, horizon, privatizer={"epsilon": epsilon})
        arguments = {**experiment.baseline_of(baseline).policy_kwargs, "threshold": threshold}
        policy = _ScriptedFedUCB(pull, **arguments)
        observation = env.reset_batch(own).observation
        policy.reset(env.policy_spec, row_seeds(own, ATTACKED))
        first = np.zeros(len(own), np.int64)
        for t in range(1, horizon + 1):
            observation = env.step_batch(policy.act(observation)).observation
            first[(first == 0) & observation["inbox_mask"].any(axis=(1, 2))] = t
            if first.all():
                break
        rounds.append(first)
    found = {"horizon": horizon, "share": share, "reason": env.privacy().reason}
    return {"without": rounds[0], "including": rounds[1], **found}


def printed_trigger(baseline: str, epsilon: float, horizon: int) -> tuple[float, float, float]:
    """Returns both sides of FedUCB's condition for a synchronisation, at the start of an episode.

    Agents synchronise when the number of rounds since the last synchronisation, times a difference of log determinants,
    reaches the threshold D. The values are computed from the noise variance that the federation announces, without the
    policy, for the federation of :func:`first_messages`.

    Args:
        baseline: Name of the federation's baseline.
        epsilon: The epsilon that all releases together promise.
        horizon: Horizon T, on which D depends.

    Returns:
        The threshold D; and log det(V + (rho_max - rho_min) I) - log det S without any data, and with one context of
        the largest norm.
    """
    env = _federation(baseline, ATTACKED, horizon, privatizer={"epsilon": epsilon})
    worst = largest_sd(env)
    # Logarithm of the union bound over agents and releases, at the first release: release k of each of M agents has the
    # share 6 / (M pi^2 k^2) of half of the policy's failure probability.
    log_union = np.array(log(2 * ATTACKED * np.pi**2 / (6 * _FAILURE)))
    made = regularise(
        shift="per_agent", bias="printed", sd=np.array(worst), worst_sd=worst, heads=np.array(float(ATTACKED)),
        log_union=log_union, dim=_SMALL_DIM, ridge=1.0, parameter_bound=1.0,
    )  # fmt: skip
    least, most = float(made.least), float(made.most)
    without = _SMALL_DIM * log(most / least)
    threshold = 2 * horizon * _SMALL_DIM / (log(most / least + horizon / (_SMALL_DIM * least)) + 1)
    return threshold, without, without + log1p(1 / most)


def added_noise(seeds: range, baseline: str, agents: int, rounds: int) -> dict[str, Any]:
    """Measures the noise in the sum of messages from which FedUCB's agents learn.

    Agents pull the zero context in every round, so that the messages contain noise alone.

    Args:
        seeds: One seed for each federation.
        baseline: Name of the federation's baseline; messages have to reach their senders as well, so that all agents'
            noise is in the sum.
        agents: Number of agents M.
        rounds: Number of rounds T.

    Returns:
        Diagonals of the noise that the first agent received, added up over all rounds: ``summed`` over senders,
        ``(seeds, dim + 1)``, and ``single`` of each sender, ``(seeds, agents, dim + 1)``.
    """
    env = _federation(baseline, agents, rounds)
    env.reset_batch(seeds)
    idle = np.full((len(seeds), agents), _NOTHING)
    received = np.zeros((len(seeds), agents, _SMALL_DIM + 1, _SMALL_DIM + 1))
    for _ in range(rounds):
        received += env.step_batch(idle).observation["inbox_statistic"][:, 0]
    single = np.diagonal(received, axis1=-2, axis2=-1)
    return {"summed": single.sum(axis=1), "single": single}


def _runs(plan: Plan) -> list[RunSpec | Measurement]:
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
        for line, epsilon in product(attacks, sweeps["epsilon"]):
            labels = {"line": line, "epsilon": float(epsilon)}
            arguments, work = {**attacks[line], "epsilon": epsilon}, 2 * ATTACKED * last
            made.append(Measurement(first_messages, arguments, seeds, len(seeds), work, labels))
    elif plan.panel == "noise":
        for agents in map(int, sweeps["agents"]):
            arguments = {"baseline": FIXED, "agents": agents, "rounds": _NOISY_ROUNDS}
            # A federation has an inbox for each ordered pair of agents; at most 200,000 are in memory at once.
            per_shard, work = max(1, 200_000 // agents**2), agents * _NOISY_ROUNDS
            labels = {"line": NOISE, "agents": float(agents)}
            made.append(Measurement(added_noise, arguments, seeds, per_shard, work, labels))
        made += [linear_run(plan, form, agents=agents) for agents in sweeps["agents"] for form in FORMS]
    else:
        for rate in (*map(float, sweeps["dT/D"]), None):
            policy = {} if rate is None else {"threshold": DIM * plan.scale.rounds / rate}
            made += [linear_run(plan, line, policy=policy, rate=rate, arms=ARMS) for line in (PRINTED, TRUE)]
    return made


def epsilon_at_least(without: Array, including: Array, delta: float) -> float:
    """Returns a lower bound of epsilon from the rounds of the first synchronisation under two histories.

    An attacker sees that round and guesses whether the history includes one observation: he compares the round with the
    middle of the two histories' median rounds. A quarter of the samples give the medians; the other samples give the
    attacker's error rates, from which the bound follows. It is too high with probability :data:`ERROR` at most.

    Args:
        without: Rounds of the first synchronisation in runs without the observation, ``(samples,)``.
        including: Rounds of the first synchronisation in runs with the observation, ``(samples,)``.
        delta: The delta of the privacy guarantee.
    """
    quarter = len(without) // 4
    medians = [float(np.median(some[:quarter])) for some in (without, including)]
    false, true = (_guessed(some[quarter:], medians) for some in (without, including))
    return epsilon_from_rates(rate_at_least(true, ERROR / 2), rate_at_most(false, ERROR / 2), delta)


def _guessed(rounds: Array, medians: Sequence[float]) -> Array:
    """Returns for each sample of a first round whether the attacker guesses the history with the observation."""
    without, including = medians
    return np.asarray((rounds < (without + including) / 2) == (including < without))


def log_growth(rounds: int, private: bool) -> float:
    """Returns log(rho_max/rho_min + T L^2/(d rho_min)), FedUCB's bound on a log determinant's growth per dimension.

    T is the number of rounds, d the dimension and L the bound on contexts. With noise, rho_min = Lambda and
    rho_max = 3 Lambda (Proposition 4), where Lambda = sqrt(32) m (L^2 + 1) ln(4/delta) (4 sqrt(d) + 2 ln(2nM/alpha))/
    epsilon, with epsilon = 1, n = T and alpha = 0.01. Without noise, both are each agent's share of the ridge.

    Args:
        rounds: T.
        private: Whether there is noise.
    """
    if not private:
        return log(1 + rounds * AGENTS / DIM)
    depth = 1 + (rounds - 1).bit_length()
    spread = 4 * sqrt(DIM) + 2 * log(2 * rounds * AGENTS / 0.01)
    least = sqrt(32) * depth * 2 * log(4 / DELTA) * spread
    return log(3 + rounds / (DIM * least))


def printed_bound(rounds: int, private: bool, rate: float | None) -> tuple[float, float]:
    """Returns the FedUCB paper's bound on the number of synchronisations (Proposition 1), and the rate d T / D.

    Args:
        rounds: Horizon T.
        private: Whether there is noise.
        rate: d T / D, for dimension d and threshold D of the communication trigger; None for the D of Theorem 1.
    """
    growth = log_growth(rounds, private)
    rate = (growth + 1) / 2 if rate is None else rate
    return 2 * sqrt(rate * growth) + 4, rate


def _report(section: Section, runs: PanelRuns) -> None:
    """Reports what the times of messages betray, how noise adds up, or how often agents synchronise."""
    {"times": _times, "noise": _noise, "messages": _messages}[runs.plan.panel](section, runs)


def _times(section: Section, runs: PanelRuns) -> None:
    lines = runs.lines("epsilon")
    least = stats.each(lines, lambda found: epsilon_at_least(found.without, found.including, DELTA))
    section.table("times", [
        {
            "when to send, and epsilon promised": f"{line}: {epsilon:g}",
            "T": found.horizon,
            "share of horizons that reveal the observation": "-" if isnan(found.share) else f"{found.share:.2%}",
            "first message without the observation": _range(found.without),
            "first message with it": _range(found.including),
            "wrong guesses": _wrong(found.without, found.including),
            "epsilon at least": f"{least[line][epsilon]:.2f}",
            "promise": "**refuted**" if least[line][epsilon] > epsilon else "stands",
            "what is claimed here": f"nothing: {found.reason}" if found.reason else "the promise",
        }
        for line, own in lines.items()
        for epsilon, found in own.items()
    ])  # fmt: skip
    section.draw({**least, "promised": {epsilon: epsilon for epsilon in runs.values("epsilon")}})


def _range(rounds: Array) -> str:
    first, last = rounds.min(), rounds.max()
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def _wrong(without: Array, including: Array) -> str:
    """Returns as text how often an attacker guesses the wrong history from the round of the first message."""
    medians = [float(np.median(some)) for some in (without, including)]
    if medians[0] == medians[1]:
        return "half"
    wrong = _guessed(without, medians).sum() + (~_guessed(including, medians)).sum()
    return f"{wrong} of {2 * len(including):,}"


def _noise(section: Section, runs: PanelRuns) -> None:
    regrets = runs.lines("agents")
    added = regrets.pop(NOISE)
    sds = {agents: (float(found.single.std()), float(found.summed.std())) for agents, found in added.items()}
    ratios = {agents: summed / single for agents, (single, summed) in sds.items()}
    powers = {name: stats.mean_of(stats.exponents(own), ".2f") for name, own in regrets.items()}
    furthest = max(abs(found / sqrt(agents) - 1) for agents, found in ratios.items())
    power, lies = powers["FedUCB"], {"holds": "within the interval", stats.FAILS: "outside the interval"}
    says = {bound: power.contains(bound) for bound in (-1 / 4, -1 / 2)}
    asked = [("ratio of noise: furthest from sqrt(M)", f"{furthest:.1%}", "")] + [
        (f"exponent of M in FedUCB's regret: is it {bound:g}?", power, lies.get(one, one))
        for bound, one in says.items()
    ]
    section.verdicts(asked)
    section.table("noise", [
        {
            "agents M": f"{agents:g}",
            "noise in one agent's share": f"{single:.1f}",
            "noise in the sum": f"{summed:.1f}",
            "ratio": f"{ratios[agents]:.2f}",
            "sqrt(M)": f"{sqrt(agents):.2f}",
        }
        for agents, (single, summed) in sds.items()
    ])  # fmt: skip
    found = stats.each(regrets, stats.final_regret)
    lines = stats.by_line(found, "form", "M = {:g}")
    head = "exponent of M [95 % over trials]"
    section.table("regret", [{**line, head: powers[line["form"]]} for line in lines])
    points = {
        "noise in the sum": ratios,
        **stats.each(found, lambda mean: mean.value),
        "Corollary 1: M^(-1/2)": {agents: agents**-0.5 for agents in added},
        "noise of M agents: M^(-1/4)": {agents: agents**-0.25 for agents in added},
    }
    section.draw({name: {at: y / own[min(own)] for at, y in own.items()} for name, own in points.items()})


def _messages(section: Section, runs: PanelRuns) -> None:
    rounds, heads = runs.plan.scale.rounds, {
        PRINTED: ("printed form", "its bound", "is it kept?"),
        TRUE: ("true data", "its bound with true data", "is that kept?"),
    }  # fmt: skip
    rows: dict[float | None, stats.Row] = {}
    broken = []
    for line, own in runs.lines("rate").items():
        name, of_bound, of_verdict = heads[line]
        measured, bounds = {}, {}
        for given, result in own.items():
            # In a synchronisation every agent sends a message to every other agent.
            counts = result.traffic["messages"].max(axis=1) / (AGENTS - 1)
            bound, rate = printed_bound(rounds, line == PRINTED, given)
            row = rows.setdefault(given, {"dT/D": "Theorem 1's" if given is None else f"{given:g}"})
            row[name] = f"{counts.mean():,.1f}" + (f" (dT/D = {rate:.2f})" if given is None else "")
            row[of_bound] = f"{bound:,.1f}"
            row[of_verdict] = "yes" if counts.max() <= bound else "**no**"
            if given is not None:
                measured[given], bounds[given] = float(counts.mean()), bound
        section.draw({name: measured, f"{name}, the bound": bounds})
        if line == PRINTED:
            broken = [rate for rate in measured if measured[rate] > bounds[rate]]
    kept = f"is broken from dT/D = {broken[0]:g} on" if broken else "holds wherever it was tried"
    growth = f"{DIM * log_growth(rounds, True):.0f}"
    section.table("verdicts", [
        {"measured": "the bound with the printed noise", "here": kept},
        {"measured": "d log(rho_max/rho_min + TL^2/(d rho_min))", "here": growth},
    ])  # fmt: skip
    section.table("messages", rows.values())


_TINY = {"epsilon": (1,), "samples": (200,), "horizons": (160, 180), "agents": (2, 5), "dT/D": (1, 64)}
_ATTACK = {"epsilon": (0.1, 1, 3), "samples": (2000,), "horizons": (100, 2000)}
_SMALL = {**_ATTACK, "agents": (2, 5, 10, 20), "dT/D": (1, 4, 16, 64, 256)}
_PAPER = {**_ATTACK, "agents": (*_SMALL["agents"], 50, 100), "dT/D": (*_SMALL["dT/D"], 1024)}

EXPERIMENTS = {
    "feducb-critique": Experiment(
        "FedUCB, as Zhou and Chowdhury criticise it: privacy, noise, communication",
        "The errors that Zhou and Chowdhury find in FedUCB, in numbers; 6 minutes.",
        {"x": "epsilon promised", "y": "epsilon, at least", "yscale": "linear"},
        # Neither paper prints measured values, so the scale ``paper`` is only larger than ``small``.
        {"tiny": Scale(200, 2, _TINY), "small": Scale(20_000, 20, _SMALL), "paper": Scale(100_000, 20, _PAPER)},
        _runs, _report,
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
}  # fmt: skip
