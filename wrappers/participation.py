"""Agents that come and go: who acts in which round."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.buffers import Buffers
from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.problem import MOST
from fedbandit_envs.specification import make
from fedbandit_envs.streams import Purpose, stream
from fedbandit_envs.wrapper import FederatedWrapper


@runtime_checkable
class Law(Protocol):
    """Says who acts."""

    def acting(self, t: int, generator: np.random.Generator, num_agents: int) -> Array:
        """Returns who acts in round ``t``, counted from 1, of one replica: bool ``(agents,)``.

        Args:
            t: The round.
            generator: Of the replica; asked once a round, in order.
            num_agents: Number of agents.
        """


class OneUniform:
    """One agent a round, each with the same probability (He et al. 2022)."""

    def acting(self, t: int, generator: np.random.Generator, num_agents: int) -> Array:
        """Draws the agent."""
        return np.arange(num_agents) == generator.integers(num_agents)


class InTurn:
    """One agent a round, in their order, over and over."""

    def acting(self, t: int, generator: np.random.Generator, num_agents: int) -> Array:
        """Returns the agent whose turn it is."""
        return np.arange(num_agents) == (t - 1) % num_agents


class EachWithProbability:
    """Each agent with the same probability, independently of others and of other rounds."""

    def __init__(self, probability: float) -> None:
        """Sets the probability, in [0, 1]."""
        require_number("probability", probability, 0, 1)
        self._probability = float(probability)

    def acting(self, t: int, generator: np.random.Generator, num_agents: int) -> Array:
        """Draws who acts."""
        return generator.random(num_agents) < self._probability


class GivenSequence:
    """Agents as they are given, round by round, from the beginning again after the last round given."""

    def __init__(self, rounds: Sequence[int | Sequence[int]]) -> None:
        """Sets the rounds.

        Args:
            rounds: For each round the agent's number, or the numbers of several or none.

        Raises:
            TypeError: There is something else in it.
            ValueError: There are no rounds, or a number is negative.
        """
        if isinstance(rounds, str) or not isinstance(rounds, Sequence) or not rounds:
            raise ValueError(f"rounds is {rounds!r}; a sequence of at least one round is required")
        self._rounds: list[list[int]] = []
        for place, given in enumerate(rounds):
            agents = list(given) if isinstance(given, Sequence) else [given]
            for agent in agents:
                require_integer(f"rounds[{place}]", agent, 0)
            self._rounds.append([int(agent) for agent in agents])

    @property
    def largest(self) -> int:
        """The largest number of an agent."""
        return max((agent for agents in self._rounds for agent in agents), default=0)

    def acting(self, t: int, generator: np.random.Generator, num_agents: int) -> Array:
        """Returns the round's agents."""
        return np.isin(np.arange(num_agents), self._rounds[(t - 1) % len(self._rounds)])


LAWS: dict[str, Callable[..., Law]] = {
    "uniform": OneUniform,
    "in_turn": InTurn,
    "probability": EachWithProbability,
    "sequence": GivenSequence,
}
"""Every law of participation by the name that its specification has; besides there is ``all``."""


class Participation(FederatedWrapper):
    """Lets some agents act in a round, and the others sit it out.

    | law | arguments | who acts |
    |---|---|---|
    | `all` | | everybody, in every round: what there is without this wrapper |
    | `uniform` | | one agent a round, each with the same probability |
    | `in_turn` | | one agent a round, in their order |
    | `probability` | `probability` | each agent with that probability |
    | `sequence` | `rounds` | the agents given, over and over |

    For those who sit out nothing is played: their actions are not looked at beyond their form, their reward and
    information are 0, their statistics stand still, and an agent's luck is that of its own rounds. Observations gain

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `active` | (1,) | bool | whether the agent acts in the coming round |
    | `own_round` | (1,) | int64 | in how many rounds it has acted |

    What is said of the last round (units delivered, the context pulled, the reward) is 0 for who sat it out; what is
    offered for the coming one is that of the last round in which the agent acted, for who is to sit it out. ``round``
    counts the federation's rounds.
    """

    layer = "data"
    examples = (
        {},
        {"law": "in_turn"},
        {"law": {"name": "probability", "probability": 0.4}},
        {"law": {"name": "sequence", "rounds": [0, [0, 1], []]}},
        {"law": "all"},
    )

    def __init__(self, env: FederatedEnv, law: Law | str | Mapping[str, Any] = "uniform") -> None:
        """Wraps ``env``.

        Args:
            env: The environment, in which all agents act.
            law: A name of the table, a mapping of ``name`` and the law's arguments, or a :class:`Law`.

        Raises:
            TypeError: ``law`` or an argument has the wrong type, or the law does not know an argument.
            ValueError: A name is unknown, or an argument out of its range; ``env`` has a participation already.
        """
        super().__init__(env)
        if "active" in env.single_observation_space.spaces:
            raise ValueError("env has a Participation already; one is allowed")
        everybody = law in ("all", {"name": "all"})
        self._law = None if everybody else make("law", law, LAWS, Law, ", or 'all',")
        if isinstance(self._law, GivenSequence) and self._law.largest >= self.max_num_agents:
            raise ValueError(
                f"rounds has agent {self._law.largest}; at most {self.max_num_agents - 1} is required"
            )
        self.single_observation_space = spaces.Dict(
            {
                **env.single_observation_space.spaces,
                "active": spaces.Box(0, 1, (1,), np.bool_),
                "own_round": spaces.Box(0, MOST, (1,), np.int64),
            }
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; see :meth:`FederatedEnv.reset_batch`."""
        generators = [stream(int(seed), Purpose.PARTICIPATION) for seed in seeds]
        first = self._called(1, generators)
        if self._law is not None:
            self.env.summon(first)
        reset = self.env.reset_batch(seeds)
        self._generators = generators
        self._round = 0
        # Known one round ahead, so that a refused action does not draw again.
        self._next = self._called(2, generators)
        self._buffers = Buffers(
            {"active": first[..., np.newaxis], "own_round": np.zeros((*first.shape, 1), np.int64)}
        )
        return reset._replace(observation={**reset.observation, **self._buffers.views})

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round of those who act; see :meth:`FederatedEnv.step_batch`."""
        if self._law is not None and hasattr(self, "_next"):
            self.env.summon(self._next)
        step = self.env.step_batch(action)
        self._round += 1
        seen = self._buffers.arrays
        seen["own_round"] += seen["active"]
        seen["active"][..., 0] = self._next
        self._next = self._called(self._round + 2, self._generators)
        return step._replace(observation={**step.observation, **self._buffers.views})

    def _called(self, t: int, generators: list[np.random.Generator]) -> Array:
        """Returns who acts in round ``t``, bool ``(replicas, agents)``."""
        agents = self.max_num_agents
        if self._law is None:
            return np.ones((len(generators), agents), np.bool_)
        return np.stack([self._law.acting(t, generator, agents) for generator in generators])
