"""Checks of a problem without wrappers: what it declares is compared with what it does when somebody plays it."""

import pickle
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any
from warnings import warn

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.sensitivity import Changes, Sensitivity
from fedbandit_envs.randomness.episode import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose
from fedbandit_envs.testing.assertions import require, require_same, taken
from fedbandit_envs.testing.episodes import Trial, copied, random_choices

TRIES = 36
"""Number of replicas: in each of them another agent, or the same in another way, does something else."""

ROUNDS = 6
"""Number of rounds of an episode."""

_ALTERED = 2
"""The round in which one agent does something else, where it does so in one round only."""

_SLACK = 1e-9
"""The rounding error that is forgiven."""

_OUTCOMES = (Purpose.OUTCOME, Purpose.ARM)
"""Purposes of the random numbers over which regret is an expectation."""


def check_isolation(trial: Trial) -> None:
    """Checks that an agent that acts otherwise changes nothing of what the other agents see, get and release.

    Nobody releases before the last round. Problems whose agents interact are not checked, with a warning.
    """
    if getattr(trial.env, "interacting", False):
        warn(
            f"{type(trial.env).__name__} declares interacting = True: not checked is whether agents see of others what "
            "was not released",
            stacklevel=2,
        )
        return
    others = ~_who(trial)
    found, expected = (
        [taken(after, others) for after in _episode(trial, actions)]
        for actions in (_altered(trial, range(ROUNDS)), trial.actions)
    )
    require_same(
        "of agents that act alike while another agent acts otherwise, round",
        found,
        expected,
        "equality is required: agents learn of others by what these release and in no other way; a problem whose "
        "agents interact declares interacting = True",
    )


def check_common_random_numbers(trial: Trial) -> None:
    """Checks that what an agent does in a round changes neither rewards nor regret of later rounds."""
    if getattr(trial.env, "stateful", False):
        return
    who, later = _who(trial), slice(2 + _ALTERED, None)
    found, expected = (
        [(taken(after["reward"], who), taken(after["info"]["regret"], who)) for after in rounds[later]]
        for rounds in (_episode(trial, _altered(trial, [_ALTERED])), _episode(trial, trial.actions))
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
    env = _reset(trial)
    for adjacency in env.sensitivity().changes:
        for pair in env.neighbours(adjacency):
            twins = []
            for history in (pair.before, pair.after):
                twin = type(env)(**{**history.settings, "num_agents": 1, "max_cycles": 1})
                twin.reset_batch([0])
                twin.step_batch(np.asarray(history.action)[np.newaxis, np.newaxis])
                twins.append(twin)
            before, after = (copied(twin.release(np.ones((1, 1), np.bool_))) for twin in twins)
            for twin in twins:
                whose = f"the pair that neighbours({adjacency!r}) returns"
                _require_within(whose, before, after, twin.sensitivity(), [adjacency])


def check_worse_neighbours(trial: Trial) -> None:
    """Checks that a release changes by no more than is declared where an agent acts otherwise, or outcomes differ.

    In each replica one agent acts otherwise in one round, and what it then releases may differ by as much as the
    widest adjacency allows. Where actions have several components one of them differs, unless ``one-round`` is an
    adjacency. ``one-outcome`` is left out of this: with ``Discrete`` actions, which have one outcome, that differs.
    """
    sensitivity = _reset(trial).sensitivity()
    space = trial.env.single_action_space
    wider = [name for name in sensitivity.changes if name != "one-outcome"]
    several = isinstance(space, spaces.MultiDiscrete) and "one-round" not in wider
    tries = []
    if wider:
        otherwise = _altered(trial, [_ALTERED], several)
        tries.append(("agents that act otherwise in one round", _who(trial), otherwise, False, wider))
    if len(wider) < len(sensitivity.changes) and isinstance(space, spaces.Discrete):
        tries.append(("agents with other outcomes", trial.everyone, trial.actions, True, ["one-outcome"]))
    for whose, who, actions, other_outcomes, adjacencies in tries:
        before, after = (
            taken(_episode(trial, played, True, other)[1 + _ALTERED]["release"], who)
            for played, other in ((trial.actions, False), (actions, other_outcomes))
        )
        own = sensitivity._replace(scale=taken(sensitivity.scale, who))
        _require_within(whose, before, after, own, adjacencies)


def _require_within(
    whose: str, before: Arrays, after: Arrays, sensitivity: Sensitivity, adjacencies: Sequence[str]
) -> None:
    """Requires that the difference of two releases is at most the largest of some adjacencies' changes.

    Args:
        whose: Description of the releases, for the message.
        before: The first, with any leading axes that the scales have as well.
        after: The second.
        sensitivity: What is declared.
        adjacencies: Names of the adjacencies that count.
    """
    change = {name: np.subtract(after[name], before[name], dtype=np.float64) for name in sensitivity.scale}
    units = np.concatenate(
        [_in_units(change[name], scale) for name, scale in sensitivity.scale.items()], axis=-1
    )
    values = (np.abs(units) > _SLACK).sum(-1)
    _require_bounded(f"releases of {whose}", units, values, sensitivity.changes, adjacencies)
    if sensitivity.pair is not None:
        total, good, changes = sensitivity.pair
        both = change[good], change[total] - change[good]
        units = np.concatenate([_in_units(part, sensitivity.scale[good]) for part in both], axis=-1)
        whose = f"good and defective outcomes of {whose}"
        _require_bounded(whose, units, np.abs(units).sum(-1), changes, adjacencies)


def _in_units(change: Array, scale: Array) -> Array:
    """Returns changes in units of their scales, ``(rows, values)``; infinity for a change at a scale of 0."""
    units = np.where(change == 0, 0.0, np.inf)
    np.divide(change, scale, out=units, where=scale > 0)
    return units.reshape(len(units), -1)


def _require_bounded(
    whose: str, units: Array, values: Array, changes: Changes, adjacencies: Sequence[str]
) -> None:
    """Requires that differences ``(rows, values)`` are within their scales, and within one of the adjacencies' changes.

    Args:
        whose: Description of what differs, for the message.
        units: The differences in units of their scales.
        values: How many values differ in each row.
        changes: What is declared.
        adjacencies: Names of the adjacencies that count.
    """
    allowed = [changes[adjacency] for adjacency in adjacencies if adjacency in changes]
    if not allowed:
        return
    for what, found, most in (
        ("the largest difference of a value", np.abs(units), 1.0),
        ("the number of values that differ", values, max(change.values for change in allowed)),
        ("the Euclidean norm", np.linalg.norm(units, axis=-1), max(change.norm for change in allowed)),
    ):
        require(
            found.max() <= most * (1 + _SLACK),
            f"sensitivity is too small: {whose} differ, and {what} is {found.max():.6g} in declared units; at most "
            f"{most:.6g} is declared for {' or '.join(map(repr, adjacencies))}",
        )


def check_totals(trial: Trial) -> None:
    """Checks that what is released in an episode adds up to the growth of ``total_{name}`` in observations."""
    rounds = _episode(trial, trial.actions, releases=True)
    for name in trial.env.single_release_space:
        first, last = (rounds[t]["observation"].get(f"total_{name}") for t in (0, -1))
        require(
            last is not None, f"observations have no 'total_{name}'; it is required of whatever is released"
        )
        released = np.sum([after["release"][name] for after in rounds[1:]], axis=0)
        grown = last - first
        require(
            bool(np.allclose(released, grown, rtol=_SLACK, atol=_SLACK)),
            f"releases of {name!r} add up to {released[released != grown][:1]} where 'total_{name}' has grown by "
            f"{grown[released != grown][:1]}; equality is required: a release is the growth of the statistic",
        )


def check_regret(trial: Trial) -> None:
    """Checks that regret is at least 0, and is 0 for the actions of ``clairvoyant`` and not for all others."""
    env: Any = trial.env
    regret = np.array([after["info"]["regret"] for after in _episode(trial, trial.actions)[1:]])
    if not getattr(env, "approximate_oracle", False):
        require(
            regret.min() >= -_SLACK,
            f"regret is {regret.min()} under random actions; a number >= 0 is required: the best expected value less "
            "that of the action; an oracle that actions may beat declares approximate_oracle = True",
        )
    observation = env.reset_batch(trial.seeds).observation
    for t in range(ROUNDS):
        action = env.clairvoyant(observation)
        if action is None:
            return
        step = env.step_batch(action)
        observation, worst = step.observation, np.abs(step.info["regret"]).max()
        require(
            worst <= _SLACK,
            f"regret is {worst} in round {t} under the actions of clairvoyant; 0 (to {_SLACK:g}) is required",
        )
    require(
        bool(regret.any()),
        "regret is 0 in every round under random actions; a regret > 0 is required of actions that are not the best",
    )


def check_regret_in_expectation(trial: Trial) -> None:
    """Checks that regret does not change with the outcomes of the same actions in the same instances and contexts."""
    # Where the past matters, outcomes may change what is best from the second round on.
    rounds = slice(1, 2 if getattr(trial.env, "stateful", False) else None)
    found, expected = (
        [after["info"]["regret"] for after in _episode(trial, trial.actions, other_outcomes=other)[rounds]]
        for other in (True, False)
    )
    require_same(
        "regret of the same actions with other outcomes and without, round",
        found,
        expected,
        "equality is required: regret is in expectation over outcomes, and never what was realised",
    )


def check_inactive(trial: Trial) -> None:
    """Checks that agents that do not act in a round get no reward and information, and that their statistics stay."""
    env: Any = trial.env
    active = np.random.default_rng(0).random((ROUNDS, *trial.rows)) < 0.5
    env.set_active(active[0])
    before = copied(env.reset_batch(trial.seeds).observation)
    for t, action in enumerate(trial.actions):
        if t + 1 < ROUNDS:
            env.set_active(active[t + 1])
        step = env.step_batch(action)
        after = copied(step.observation)
        for what, array in [("reward", step.reward), *step.info.items()]:
            loud = array[~active[t]]
            require(
                not loud.any(),
                f"{what} is {loud[loud != 0][:1]} for agents that do not act; 0 is required for them",
            )
        for name in (f"total_{name}" for name in env.single_release_space):
            require_same(
                f"{name!r} of agents that do not act, after and before round {t},",
                after[name][~active[t]],
                before[name][~active[t]],
                "equality is required: statistics of agents that do not act must not change",
            )
        before = after


def check_hidden(trial: Trial) -> None:
    """Checks that no number of ``hidden()`` that is drawn with the instance is in the first observations."""
    env: Any = trial.env
    observation = env.reset_batch(trial.seeds).observation
    for name, hidden in env.hidden().items():
        hidden = hidden.reshape(*trial.rows, -1)
        drawn = (hidden != hidden[:1]).any(axis=0) & (hidden != np.rint(hidden))
        for seen, array in observation.items():
            shown = [
                place
                for place in np.ndindex(trial.rows)
                if np.isin(hidden[place][drawn[place]], array[place]).any()
            ]
            require(
                not shown,
                f"observation {seen!r} has a number of hidden {name!r} in row {shown[:1]} at reset; what agents do not "
                "know must not be in what they see",
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


def _reset(trial: Trial) -> Any:
    trial.env.reset_batch(trial.seeds)
    return trial.env


def _who(trial: Trial) -> Array:
    """Returns which agent acts otherwise in each replica, bool ``(replicas, agents)``."""
    replicas, agents = trial.rows
    return np.arange(agents) == (np.arange(replicas) % agents)[:, np.newaxis]


def _altered(trial: Trial, rounds: Iterable[int], one_component: bool = False) -> list[Array]:
    """Returns the trial's actions, but others in some rounds of one agent in each replica.

    Args:
        trial: The trial.
        rounds: The rounds in which it acts otherwise.
        one_component: Whether only one component of its action is another, in each replica another one.
    """
    altered = copied(trial.actions)
    drawn = random_choices(trial.env.single_action_space, trial.rows, 2 * ROUNDS)[ROUNDS:]
    who = _who(trial)
    for t in rounds:
        differs = who.reshape(who.shape + (1,) * (drawn[t].ndim - 2))
        if one_component:
            components = drawn[t].shape[2]
            differs = differs & (np.arange(components) == (np.arange(len(who)) % components)[:, None, None])
        altered[t] = np.where(differs, drawn[t], altered[t])
    return altered


def _episode(
    trial: Trial, actions: Sequence[Array], releases: bool = False, other_outcomes: bool = False
) -> list[dict[str, Any]]:
    """Plays an episode, and returns copies of the results of its reset and of each round.

    Args:
        trial: Says what is played.
        actions: Actions in place of the trial's.
        releases: Whether all agents release after every round; else they do in the last.
        other_outcomes: Whether the random numbers of outcomes are others than those of the seeds.
    """
    played = trial.again()
    played.actions = list(actions)
    played.senders[:-1] = releases
    played.senders[-1] = True
    if other_outcomes:
        env: Any = played.env
        start = env._start

        def start_otherwise(randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
            draws, other = randomness.draws, copy(randomness)

            def other_draws(purpose: Purpose, *key: int) -> Any:
                return draws(purpose, *key, *((1,) if purpose in _OUTCOMES else ()))

            vars(other)["draws"] = other_draws
            start(other, instance_seeds)

        env._start = start_otherwise
    return played.episode()
