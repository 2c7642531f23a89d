"""Messages of the twin: a schedule fixed in advance, sums over all other agents, and counter-based noise.

Channel (complete graph), server and privatizer are described by the package's own wrappers, which also calibrate the
noise and make the claims; the twin reads their settings. Noise of an agent's release z is a weighted sum of independent
draws, one row of a lower-triangular matrix: the identity for independent noise, and for a binary tree or a square-root
factorisation what the package's mechanism makes of single draws. Draws are repeatable (a function of the seed), and not
the package's: their law is the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Claim, variance_of
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.experiments.result import claims_of
from fedbandit_envs.functional.draws import normals
from fedbandit_envs.randomness.streams import Purpose, row_keys
from fedbandit_envs.wrappers import Channel, Privatizer, Server
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Gaussian
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism

Arrays = dict[str, Any]
"""Arrays by name, or mappings of them: of a row, without axes of replicas and agents, or of a replica, agents first."""


def lacks(what: str, instead: str) -> ValueError:
    """Returns the error which says that the twin lacks something, and what is required."""
    return ValueError(f"{what} is not in the functional twin; {instead} is required")


class Noise(NamedTuple):
    """The noise of an agent's releases, in units of the scale of each number.

    Attributes:
        draws: Which draws the noise of each release is made of, int ``(releases, most)``.
        weights: Their weights, same shape; 0 beyond the last one.
        growth: By how much each release raises the variance of the noise in the sum of releases, ``(releases,)``.
        symmetric: Whether released matrices get symmetric noise, half as large in variance off the diagonal.
    """

    draws: np.ndarray
    weights: np.ndarray
    growth: np.ndarray
    symmetric: bool

    @classmethod
    def of(cls, privatizer: Privatizer, releases: int, symmetric: bool) -> "Noise":
        """Returns the noise of a privatizer that has been reset.

        Raises:
            ValueError: It is not Gaussian, or on other numbers than the released ones.
        """
        mechanism = privatizer.mechanism
        if isinstance(mechanism, Gaussian) and mechanism._pair == "as_given":
            matrix = np.diag(mechanism._multipliers[mechanism._share(np.arange(releases))])
            return cls(*_sparse(matrix), np.diag(matrix) ** 2, False)
        if not isinstance(mechanism, MatrixMechanism):
            raise lacks(f"a mechanism {mechanism!r}", "Gaussian noise on the released arrays, of any matrix,")
        # What the factorisation makes of one draw of 1 at a time, draw after draw.
        noise = mechanism._noise
        counts = [noise.draws(z) for z in range(1, releases + 1)]
        matrix, start = np.zeros((releases, sum(counts))), 0
        noise.start(1, sum(counts))
        for z, count in enumerate(counts):
            single = np.eye(count, sum(counts), start)[:, np.newaxis]
            matrix[z] = noise.advance(np.array([0]), z + 1, single)[0]
            start += count
        growth = np.diff([noise.variance(z) for z in range(releases + 1)])
        size = mechanism._noise_multiplier
        return cls(*_sparse(size * matrix), size**2 * growth, symmetric)

    def draw(self, key: Array, z: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Returns the noise of release z, counted from 1, of one agent, in units of the scale.

        Args:
            key: The agent's key of noise, uint32 ``(2,)``.
            z: The number of the release.
            shape: Shape of the released array.
            dtype: The dtype of the noise.
        """
        places, weights = jnp.asarray(self.draws)[z - 1], jnp.asarray(self.weights, dtype)[z - 1]

        def add(i: Array, total: Array) -> Array:
            return total + weights[i] * normals(key, places[i], prod(shape)).astype(dtype)

        noise = lax.fori_loop(0, places.size, add, jnp.zeros(prod(shape), dtype)).reshape(shape)
        return jnp.tril(noise) + jnp.tril(noise, -1).swapaxes(-1, -2) if self.symmetric else noise


def _sparse(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of each row's entries that are not 0, and these entries, padded with zeros."""
    most = max(1, np.count_nonzero(matrix, axis=1).max(initial=0))
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :most]
    return places.astype(np.int32), np.take_along_axis(matrix, places, axis=1)


class Federation:
    """When agents send, what becomes of their releases, and what may be claimed.

    Attributes:
        releases: How often each agent has released after each number of rounds, int ``(max_cycles + 1,)``.
        exists: Whether agents send at all.
        correlated: Whether the noises of an agent's releases depend on each other.
        messages: Number of messages that a release of all agents costs each of them.
        size: Bytes of a message.
    """

    def __init__(self, host: FederatedEnv, releases: np.ndarray, messages: int, size: int) -> None:
        """Takes the package's environment with its wrappers; see the attributes for the other arguments.

        Raises:
            BudgetExhaustedError: The schedule has more releases than the privatizer allows.
            ValueError: The noise is not in the twin.
        """
        self.host, self.releases, self.messages, self.size = host, releases, messages, size
        self.exists = bool(releases[-1])
        self.noise: Noise | None = None
        self.correlated = False
        privatizer = find_layer(host, "noise")
        if isinstance(privatizer, Privatizer) and self.exists:
            if privatizer._noise_seed is not None or privatizer._on_exhausted != "raise":
                raise lacks(
                    "a noise_seed, or on_exhausted='silence'", "noise that follows from episodes' seeds"
                )
            self._rehearse(host.max_cycles)
            self.noise = Noise.of(privatizer, int(releases[-1]), host.sensitivity().symmetric)
            self.correlated = privatizer.mechanism.correlated

    @classmethod
    def of(cls, host: FederatedEnv) -> "Federation":
        """Returns the federation that the wrappers of an environment describe.

        Raises:
            ValueError: A wrapper, or one of its settings, is not in the twin.
        """
        for layer in layers(host):
            if not isinstance(layer, Channel | Server | Privatizer) and layer is not host.unwrapped:
                raise lacks(f"wrapper {type(layer).__name__}", "a channel, a server, a privatizer or none")
        transport: Any = find_layer(host, "transport")
        if transport is None:
            return cls(host, np.zeros(host.max_cycles + 1, np.int64), 0, 0)
        wanted = {"_delay": 0, "_loss": 0, "_duplication": 0, "_echo": False, "_stage": None}
        for name, value in wanted.items():
            if getattr(transport, name) != value:
                raise lacks(f"{name[1:]}={getattr(transport, name)!r}", repr(value))
        schedule = transport._schedule
        if not schedule.fixed_in_advance or schedule.announced:
            raise lacks("a schedule that is not fixed in advance", "another one")
        agents, rounds = host.max_num_agents, range(host.max_cycles + 1)
        releases = np.array([schedule.count(t) for t in rounds])
        if isinstance(transport, Server):
            answers = getattr(transport._answers, "keywords", {}).get("schedule")
            late = answers is not None and any(schedule.sends(t) and not answers.sends(t) for t in rounds[1:])
            if transport._policy is not None or late:
                raise lacks("a server that computes, or answers later", "answers='every_round'")
            return cls(host, releases, 2, transport._bytes_per_message)
        if transport._draw or not np.array_equal(transport.graph(0), ~np.eye(agents, dtype=bool)):
            raise lacks("a topology other than 'complete'", "a complete graph or a server")
        return cls(host, releases, agents - 1, transport._bytes_per_message)

    def due(self, round_: Array) -> Array:
        """Returns whether messages have arrived at the end of a round, counted from 1; False for round 0."""
        sent = np.diff(self.releases, prepend=0) > 0
        return jnp.asarray(sent)[round_]

    def arrivals(self, rounds: int) -> np.ndarray:
        """Returns after which rounds, counted from 1, messages arrive that agents see within so many rounds, int32."""
        return np.flatnonzero(np.diff(self.releases[:rounds], prepend=0)).astype(np.int32)

    def params(self, host: Any, seeds: Sequence[int]) -> dict[str, np.ndarray]:
        """Returns each agent's key of noise and the scale of its noise, ``(replicas, agents, ...)`` by name."""
        if self.noise is None:
            return {}
        scales = {f"scale_{name}": array for name, array in host.sensitivity().scale.items()}
        if self.noise.symmetric:
            for name, array in scales.items():
                scales[name] = array * np.where(np.eye(array.shape[-1]), 1.0, np.sqrt(0.5))
        return {"noise_key": row_keys(seeds, host.max_num_agents, Purpose.NOISE), **scales}

    def start(self, sums: Arrays) -> Arrays:
        """Returns the state before the first round: nothing has been released or received."""
        if not self.exists:
            return {"inbox": {}}
        return {"released": jax.tree.map(jnp.zeros_like, sums), "inbox": self._nothing(sums)}

    def _nothing(self, sums: Arrays) -> Arrays:
        inbox = {f"inbox_{name}": jnp.zeros_like(array) for name, array in sums.items()}
        if self.noise is None:
            return inbox
        return inbox | {variance_of(name): array for name, array in inbox.items()}

    def exchange(self, params: Arrays, sums: Arrays, state: Arrays, round_: Array) -> Arrays:
        """Lets agents send, if the round is one of sending, and returns what was released and is received.

        Args:
            params: The instance, with what :meth:`params` returns, ``(agents, ...)``.
            sums: All that agents have to release, since the first round, ``(agents, ...)`` by name.
            state: What this method returned after the last round.
            round_: The round that was just played, counted from 1.
        """
        if not self.exists:
            return {"inbox": {}}

        def send() -> Arrays:
            inbox = {}
            z = jnp.asarray(self.releases)[round_]
            for place, (name, array) in enumerate(sums.items()):
                grown = array - state["released"][name]
                if self.noise is not None:
                    # Arrays of a release have keys of their own.
                    keys = params["noise_key"] ^ jnp.array([place, 0], jnp.uint32)
                    drawn = jax.vmap(
                        partial(self.noise.draw, shape=array.shape[1:], dtype=array.dtype), (0, None)
                    )
                    scale = params[f"scale_{name}"]
                    grown += scale * drawn(keys, z)
                    variance = scale**2 * jnp.asarray(self.noise.growth, array.dtype)[z - 1]
                    inbox[variance_of(f"inbox_{name}")] = variance.sum(axis=0) - variance
                inbox[f"inbox_{name}"] = grown.sum(axis=0) - grown
            return {"released": sums, "inbox": inbox}

        def wait() -> Arrays:
            return {"released": state["released"], "inbox": self._nothing(sums)}

        return lax.cond(self.due(round_), send, wait)

    def claims(self, rounds: int, delta: float) -> tuple[Claim, Sequence[Claim]]:
        """Returns the claim for an episode, and those under all adjacencies and compositions, from the same events.

        The package's own wrappers make them: agents release as often as in the episode, and the accountant counts.

        Args:
            rounds: Number of rounds that were played.
            delta: The delta of the claims that are not by basic composition.
        """
        self._rehearse(rounds)
        return self.host.privacy(), claims_of(self.host, delta)

    def spent(self, rounds: int) -> np.ndarray:
        """Returns epsilon of an agent's claim up to each of :meth:`arrivals`; NaN where nothing can be said."""
        claims = self._rehearse(rounds - 1, lambda: self.host.privacy().epsilon)
        return np.array(claims, np.float64)

    def _rehearse(self, rounds: int, after: Callable[[], Any] = lambda: None) -> list[Any]:
        """Has the package's agents release as often as in so many rounds, and returns what ``after`` says each time.

        A privatizer refuses what it must.
        """
        self.host.reset_batch([0])
        everyone, said = np.ones((1, self.host.max_num_agents), np.bool_), []
        for _ in range(int(self.releases[rounds])):
            self.host.release(everyone)
            said.append(after())
        return said
