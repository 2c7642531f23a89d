"""Claims of privacy under a stage of a transport: for every observer, from accounts and from the shares in sums.

A stage is a shuffler, a secure sum or a trusted server between the agents.

Shuffled batches are accounted as in :mod:`~fedbandit_envs.wrappers.privacy.accounting.shuffling`. Of a secure sum an
observer sees nothing but the sum. Its noise has the standard deviation sigma if h agents, ``honest``, add theirs: each
agent adds a share of variance sigma^2/h to its release, whose own (local) privacy is therefore mu_local = D
sqrt(h)/sigma, for neighbours at a distance D. If the sum contains k shares that the observer does not know, the agent's
own among them, its noise has the variance sigma^2 k/h, and the sum is mu-GDP for mu = D sqrt(h/k)/sigma =
mu_local/sqrt(k).

The same holds for a matrix mechanism (:mod:`..mechanisms.prefix_noise`) to whose streams of noise all agents
contribute, one draw a synchronisation, also where agents are absent. For a change in one window (the rounds between two
synchronisations), k counts the shares in the window's own synchronisation. For a change of all data of an agent, k
counts the agents that are present at all of its releases: the shares of others are further noise.

The noise is idealised: it is real-valued, while a real secure sum adds up integers.
"""

from collections import Counter
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.privacy import AGENT, Claim
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant
from fedbandit_envs.wrappers.privacy.accounting.shuffling import shuffled_epsilon
from fedbandit_envs.wrappers.transport.stages import Combined, Stage


class Shares:
    """Counts how many agents contributed noise to each sum of an episode, for claims about sums and batches.

    A *share* is the noise that one agent has added to a sum. The more shares an observer does not know, the better an
    agent is protected.

    Memory grows with the number of agents, not with its square or with the number of sums.

    Attributes:
        times: The number of synchronisations (rounds in which at least one agent has released data), int64
            ``(replicas,)``.
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

    @property
    def complete(self) -> bool:
        """Whether all agents were in every sum so far."""
        return bool(self._always.all())

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


def stage_claims(
    stage: Stage, accounts: Accountant, shares: Shares, correlated: bool, **asked: Any
) -> list[Claim]:
    """Returns the claims for all observers, those that trust least first.

    Args:
        stage: The stage of the transport.
        accounts: The recorded releases: with each agent's own noise, or for ``server`` with the server's.
        shares: Whose noise was in the sums.
        correlated: Whether the noises of an agent's releases are correlated.
        **asked: Delta, composition and adjacency of the claims, as :meth:`.Accountant.epsilon` takes them.
    """
    own = accounts.epsilon(**asked)
    local, claims = own, [own]
    unclaimable = bool(accounts.unrecorded()[2])
    if stage.trust == "aggregator":
        masked = own
        if own.epsilon != inf and not (shares.bypassed or unclaimable):
            masked = replace(own, epsilon=0.0, reason="a secure sum shows no single release", noise="none")
        claims.append(replace(masked, trust="cryptography", observer="wire"))
    elif stage.trust == "server":
        if shares.times.any():
            local = replace(own, epsilon=inf, reason="released without noise", noise="none")
        local = replace(local, trust="local")
        claims = [replace(local, observer=observer) for observer in ("wire", "server")]
    settled = stage.trust == "server" or own.epsilon in (0, inf) or unclaimable
    for observer, known in (("server", stage.colluders), ("fellow", stage.colluders + 1), ("public", 0)):
        if shares.bypassed:
            claim = replace(local, reason=f"released past the {stage.trust}; {local.reason}".rstrip("; "))
        elif settled:
            claim = replace(own, trust=stage.trust)
        elif stage.trust == "aggregator":
            unknown = shares.unknown(known, correlated and accounts.covering(asked["adjacency"]) == AGENT)
            claim = _summed(stage, accounts, own, unknown, shares.complete, asked)
        else:
            # The public sees a function of what the server sees, and may know the colluders, too.
            claim = _shuffled(
                stage, accounts, own, shares.unknown(known or stage.colluders, False), correlated
            )
        if observer != stage.trust:
            claims.append(replace(claim, observer=observer))
    return claims


def _summed(
    stage: Stage, accounts: Accountant, own: Claim, unknown: Array, complete: bool, asked: dict[str, Any]
) -> Claim:
    """Returns the claim for sums in which an observer does not know ``unknown`` shares of each agent's noise."""
    gaussian = all(event.kind == "gaussian" for event in accounts.events)
    reason = ""
    if not all(event.adds_up for event in accounts.events):
        reason = "the noise of sums is accounted for Gaussian noise only"
    elif not (gaussian or complete):
        reason = "where agents are absent, sums are accounted for Gaussian noise only"
    if reason:
        return replace(own, epsilon=None, reason=reason, trust=stage.trust)
    claim = accounts.rescaled(1 / unknown).epsilon(**asked)
    # A real secure sum adds up integers, whose noise is discrete.
    reason = "; ".join(filter(None, (claim.reason, "idealised: real-valued noise" * gaussian)))
    return replace(claim, reason=reason, trust=stage.trust)


def _shuffled(stage: Stage, accounts: Accountant, own: Claim, unknown: Array, correlated: bool) -> Claim:
    """Returns the local claim or the claim amplified by shuffling, whichever has the smaller epsilon.

    Args:
        stage: The stage of the transport, a shuffler.
        accounts: The recorded releases.
        own: The local claim.
        unknown: Number of messages in a batch whose noise the observer does not know, the agent's own among them,
            int ``(replicas, agents)``.
        correlated: Whether the noises of an agent's releases are correlated; then nothing is amplified.
    """
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
        return replace(own, epsilon=None, reason=reason, trust=stage.trust)
    losses = [event.mu(AGENT) for event in accounts.events]
    rows = np.concatenate([unknown[np.newaxis], accounts.counts]).reshape(len(losses) + 1, -1)
    amplified = 0.0
    for size, *times in np.unique(rows, axis=1).T.tolist():
        # Events that differ otherwise may have the same loss, and then their batches add up.
        batches: Counter[tuple[int, float]] = Counter()
        for loss, n in zip(losses, times, strict=True):
            batches[size, loss] += n
        amplified = max(amplified, shuffled_epsilon(own.delta, +batches))
    if own.epsilon is not None and own.epsilon <= amplified:
        return own
    reason = "" if own.epsilon is None else own.reason
    return replace(own, epsilon=amplified, composition="exact", reason=reason, trust=stage.trust)
