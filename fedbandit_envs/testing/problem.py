"""Checks of a problem without wrappers: its declarations, such as sensitivity, are compared with played episodes."""

import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.randomness.draws import Draws, EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose
from fedbandit_envs.testing.assertions import require, require_same, require_zero, taken
from fedbandit_envs.testing.episodes import Trial, copied
from fedbandit_envs.testing.isolation import check_isolation as check_isolation

TRIES = 36
"""Number of replicas. In each of them, one agent acts differently in a second episode."""

ROUNDS = 6
"""Number of rounds of an episode."""

_ALTERED = 2
"""The round in which one agent acts differently, in checks where it does so in one round only."""

_SLACK = 1e-9
"""The tolerance for rounding errors."""


def check_common_random_numbers(trial: Trial) -> None:
    """Checks that an agent's action in one round changes neither its rewards nor its regret in later rounds."""
    env: Any = trial.env
    if env.stateful:
        return
    played, altered = (_episode(each)[_ALTERED + 1 :] for each in (trial, trial.altered([_ALTERED])))
    what = "of an agent in rounds after one in which it acted otherwise"
    advice = "common random numbers are required; a problem without them declares stateful = True"
    for found, expected in zip(altered, played, strict=True):
        for name, one, other in (
            ("reward", found["reward"], expected["reward"]),
            ("regret", found["info"]["regret"], expected["info"]["regret"]),
        ):
            require_same(f"{name} {what}", one[trial.chosen], other[trial.chosen], advice)


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
    before = _episode(trial, releases=True)
    altered = _episode(trial.altered([_ALTERED], one_component=True), releases=True)
    cases = [("agents that act otherwise in one round", altered, trial.chosen, wider)]
    if isinstance(trial.env.single_action_space, spaces.Discrete):
        lucky = _episode(trial, releases=True, other_outcomes=True)
        cases.append(("agents with other outcomes", lucky, trial.everyone, ["one-outcome"]))
    for whose, after, who, adjacencies in cases:
        one, other = (taken(rounds[_ALTERED]["release"], who) for rounds in (before, after))
        own = sensitivity._replace(scale=taken(sensitivity.scale, who))
        _require_within(whose, one, other, own, adjacencies)


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
    units = np.concatenate([_in_units(change[name], scale[name]) for name in scale], axis=-1)
    compared = [("releases", units, np.abs(units) > _SLACK, sensitivity.changes)]
    if sensitivity.pair is not None:
        total, good, changes = sensitivity.pair
        pair = change[good], change[total] - change[good]
        units = np.concatenate([_in_units(part, scale[good]) for part in pair], axis=-1)
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


def _in_units(change: Array, scale: Array) -> Array:
    """Returns a change divided by its scale, ``(rows, values)``; infinity where a number changes at a scale of 0."""
    units = np.divide(change, scale, out=np.where(change == 0, 0.0, np.inf), where=scale > 0)
    return units.reshape(len(units), -1)


def check_totals(trial: Trial) -> None:
    """Checks that an episode's releases of each array add up to the growth of ``total_{name}`` in observations."""
    start = trial.again().env.reset_batch(trial.seeds).observation
    rounds = _episode(trial, releases=True)
    for name in trial.env.single_release_space:
        total = f"total_{name}"
        require(total in start, f"observations have no {total!r}; whatever is released needs one")
        released = np.sum([after["release"][name] for after in rounds], axis=0)
        grown = rounds[-1]["observation"][total] - start[total]
        bad = ~np.isclose(released, grown, rtol=_SLACK, atol=_SLACK)
        found, expected = released[bad][:1], grown[bad][:1]
        require(not bad.any(), f"releases of {name!r} add up to {found} where {total!r} grew by {expected}")


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
        np.array([after["info"]["regret"] for after in _episode(trial, other_outcomes=other)])
        for other in (False, True)
    )
    fits, required = env.approximate_oracle or regret.min() >= -_SLACK, "a number >= 0 is required"
    require(fits, f"regret is {regret.min()} under random actions; {required}, or approximate_oracle = True")
    what = "regret of the same actions with other outcomes and without, at (round, replica, agent),"
    advice = "regret is in expectation over outcomes, and never what was realised"
    require_same(what, with_other_outcomes[same], regret[same], f"equality is required: {advice}")
    observation, over = env.reset_batch(trial.seeds).observation, False
    while not over and (action := env.clairvoyant(observation)) is not None:
        step = env.step_batch(action)
        observation, over = step.observation, bool(step.truncated.all())
        worst = np.abs(step.info["regret"]).max()
        require(worst <= _SLACK, f"regret is {worst} under the actions of clairvoyant; 0 is required")
        require(regret.any(), "regret is 0 under all random actions; that of most is required to be > 0")


def check_inactive(trial: Trial) -> None:
    """Checks that agents that do not act in a round get reward 0 and information 0, and keep their statistics."""
    env: Any = trial.env
    active = np.random.default_rng(0).random((1 + ROUNDS, *trial.rows)) < 0.5
    env.set_active(active[0])
    after = env.reset_batch(trial.seeds).observation
    for t, action in enumerate(trial.actions):
        before = copied(after)
        env.set_active(active[t + 1])
        step = env.step_batch(action)
        after = step.observation
        grown = {name: after[name] - before[name] for name in after if name.startswith("total_")}
        for name, array in {"reward": step.reward, **step.info, **grown}.items():
            require_zero(f"{name} of agents that do not act", array[~active[t]], "nothing happens to them")


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
            rows = f"{shown.sum()} of {shown.size} rows at reset"
            require(not shown.any(), f"observation {seen!r} has a number of hidden {name!r} in {rows}")


def check_public(trial: Trial) -> None:
    """Checks that public constants are the same before, during and after an episode."""
    env: Any = trial.env
    first = pickle.dumps(env.public)
    env.reset_batch(trial.seeds)
    for t, action in enumerate(trial.actions):
        env.step_batch(action)
        same = pickle.dumps(env.public) == first
        require(same, f"public is {env.public} after round {t}; it must be constant")


def _episode(trial: Trial, releases: bool = False, other_outcomes: bool = False) -> list[dict[str, Any]]:
    """Plays an episode, and returns copies of the results of each round.

    Args:
        trial: The federation, seeds, actions and senders.
        releases: Whether all agents release after every round; otherwise they release after the last round only.
        other_outcomes: Whether outcomes are drawn from other random numbers than those that follow from the seeds.
    """
    played = trial.again()
    played.senders[:-1], played.senders[-1] = releases, True
    with patch.object(EpisodeRandomness, "draws", _other_draws) if other_outcomes else nullcontext():
        return played.episode()[1:]


_draws = EpisodeRandomness.draws


def _other_draws(randomness: EpisodeRandomness, purpose: Purpose, *key: int) -> Draws:
    """Replaces ``EpisodeRandomness.draws``: draws outcomes and random choices of arms from another stream.

    Regret is an expectation over exactly these random numbers, so it must not change with them. All other purposes keep
    their streams.
    """
    return _draws(randomness, purpose, *key, *((1,) if purpose in (Purpose.OUTCOME, Purpose.ARM) else ()))
