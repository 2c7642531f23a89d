"""Checks that agents learn about each other's data only by releases that the release ledger has counted."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.testing.assertions import difference, require, taken
from fedbandit_envs.testing.episodes import HORIZON, Make, Trial, random_choices, results

Prepare = Callable[[FederatedEnv, Array], None]
"""A function that changes what an environment releases.

Its arguments are the environment and whether each agent acts differently in the two episodes, bool
``(replicas, agents)``.
"""


def check_isolation(make: Make) -> None:
    """Checks that agents see the data of another agent only in their inboxes, after releases that the ledger counted.

    Two episodes are compared. In each replica one agent acts differently in the second episode, from some round on. The
    observations, rewards and releases of all other agents must be equal to the bit in both episodes until the ledger
    counts the next release of that agent; afterwards only their ``inbox_*`` arrays may differ. Nothing at all may
    differ if no data of that agent leave it: if releases of the environment are replaced by zeros, or if the
    environment does not allow the agent to send. If agents choose when to send, the times of messages may differ.

    Args:
        make: A function that makes the federation.

    Raises:
        AssertionError: A requirement does not hold.
    """
    env = make()
    if getattr(list(layers(env))[-1], "interacting", False):
        return
    for prepare, start in ((_as_it_is, 0), (_as_it_is, HORIZON // 2), (_emptied, 0), (_forbidden, 0)):
        _Twins(make, env.max_num_agents, prepare, start).play()


def _as_it_is(env: FederatedEnv, who: Array) -> None:
    """Leaves the environment unchanged: a :data:`Prepare` function for the ordinary case."""


def _source(env: FederatedEnv) -> FederatedEnv:
    """Returns the part of a stack from which releases come: the wrapper of authored messages, or the problem."""
    stack = list(layers(env))
    return next((level for level in reversed(stack) if level.message_bits), stack[-1])


def _emptied(env: FederatedEnv, who: Array) -> None:
    """Changes an environment so that all its releases are zeros, which contain no data."""
    release = env._release

    def zeros(sends: Array) -> Arrays:
        return {name: np.zeros_like(array) for name, array in release(sends).items()}

    setattr(env, "_release", zeros)  # noqa: B010 - a method


def _forbidden(env: FederatedEnv, who: Array) -> None:
    """Changes an environment so that it does not allow some agents to send.

    Args:
        env: The environment.
        who: Whether each agent is forbidden to send, bool ``(replicas, agents)``.
    """
    setattr(env, "allowed_senders", lambda senders: np.asarray(senders, np.bool_) & ~who)  # noqa: B010 - a method


class _Twins:
    """Two episodes of the same seeds, in which one agent of each replica acts differently from a round on."""

    def __init__(self, make: Make, agents: int, prepare: Prepare, start: int) -> None:
        """Makes the federations of both episodes.

        Args:
            make: A function that makes the federation.
            agents: The number of its agents.
            prepare: A function that changes the environment of each federation before the episode.
            start: The round from which on one agent of each replica acts differently in the second episode.
        """
        self._prepare, self._start = prepare, start
        self._who = np.arange(agents) == np.arange(max(3, agents))[:, np.newaxis] % agents
        self._trials = [Trial(make, range(len(self._who))) for _ in range(2)]
        self._delivers = find_layer(self._trials[0].env, "transport") is not None
        for trial in self._trials:
            prepare(_source(trial.env), self._who)
        altered = self._trials[1]
        others = random_choices(altered.env.single_action_space, altered.rows, HORIZON + 1)[1:]
        merge = partial(_merged, self._who)
        altered.actions = [
            merge(old, new) if t >= start else old
            for t, (old, new) in enumerate(zip(altered.actions, others, strict=True))
        ]

    def play(self) -> None:
        """Plays both episodes and compares them round by round."""
        first = [results(trial.env.reset_batch(trial.seeds)) for trial in self._trials]
        self._compare(0, first, np.zeros(len(self._who), np.bool_))
        rounds = [trial.rounds() for trial in self._trials]
        counted = self._counted()
        for t in range(HORIZON):
            played = [next(each) for each in rounds]
            now = self._counted()
            if t < self._start:
                counted = now
            self._compare(t + 1, played, np.any(now > counted, axis=0))

    def _counted(self) -> Array:
        """Returns how often the agent that acts differently has released in each replica, as the ledger has counted.

        Returns:
            Numbers of releases in both episodes, int ``(2, replicas)``; each replica has one such agent.
        """
        left = [trial.env._ledger.left(0)[1] for trial in self._trials]
        return np.stack([np.where(self._who, counts, 0).sum(axis=1) for counts in left])

    def _compare(self, t: int, both: list[dict[str, Any]], released: Array) -> None:
        """Requires that the results of a round are the same for all agents that act equally in both episodes.

        Args:
            t: Number of the round, counted from 1; 0 for the reset.
            both: The results of the round in the two episodes, by name.
            released: Whether the agent that acts differently has released data since it began to, bool ``(replicas,)``.
        """
        env = self._trials[0].env
        name = type(env).__name__
        timed = any(trial.env._ledger.unclaimable_reason for trial in self._trials)
        if self._prepare is _forbidden:
            require(
                not released.any(),
                f"{name} releases data of agents that allowed_senders inside of it does not allow to send"
                "; let allowed_senders narrow down what self.env.allowed_senders returns",
            )
        delivered = released & self._delivers
        without_data = self._prepare is _emptied and not timed
        for free in (False, True):
            others = ~self._who & ((delivered & (not without_data)) == free)[:, np.newaxis]
            seen = [_visible(each, free, free and timed) for each in both]
            if not difference(*(taken(each, others) for each in seen)):
                continue
            places = [difference(*(taken(each, row) for each in seen)) for row in enumerate(others)]
            replica, place = next((replica, place) for replica, place in enumerate(places) if place)
            how = "before the ledger counted a release of it; let data leave by env.release(...) of the env inside"
            if released[replica] and not self._delivers:
                how = "and no layer is a transport; only a transport may deliver what was released"
            elif delivered[replica] and without_data:
                how = (
                    "though releases hold no data: by the times at which something happens, or past release()"
                    "; both must not depend on data, or the ledger's unclaimable_reason must say that times do"
                )
            elif delivered[replica]:
                how = "in another way than by inbox_* and server_* arrays; only these may show what was released"
            raise AssertionError(
                f"{name} shows agents the data of another agent in round {t}{place} where that agent acts otherwise, "
                f"{how}"
            )
        if "sent" not in env.single_observation_space.spaces and not timed:
            self._require_no_echo(both)

    def _require_no_echo(self, both: list[dict[str, Any]]) -> None:
        """Requires that inboxes do not contain an agent's own data, in observations without an array ``sent``.

        With ``sent`` agents can subtract their own messages; here they cannot.
        """
        for name, array in both[0]["observation"].items():
            if name.startswith("inbox_"):
                found, expected = both[1]["observation"][name][self._who], array[self._who]
                require(
                    bool(np.allclose(found, expected, rtol=1e-6, atol=1e-6)),
                    f"observation {name!r} of {type(self._trials[0].env).__name__} contains the agent's own data"
                    ", and there is no 'sent'; leave them out, or add 'sent' as Transport does with echo=True",
                )


def _visible(played: dict[str, Any], free: bool, timed: bool) -> dict[str, Any]:
    """Returns those results of a round that must be equal in both episodes.

    Args:
        played: All results of the round by name.
        free: Whether the inboxes may differ, which are then left out.
        timed: Whether the times of messages may differ, too. Information and rewards can show them, so all results
            except observations are left out.
    """
    seen = dict(played)
    if free:
        observation = played["observation"].items()
        seen["observation"] = {
            name: array
            for name, array in observation
            if name != "sent" and not name.startswith(("inbox_", "server_"))
        }
    return {"observation": seen["observation"]} if timed else seen


def _merged(who: Array, old: Any, new: Any) -> Any:
    """Returns actions that are ``new`` for some agents and ``old`` for all others.

    Args:
        who: Whether each agent plays the new action, bool ``(replicas, agents)``.
        old: Actions of all agents, an array or a mapping of arrays.
        new: Other actions of all agents, of the same form.
    """
    if isinstance(old, dict):
        return {name: _merged(who, old[name], new[name]) for name in old}
    return np.where(who.reshape(who.shape + (1,) * (np.ndim(old) - 2)), new, old).astype(
        np.asarray(old).dtype
    )
