"""Participation: which agents act in which round."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Buffers
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.entry_points import by_name, checked, make_rule
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.randomness.streams import Purpose, stream

Law = Callable[[int, np.random.Generator, int], Array]
"""A function that draws which agents act in a round of one replica.

Its arguments are the round, counted from 1, the replica's random generator and the number of agents. It is called once
for each round, in order, and returns whether each agent acts, bool ``(agents,)``."""


def _all(t: int, generator: np.random.Generator, num_agents: int) -> Array:
    return np.ones(num_agents, np.bool_)


def _uniform(t: int, generator: np.random.Generator, num_agents: int) -> Array:
    return np.arange(num_agents) == generator.integers(num_agents)


def _in_turn(t: int, generator: np.random.Generator, num_agents: int) -> Array:
    return np.arange(num_agents) == (t - 1) % num_agents


@checked(lambda probability: require_number("probability", probability, 0, 1))
def _probability(t: int, generator: np.random.Generator, num_agents: int, *, probability: float) -> Array:
    return generator.random(num_agents) < probability


def _check_rounds(rounds: Any) -> None:
    if isinstance(rounds, str) or not isinstance(rounds, Sequence) or not rounds:
        raise ValueError(f"rounds is {rounds!r}; a sequence of at least one round is required")


@checked(_check_rounds)
def _sequence(
    t: int, generator: np.random.Generator, num_agents: int, *, rounds: Sequence[int | Sequence[int]]
) -> Array:
    return np.isin(np.arange(num_agents), rounds[(t - 1) % len(rounds)])


LAWS = by_name(_all, _uniform, _in_turn, _probability, _sequence)
"""The built-in distributions by the name that a specification gives them."""


class Participation(FederatedWrapper):
    """A wrapper in which only some agents act in a round; the others are inactive in it.

    | law | arguments | who acts |
    |---|---|---|
    | `all` | | all agents in every round, as without this wrapper |
    | `uniform` | | one agent in each round, drawn with equal probabilities |
    | `in_turn` | | one agent in each round: agent 0, agent 1, ..., and again from agent 0 |
    | `probability` | `probability` | each agent with that probability, independently |
    | `sequence` | `rounds` | the agents that the list `rounds` gives for each round; the list repeats from its end |

    For an inactive agent nothing is played or drawn: its action is ignored (though its shape and dtype are checked),
    its reward and info are 0, and its statistics do not change. The k-th round in which an agent acts has the
    same random numbers whenever it takes place. Observations gain

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `active` | (1,) | bool | whether the agent acts in the coming round |
    | `own_round` | (1,) | int64 | number of rounds in which it has acted |

    Entries of an observation about the last round (units delivered, the context pulled, the reward) are 0 for agents
    that were inactive in it. Entries about the coming round (the contexts offered) keep their values from the last
    round in which the agent acted, if the agent is inactive in the coming round. ``round`` counts all rounds of the
    federation.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Participation(parallel_env(num_agents=3), {"name": "sequence", "rounds": [0, [1, 2]]})
        >>> env.reset_batch([0]).observation["active"][0, :, 0].tolist()
        [True, False, False]
        >>> env.step_batch(np.zeros((1, 3), np.int64)).observation["active"][0, :, 0].tolist()
        [False, True, True]
    """

    layer = "data"
    examples = (
        {},
        {"law": {"name": "probability", "probability": 0.4}},
        {"law": {"name": "sequence", "rounds": [0, [0, 1], []]}},
    )

    def __init__(self, env: FederatedEnv, law: Law | str | Mapping[str, Any] = "uniform") -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without another :class:`Participation`.
            law: The distribution of the agents that act: a name in the table, a mapping of ``name`` and its arguments,
                or a function, see :data:`Law`.

        Raises:
            TypeError: ``law`` or an argument has the wrong type, or the distribution has no argument of that name.
            ValueError: A name is unknown, or an argument out of its range; ``env`` has a :class:`Participation`
                already.
        """
        super().__init__(env)
        if "active" in env.single_observation_space.spaces:
            raise ValueError("env has a Participation already; one is allowed")
        self._law: Law = make_rule("law", law, LAWS)
        for place, given in enumerate(getattr(self._law, "keywords", {}).get("rounds", ())):
            for agent in np.atleast_1d(given).tolist():
                require_integer(f"rounds[{place}]", agent, 0, self.max_num_agents - 1)
        self.single_observation_space = spaces.Dict(
            {
                **env.single_observation_space.spaces,
                "active": spaces.Box(0, 1, (1,), np.bool_),
                "own_round": spaces.Box(0, MOST, (1,), np.int64),
            }
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        generators = [stream(int(seed), Purpose.PARTICIPATION) for seed in seeds]
        first = self._drawn(1, generators)
        self.env.set_active(first)
        reset = self.env.reset_batch(seeds)
        self._generators = generators
        # Drawn one round ahead, so that nothing is drawn again if an action is refused and step is called once more.
        self._next = self._drawn(2, generators)
        self._buffers = Buffers(
            {"active": first[..., np.newaxis], "own_round": np.zeros((*first.shape, 1), np.int64)}
        )
        return reset._replace(observation={**reset.observation, **self._buffers.views})

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round of the active agents; see :meth:`FederatedEnv.step_batch`."""
        self.env.set_active(self._next)
        step = self.env.step_batch(action)
        seen = self._buffers.arrays
        seen["own_round"] += seen["active"]
        seen["active"][..., 0] = self._next
        self._next = self._drawn(self.unwrapped._round + 2, self._generators)
        return step._replace(observation={**step.observation, **self._buffers.views})

    def _drawn(self, t: int, generators: list[np.random.Generator]) -> Array:
        """Returns which agents act in round ``t``, bool ``(replicas, agents)``."""
        law, agents = self._law, self.max_num_agents
        return np.array([law(t, generator, agents) for generator in generators])
