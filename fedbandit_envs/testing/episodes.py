"""Short episodes to check: fresh federations, random actions and senders, and copies of all that is told."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.testing.findings import mapped, require, taken
from fedbandit_envs.wrapper import find_layer, layers

Make = Callable[[], FederatedEnv]
"""Makes a fresh federation, the same one at each call."""

Wrap = Callable[[FederatedEnv], FederatedEnv]
"""Puts wrappers around a federation."""

HORIZON = 12
"""Rounds of an episode that is checked."""

SEEDS = (3, 5, 8)
"""Of the replicas."""


def fresh(make: Make, horizon: int = HORIZON) -> FederatedEnv:
    """Makes a federation and sets its horizon."""
    env = make()
    require(
        isinstance(env, FederatedEnv),
        f"make() returns a {type(env).__name__}",
        "a FederatedEnv is required",
    )
    env.max_cycles = horizon
    for level in layers(env):
        require(
            level.max_cycles == horizon,
            f"max_cycles was set to {horizon}, but {type(level).__name__} inside has {level.max_cycles}",
            "the horizon must be the whole stack's: let wrappers pass it on",
        )
    return env


def around(wrap: Wrap, make: Make) -> Make:
    """Puts wrappers around every federation that is made."""
    return lambda: wrap(make())


def inside(make: Make) -> Make:
    """Makes the part of a stack that lies inside of its transport, which lets data out by itself."""

    def make_inside() -> FederatedEnv:
        env = make()
        transport = find_layer(env, "transport")
        return env if transport is None else transport.env

    return make_inside


def rows_of(env: FederatedEnv, seeds: Sequence[int] = SEEDS) -> tuple[int, int]:
    """Returns the leading axes, ``(replicas, agents)``."""
    return len(seeds), env.max_num_agents


def everyone(env: FederatedEnv, seeds: Sequence[int] = SEEDS) -> Array:
    """Returns all agents as senders."""
    return np.ones(rows_of(env, seeds), np.bool_)


def random_choices(
    space: spaces.Space[Any], rows: tuple[int, int], seed: int = 0, rounds: int = HORIZON
) -> list[Any]:
    """Draws an element of a space for each agent and round.

    Args:
        space: One agent's.
        rows: ``(replicas, agents)``, the leading axes of what is drawn.
        seed: Of the draws.
        rounds: How many.
    """
    batched = batch_space(space, rows[0] * rows[1])
    batched.seed(seed)

    def in_rows(array: Any) -> Array:
        return np.reshape(array, (*rows, *np.shape(array)[1:]))

    return [mapped(in_rows, batched.sample()) for _ in range(rounds)]


def random_actions(env: FederatedEnv, seeds: Sequence[int] = SEEDS, rounds: int = HORIZON) -> list[Any]:
    """Draws an action for each agent and round."""
    return random_choices(env.single_action_space, rows_of(env, seeds), rounds=rounds)


def random_senders(env: FederatedEnv, rounds: int = HORIZON) -> list[Array]:
    """Draws who sends in each round; nobody where a transport decides that."""
    generator = np.random.default_rng(0)
    chosen = generator.random((rounds, *rows_of(env))) < (
        0.5 if find_layer(env, "transport") is None else 0.0
    )
    return list(chosen)


def copied(tree: Any) -> Any:
    """Copies every array of nested mappings."""
    return mapped(np.array, tree)


def told(result: BatchReset | BatchStep) -> dict[str, Any]:
    """Copies what a reset or a step returns."""
    return copied(result._asdict())


def rounds_of(
    env: FederatedEnv, actions: Sequence[Any], senders: Sequence[Array] = ()
) -> Iterator[dict[str, Any]]:
    """Plays actions, each followed by a release, and yields copies of all that comes out of it."""
    for action, sends in zip(actions, senders or repeat(None), strict=False):
        result = told(env.step_batch(action))
        if sends is not None:
            result["release"] = copied(env.release(sends))
        yield result


def episode(
    env: FederatedEnv, seeds: Sequence[int], actions: Sequence[Any], senders: Sequence[Array] = ()
) -> list[dict[str, Any]]:
    """Plays an episode from its reset on and returns copies of all that comes out of it, by round.

    Args:
        env: The federation.
        seeds: One a replica.
        actions: One of all agents a round.
        senders: Who sends after each round, bool ``(replicas, agents)``; without any nobody does.
    """
    return [told(env.reset_batch(seeds)), *rounds_of(env, actions, senders)]


def by_agent(env: FederatedEnv, action: Any) -> dict[str, Any]:
    """Returns the first replica's actions, keyed by agent."""
    return {agent: taken(action, (0, j)) for j, agent in enumerate(env.possible_agents)}


def require_in_space(what: str, arrays: Arrays, space: spaces.Dict, rows: tuple[int, int]) -> None:
    """Requires that arrays have a space's names, dtypes and shapes, after the leading axes, and lie in it.

    Args:
        what: What the arrays are.
        arrays: By name.
        space: Of one row.
        rows: ``(replicas, agents)``.
    """
    require(
        arrays.keys() == space.keys(),
        f"{what} has the names {sorted(arrays)}",
        f"those of its space, {sorted(space)}, are required",
    )
    for name, part in space.items():
        array, shape = arrays[name], (*rows, *(part.shape or ()))
        # Arrays and spaces take long to write out: only what is wrong is.
        if not (isinstance(array, np.ndarray) and array.dtype == part.dtype and array.shape == shape):
            require(
                False,
                f"{what} {name!r} is {getattr(array, 'dtype', type(array).__name__)} {np.shape(array)}",
                f"{part.dtype} {shape}, as its space {part} says after (replicas, agents), is required",
            )
        for row in np.ndindex(rows):
            if not part.contains(np.asarray(array[row])):
                require(
                    False,
                    f"{what} {name!r} is {array[row]} in row {row}",
                    f"an element of its space {part} is required",
                )
