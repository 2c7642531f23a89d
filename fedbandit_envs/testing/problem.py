"""Checks of a problem without wrappers: its declarations, such as sensitivity, are compared with played episodes."""

import pickle
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch
from warnings import warn

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.randomness.draws import Draws, EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose
from fedbandit_envs.testing.assertions import require, require_same, taken
from fedbandit_envs.testing.episodes import Trial, copied, random_choices

TRIES = 36
"""Number of replicas. In each of them, one agent acts differently in a second episode."""

ROUNDS = 6
"""Number of rounds of an episode."""

_ALTERED = 2
"""The round in which one agent acts differently, in checks where it does so in one round only."""

_SLACK = 1e-9
"""The tolerance for rounding errors."""


def check_isolation(trial: Trial) -> None:
    """Checks that the actions of one agent change nothing in other agents' observations, rewards and releases.

    No agent releases data before the last round. Problems whose agents interact are not checked; a warning says so.
    """
    env: Any = trial.env
    if env.interacting:
        warn(
            f"{type(env).__name__} declares interacting = True: not checked is whether agents see of others what "
            "was not released",
            stacklevel=2,
        )
        return
    others = ~_who(trial)
    found, expected = (
        [taken(after, others) for after in _episode(trial, rounds)] for rounds in (range(ROUNDS), ())
    )
    require_same(
        "of agents that act alike while another agent acts otherwise, round",
        found,
        expected,
        "equality is required: agents learn of others by what these release and in no other way; a problem whose "
        "agents interact declares interacting = True",
    )


def check_common_random_numbers(trial: Trial) -> None:
    """Checks that an agent's action in one round changes neither its rewards nor its regret in later rounds."""
    env: Any = trial.env
    if env.stateful:
        return
    who, later = _who(trial), slice(2 + _ALTERED, None)
    found, expected = (
        [(taken(after["reward"], who), taken(after["info"]["regret"], who)) for after in rounds[later]]
        for rounds in (_episode(trial, [_ALTERED]), _episode(trial))
    )
    require_same(
        "reward and regret of an agent in rounds after one in which it acted otherwise, round",
        found,
        expected,
        "common random numbers are required: draw in amounts that do not depend on what agents do; a problem whose "
        "past actions change later rounds declares stateful = True",
    )


def check_neighbours(trial: Trial) -> None:
    """Checks that the releases of ``neighbours(adjacency)`` differ by no more than the sensitivity declares."""
    env: Any = trial.env
    env.reset_batch(trial.seeds)
    for adjacency in env.sensitivity().changes:
        for pair in env.neighbours(adjacency):
            releases, declared = [], []
            for history in (pair.before, pair.after):
                twin = type(env)(**{**history.settings, "num_agents": 1, "max_cycles": 1})
                twin.reset_batch([0])
                twin.step_batch(np.asarray(history.action)[np.newaxis, np.newaxis])
                releases.append(copied(twin.release(np.ones((1, 1), np.bool_))))
                declared.append(twin.sensitivity())
            for sensitivity in declared:
                whose = f"the pair that neighbours({adjacency!r}) returns"
                _require_within(whose, releases[0], releases[1], sensitivity, [adjacency])


def check_worse_neighbours(trial: Trial) -> None:
    """Checks that a release changes by no more than the declared sensitivity if an action or an outcome changes.

    Two episodes are compared. In each replica one agent acts differently in one round of the second episode, and its
    next release may then differ by at most the change of the widest adjacency except ``one-outcome``. That adjacency is
    checked by itself, for problems with ``Discrete`` actions, where an action has a single outcome: the actions are the
    same in both episodes, and the random outcomes differ.
    """
    trial.env.reset_batch(trial.seeds)
    sensitivity = trial.env.sensitivity()
    wider = [name for name in sensitivity.changes if name != "one-outcome"]
    single = isinstance(trial.env.single_action_space, spaces.Discrete)
    as_played = _episode(trial, releases=True)
    for whose, who, other, adjacencies in (
        ("agents that act otherwise in one round", _who(trial), {"rounds": [_ALTERED]}, wider),
        ("agents with other outcomes", trial.everyone, {"other_outcomes": True}, ["one-outcome"] * single),
    ):
        otherwise = _episode(trial, releases=True, **other)
        before, after = (taken(rounds[1 + _ALTERED]["release"], who) for rounds in (as_played, otherwise))
        own = sensitivity._replace(scale=taken(sensitivity.scale, who))
        _require_within(whose, before, after, own, adjacencies)


def _require_within(
    whose: str, before: Arrays, after: Arrays, sensitivity: Sensitivity, adjacencies: Sequence[str]
) -> None:
    """Requires that two releases differ by at most the largest change that is declared for some adjacencies.

    Args:
        whose: Description of the releases, for the error message.
        before: The first release, arrays by name with any leading axes that the scales have as well.
        after: The second release, arrays of the same shapes.
        sensitivity: The declared sensitivity.
        adjacencies: Names of the adjacencies that are considered; names that are not declared are ignored.
    """
    scale = sensitivity.scale
    change = {name: np.subtract(after[name], before[name], dtype=np.float64) for name in scale}
    units = _in_units([(change[name], scale[name]) for name in scale])
    compared = [("releases", units, np.abs(units) > _SLACK, sensitivity.changes)]
    if sensitivity.pair is not None:
        total, good, changes = sensitivity.pair
        units = _in_units([(part, scale[good]) for part in (change[good], change[total] - change[good])])
        compared.append(("good and defective outcomes", units, np.abs(units), changes))
    for what, units, differs, changes in compared:
        allowed = [changes[adjacency] for adjacency in adjacencies if adjacency in changes]
        for measure, found, most in (
            ("largest difference of a value", np.abs(units), [1.0 for _ in allowed]),
            ("number of values that differ", differs.sum(-1), [change.values for change in allowed]),
            ("Euclidean norm", np.linalg.norm(units, axis=-1), [change.norm for change in allowed]),
        ):
            require(
                found.max() <= max(most, default=np.inf) * (1 + _SLACK),
                f"sensitivity is too small: {what} of {whose} differ, and the {measure} is {found.max():.6g} in "
                f"declared units; at most {max(most, default=0):.6g} is declared for {' or '.join(adjacencies)}",
            )


def _in_units(changes: Iterable[tuple[Array, Array]]) -> Array:
    """Returns all changes divided by their scales, side by side, ``(rows, values)``.

    Args:
        changes: Pairs of an array of changes and the array of their scales. A change other than 0 at a scale of 0 gives
            infinity.
    """
    units = [
        np.divide(change, scale, out=np.where(change == 0, 0.0, np.inf), where=scale > 0)
        for change, scale in changes
    ]
    return np.concatenate([part.reshape(len(part), -1) for part in units], axis=-1)


def check_totals(trial: Trial) -> None:
    """Checks that an episode's releases of each array add up to the growth of ``total_{name}`` in observations."""
    first, *rounds = _episode(trial, releases=True)
    for name in trial.env.single_release_space:
        total = f"total_{name}"
        require(
            total in first["observation"], f"observations have no {total!r}; whatever is released needs one"
        )
        released = np.sum([after["release"][name] for after in rounds], axis=0)
        grown = rounds[-1]["observation"][total] - first["observation"][total]
        bad = ~np.isclose(released, grown, rtol=_SLACK, atol=_SLACK)
        require(
            not bad.any(),
            f"releases of {name!r} add up to {released[bad][:1]} where {total!r} has grown by {grown[bad][:1]}"
            "; equality is required: a release is the growth of the statistic",
        )


def check_regret(trial: Trial) -> None:
    """Checks that regret is at least 0, does not depend on random outcomes, and is 0 for the best actions.

    The best actions are those of the problem's ``clairvoyant``; if it returns none, their regret is not checked. If it
    does, random actions must have some regret.
    """
    env: Any = trial.env
    # In stateful problems, outcomes may change which action is best from the second round on, so that only the regret
    # of the first round is compared.
    same = slice(1 if env.stateful else ROUNDS)
    regret, with_other_outcomes = (
        np.array([after["info"]["regret"] for after in _episode(trial, other_outcomes=other)[1:]])
        for other in (False, True)
    )
    require(
        env.approximate_oracle or regret.min() >= -_SLACK,
        f"regret is {regret.min()} under random actions; a number >= 0 is required: the best expected value less that "
        "of the action; an oracle that actions may beat declares approximate_oracle = True",
    )
    require_same(
        "regret of the same actions with other outcomes and without, at (round, replica, agent),",
        with_other_outcomes[same],
        regret[same],
        "equality is required: regret is in expectation over outcomes, and never what was realised",
    )
    observation = env.reset_batch(trial.seeds).observation
    while (action := env.clairvoyant(observation)) is not None:
        step = env.step_batch(action)
        observation, worst = step.observation, np.abs(step.info["regret"]).max()
        require(
            worst <= _SLACK,
            f"regret is {worst} under the actions of clairvoyant; 0 (to {_SLACK:g}) is required",
        )
        require(
            bool(regret.any()),
            "regret is 0 under all random actions; > 0 is required of those that are not the best",
        )
        if step.truncated.all():
            return


def check_inactive(trial: Trial) -> None:
    """Checks that agents that do not act in a round get reward 0 and information 0, and keep their statistics."""
    env: Any = trial.env
    active = np.random.default_rng(0).random((1 + ROUNDS, *trial.rows)) < 0.5
    env.set_active(active[0])
    after = env.reset_batch(trial.seeds).observation
    for t, action in enumerate(trial.actions):
        before, idle = copied(after), ~active[t]
        env.set_active(active[t + 1])
        step = env.step_batch(action)
        after = step.observation
        found = {"reward": step.reward, **step.info}
        found |= {name: after[name] - before[name] for name in after if name.startswith("total_")}
        for name, array in found.items():
            loud = array[idle]
            require(
                not loud.any(),
                f"{name} of agents that do not act is or grows by {loud[loud != 0][:1]}; 0 is required",
            )


def check_hidden(trial: Trial) -> None:
    """Checks that the first observations contain none of the hidden parameters.

    Only numbers of ``hidden()`` that are drawn at random with the instance, and are no integers, are looked for.
    """
    observation = trial.env.reset_batch(trial.seeds).observation
    for name, hidden in trial.env.hidden().items():
        hidden = hidden.reshape(*trial.rows, -1, 1)
        drawn = (hidden != hidden[:1]).any(axis=0) & (hidden != np.rint(hidden))
        for seen, array in observation.items():
            shown = (drawn & (hidden == array.reshape(*trial.rows, 1, -1))).any(axis=(2, 3))
            require(
                not shown.any(),
                f"observation {seen!r} has a number of hidden {name!r} in {shown.sum()} of {shown.size} rows at reset"
                "; what agents do not know must not be in what they see",
            )


def check_public(trial: Trial) -> None:
    """Checks that public constants are the same before, during and after an episode."""
    env: Any = trial.env
    first = pickle.dumps(env.public)
    env.reset_batch(trial.seeds)
    for t, action in enumerate(trial.actions):
        env.step_batch(action)
        require(
            pickle.dumps(env.public) == first,
            f"public is {env.public} after round {t}; what it was before the episode is required: it holds constants",
        )


def _who(trial: Trial) -> Array:
    """Returns which agent acts differently in each replica, bool ``(replicas, agents)``."""
    replicas, agents = trial.rows
    return np.arange(agents) == (np.arange(replicas) % agents)[:, np.newaxis]


def _episode(
    trial: Trial, rounds: Iterable[int] = (), releases: bool = False, other_outcomes: bool = False
) -> list[dict[str, Any]]:
    """Plays an episode, and returns copies of the results of its reset and of each round.

    Args:
        trial: The federation, seeds, actions and senders.
        rounds: Rounds in which one agent of each replica acts differently. If actions have several components, only one
            component differs, the same one in all these rounds.
        releases: Whether all agents release after every round; otherwise they release after the last round only.
        other_outcomes: Whether outcomes are drawn from other random numbers than those that follow from the seeds.
    """
    played, who = trial.again(), _who(trial)
    played.senders[:-1], played.senders[-1] = releases, True
    space = played.env.single_action_space
    others = random_choices(space, trial.rows, 2 * ROUNDS)[ROUNDS:]
    for t in rounds:
        differs = who.reshape(who.shape + (1,) * (others[t].ndim - 2))
        if isinstance(space, spaces.MultiDiscrete):
            components = others[t].shape[2]
            differs = differs & (np.arange(components) == np.arange(len(who))[:, None, None] % components)
        played.actions[t] = np.where(differs, others[t], played.actions[t])
    with patch.object(EpisodeRandomness, "draws", _other_draws) if other_outcomes else nullcontext():
        return played.episode()


_draws = EpisodeRandomness.draws


def _other_draws(randomness: EpisodeRandomness, purpose: Purpose, *key: int) -> Draws:
    """Replaces ``EpisodeRandomness.draws``: draws outcomes and random choices of arms from another stream.

    Regret is an expectation over exactly these random numbers, so it must not change with them. All other purposes keep
    their streams.
    """
    return _draws(randomness, purpose, *key, *((1,) if purpose in (Purpose.OUTCOME, Purpose.ARM) else ()))
