"""Checks of refusals: bad actions, seeds and senders, of either face, raise errors and leave no trace."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.testing.episodes import (
    SEEDS,
    Make,
    by_agent,
    episode,
    everyone,
    fresh,
    random_actions,
    random_senders,
    rounds_of,
)
from fedbandit_envs.testing.findings import refusal, require_same


def check_refusals(make: Make) -> None:
    """Bad actions, seeds and senders are refused and leave no trace: a twin that was not asked goes on likewise."""
    asked, twin = fresh(make), fresh(make)
    (good,) = random_actions(asked, rounds=1)
    open_above = getattr(asked.unwrapped, "open_above", False)
    calls: list[tuple[str, Callable[[], Any], tuple[type[Exception], ...]]] = [
        (f"step_batch with {what}", partial(asked.step_batch, bad), (TypeError, ValueError))
        for what, bad in bad_actions(asked.single_action_space, good, open_above)
    ]
    calls += [
        (f"reset_batch({seeds})", partial(asked.reset_batch, seeds), (ValueError,)) for seeds in ((), (-1,))
    ]
    calls.append(
        ("release with an agent less", partial(asked.release, everyone(asked)[:, 1:]), (ValueError,))
    )
    asked.max_cycles = twin.max_cycles = len(calls) + 1
    actions, senders = random_actions(asked, rounds=len(calls) + 1), random_senders(asked, len(calls) + 1)
    episode(asked, SEEDS, actions[:1], senders[:1])
    episode(twin, SEEDS, actions[:1], senders[:1])
    for (call, ask, errors), action, sends in zip(calls, actions[1:], senders[1:], strict=True):
        with refusal(call, *errors):
            ask()
        found, expected = (
            {"hidden": env.hidden(), "privacy": env.privacy(), **next(rounds_of(env, [action], [sends]))}
            for env in (asked, twin)
        )
        require_same(
            f"{call} is refused, but then what the next round says, in comparison with a twin that was not asked,",
            found,
            expected,
            "a refusal must leave the state untouched: check all before anything happens",
        )


def bad_actions(space: spaces.Space[Any], good: Any, open_above: bool) -> Iterator[tuple[str, Any]]:
    """Yields what a space forbids, each with what is wrong with it.

    Args:
        space: Of one agent's action.
        good: An action of all agents.
        open_above: Whether the environment takes values above the space's.
    """
    if isinstance(space, spaces.Dict):
        yield "an action that is no mapping", next(iter(good.values()))
        for name, part in space.items():
            for what, bad in bad_actions(part, good[name], open_above and name == "action"):
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
    """Returns an action with another value for the last agent of the last replica alone."""
    bad: Array = good.astype(dtype)
    bad[-1, -1] = value
    return bad


def _ends(space: Any) -> tuple[Array, Array]:
    """Returns the least and the greatest of a space's values."""
    if isinstance(space, spaces.Box):
        return space.low.astype(np.float64), space.high.astype(np.float64)
    count = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return np.asarray(space.start), np.asarray(space.start + count - 1)


def check_missing_agents(make: Make) -> None:
    """The keyed face refuses actions of too few and too many agents, and nothing happens."""
    asked, twin = fresh(make), fresh(make)
    action, follows = (by_agent(asked, choice) for choice in random_actions(asked, [7], rounds=2))
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
