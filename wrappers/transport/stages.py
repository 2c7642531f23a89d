"""Stages of a transport: who stands between the agents' releases and everybody else, and what that does to privacy.

Without a stage every release reaches its receivers as it is, and nobody needs to be trusted. With a stage, the
releases of one round (a synchronisation) are replaced by their sum, which everybody gets, or nobody:

| stage | arguments | what adds up the releases | noise |
|---|---|---|---|
| `shuffler` | `colluders` (0) | whoever reads them; a shuffler has removed names and order | each agent's own |
| `aggregator` | `honest`, `colluders` (0) | a secure sum, which shows no single release | shares of one noise |
| `server` | | a trusted server, which sees them | one noise, added to the sum |

``honest`` is the number of agents whose shares make up the whole noise: where fewer agents send, or fewer uploads
arrive, nobody gets anything. ``colluders`` is the number of agents that show an observer their data and their noise.
All agents add noise of the same scale, the largest that any agent's statistic needs, so that noise tells no names.

The privatizer (:class:`~fedbandit_envs.wrappers.privacy.privatizer.Privatizer`) makes the noise that a stage needs and
keeps the accounts; a :class:`Shares` counts whose noise was in the sums. Secure sums are accounted as in
:mod:`~fedbandit_envs.wrappers.privacy.accounting.secure_sum`, shuffled batches as in
:mod:`~fedbandit_envs.wrappers.privacy.accounting.shuffling`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer
from fedbandit_envs.basics.config import make
from fedbandit_envs.core.claim import AGENT, Claim
from fedbandit_envs.core.sensitivity import Sensitivity
from fedbandit_envs.wrappers.privacy.accounting.accountant import Accountant
from fedbandit_envs.wrappers.privacy.accounting.shuffling import Batch, shuffled_epsilon

IDEALISED = "idealised: real-valued noise"
"""The note on claims for secure sums: a real one adds up integers, whose noise is discrete."""


@dataclass(frozen=True)
class Stage:
    """A stage of a transport; see this module.

    Example:
        >>> make_stage({"name": "aggregator", "honest": 3}, 4)
        Stage(trust='aggregator', honest=3, colluders=0)

    Attributes:
        trust: Name of the stage, and the trust that its claims name.
        honest: The fewest uploads in a sum; for ``aggregator`` also the number of shares that make up the whole noise.
        colluders: Number of agents that show an observer their data and their noise.
    """

    trust: Literal["shuffler", "aggregator", "server"]
    honest: int = 1
    colluders: int = 0

    def common(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns the sensitivity with the largest scale of any agent; for ``server`` with one row for all agents."""
        largest = {name: array.max(axis=1, keepdims=True) for name, array in sensitivity.scale.items()}
        if self.trust != "server":
            agents = next(iter(sensitivity.scale.values())).shape[1]
            largest = {name: np.repeat(array, agents, axis=1) for name, array in largest.items()}
        return sensitivity._replace(scale=largest)

    def combined(self, statistic: Arrays, arrived: Array) -> "Combined":
        """Returns what leaves the stage in one synchronisation, before a trusted server adds noise.

        Args:
            statistic: The releases by name, ``(replicas, agents, ...)``.
            arrived: Whose uploads have arrived, bool ``(replicas, agents)``.
        """
        went = arrived.sum(axis=1) >= self.honest
        arrived = arrived & went[:, np.newaxis]
        content = {name: np.where(spread(arrived, array), array, 0.0) for name, array in statistic.items()}
        if self.trust != "shuffler":
            return Combined(
                went, arrived, content, {name: array.sum(axis=1) for name, array in content.items()}
            )
        # Sorted messages show what messages in random order show: which there are, and not whose. Their sum, too, has
        # the same bits whoever sent them.
        numbers = [array.reshape(*arrived.shape, -1) for array in content.values()]
        keys = np.concatenate([~arrived[..., np.newaxis], *numbers], axis=-1)
        order = np.stack([np.lexsort(rows.T[::-1]) for rows in keys])
        batch = {
            name: np.take_along_axis(array, spread(order, array), axis=1) for name, array in content.items()
        }
        total = {name: array.sum(axis=1) for name, array in batch.items()}
        return Combined(went, arrived, content, total, batch)

    def claims(self, accounts: Accountant, shares: "Shares", correlated: bool, **asked: Any) -> list[Claim]:
        """Returns the claims for all observers, those that trust least first.

        Args:
            accounts: The recorded releases: with each agent's own noise, or for ``server`` with the server's.
            shares: Whose noise was in the sums.
            correlated: Whether the noises of an agent's releases are correlated.
            **asked: Delta, composition and adjacency of the claims, as :meth:`.Accountant.epsilon` takes them.
        """
        own = accounts.epsilon(**asked)
        local, claims = own, [own]
        if self.trust == "aggregator":
            masked = replace(own, epsilon=0.0, reason="a secure sum shows no single release", noise="none")
            claims.append(replace(masked, trust="cryptography", observer="wire"))
        elif self.trust == "server":
            if shares.times.any():
                local = replace(own, epsilon=inf, reason="released without noise", noise="none")
            local = replace(local, trust="local")
            claims = [replace(local, observer=observer) for observer in ("wire", "server")]
        settled = self.trust == "server" or own.epsilon in (0, inf) or accounts.unclaimable
        for observer, known in (("server", self.colluders), ("fellow", self.colluders + 1), ("public", 0)):
            if shares.bypassed:
                claim = replace(local, reason=f"released past the {self.trust}; {local.reason}".rstrip("; "))
            elif settled:
                claim = replace(own, trust=self.trust)
            elif self.trust == "aggregator":
                unknown = shares.unknown(known, correlated and accounts.covering(asked["adjacency"]) == AGENT)
                claim = self._summed(accounts, own, unknown, asked)
            else:
                # The public sees a function of what the server sees, and may know the colluders, too.
                claim = self._shuffled(
                    accounts, own, shares.unknown(known or self.colluders, False), correlated
                )
            if observer != self.trust:
                claims.append(replace(claim, observer=observer))
        return claims

    def _summed(self, accounts: Accountant, own: Claim, unknown: Array, asked: dict[str, Any]) -> Claim:
        """Returns the claim for sums in which an observer does not know ``unknown`` shares of each agent's noise."""
        if any(event.kind != "gaussian" for event in accounts.events):
            reason = "the noise of sums is accounted for Gaussian noise only"
            return replace(own, epsilon=None, reason=reason, trust=self.trust)
        claim = accounts.rescaled(1 / unknown).epsilon(**asked)
        reason = "; ".join(filter(None, (claim.reason, IDEALISED)))
        return replace(claim, reason=reason, trust=self.trust)

    def _shuffled(self, accounts: Accountant, own: Claim, unknown: Array, correlated: bool) -> Claim:
        """Returns the smaller one of the local claim and the claim for batches with ``unknown`` messages of others."""
        reason = ""
        if correlated:
            reason = "the noise of an agent's messages is correlated"
        elif any(event.kind != "gaussian" for event in accounts.events):
            reason = "shuffled batches are accounted for Gaussian noise only"
        elif any(event.change(AGENT).norm == inf for event in accounts.events):
            reason = "shuffling hides whole payloads only, which must have a clip"
        elif not own.delta:
            reason = "shuffled Gaussian noise gives no finite epsilon at delta 0"
        if reason:
            return replace(own, epsilon=None, reason=reason, trust=self.trust)
        losses = [event.mu(AGENT) for event in accounts.events]
        rows = np.concatenate([unknown[np.newaxis], accounts.counts]).reshape(len(losses) + 1, -1)
        amplified = max(
            shuffled_epsilon(
                own.delta, Counter({Batch(size, loss): n for loss, n in zip(losses, times, strict=True) if n})
            )
            for size, *times in np.unique(rows, axis=1).T.tolist()
        )
        if own.epsilon is not None and own.epsilon <= amplified:
            return own
        reason = "" if own.epsilon is None else own.reason
        return replace(own, epsilon=amplified, composition="exact", reason=reason, trust=self.trust)


class Combined(NamedTuple):
    """What leaves a stage in one synchronisation.

    Attributes:
        went: In which replicas anything leaves the stage, bool ``(replicas,)``.
        arrived: Whose uploads are in the sum, bool ``(replicas, agents)``.
        content: These uploads by name, ``(replicas, agents, ...)``, 0 for other agents.
        total: Their sums by name, ``(replicas, ...)``.
        batch: The uploads without names, sorted, shaped like ``content``; None if only sums can be read.
    """

    went: Array
    arrived: Array
    content: Arrays
    total: Arrays
    batch: Arrays | None = None

    def uploads(self) -> tuple[Arrays, Array]:
        """Returns what a server can read in place of uploads, and how many they are, for server policies.

        Returns:
            New arrays by name, float64 ``(replicas, agents, ...)``: of k uploads the sorted ones, or k equal parts of
            their sum, in the first k rows of each replica; and a mask of these rows, bool ``(replicas, agents)``.
        """
        number = self.arrived.sum(axis=1, keepdims=True)
        mask = np.arange(self.arrived.shape[1]) < number
        parts = self.batch or {
            name: np.divide(total, spread(np.maximum(number[:, 0], 1), total))[:, np.newaxis]
            for name, total in self.total.items()
        }
        return {name: np.where(spread(mask, array), array, 0.0) for name, array in parts.items()}, mask


class Shares:
    """Counts whose noise was in the sums of an episode, for claims about secure sums and shuffled batches.

    Memory grows with the number of agents, not with its square or with the number of sums.

    Attributes:
        times: How often any agent has released data, int64 ``(replicas,)``: the number of synchronisations.
    """

    def __init__(self, rows: tuple[int, int]) -> None:
        """Starts an episode of ``(replicas, agents)`` rows in which nothing has been released."""
        self.times, self._passed = np.zeros((2, rows[0]), np.int64)
        self._least = np.full(rows, rows[1])
        self._always = np.ones(rows, np.bool_)

    @property
    def bypassed(self) -> bool:
        """Whether data has been released in any other way than through the transport that has the stage."""
        return bool((self.times != self._passed).any())

    def pass_on(self, synchronised: Array, combined: Combined) -> None:
        """Counts one synchronisation of the transport.

        Args:
            synchronised: In which replicas agents have released data for it, bool ``(replicas,)``.
            combined: What has left the stage.
        """
        self._passed += synchronised
        size = combined.arrived.sum(axis=1, keepdims=True)
        np.minimum(self._least, size, out=self._least, where=combined.arrived)
        self._always &= combined.arrived | ~combined.went[:, np.newaxis]

    def unknown(self, known: int, every_release: bool) -> Array:
        """Returns how many of the shares that protect each agent an observer does not know, int ``(replicas, agents)``.

        Args:
            known: How many of the shares in each sum the observer knows.
            every_release: Whether only agents count that were in all sums of the episode; otherwise it is the least
                number of agents in any sum with the agent.
        """
        always = self._always.sum(axis=1, keepdims=True) + ~self._always
        # An agent's own share counts, whoever else is known.
        return np.maximum((always if every_release else self._least) - known, 1)


def spread(each: Array, array: Array) -> Array:
    """Returns ``each`` with further axes, so that it broadcasts with ``array``, which has the same first axes."""
    return each.reshape(each.shape + (1,) * (array.ndim - each.ndim))


def _shuffler(colluders: int = 0) -> Stage:
    return Stage("shuffler", colluders=colluders)


def _aggregator(honest: int, colluders: int = 0) -> Stage:
    return Stage("aggregator", honest, colluders)


STAGES: Mapping[str, Callable[..., Stage]] = {
    "shuffler": _shuffler,
    "aggregator": _aggregator,
    "server": lambda: Stage("server"),
}
"""Makers of the stages by name."""

StageSpec = Stage | str | Mapping[str, Any] | None
"""A stage, its name, or a mapping of ``name`` and arguments; None for no stage."""


def make_stage(spec: StageSpec, agents: int) -> Stage | None:
    """Returns the stage of a specification.

    Args:
        spec: The specification.
        agents: Number of agents.

    Raises:
        TypeError: The specification, or an argument of the stage, has the wrong type.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if spec is None:
        return None
    stage = make("stage", spec, STAGES, Stage)
    for name, least, most in (("honest", 1, agents), ("colluders", 0, agents - 1)):
        require_integer(name, number := getattr(stage, name), least)
        if number > most:
            raise ValueError(f"{name} is {number}; at most {most}, with {agents} agents, is required")
    return stage
