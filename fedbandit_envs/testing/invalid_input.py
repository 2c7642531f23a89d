"""Checks that invalid actions, seeds and senders raise errors and leave the state untouched, in both APIs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.testing import episodes
from fedbandit_envs.testing.assertions import refusal, require_same
from fedbandit_envs.testing.episodes import SEEDS, Make


def check_refusals(make: Make) -> None:
    """Checks the batch API: after an error the next round equals that of a twin that was not given invalid input."""
    asked, twin = episodes.fresh(make), episodes.fresh(make)
    (good,) = episodes.random_actions(asked, rounds=1)
    open_above = getattr(asked.unwrapped, "open_above", False)
    calls: list[tuple[str, Callable[[], Any], tuple[type[Exception], ...]]] = [
        *(
            (f"step_batch with {what}", partial(asked.step_batch, bad), (TypeError, ValueError))
            for what, bad in _bad_actions(asked.single_action_space, good, open_above)
        ),
        ("reset_batch(())", partial(asked.reset_batch, ()), (ValueError,)),
        ("reset_batch((-1,))", partial(asked.reset_batch, (-1,)), (ValueError,)),
        (
            "release with an agent less",
            partial(asked.release, episodes.everyone(asked)[:, 1:]),
            (ValueError,),
        ),
    ]
    rounds = len(calls) + 1
    actions, senders = episodes.random_actions(asked, rounds=rounds), episodes.random_senders(asked, rounds)
    for env in (asked, twin):
        env.max_cycles = rounds
        episodes.episode(env, SEEDS, actions[:1], senders[:1])
    for (call, ask, errors), action, sends in zip(calls, actions[1:], senders[1:], strict=True):
        with refusal(call, *errors):
            ask()
        found, expected = (
            [env.hidden(), env.privacy(), *episodes.rounds_of(env, [action], [sends])]
            for env in (asked, twin)
        )
        require_same(
            f"{call} is refused, but then what the next round says, in comparison with a twin that was not asked,",
            found,
            expected,
            "a refusal must leave the state untouched: check all before anything happens",
        )


def _bad_actions(space: spaces.Space[Any], good: Any, open_above: bool) -> Iterator[tuple[str, Any]]:
    """Yields invalid actions, each with a description of its fault.

    Args:
        space: One agent's action space.
        good: A valid action of all agents.
        open_above: Whether the environment accepts values above the space's upper bound.
    """
    if isinstance(space, spaces.Dict):
        yield "an action that is no mapping", next(iter(good.values()))
        for name, part in space.items():
            for what, bad in _bad_actions(part, good[name], open_above and name == "action"):
                yield f"{what} in {name!r}", {**good, name: bad}
        return
    yield "an axis more", good[..., np.newaxis]
    yield "an agent less", good[:, 1:]
    whole = not np.issubdtype(space.dtype, np.floating)
    yield "a NaN", _altered(good, np.nan, np.float64)
    if whole:
        yield "a fraction", _altered(good, 0.5, np.float64)
    low, high = _ends(space)
    dtype = np.int64 if whole else np.float64
    if np.isfinite(low).all():
        yield "a value below the space's", _altered(good, low - 1, dtype)
    if np.isfinite(high).all() and not open_above:
        yield "a value above the space's", _altered(good, high + 1, dtype)


def _altered(good: Array, value: Any, dtype: type) -> Array:
    """Returns a copy of an action with another value for the last agent of the last replica."""
    bad: Array = good.astype(dtype)
    bad[-1, -1] = value
    return bad


def _ends(space: Any) -> tuple[Array, Array]:
    """Returns the lower and upper bounds of a space."""
    if isinstance(space, spaces.Box):
        return space.low.astype(np.float64), space.high.astype(np.float64)
    count = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return np.asarray(space.start), np.asarray(space.start + count - 1)


def check_missing_agents(make: Make) -> None:
    """Checks that the PettingZoo API refuses actions of too few and too many agents and leaves the state untouched."""
    asked, twin = episodes.fresh(make), episodes.fresh(make)
    action, follows = (
        episodes.by_agent(asked, choice) for choice in episodes.random_actions(asked, [7], rounds=2)
    )
    first = next(iter(action.values()))
    without = {agent: choice for agent, choice in action.items() if agent != "agent_0"}
    asked.reset(seed=7)
    twin.reset(seed=7)
    for what, bad in (("without agent_0", without), ("of an unknown agent", {**action, "nobody": first})):
        with refusal(f"step with actions {what}", ValueError):
            asked.step(bad)
    require_same(
        "the round after refused actions of too few and of too many agents, in comparison with a twin's,",
        asked.step(follows),
        twin.step(follows),
        "a refusal must leave the state untouched",
    )
