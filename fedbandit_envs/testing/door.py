"""Checks of the door: what is released, how much it can betray, and what is claimed of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.claim import Claim
from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.sensitivity import Change, Sensitivity
from fedbandit_envs.testing.episodes import (
    SEEDS,
    Make,
    copied,
    everyone,
    fresh,
    inside,
    random_actions,
    random_senders,
    require_in_space,
    rounds_of,
    rows_of,
    told,
)
from fedbandit_envs.testing.findings import mapped, require, require_same
from fedbandit_envs.wrapper import find_layer, layers


def check_release(make: Make) -> None:
    """Releases have the names and shapes of their space, without noise its dtypes and values too; silence is zero."""
    env = fresh(make)
    env.reset_batch(SEEDS)
    rows = rows_of(env)
    # Three rounds, so that a budget of few releases lasts.
    for action, sends in zip(random_actions(env, rounds=3), random_senders(env, 3), strict=True):
        env.step_batch(action)
        released = env.release(sends)
        space = env.single_release_space
        if find_layer(env, "noise") is None:
            require_in_space("release:", released, space, rows)
        else:
            shapes = {name: (*rows, *(part.shape or ())) for name, part in space.items()}
            found = {name: array.shape for name, array in released.items()}
            require(
                found == shapes,
                f"release has the shapes {found}",
                f"those of single_release_space, {shapes}, are required",
            )
        for name, array in released.items():
            bad, loud = array[~np.isfinite(array)], array[~sends]
            require(
                not bad.size, f"release of {name!r} is {bad[:1]} in places", "finite numbers are required"
            )
            require(
                not loud.any(),
                f"release of {name!r} is {loud[loud != 0][:1]} for agents that do not send",
                "zero for the silent is required",
            )


def check_increments(make: Make) -> None:
    """What is released over an episode adds up to what one release at its end gives, and nothing leaves twice.

    Where there is no noise: noise does not add up.
    """
    make = inside(make)
    often, once = fresh(make), fresh(make)
    if find_layer(often, "noise") is not None:
        return
    actions = random_actions(often)
    quiet = [np.zeros_like(sends) for sends in random_senders(once)]
    often.reset_batch(SEEDS)
    once.reset_batch(SEEDS)
    total = copied(often.release(everyone(often)))
    for loud, silent in zip(
        rounds_of(often, actions, random_senders(often)), rounds_of(once, actions, quiet), strict=True
    ):
        _add(total, loud.pop("release"))
        silent.pop("release")
        require_same(
            "a round after releases, in comparison with one after silence,",
            loud,
            silent,
            "equality is required: a release must not change what agents live through",
        )
    _add(total, often.release(everyone(often)))
    for name, array in often.release(everyone(often)).items():
        require(
            not array.any(),
            f"release of {name!r} a second time in a row is {array[array != 0][:1]}",
            "zero is required: what has left must not leave again",
        )
    _require_equal_sums(total, once.release(everyone(once)))


def _add(total: Arrays, released: Arrays) -> None:
    for name, array in released.items():
        total[name] += array


def _require_equal_sums(total: Arrays, at_once: Arrays) -> None:
    for name, array in at_once.items():
        slack = 0.0
        if np.issubdtype(array.dtype, np.floating):
            slack = 1e-9 * float(np.abs(array).max(initial=0.0))
        unequal = np.abs(total[name] - array) > slack
        require(
            not unequal.any(),
            f"releases of {name!r} add up to {total[name][unequal][:1]}, where one at the end is {array[unequal][:1]}",
            "equality is required (of floating-point numbers to 1e-9): a release must be what the statistic has grown "
            "by since the agent last sent",
        )


def check_ownership(make: Make) -> None:
    """What release, hidden and sensitivity return is read-only, or nobody's buffer: writing into it changes nothing."""
    marred, twin = fresh(make), fresh(make)
    actions, senders = random_actions(marred), random_senders(marred)
    marred.reset_batch(SEEDS)
    twin.reset_batch(SEEDS)
    for action, sends in zip(actions, senders, strict=True):
        handed = _handed_out(marred, sends)
        # A copy, before anybody writes.
        found = copied(handed)
        mapped(_mar, handed)
        require_same(
            "after somebody wrote into what release, hidden and sensitivity returned, the next",
            {**found, **told(marred.step_batch(action))},
            {**_handed_out(twin, sends), **told(twin.step_batch(action))},
            "what a twin shows is required: hand out arrays that are nobody's buffers",
        )


def _handed_out(env: FederatedEnv, sends: Array) -> dict[str, Arrays]:
    return {"release": env.release(sends), "hidden": env.hidden(), "sensitivity": env.sensitivity().scale}


def _mar(array: Array) -> None:
    if array.flags.writeable:
        array.fill(1)


def check_sensitivity(make: Make) -> None:
    """The sensitivity speaks of what is released, is finite, names adjacencies, and stays over an episode."""
    env = fresh(make)
    env.reset_batch(SEEDS)
    told_first = env.sensitivity()
    told_first = told_first._replace(scale=copied(told_first.scale))
    noisy = find_layer(env, "noise") is not None
    scale, space = told_first.scale, env.single_release_space
    # Noise may bring numbers of its own, which betray nothing.
    require(
        scale.keys() <= space.keys() if noisy else scale.keys() == space.keys(),
        f"sensitivity has scales of {sorted(scale)}",
        f"what is released, {sorted(space)}, is required",
    )
    for name, array in scale.items():
        shape = (*rows_of(env), *(space[name].shape or ()))
        require(
            array.shape == shape, f"scale of {name!r} has the shape {array.shape}", f"{shape} is required"
        )
        require(
            bool(np.isfinite(array).all() and (array >= 0).all() and array.any()),
            f"scale of {name!r} lies between {array.min()} and {array.max()}",
            "finite numbers >= 0 that are not all 0 are required",
        )
    _require_changes("changes", told_first.changes)
    if told_first.pair is not None:
        total, good, changes = told_first.pair
        require(
            {total, good} <= scale.keys(),
            f"pair is of {total!r} and {good!r}",
            "names of what is released are required",
        )
        _require_changes("pair.changes", changes)
    for _ in rounds_of(env, random_actions(env)):
        pass
    told_last = env.sensitivity()
    require_same(
        "sensitivity at reset and at the episode's end",
        list(told_last),
        list(told_first),
        "a constant is required over an episode: it must not depend on data",
    )
    # Noise need not be symmetric where data is.
    if told_first.symmetric and not noisy:
        _require_symmetry(env, told_first)


def _require_changes(what: str, changes: Mapping[str, Change]) -> None:
    require(
        bool(changes),
        f"sensitivity's {what} is empty",
        "one adjacency at least is required: who else is protected?",
    )
    for adjacency, (values, norm) in changes.items():
        require(
            values >= 1 and 0 < norm < np.inf,
            f"sensitivity's {what} has {adjacency!r} with {values} values and a norm of {norm}",
            "at least one value, and a finite norm > 0, are required",
        )


def _require_symmetry(env: FederatedEnv, sensitivity: Sensitivity) -> None:
    nobody = np.zeros(rows_of(env), np.bool_)
    sends = everyone(env) if find_layer(env, "transport") is None else nobody
    released = env.release(sends)
    for name, scale in sensitivity.scale.items():
        for array in (scale, released[name]):
            require(
                array.shape[-1] == array.shape[-2] and np.allclose(array, array.swapaxes(-1, -2)),
                f"sensitivity is said to be symmetric, but {name!r} is not",
                "scales and releases that are symmetric matrices on the last two axes are required",
            )


def check_claims(make: Make) -> None:
    """All levels claim the same: nothing lost before a release; all of it after one that passed no noise."""
    for height in range(len(list(layers(make())))):
        env = fresh(make)
        stack = list(layers(env))
        env.reset_batch(SEEDS)
        _require_all_is_kept("at reset", _claim(stack))
        stack[height].release(np.zeros(rows_of(env), np.bool_))
        _require_all_is_kept("after a release by nobody", _claim(stack))
        stack[height].release(everyone(env))
        claim, name = _claim(stack), type(stack[height]).__name__
        if any(find_layer(level, "noise") for level in stack[height:]):
            require(
                bool(claim.reason) if claim.epsilon is None else np.isfinite(claim.epsilon),
                f"privacy() after a release of {name}, which passes noise, is {claim}",
                "a finite epsilon, or None and a reason, is required",
            )
        else:
            require(
                claim.epsilon == np.inf and bool(claim.reason),
                f"privacy() after a release of {name}, which passes no noise, is {claim}",
                "an infinite epsilon and a reason are required",
            )
        require(
            claim.adjacency in env.sensitivity().changes and 0 <= claim.delta < 1,
            f"privacy() is {claim}",
            "an adjacency of sensitivity() and a delta in [0, 1) are required",
        )
    env = fresh(inside(make))
    env.reset_batch(SEEDS)
    for _ in rounds_of(env, random_actions(env)):
        pass
    _require_all_is_kept(
        "after an episode in which nobody sent (a layer takes data from inside by _release, which is not counted)",
        _claim(list(layers(env))),
    )


def _claim(stack: list[FederatedEnv]) -> Claim:
    """Returns what is claimed, the same at every level."""
    claims: list[Any] = [level.privacy() for level in stack]
    require_same(
        f"privacy() of {type(stack[0]).__name__} and of what it stands around,",
        claims,
        claims[:1] * len(claims),
        "one claim for the whole stack is required",
    )
    return claims[0]


def _require_all_is_kept(when: str, claim: Claim) -> None:
    # Where agents choose when to send nothing is claimed, and a reason given.
    require(
        claim.epsilon == 0 or (claim.epsilon is None and bool(claim.reason)),
        f"privacy() is {claim} {when}",
        "an epsilon of 0 is required",
    )
