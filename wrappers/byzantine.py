"""Agents that lie about what they have seen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.checks import require_flag, require_integer, require_number
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.problem import MOST
from fedbandit_envs.specification import make
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrapper import FederatedWrapper


@runtime_checkable
class Attack(Protocol):
    """Says what a liar tells in place of the truth."""

    def lie(self, total: Array, symmetric: bool, generator: np.random.Generator) -> Array:
        """Returns the lie.

        Args:
            total: All of the agent's statistic that it has ever been asked for, of any shape and dtype.
            symmetric: Whether it holds symmetric matrices on its last two axes.
            generator: Of the agent and round.
        """


class Garbage:
    """Random numbers: normal ones, ``scale`` times as large as the honest ones are in quadratic mean."""

    def __init__(self, scale: float = 1000.0) -> None:
        """Sets the scale, > 0."""
        require_number("scale", scale, 0, np.inf, open_below=True)
        self._scale = float(scale)

    def lie(self, total: Array, symmetric: bool, generator: np.random.Generator) -> Array:
        """Draws the numbers."""
        drawn = generator.standard_normal(total.shape)
        if symmetric:
            drawn = np.tril(drawn) + np.swapaxes(np.tril(drawn, -1), -1, -2)
        return self._scale * np.sqrt(np.square(total, dtype=np.float64).mean()) * drawn


class Scaled:
    """The honest numbers, ``scale`` times as large."""

    def __init__(self, scale: float = 1000.0) -> None:
        """Sets the scale, any finite number."""
        require_number("scale", scale, -np.inf, np.inf)
        self._scale = float(scale)

    def lie(self, total: Array, symmetric: bool, generator: np.random.Generator) -> Array:
        """Multiplies them."""
        return self._scale * total


class SignFlip(Scaled):
    """The honest numbers, negated."""

    def __init__(self) -> None:
        """Has nothing to set."""
        super().__init__(-1.0)


ATTACKS: dict[str, Callable[..., Attack]] = {"garbage": Garbage, "sign_flip": SignFlip, "scaled": Scaled}
"""Every attack by the name that its specification has."""


class Byzantine(FederatedWrapper):
    """Lets some agents lie: they release something else than their statistic, the same to all or to each another.

    | attack | arguments | what a liar tells instead |
    |---|---|---|
    | `garbage` | `scale` (1000) | random numbers, `scale` times as large as the honest ones in quadratic mean |
    | `sign_flip` | | the honest numbers, negated |
    | `scaled` | `scale` (1000) | the honest numbers times `scale` |

    A liar lies about the whole of its statistic, and releases what the lie has grown by since it last sent: whoever
    adds up what it tells holds the lie of the round in which it last told. Garbage is drawn anew each round, for each
    agent from a stream of its own, whoever sends. Counts are lied about in whole numbers and symmetric matrices in
    symmetric ones; but lies may be negative, and good units more than there are, so that the space of releases is wider
    than the environment's.

    With ``to_each``, a channel brings each receiver a lie of its own, drawn as the others are (which makes a difference
    to garbage alone); what is released, and what a server is told, is one of them.

    Liars play and learn as their policy does, on what they have really seen; only what they tell is false. Noise is
    added to lies as to anything, and sensitivity and claims are those of the honest statistic: they hold for who keeps
    to the protocol. Results tell ``liars`` and ``honest`` apart (:attr:`groups`).
    """

    layer = "data"
    examples = (
        {"agents": [0]},
        {"agents": 0.5, "attack": "sign_flip"},
        {"agents": [1], "attack": {"name": "scaled", "scale": -2.5}},
        {"agents": 0},
        {"agents": [0], "to_each": True},
    )

    def __init__(
        self,
        env: FederatedEnv,
        agents: float | Sequence[int] = 0.2,
        attack: Attack | str | Mapping[str, Any] = "garbage",
        to_each: bool = False,
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without privatizer and channel.
            agents: Who lies: numbers of agents, or a share of all in [0, 1], rounded to a number of them; these are the
                last ones.
            attack: A name of the table, a mapping of ``name`` and the attack's arguments, or an :class:`Attack`.
            to_each: Whether each receiver is told another lie.

        Raises:
            TypeError: An argument has the wrong type, or the attack does not know it.
            ValueError: A name is unknown, or an argument out of its range.
        """
        super().__init__(env)
        self._liars = _numbers(agents, self.max_num_agents)
        self._attack = make("attack", attack, ATTACKS, Attack)
        require_flag("to_each", to_each)
        self._to_each = bool(to_each)
        self.single_release_space = spaces.Dict(
            {name: _widened(space) for name, space in env.single_release_space.items()}
        )

    @property
    def groups(self) -> Mapping[str, Sequence[int]]:
        """Liars and honest agents, and what is told apart inside; see :attr:`FederatedEnv.groups`."""
        liars = sorted({*self._liars, *self.env.groups.get("liars", ())})
        honest = [agent for agent in range(self.max_num_agents) if agent not in liars]
        named = {"liars": liars, "honest": honest}
        return {**self.env.groups, **{name: agents for name, agents in named.items() if agents}}

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed, in which nobody has lied yet; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._seeds = [int(seed) for seed in seeds]
        self._round = 0
        self._symmetric = self.env.sensitivity().symmetric
        rows = (len(self._seeds), self.max_num_agents)
        self._honest: Arrays = {
            name: np.zeros((*rows, *(space.shape or ())), space.dtype)
            for name, space in self.single_release_space.items()
        }
        self._told = {name: array.copy() for name, array in self._honest.items()}
        if self._to_each:
            agents = rows[1]
            self._told_each = {
                name: np.zeros((*rows, agents, *array.shape[2:]), array.dtype)
                for name, array in self._honest.items()
            }
            self._apart: Arrays = {}
        return reset

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`."""
        step = self.env.step_batch(action)
        self._round += 1
        return step

    def _release(self, sends: Array) -> Arrays:
        released = {name: array.copy() for name, array in self.env._release(sends).items()}
        if self._to_each:
            self._apart = {name: np.zeros(array.shape) for name, array in self._told_each.items()}
        for agent in self._liars:
            for replica in np.flatnonzero(sends[:, agent]).tolist():
                generator = stream(self._seeds[replica], Purpose.LIE, agent, self._round)
                for name, array in released.items():
                    total, told = self._honest[name][replica, agent], self._told[name][replica, agent]
                    total += array[replica, agent]
                    lie = _fitting(self._attack.lie(total, self._symmetric, generator), told.dtype)
                    array[replica, agent] = lie - told
                    told[...] = lie
                    if self._to_each:
                        self._lie_to_each(name, total, generator, array[replica, agent], (replica, agent))
        return released

    def _lie_to_each(
        self, name: str, total: Array, generator: np.random.Generator, told: Array, row: tuple[int, int]
    ) -> None:
        """Makes up what each receiver is told beyond what is told to all."""
        for receiver, before in enumerate(self._told_each[name][row]):
            lie = _fitting(self._attack.lie(total, self._symmetric, generator), before.dtype)
            self._apart[name][row][receiver] = lie - before - told
            before[...] = lie

    def told_apart(self) -> Arrays | None:
        """Returns what each receiver is told beyond what is told to all; see :meth:`FederatedEnv.told_apart`."""
        return self._apart if self._to_each else self.env.told_apart()


def _numbers(agents: Any, num_agents: int) -> list[int]:
    """Returns the numbers of the agents that lie, each once and in order."""
    if isinstance(agents, str) or not isinstance(agents, Sequence):
        require_number("agents", agents, 0, 1)
        return list(range(num_agents - round(float(agents) * num_agents), num_agents))
    for place, agent in enumerate(agents):
        require_integer(f"agents[{place}]", agent, 0)
        if agent >= num_agents:
            raise ValueError(f"agents[{place}] is {agent}; at most {num_agents - 1} is required")
    return sorted({int(agent) for agent in agents})


def _widened(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Returns the space of lies and differences of lies about what is in a space."""
    assert isinstance(space, spaces.Box)
    dtype = space.dtype.type if space.dtype is not None else np.float64
    low, high = np.minimum(space.low, -2 * MOST), np.maximum(space.high, 2 * MOST)
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype)


def _fitting(lie: Array, dtype: Any) -> Array:
    """Rounds lies about counts to whole numbers, and keeps all of them where they can be counted."""
    bounded = np.clip(lie, -MOST, MOST)
    return np.rint(bounded).astype(dtype) if np.issubdtype(dtype, np.integer) else bounded
