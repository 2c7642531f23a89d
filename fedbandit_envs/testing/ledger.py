"""Checks of releases, their sensitivity and privacy claims."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import Change, Claim, Sensitivity
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import mapped, require, require_same
from fedbandit_envs.testing.episodes import (
    SEEDS,
    Trial,
    copied,
    inside_of_transport,
    require_in_space,
    results,
)


def check_release(trial: Trial) -> None:
    """Checks that releases lie in their space and are zero for agents that do not send.

    Releases with noise may exceed the bounds of their space; of them only the shapes are checked.
    """
    env, rows = trial.env, trial.rows
    env.reset_batch(SEEDS)
    # Only three rounds are played, since a privacy budget may allow for few releases.
    for action, sends in zip(trial.actions[:3], trial.senders[:3], strict=True):
        env.step_batch(action)
        allowed = env.allowed_senders(sends)
        require(
            not (allowed & ~sends).any(),
            "allowed_senders lets agents send that do not want to; true for senders only is required",
        )
        released = env.release(sends)
        space = env.single_release_space
        if find_layer(env, "noise") is None:
            require_in_space("release:", released, space, rows)
        else:
            shapes = {name: (*rows, *(part.shape or ())) for name, part in space.items()}
            found = {name: array.shape for name, array in released.items()}
            require(
                found == shapes,
                f"release has the shapes {found}; those of single_release_space, {shapes}, are required",
            )
        for name, array in released.items():
            bad, loud = array[~np.isfinite(array)], array[~allowed]
            require(not bad.size, f"release of {name!r} is {bad[:1]} in places; finite numbers are required")
            require(
                not loud.any(),
                f"release of {name!r} is {loud[loud != 0][:1]} for agents that do not send"
                "; zero for the silent, and for all whom allowed_senders leaves out, is required",
            )


def check_increments(trial: Trial) -> None:
    """Checks that the releases of an episode add up to a single release at its end; skipped for noisy federations.

    Authored messages need not add up, and a reporter may answer twice in a round.
    """
    often, once = (Trial(inside_of_transport(trial.make)) for _ in range(2))
    if find_layer(often.env, "noise") is not None:
        return
    once.senders = np.zeros_like(once.senders)
    often.env.reset_batch(SEEDS)
    once.env.reset_batch(SEEDS)
    everyone = often.everyone
    releases = [copied(often.env.release(everyone))]
    for after_release, after_silence in zip(often.rounds(), once.rounds(), strict=True):
        releases.append(after_release.pop("release"))
        after_silence.pop("release")
        require_same(
            "a round after releases, in comparison with one after silence,",
            after_release,
            after_silence,
            "equality is required: a release must not change what agents live through",
        )
    if often.env.message_bits:
        return
    releases.append(copied(often.env.release(everyone)))
    for name, array in often.env.release(everyone).items():
        require(
            not array.any(),
            f"release of {name!r} a second time in a row is {array[array != 0][:1]}"
            "; zero is required: what has left must not leave again",
        )
    for name, array in once.env.release(everyone).items():
        total = np.sum([released[name] for released in releases], axis=0)
        slack = 0.0
        if np.issubdtype(array.dtype, np.floating):
            slack = 1e-9 * float(np.abs(array).max(initial=0.0))
        unequal = np.abs(total - array) > slack
        require(
            not unequal.any(),
            f"releases of {name!r} add up to {total[unequal][:1]}, where one at the end is {array[unequal][:1]}"
            "; equality is required (of floating-point numbers to 1e-9): a release must be what the statistic has "
            "grown by since the agent last sent",
        )


def check_ownership(trial: Trial) -> None:
    """Checks that writing into arrays that release, hidden and sensitivity return is impossible or changes nothing."""
    altered, twin = trial, trial.again()
    altered.env.reset_batch(SEEDS)
    twin.env.reset_batch(SEEDS)
    for action, sends in zip(altered.actions, altered.senders, strict=True):
        written, kept = (
            {"release": env.release(sends), "hidden": env.hidden(), "sensitivity": env.sensitivity().scale}
            for env in (altered.env, twin.env)
        )
        # Copied now, since the arrays themselves are overwritten in the next line.
        found = copied(written)
        mapped(_overwrite, written)
        require_same(
            "after somebody wrote into what release, hidden and sensitivity returned, the next",
            {**found, **results(altered.env.step_batch(action))},
            {**kept, **results(twin.env.step_batch(action))},
            "what a twin shows is required: hand out arrays that are nobody's buffers",
        )


def _overwrite(array: Array) -> None:
    if array.flags.writeable:
        array.fill(1)


def check_sensitivity(trial: Trial) -> None:
    """Checks that the sensitivity is constant, names adjacencies, and has scales of all released arrays.

    It must be finite; for authored messages that are not clipped infinite, without adjacencies.
    """
    env = trial.env
    env.reset_batch(SEEDS)
    first = env.sensitivity()
    first = first._replace(scale=copied(first.scale))
    noisy = find_layer(env, "noise") is not None
    scale, space = first.scale, env.single_release_space
    unbounded = bool(env.message_bits) and not first.changes
    # A noise layer may release further numbers, such as variances, which do not depend on data.
    require(
        scale.keys() <= space.keys() if noisy else scale.keys() == space.keys(),
        f"sensitivity has scales of {sorted(scale)}; what is released, {sorted(space)}, is required",
    )
    for name, array in scale.items():
        shape = (*trial.rows, *(space[name].shape or ()))
        require(array.shape == shape, f"scale of {name!r} has the shape {array.shape}; {shape} is required")
        require(
            bool((array == np.inf).all() if unbounded else np.isfinite(array).all() and (array >= 0).all())
            and bool(array.any()),
            f"scale of {name!r} lies between {array.min()} and {array.max()}"
            f"; {'infinity is' if unbounded else 'finite numbers >= 0 that are not all 0 are'} required",
        )
    if not unbounded:
        _require_changes("changes", first.changes)
    if first.pair is not None:
        total, good, changes = first.pair
        require(
            {total, good} <= scale.keys(),
            f"pair is of {total!r} and {good!r}; names of what is released are required",
        )
        _require_changes("pair.changes", changes)
    for t, action in enumerate(trial.actions):
        env.step_batch(action)
        require_same(
            f"sensitivity after round {t} and at reset",
            list(env.sensitivity()),
            list(first),
            "a constant is required over an episode: it must not depend on data",
        )
    # A noise layer may add noise that is not symmetric to symmetric data, so noisy releases are not checked.
    if first.symmetric and not noisy:
        _require_symmetry(trial, first)


def _require_changes(what: str, changes: Mapping[str, Change]) -> None:
    require(
        bool(changes),
        f"sensitivity's {what} is empty; one adjacency at least is required: who else is protected?",
    )
    for adjacency, (values, norm) in changes.items():
        require(
            values >= 1 and 0 < norm < np.inf,
            f"sensitivity's {what} has {adjacency!r} with {values} values and a norm of {norm}"
            "; at least one value, and a finite norm > 0, are required",
        )


def _require_symmetry(trial: Trial, sensitivity: Sensitivity) -> None:
    sends = trial.everyone if find_layer(trial.env, "transport") is None else trial.nobody
    released = trial.env.release(sends)
    for name, scale in sensitivity.scale.items():
        for array in (scale, released[name]):
            require(
                array.shape[-1] == array.shape[-2] and np.allclose(array, array.swapaxes(-1, -2)),
                f"sensitivity is said to be symmetric, but {name!r} is not"
                "; scales and releases that are symmetric matrices on the last two axes are required",
            )


def check_claims(trial: Trial) -> None:
    """Checks the privacy claims of a federation and of each environment inside of its wrappers.

    All of them must return the same claim. Its epsilon must be 0 before any release, and infinite after a release
    without noise.
    """
    for height in range(len(list(layers(trial.env)))):
        env = trial.again().env
        stack = list(layers(env))
        env.reset_batch(SEEDS)
        _require_all_is_kept("at reset", _claim(stack))
        stack[height].release(trial.nobody)
        _require_all_is_kept("after a release by nobody", _claim(stack))
        stack[height].release(trial.everyone)
        claim, name = _claim(stack), type(stack[height]).__name__
        if any(find_layer(level, "noise") for level in stack[height:]):
            require(
                # Whoever calls release gets what only a trusted server may see, against whom there is no protection.
                bool(claim.reason)
                if claim.epsilon is None or claim.observer != "everybody"
                else np.isfinite(claim.epsilon),
                f"privacy() after a release of {name}, which passes noise, is {claim}"
                "; a finite epsilon, or None and a reason, is required",
            )
        else:
            require(
                claim.epsilon == np.inf and bool(claim.reason),
                f"privacy() after a release of {name}, which passes no noise, is {claim}"
                "; an infinite epsilon and a reason are required",
            )
        # Authored messages have no adjacency of their own: without noise the claim names the problem's.
        named = [
            *env.sensitivity().changes,
            *(env.unwrapped.sensitivity().changes if env.message_bits else ()),
        ]
        require(
            claim.adjacency in named and 0 <= claim.delta < 1,
            f"privacy() is {claim}; an adjacency of sensitivity() and a delta in [0, 1) are required",
        )
    trial = Trial(inside_of_transport(trial.make))
    trial.env.reset_batch(SEEDS)
    for action in trial.actions:
        trial.env.step_batch(action)
    _require_all_is_kept(
        "after an episode in which nobody sent (a layer takes data from inside by _release, which is not counted)",
        _claim(list(layers(trial.env))),
    )


def _claim(stack: list[FederatedEnv]) -> Claim:
    """Returns the privacy claim of a stack, after requiring that all its wrappers and its environment return it."""
    claims: list[Any] = [level.privacy() for level in stack]
    require_same(
        f"privacy() of {type(stack[0]).__name__} and of what it stands around,",
        claims,
        claims[:1] * len(claims),
        "one claim for the whole stack is required",
    )
    return claims[0]


def _require_all_is_kept(when: str, claim: Claim) -> None:
    # If agents choose when to send, the times of messages can reveal data, so nothing is claimed: epsilon is None.
    require(
        claim.epsilon == 0 or (claim.epsilon is None and bool(claim.reason)),
        f"privacy() is {claim} {when}; an epsilon of 0 is required",
    )
