"""Checks that agents learn about each other's data only by releases that the release ledger has counted."""

from functools import partial
from typing import Any, Literal
from warnings import warn

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import mapped, require, require_same, taken
from fedbandit_envs.testing.episodes import Trial, results

Releases = Literal["as they are", "zeros", "forbidden"]
"""What the two episodes that are compared release: the problem's data, zeros, or nothing of the chosen agents."""


def check_isolation(trial: Trial) -> None:
    """Checks that agents see the data of another agent only in their inboxes, after releases that the ledger counted.

    Two episodes are compared. In each replica one agent acts differently in the second episode, from some round on. The
    observations, rewards and releases of all other agents must be equal to the bit in both episodes until the ledger
    counts the next release of that agent; afterwards only their ``inbox_*`` and ``server_*`` arrays may differ, and
    these only with a transport. Nothing at all may differ if no data of that agent leave it: if releases of the
    environment are replaced by zeros, or if the environment does not allow the agent to send. If agents choose when to
    send, the times of messages may differ. Problems whose agents interact are not checked; a warning says so.
    """
    if getattr(trial.env, "interacting", False):
        unchecked = "not checked is whether agents see of others what was not released"
        warn(f"{type(trial.env.unwrapped).__name__} declares interacting = True: {unchecked}", stacklevel=2)
        return
    _require_isolation(trial, "as they are", 0)
    _require_isolation(trial, "as they are", len(trial.actions) // 2)
    _require_isolation(trial, "zeros", 0)
    _require_isolation(trial, "forbidden", 0)


def _require_isolation(trial: Trial, releases: Releases, start: int) -> None:
    """Plays both episodes and compares them round by round; the chosen agents act differently from ``start`` on."""
    both = trial.again(), trial.altered(np.arange(len(trial.actions))[:, np.newaxis] >= start)
    chosen, env = trial.chosen, both[0].env
    name, delivers = type(env).__name__, find_layer(env, "transport") is not None
    for each in both:
        stack = list(layers(each.env))
        # Releases come from the wrapper of authored messages, or from the problem.
        source: Any = next((level for level in reversed(stack) if level.message_bits), stack[-1])
        if releases == "zeros":
            source._release = partial(_zeros, source._release)
        elif releases == "forbidden":
            source.allowed_senders = lambda senders: np.asarray(senders, np.bool_) & ~chosen
    played = [results(each.env.reset_batch(each.seeds)) for each in both]
    rounds = [each.rounds() for each in both]
    counted = _counted(both)
    released: Array = np.zeros(len(chosen), np.bool_)
    for t in range(len(trial.actions) + 1):
        if t > 0:
            played = [next(each) for each in rounds]
            now = _counted(both)
            counted = now if t <= start else counted
            released = np.any(now > counted, axis=0)
        timed = any(each.env._ledger.unclaimable_reason for each in both)
        how = "in another way than by inbox_* and server_* arrays"
        if not delivers:
            how = "and no layer is a transport"
        elif releases == "zeros" and not timed:
            how = "though releases hold no data: by the times at which something happens, or past release()"
        kept = releases != "forbidden" or not released.any()
        require(kept, f"{name} releases data of agents that allowed_senders inside of it does not allow")
        free = delivers and (releases != "zeros" or timed)
        before = "before the ledger counted a release of it; if agents interact, declare interacting = True"
        for replicas, inboxes, why in ((~released, False, before), (released, free, how)):
            others = ~chosen & replicas[:, np.newaxis]
            found, expected = (taken(_visible(each, inboxes, timed), others) for each in reversed(played))
            what = f"{name} shows agents the data of another agent in round {t}"
            require_same(what, found, expected, f"that agent acts otherwise, {why}")
        if "sent" in env.single_observation_space.spaces or timed:
            continue
        # With `sent` agents can subtract their own messages; without it they cannot.
        for array in played[0]["observation"]:
            one, other = (each["observation"][array][chosen] for each in played)
            fits = not array.startswith("inbox_") or np.allclose(one, other, rtol=1e-6, atol=1e-6)
            require(fits, f"{array!r} of {name} contains the agent's own data, and there is no 'sent'")


def _zeros(release: Any, sends: Array) -> Arrays:
    return mapped(np.zeros_like, release(sends))


def _counted(both: tuple[Trial, Trial]) -> Array:
    """Returns how often the chosen agent has released in each replica, in both episodes, int ``(2, replicas)``."""
    return np.stack([each.env._ledger.left(0)[1][each.chosen] for each in both])


def _visible(played: dict[str, Any], inboxes: bool, timed: bool) -> dict[str, Any]:
    """Returns those results of a round that must be equal in both episodes.

    They are all; if ``inboxes`` may differ, all without them; if the times of messages may differ, too, only the rest
    of the observation, since information and rewards can show times.
    """
    if not inboxes:
        return played
    seen = {
        name: array
        for name, array in played["observation"].items()
        if name != "sent" and not name.startswith(("inbox_", "server_"))
    }
    return {"observation": seen} if timed else {**played, "observation": seen}
