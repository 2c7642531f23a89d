"""Plays a policy on all agents of a federation, and keeps the result: regret at log-spaced rounds, means and claims."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from fedbandit_envs.baselines.baseline import Baseline, as_baseline
from fedbandit_envs.baselines.policy import Policy, UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.html import html_table
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.core.privacy import Claim, Composition
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.experiments.execute import progress as bar
from fedbandit_envs.experiments.measures import Estimate, mean_with_interval, rounded
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer
from fedbandit_envs.wrappers.transport.transport import Transport

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

ROWS_PER_SHARD = 500
"""Default number of rows that are played at the same time; a row is one agent in one replica.

Arrays with so many rows fit into a processor's cache.
"""

# Step information that has no mean over rounds, the number of an arm and what grows, and regret, which is kept apart.
_WITHOUT_MEAN = ("arm", "epsilon_spent", "regret")

# The attributes that map names to arrays; a shard's file stores them as ``info/name`` and so on.
_BY_NAME = ("info", "traffic", "totals")


_LACKING = "the policy reads {}, which is not here; observations are {}"


class _Shown(Arrays):
    """Observations as a policy is given them: if it reads one that is not there, the error lists those that are."""

    def __missing__(self, name: str) -> Array:
        raise UnfitError(_LACKING.format(repr(name), ", ".join(self)))


_SILENCE = Claim(0.0, 0.0, "", "basic", "nothing has been released")


@dataclass(frozen=True)
class RunResult:
    """The result of a run: cumulative regret of every agent at log-spaced rounds, and other measures.

    Attributes:
        rounds: The checkpoints: log-spaced rounds after which regret was recorded, ``(checkpoints,)``.
        regret: Cumulative regret, float64 ``(checkpoints, replicas, agents)``.
        seeds: The replicas' seeds.
        info: Means over rounds of the other step information that has a mean (not the number of an arm, nor the
            epsilon spent so far), by name, float64 ``(replicas, agents)``.
        messages: Cumulative number of sent messages, ``(checkpoints, replicas, agents)``; None without a transport.
        traffic: Total ``messages`` and ``bytes`` of the episode, ``(replicas, agents)``; empty without a transport.
        totals: Other sums over the episode by name, ``(replicas, agents, ...)``; see
            :attr:`~fedbandit_envs.core.federated_env.FederatedEnv.totals`.
        groups: Indices of the agents that reports show separately, by the group's name.
        privacy: The environment's privacy claim for the episode, for that agent of all replicas which has the largest
            privacy loss.
        claims: Privacy claims for the episode, for each adjacency and composition: one that holds against everybody,
            or, if the transport has a stage (a shuffler, a secure sum or a trusted server), one against each observer,
            those that trust least first, as :meth:`.FederatedEnv.privacy_claims` returns them. Empty without a
            privatizer, and in results of :func:`simulate`.
        cpu_seconds: CPU time that playing took.
        instances: Number of problem instances that seeds take in turn; None if each seed draws one of its own.
        labels: Columns of the table with one value for the whole run: ``env_id``, ``baseline``, ``epsilon``, and the
            run's own labels. ``epsilon`` is the argument of that name of one of the baseline's wrappers; None if none
            has it, as where noise is given by its size (``noise_multiplier``): what was spent is in ``claims``.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.baselines.arms import UCB1
        >>> from fedbandit_envs.experiments import simulate
        >>> result = simulate(parallel_env(num_agents=3, max_cycles=20), UCB1(), seeds=range(4))
        >>> result.regret[-1].shape
        (4, 3)
        >>> list(result.to_frame().columns)[:8]
        ['env_id', 'baseline', 'epsilon', 'num_agents', 'rounds', 'seed', 'agent', 'round']
    """

    rounds: Array
    regret: Array
    seeds: Sequence[int] = ()
    info: Arrays = field(default_factory=dict)
    messages: Array | None = None
    traffic: Arrays = field(default_factory=dict)
    totals: Arrays = field(default_factory=dict)
    groups: Mapping[str, Sequence[int]] = field(default_factory=dict)
    privacy: Claim = _SILENCE
    claims: Sequence[Claim] = ()
    cpu_seconds: float = 0.0
    instances: int | None = None
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def per_seed(self) -> Array:
        """Regret per agent at the horizon of each seed, float64 ``(replicas,)``."""
        return self.regret[-1].mean(axis=-1)

    @property
    def late(self) -> Array:
        """Regret per agent in the second half of the rounds of each seed, float64 ``(replicas,)``.

        Between two checkpoints regret is taken to grow linearly.
        """
        means = self.regret.mean(axis=2)
        return means[-1] - [np.interp(self.rounds[-1] / 2, self.rounds, seed) for seed in means.T]

    @property
    def mean(self) -> Estimate:
        """Mean regret per agent at the horizon, with the ends of its 95 % interval over seeds."""
        return mean_with_interval(self.per_seed)

    def of(self, group: str) -> "RunResult":
        """Returns the result of one group of agents; its privacy claims are still for all agents.

        Args:
            group: Name of the group, a key of :attr:`groups`.
        """
        agents = list(self.groups[group])
        by_name: dict[str, Any] = {
            kind: {name: values[:, agents] for name, values in getattr(self, kind).items()}
            for kind in _BY_NAME
        }
        messages = None if self.messages is None else self.messages[:, :, agents]
        return replace(self, regret=self.regret[:, :, agents], messages=messages, groups={}, **by_name)

    def as_json(self) -> dict[str, Any]:
        """Returns a summary of the result as JSON data.

        Returns:
            ``checkpoints`` (rows of ``round``, ``regret_mean`` and ``regret_ci``: the cumulative regret per agent with
            its 95 % interval over seeds, None for fewer than five of them), ``per_seed`` (final regret per agent of
            each seed), ``info_mean`` (means over rounds of the other information), ``privacy`` (the claim), ``claims``
            (all claims, if there are any), and, where there are groups of agents, ``groups``: for each of them its
            ``agents``, and ``checkpoints`` and ``per_seed`` of these alone.
        """
        groups = {
            name: {"agents": list(agents), **self._regret_as_json(agents)}
            for name, agents in self.groups.items()
        }
        return {
            **self._regret_as_json(range(self.regret.shape[2])),
            "info_mean": {name: float(values.mean()) for name, values in self.info.items()},
            "privacy": self.privacy.as_json(),
            **({"claims": [claim.as_json() for claim in self.claims]} if self.claims else {}),
            **({"groups": groups} if groups else {}),
        }

    def _regret_as_json(self, agents: Sequence[int]) -> dict[str, Any]:
        """Returns the regret of some agents as JSON data: ``checkpoints`` and ``per_seed`` as in :meth:`as_json`.

        Args:
            agents: Indices of the agents.
        """
        # Indexing makes a copy with another memory layout, which determines the order in which a mean adds. It is done
        # for all agents, too, so that the last digits of a mean do not depend on which agents are selected.
        per_seed = self.regret[:, :, list(agents)].mean(axis=2)
        columns = (column.tolist() for column in (self.rounds, *mean_with_interval(per_seed)))
        checkpoints = [
            {"round": played, "regret_mean": mean, "regret_ci": None if np.isnan(low) else [low, high]}
            for played, mean, low, high in zip(*columns, strict=True)
        ]
        return {"checkpoints": checkpoints, "per_seed": per_seed[-1].tolist()}

    def to_frame(self) -> "DataFrame":
        """Returns a tidy ``pandas.DataFrame`` with one row for each checkpoint, seed and agent.

        Its columns are :attr:`labels`, ``num_agents``, ``rounds`` (the horizon), ``seed``, ``agent``, ``round`` (the
        checkpoint), ``regret`` (cumulative) and, with a transport, ``messages`` (cumulative); and ``claim_epsilon``,
        ``claim_delta`` and ``claim_adjacency`` of :attr:`privacy`.

        Raises:
            ImportError: pandas is missing, which comes with the ``[report]`` extra.
        """
        from pandas import DataFrame

        checkpoint, replica, agent = np.indices(self.regret.shape).reshape(3, -1)
        columns = {
            # A label's value may itself be a list, which pandas would spread over the rows: it is repeated explicitly.
            **{name: [value] * self.regret.size for name, value in self.labels.items()},
            "num_agents": self.regret.shape[2],
            "rounds": self.rounds[-1],
            "seed": [self.seeds[i] for i in replica],
            "agent": agent,
            "round": self.rounds[checkpoint],
            "regret": self.regret.ravel(),
            **({} if self.messages is None else {"messages": self.messages.ravel()}),
            "claim_epsilon": self.privacy.epsilon,
            "claim_delta": self.privacy.delta,
            "claim_adjacency": self.privacy.adjacency,
        }
        return DataFrame(columns)

    def plot(self) -> "Figure":
        """Returns a ``matplotlib`` figure of mean cumulative regret per agent over rounds, with its 95 % interval.

        Raises:
            ImportError: matplotlib is missing, which comes with the ``[report]`` extra.
        """
        from fedbandit_envs.experiments.plots import plot

        return plot(self.to_frame(), "round", "regret", log_x=True)

    def __repr__(self) -> str:
        """Returns the run's labels and size, and mean regret per agent at the horizon, instead of whole arrays."""
        labels = "".join(f"{name}={value!r}, " for name, value in self.labels.items())
        _, replicas, agents = self.regret.shape
        last = f"regret per agent after {self.rounds[-1]} rounds {self.regret[-1].mean():.6g}"
        return f"RunResult({labels}{replicas} seeds, {agents} agents, {last})"

    def _repr_html_(self) -> str:
        """Returns the HTML table that notebooks show: labels, regret at the horizon, and the claim."""
        _, seeds, agents = self.regret.shape
        rows = [
            *self.labels.items(),
            ("seeds, agents, rounds", f"{seeds}, {agents}, {self.rounds[-1]}"),
            ("regret per agent", rounded(self.mean)),
            ("claimed epsilon", self.privacy.epsilon),
            ("at delta", self.privacy.delta),
        ]
        return html_table("RunResult", rows)

    def as_arrays(self) -> Arrays:
        """Returns the result as arrays by name, to be stored in a shard's file; :meth:`joined` is the inverse."""
        written = {
            "seeds": list(self.seeds),
            "groups": {name: list(agents) for name, agents in self.groups.items()},
            "privacy": asdict(self.privacy),
            "claims": [asdict(claim) for claim in self.claims],
        }
        return {
            "rounds": self.rounds,
            "regret": self.regret,
            **({} if self.messages is None else {"messages": self.messages}),
            **{f"{kind}/{name}": a for kind in _BY_NAME for name, a in getattr(self, kind).items()},
            "said": np.array(json.dumps(written)),
            "cpu_seconds": np.array(self.cpu_seconds),
        }

    @classmethod
    def joined(cls, parts: Sequence[Arrays]) -> "RunResult":
        """Returns the result of a whole run, put together from the arrays of its shards.

        Args:
            parts: The arrays that :meth:`as_arrays` returned for each shard, in the order of the shards' seeds.
        """
        written = [json.loads(str(part["said"])) for part in parts]
        alike = {
            # Regret and messages have checkpoints on their first axis.
            name: np.concatenate([part[name] for part in parts], axis=int(name in ("regret", "messages")))
            for name in parts[0].keys() - {"rounds", "said", "cpu_seconds"}
        }
        by_name: dict[str, Any] = {kind: {} for kind in _BY_NAME}
        for kind, _, name in (stored.partition("/") for stored in parts[0] if "/" in stored):
            by_name[kind][name] = alike[f"{kind}/{name}"]
        claims = ([Claim(**claim) for claim in one["claims"]] for one in written)
        return cls(
            rounds=parts[0]["rounds"],
            seeds=[seed for one in written for seed in one["seeds"]],
            regret=alike["regret"],
            messages=alike.get("messages"),
            **by_name,
            groups=written[0]["groups"],
            privacy=weakest([Claim(**one["privacy"]) for one in written]),
            claims=[weakest(same) for same in zip(*claims, strict=True)],
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )


def claims_of(env: FederatedEnv, delta: float) -> list[Claim]:
    """Returns privacy claims for an episode that was played, under every adjacency and against every observer.

    Args:
        env: The environment, with its wrappers, after the episode.
        delta: The delta of the claims; only claims by basic composition have the delta that the privatizer promised.

    Returns:
        The claims, adjacency by adjacency, then composition by composition, then observer by observer, those that
        trust least first; none without a privatizer.
    """
    privatizer = find_layer(env, "noise")
    if not isinstance(privatizer, Privatizer):
        return []
    return [
        claim
        for adjacency in env.sensitivity().changes
        for composition in get_args(Composition)
        for claim in privatizer.claims(
            delta=None if composition == "basic" else delta, composition=composition, adjacency=adjacency
        )
    ]


def weakest(claims: Sequence[Claim]) -> Claim:
    """Returns a claim that holds for the agents of all shards: it has the largest epsilon and the largest delta.

    Where shards' claims differ in whom an agent must trust, or in who the observer is, it is the one that promises
    less: trust in somebody else than the agent itself, and an observer that is not everybody.

    Args:
        claims: One claim for each shard, with equal adjacency and composition.
    """
    # A guarantee that holds at some delta holds at every larger delta, too, so all shards' claims hold at the largest.
    weak = max(claims, key=lambda claim: (claim.epsilon is None, claim.epsilon or 0.0))
    trusts, observers = {claim.trust for claim in claims}, {claim.observer for claim in claims}
    return replace(
        weak,
        delta=max(claim.delta for claim in claims),
        trust=next(iter(sorted(trusts - {"local"})), "local"),
        observer=next(iter(sorted(observers - {"everybody"})), "everybody"),
    )


def split_seeds(
    seeds: Sequence[int], agents: int, rows: int = ROWS_PER_SHARD, multiple: int = 1
) -> list[Sequence[int]]:
    """Splits the seeds of a run into shards, and returns the seeds of each shard.

    Args:
        seeds: All seeds of the run.
        agents: Number of agents.
        rows: About how many rows a shard shall have; a row is one agent under one seed.
        multiple: Number of which the number of seeds in a shard shall be a multiple, except for the last shard.
    """
    size = max(1, rows // agents // multiple) * multiple
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


def log_spaced(rounds: int) -> Array:
    """Returns distinct integers from 1 to ``rounds``, about ten between a number and its tenfold."""
    count = 1 + int(np.ceil(10 * np.log10(rounds)))
    return np.unique(np.rint(np.geomspace(1, rounds, count)).astype(np.int64))


def simulate(
    env: FederatedEnv | str,
    policy: Policy | Baseline | str | Callable[[Arrays], Any],
    seeds: int | Iterable[int] = 20,
    *,
    progress: bool = False,
    checkpoints: Sequence[int] | None = None,
) -> RunResult:
    """Plays one episode for each seed and returns the result.

    Episodes are played at the same time, but only as many as fit into a processor's cache (500 agents); then
    environment and policy are reset for the next ones. An episode is the same, whichever are played beside it.

    Args:
        env: The federation, with its wrappers; its ``max_cycles`` is the horizon. Or the id of one, which
            :func:`~fedbandit_envs.make_federation` makes.
        policy: The policy that chooses the actions of all agents, or a function of their observations that returns
            them. Or a baseline or its name, whose wrappers are then put around the environment.
        seeds: The seeds, one for each replica (episode), all different; an integer n for those from 0 to n - 1.
        progress: Whether a progress bar is shown on the error stream.
        checkpoints: Rounds after which regret is recorded, rising to the horizon; None for log-spaced ones.

    Returns:
        Regret of every agent at the checkpoints; memory does not grow with the horizon. The result's ``env_id`` is
        the environment's name, and its ``baseline`` that of the baseline, or of the policy's class.

    Raises:
        TypeError: An argument is none of these things.
        ValueError: A name is unknown, a seed is negative or there twice, or the baseline plays another problem.
        UnfitError: The policy reads an observation that the environment does not have.

    Example:
        >>> result = simulate("FedArms-v0", "UCB1", seeds=5)
        >>> result.labels["baseline"], result.regret.shape[1:]
        ('UCB1', (5, 10))
    """
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [require_integer(f"seeds[{place}]", seed, 0) for place, seed in enumerate(seeds)]
    else:
        numbers = [*range(require_integer("seeds", seeds, 1))]
    if not numbers or len({*numbers}) < len(numbers):
        raise ValueError(f"seeds is {numbers!r}; different seeds are required, since each counts as a run")
    federation = make_federation(env) if isinstance(env, str) else env
    if not isinstance(federation, FederatedEnv):
        raise TypeError(
            f"env is {env!r}; the id of an environment, or a federation such as make_federation('FedArms-v0') makes, "
            "is required"
        )
    name, baseline = as_baseline(policy)
    played, acting = baseline.wrap(federation), baseline.make_policy()
    size = float(federation.max_cycles * federation.max_num_agents * len(numbers))
    parts = []
    with bar(name, size, shown=progress) as update:
        for own in split_seeds(numbers, federation.max_num_agents):
            start = played.reset_batch(own)
            parts.append(
                play_started(played, acting, own, start, lambda rows: update(advance=rows), checkpoints)
            )
    named = {"baseline": name, **({"env_id": env} if isinstance(env, str) else {})}
    return replace(
        RunResult.joined([part.as_arrays() for part in parts]), labels={**parts[0].labels, **named}
    )


def play_started(
    env: FederatedEnv,
    policy: Policy,
    seeds: Sequence[int],
    start: BatchReset,
    advance: Callable[[float], None],
    checkpoints: Sequence[int] | None = None,
) -> RunResult:
    """Plays episodes, all at the same time, for which the environment has been reset; see :func:`simulate`.

    Args:
        env: The federation.
        policy: The policy.
        seeds: The seeds with which it was reset.
        start: What the environment's reset returned.
        advance: Called with the number of agent-rounds played since its last call.
        checkpoints: Rounds after which regret is recorded; see :func:`simulate`.
    """
    rounds = log_spaced(env.max_cycles) if checkpoints is None else np.array(checkpoints)
    if not rounds.size or rounds[-1] != env.max_cycles or (np.diff(rounds, prepend=-1) < 1).any():
        raise ValueError(f"checkpoints is {checkpoints}; rising rounds up to {env.max_cycles} are required")
    observation = start.observation
    try:
        policy.reset(env.policy_spec, row_seeds(seeds, env.max_num_agents))
    except KeyError as error:
        raise UnfitError(_LACKING.format(error, ", ".join(observation))) from error
    shape = start.info["regret"].shape
    sums: Arrays = {}
    kept, messages = np.empty((2, rounds.size, *shape))
    played = 0
    for checkpoint, until in enumerate(rounds):
        for _ in range(until - played):
            observation, _, _, info = env.step_batch(policy.act(_Shown(observation)))
            for name, values in info.items():
                if name not in sums:
                    sums[name] = np.zeros(shape)
                sums[name] += values
        kept[checkpoint] = sums.get("regret", 0.0)
        messages[checkpoint] = sums.get("messages", 0.0)
        advance(float((int(until) - played) * start.info["regret"].size))
        played = int(until)
    transport, noise = find_layer(env, "transport"), find_layer(env, "noise")
    return RunResult(
        rounds=rounds,
        regret=kept,
        seeds=seeds,
        info={name: values / played for name, values in sums.items() if name not in _WITHOUT_MEAN},
        messages=messages if "messages" in sums else None,
        traffic=transport.traffic if isinstance(transport, Transport) else {},
        totals=env.totals,
        groups=env.groups,
        privacy=env.privacy(),
        labels={
            "env_id": env.metadata["name"],
            "baseline": type(policy).__name__,
            "epsilon": getattr(getattr(noise, "mechanism", None), "epsilon", None),
        },
    )
