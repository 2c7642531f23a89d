"""Short episodes for the checks: new federations, random actions and senders, copies of results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import mapped, require, taken

Make = Callable[[], FederatedEnv]
"""A function that makes a new federation, the same one at each call."""

Wrap = Callable[[FederatedEnv], FederatedEnv]
"""A function that puts wrappers around a federation."""

HORIZON = 12
"""Number of rounds of the episodes that are checked."""

SEEDS = (3, 5, 8)
"""Seeds of the replicas."""


def fresh(make: Make, horizon: int = HORIZON) -> FederatedEnv:
    """Returns a new federation with the given horizon."""
    env = make()
    require(
        isinstance(env, FederatedEnv),
        f"make() returns a {type(env).__name__}; a FederatedEnv is required",
    )
    env.max_cycles = horizon
    for level in layers(env):
        require(
            level.max_cycles == horizon,
            f"max_cycles was set to {horizon}, but {type(level).__name__} inside has {level.max_cycles}"
            "; the horizon must be the whole stack's: let wrappers pass it on",
        )
    return env


def around(wrap: Wrap, make: Make) -> Make:
    """Returns a function that makes federations with wrappers around them."""
    return lambda: wrap(make())


def rows_of(env: FederatedEnv, seeds: Sequence[int] = SEEDS) -> tuple[int, int]:
    """Returns the leading axes, ``(replicas, agents)``."""
    return len(seeds), env.max_num_agents


def everyone(env: FederatedEnv, seeds: Sequence[int] = SEEDS) -> Array:
    """Returns all agents as senders."""
    return np.ones(rows_of(env, seeds), np.bool_)


def random_choices(space: spaces.Space[Any], rows: tuple[int, int], rounds: int = HORIZON) -> list[Any]:
    """Draws an element of a space for each agent and round.

    Args:
        space: One agent's space.
        rows: ``(replicas, agents)``, the leading axes.
        rounds: Number of rounds.
    """
    batched = batch_space(space, rows[0] * rows[1])
    batched.seed(0)

    def in_rows(array: Any) -> Array:
        return np.reshape(array, (*rows, *np.shape(array)[1:]))

    return [mapped(in_rows, batched.sample()) for _ in range(rounds)]


def random_actions(env: FederatedEnv, seeds: Sequence[int] = SEEDS, rounds: int = HORIZON) -> list[Any]:
    """Draws an action for each agent and round."""
    return random_choices(env.single_action_space, rows_of(env, seeds), rounds=rounds)


def random_senders(env: FederatedEnv, rounds: int = HORIZON) -> list[Array]:
    """Draws which agents send in each round; none where a transport decides that."""
    generator = np.random.default_rng(0)
    probability = 0.5 if find_layer(env, "transport") is None else 0.0
    return list(generator.random((rounds, *rows_of(env))) < probability)


def copied(tree: Any) -> Any:
    """Returns nested mappings with a copy of every array."""
    return mapped(np.array, tree)


def told(result: BatchReset | BatchStep) -> dict[str, Any]:
    """Returns copies of the results of a reset or a step, by name."""
    return copied(result._asdict())


def rounds_of(
    env: FederatedEnv, actions: Sequence[Any], senders: Sequence[Array] = ()
) -> Iterator[dict[str, Any]]:
    """Plays actions, each followed by a release, and yields copies of each round's results, by name."""
    for action, sends in zip(actions, senders or repeat(None), strict=False):
        result = told(env.step_batch(action))
        if sends is not None:
            result["release"] = copied(env.release(sends))
        yield result


def episode(
    env: FederatedEnv, seeds: Sequence[int], actions: Sequence[Any], senders: Sequence[Array] = ()
) -> list[dict[str, Any]]:
    """Plays an episode from its reset on and returns copies of the results of the reset and of each round.

    Args:
        env: The federation.
        seeds: Seed of each replica.
        actions: Actions of all agents, one array for each round.
        senders: Whether each agent sends after each round, bool ``(replicas, agents)``; none send without.
    """
    return [told(env.reset_batch(seeds)), *rounds_of(env, actions, senders)]


def by_agent(env: FederatedEnv, action: Any) -> dict[str, Any]:
    """Returns the first replica's actions, keyed by agent."""
    return {agent: taken(action, (0, j)) for j, agent in enumerate(env.possible_agents)}


def require_in_space(
    what: str, found: Any, space: spaces.Space[Any], rows: tuple[int, int], any_width: bool = False
) -> None:
    """Requires that an array has a space's dtype and shape, after the leading axes, and that all rows lie in it.

    Args:
        what: Description of the array, for the message.
        found: The array; for a space ``Dict``, a mapping of arrays, which are required to have its names.
        space: Space of one row.
        rows: ``(replicas, agents)``.
        any_width: Whether to accept every dtype of the space's kind, as environments do of actions: every width of
            integers or floating-point numbers, and bool for integers.
    """
    if isinstance(space, spaces.Dict):
        mapping = isinstance(found, Mapping)
        require(
            mapping and found.keys() == space.keys(),
            f"{what} is {f'a mapping of {list(found)}' if mapping else repr(found)}"
            f"; a mapping of {list(space)} is required",
        )
        for name, part in space.items():
            require_in_space(f"{what} {name!r}", found[name], part, rows, any_width)
        return
    dtype, shape = np.dtype(space.dtype), (*rows, *(space.shape or ()))
    fits = isinstance(found, np.ndarray) and found.shape == shape and _fits(found.dtype, dtype, any_width)
    # Formatting arrays and spaces is slow, so messages are made for failures only.
    if not fits:
        raise AssertionError(
            f"{what} is {getattr(found, 'dtype', type(found).__name__)} {np.shape(found)}"
            f"; {dtype} {shape}, as its space {space} says after (replicas, agents), is required"
        )
    for row in np.ndindex(rows):
        if not space.contains(np.asarray(found[row], dtype)):
            raise AssertionError(
                f"{what} is {found[row]} in row {row}; an element of its space {space} is required"
            )


def _fits(found: np.dtype[Any], required: np.dtype[Any], any_width: bool) -> bool:
    if not any_width:
        return found == required
    if np.issubdtype(required, np.floating):
        return np.issubdtype(found, np.floating)
    return np.issubdtype(found, np.integer) or found == np.bool_
