"""Conformance of policies."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arrays import Array
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.streams import row_seeds
from fedbandit_envs.testing.episodes import SEEDS, Make, copied, fresh, rows_of
from fedbandit_envs.testing.findings import require, require_same, taken
from fedbandit_envs.views.peers import Peer

HORIZON = 120
"""Rounds that a policy plays."""


class Played(NamedTuple):
    """An episode of a policy.

    Attributes:
        spaces: What it was told before.
        seeds: Its seeds, ``(replicas, agents)``.
        observations: What it saw, round by round, read-only copies.
        actions: What it did, round by round, copies.
    """

    spaces: Spaces
    seeds: Array
    observations: list[Any]
    actions: list[Any]


def check_policy(make_policy: Callable[[], Peer], make_env: Make) -> None:
    """Checks that a policy is what the protocol says: it acts row by row, on what rows have seen and on their seeds.

    The protocol is :class:`fedbandit_envs.baselines.policy.Policy`. One episode is played and its observations are fed
    to the policy again: after another reset, and agent by agent.

    Args:
        make_policy: Makes the policy, ``MyPolicy`` itself or a function that adds arguments.
        make_env: Makes the federation that it plays, with the wrappers that it needs, small and new at each call.

    Raises:
        AssertionError: Something is otherwise; it says what, what is required and where to mend it.
    """
    policy = make_policy()
    played = play(policy, make_env)
    check_memory(make_policy, played)
    check_reset(policy, played)
    check_rows(make_policy, played)


def play(policy: Peer, make_env: Make) -> Played:
    """Plays an episode; every action is an element of the action space, and nothing is written to observations."""
    env = fresh(make_env, HORIZON)
    observation = env.reset_batch(SEEDS).observation
    played = Played(env.policy_spaces, row_seeds(SEEDS, env.max_num_agents), [], [])
    policy.reset(played.spaces, played.seeds)
    for _ in range(HORIZON):
        played.observations.append(_kept(observation))
        action = _act(policy, observation)
        _require_valid("action", action, env.single_action_space, rows_of(env))
        played.actions.append(copied(action))
        observation = env.step_batch(action).observation
    return played


def _act(policy: Peer, observation: Any) -> Any:
    try:
        return policy.act(observation)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise AssertionError(
            f"act writes into its observation ({error}); observations are the environment's: copy what is to change"
        ) from error


def _kept(observation: Any) -> Any:
    """Copies observations; the copies are read-only as well."""
    kept = copied(observation)
    for array in kept.values():
        array.flags.writeable = False
    return kept


def _require_valid(what: str, action: Any, space: spaces.Space[Any], rows: tuple[int, int]) -> None:
    if isinstance(space, spaces.Dict):
        require(
            isinstance(action, Mapping) and action.keys() == space.keys(),
            f"{what} is {action!r}",
            f"a mapping of {list(space)} is required, since agents choose when to send",
        )
        for name, part in space.items():
            _require_valid(f"{what}[{name!r}]", action[name], part, rows)
        return
    shape = (*rows, *(space.shape or ()))
    require(
        isinstance(action, np.ndarray) and action.shape == shape,
        f"{what} is {getattr(action, 'dtype', type(action).__name__)} {np.shape(action)}",
        f"an array of shape (replicas, agents, ...) = {shape} is required",
    )
    # Environments take any width of the right kind, and bool where there are two choices.
    kind = np.floating if np.issubdtype(space.dtype, np.floating) else np.integer
    right = np.issubdtype(action.dtype, kind) or (action.dtype == np.bool_ and kind is np.integer)
    # Spaces take long to write out: only what is wrong is.
    if not right:
        require(False, f"{what} has dtype {action.dtype}", f"a kind that fits {space} is required")
    for row in np.ndindex(rows):
        if not space.contains(action[row].astype(space.dtype)):
            require(
                False,
                f"{what} is {action[row]} in row {row}",
                f"an element of the action space {space} is required",
            )


def replay(policy: Peer, played: Played, row: tuple[slice, slice] = (slice(None), slice(None))) -> list[Any]:
    """Feeds an episode's observations to a policy that starts anew, all rows or some, and returns what it does."""
    policy.reset(played.spaces, played.seeds[row])
    return [copied(_act(policy, taken(observation, row))) for observation in played.observations]


def check_memory(make_policy: Callable[[], Peer], played: Played) -> None:
    """The policy does the same on copies of what it saw: it is seeded, and keeps no buffer of the environment's."""
    require_same(
        "of an episode and its repetition by a fresh policy, on copies of the observations, the action in round",
        replay(make_policy(), played),
        played.actions,
        "equality is required: draw from the seeds given to reset only, and copy what is to be kept of an observation, "
        "which holds until the next round",
    )


def check_reset(policy: Peer, played: Played) -> None:
    """After a reset the policy has forgotten the episode before."""
    require_same(
        "of an episode and its repetition after reset, the action in round",
        replay(policy, played),
        played.actions,
        "equality is required: let reset forget everything",
    )


def check_rows(make_policy: Callable[[], Peer], played: Played) -> None:
    """An agent fed alone acts as it does among the others: what rows learn of each other, their observations tell."""
    replicas, agents = played.seeds.shape
    policy = make_policy()
    for r, j in ((0, 0), (1, agents // 2), (replicas - 1, agents - 1)):
        row = slice(r, r + 1), slice(j, j + 1)
        require_same(
            f"of agent {j} of replica {r}, alone and among the others, the action in round",
            replay(policy, played, row),
            [taken(action, row) for action in played.actions],
            "equality is required: a row may depend on the same row of observations and seeds alone",
        )
