"""Checks of releases, their sensitivity and privacy claims."""

import numpy as np

from fedbandit_envs.core.wrapper import FederatedWrapper, find_layer
from fedbandit_envs.testing import problem
from fedbandit_envs.testing.assertions import mapped, require, require_same, require_zero
from fedbandit_envs.testing.episodes import SEEDS, Trial, copied, inside_of, require_in_space

_SLACK = 1e-9
"""The relative tolerance for rounding errors."""


def check_release(trial: Trial) -> None:
    """Checks that releases lie in their space and are zero for agents that do not send.

    Releases with noise may exceed the bounds of their space; of them only the shapes are checked.
    """
    env, rows, space = trial.env, trial.rows, trial.env.single_release_space
    env.reset_batch(SEEDS)
    # Only three rounds are played, since a privacy budget may allow for few releases.
    for action, sends in zip(trial.actions[:3], trial.senders[:3], strict=True):
        env.step_batch(action)
        allowed = env.allowed_senders(sends)
        require(not (allowed & ~sends).any(), "allowed_senders lets agents send that do not want to")
        released = env.release(sends)
        if find_layer(env, "noise") is None:
            require_in_space("release:", released, space, rows)
        shapes = {name: (*rows, *(part.shape or ())) for name, part in space.items()}
        require_same("the shape of a release", mapped(np.shape, released), shapes)
        for name, array in released.items():
            require(np.isfinite(array).all(), f"release of {name!r} has numbers that are not finite")
            what = f"release of {name!r} for agents that do not send"
            require_zero(what, array[~allowed], "and for all whom allowed_senders leaves out")


def check_increments(trial: Trial) -> None:
    """Checks that the releases of an episode add up to a single release at its end; skipped for noisy federations.

    Without wrappers both must also be the growth of ``total_{name}`` in observations. Authored messages need not add
    up, and a reporter may answer twice in a round.
    """
    often, once = (Trial(lambda: inside_of("transport", trial.make())) for _ in range(2))
    if find_layer(often.env, "noise") is not None:
        return
    once.senders = np.zeros_like(once.senders)
    often.env.reset_batch(SEEDS)
    start = copied(once.env.reset_batch(SEEDS).observation)
    releases = [copied(often.env.release(often.everyone))]
    for after_release, after_silence in zip(often.rounds(), once.rounds(), strict=True):
        releases.append(after_release.pop("release"))
        after_silence.pop("release")
        what, advice = "a round after releases", "a release must not change what agents live through"
        require_same(what, after_release, after_silence, f"a round after silence is required: {advice}")
    if often.env.message_bits:
        return
    releases.append(copied(often.env.release(often.everyone)))
    for name, array in often.env.release(often.everyone).items():
        require_zero(f"release of {name!r} a second time in a row", array, "it has left already")
    for name, array in once.env.release(often.everyone).items():
        released, expected = np.sum([each[name] for each in releases], axis=0), {"one at the end is": array}
        if not isinstance(once.env, FederatedWrapper):
            total = f"total_{name}"
            require(total in start, f"observations have no {total!r}; whatever is released needs one")
            expected[f"{total!r} grew by"] = after_silence["observation"][total] - start[total]
        for what, one in expected.items():
            bad = np.abs(released - one) > _SLACK * float(np.abs(one).max(initial=0.0))
            several, single = released[bad][:1], one[bad][:1]
            require(not bad.any(), f"releases of {name!r} add up to {several}, where {what} {single}")


def check_sensitivity(trial: Trial) -> None:
    """Checks that the sensitivity names adjacencies, and has scales of all released arrays.

    It must be finite; for authored messages that are not clipped infinite, without adjacencies.
    """
    env, noisy = trial.env, find_layer(trial.env, "noise") is not None
    env.reset_batch(SEEDS)
    first = env.sensitivity()
    unbounded = bool(env.message_bits) and not first.changes
    # A noise layer may release further numbers, such as variances, which do not depend on data.
    names = first.scale.keys() if noisy else env.single_release_space.keys()
    shapes = {name: (*trial.rows, *(env.single_release_space[name].shape or ())) for name in names}
    require_same("the shape of sensitivity's scale", mapped(np.shape, first.scale), shapes)
    for name, array in first.scale.items():
        low, high = array.min(), array.max()
        fits = low == np.inf if unbounded else low >= 0 and 0 < high < np.inf
        require(fits, f"scale of {name!r} lies between {low} and {high}; finite numbers >= 0 are required")
    told = {} if unbounded else {"changes": first.changes}
    if first.pair is not None:
        told["pair.changes"] = first.pair.changes
    for what, changes in told.items():
        require(changes, f"sensitivity's {what} is empty; one adjacency at least is required")
        for adjacency, (values, norm) in changes.items():
            found = f"sensitivity's {what} has {adjacency!r} with {values} values and a norm of {norm}"
            require(values >= 1 and 0 < norm < np.inf, f"{found}; a value and a norm > 0 are required")
    # A noise layer may add noise that is not symmetric to symmetric data, so noisy releases are not checked.
    if first.symmetric and not noisy:
        for action in trial.actions:
            env.step_batch(action)
        released = env.release(trial.everyone if find_layer(env, "transport") is None else trial.nobody)
        for name, scale in first.scale.items():
            symmetric = all(np.allclose(array, array.swapaxes(-1, -2)) for array in (scale, released[name]))
            require(symmetric, f"sensitivity is said to be symmetric, but {name!r} is not")


def check_data_layers(trial: Trial) -> None:
    """Checks the sensitivity of what leaves data layers against neighbours, like that of a problem."""
    inner = Trial(lambda: inside_of("noise", inside_of("transport", trial.make())))
    if find_layer(inner.env, "data") is not None:
        problem.check_worse_neighbours(inner)


def check_claims(trial: Trial) -> None:
    """Checks that epsilon is 0 as long as nobody has released, and finite, or None, after a release with noise."""
    env, silent = trial.env, Trial(lambda: inside_of("transport", trial.make()))
    env.reset_batch(SEEDS)
    env.release(trial.nobody)
    silent.env.reset_batch(SEEDS)
    for action in silent.actions:
        silent.env.step_batch(action)
    episode = "an episode in which nobody sent"
    for when, claim in (("a release by nobody", env.privacy()), (episode, silent.env.privacy())):
        # If agents choose when to send, the times of messages can reveal data, so nothing is claimed: epsilon is None.
        kept = claim.epsilon == 0 or (claim.epsilon is None and claim.reason)
        require(kept, f"privacy() is {claim} after {when}; an epsilon of 0 is required")
    if find_layer(env, "noise") is not None:
        env.release(trial.everyone)
        claim = env.privacy()
        # Whoever calls release gets what only a trusted server may see, against whom there is no protection.
        local = claim.epsilon is not None and claim.observer == "everybody"
        after = f"a release of {type(env).__name__}, which passes noise, is {claim}"
        holds = claim.epsilon != np.inf if local else bool(claim.reason)
        require(holds, f"privacy() after {after}; a finite epsilon, or None and a reason, is required")
