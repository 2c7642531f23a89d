"""Checks of a problem without wrappers: its declarations, such as sensitivity, are compared with played episodes."""

import pickle
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.privacy import AGENT, Sensitivity
from fedbandit_envs.randomness.draws import Draws, EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose
from fedbandit_envs.testing.assertions import mapped, require, require_same, require_zero, taken
from fedbandit_envs.testing.episodes import Trial, copied
from fedbandit_envs.testing.isolation import check_isolation as check_isolation

TRIES = 36
"""Number of replicas. In each of them, one agent acts differently in a second episode."""

ROUNDS = 6
"""Number of rounds of an episode."""

_ALTERED = 2
"""The round in which one agent acts differently, in checks where it does so in one round only."""

_LONG, _NUMBERS = 12, 2_000_000
"""The number of rounds of the episodes in which releases are compared, and how many numbers these may contain."""

_OF_OUTCOMES = (Purpose.OUTCOME, Purpose.ARM)
"""The purposes of random numbers over which regret is an expectation."""

_SLACK = 1e-9
"""The tolerance for rounding errors."""


def check_common_random_numbers(trial: Trial) -> None:
    """Checks that an agent's action in one round changes neither its rewards nor its regret in later rounds."""
    env: Any = trial.env
    if env.stateful:
        return
    where = np.arange(ROUNDS)[:, np.newaxis] == _ALTERED
    played, altered = (_episode(each)[_ALTERED + 1 :] for each in (trial, trial.altered(where)))
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
                own = sensitivity._replace(scale=taken(sensitivity.scale, 0))
                whose = f"the pair that neighbours({adjacency!r}) returns"
                _require_within(whose, releases[0], releases[1], own, [adjacency])


def check_worse_neighbours(trial: Trial) -> None:
    """Checks that one altered action or outcome changes one release, and by no more than the declared sensitivity.

    In each replica one agent acts differently in one round, or the outcomes of that round come from other random
    numbers, among them the smallest and the largest of 65,536. One release may then differ, by the change of the widest
    adjacency that is declared; all later ones must be the same. What two replicas release after a single round may not
    differ more either. Problems whose rounds depend on earlier ones (``stateful``) are compared in the first release
    only. Byzantine agents (the group ``liars``) are not protected, and not compared.

    Args:
        trial: A problem, perhaps with data layers around it. The seeds and the horizon are this check's own.
    """
    numbers = sum(int(np.prod(space.shape or ())) for space in trial.env.single_release_space.values())
    most = _NUMBERS // (numbers * trial.rows[1] * _LONG)
    trial = Trial(trial.make, range(int(np.clip(most, TRIES, 128))), _LONG)
    env, problem, (replicas, agents) = trial.env, trial.env.unwrapped, trial.rows
    env.reset_batch(trial.seeds)
    sensitivity = env.sensitivity()
    wide = [name for name in sensitivity.changes if name not in ("one-outcome", AGENT)]
    quantity = ["one-quantity"] if "one-quantity" in wide else wide
    outcome, round_ = ["one-outcome"] if "one-outcome" in sensitivity.changes else wide, wide
    unpaired = sensitivity
    if isinstance(problem.single_action_space, spaces.MultiDiscrete):
        # Other outcomes of all components are neighbours under ``one-round`` only, and not of pairs of counts.
        outcome, round_, unpaired = ["one-round"], ["one-round"], sensitivity._replace(pair=None)
    trial.senders[:, :: 1 if problem.stateful else 2] = trial.senders[-1] = True
    honest = ~np.isin(np.arange(agents), env.groups.get("liars", ()))
    who = trial.chosen = trial.chosen & honest
    one = np.arange(_LONG)[:, np.newaxis] == np.arange(replicas) // agents % _LONG
    before = _releases(trial)
    otherwise = "agents that act otherwise in one round"
    for whose, other, declared, adjacencies in (
        (otherwise, trial.altered(one, one_component=True), sensitivity, quantity),
        (otherwise, trial.altered(one), sensitivity, ["one-round"]),
        ("agents with other outcomes", None, unpaired, outcome),
        ("agents that act otherwise", trial.altered(one | True), sensitivity, [AGENT]),
    ):
        if sensitivity.changes.keys() & adjacencies:
            after = _releases(trial, one) if other is None else _releases(other)
            own = declared._replace(scale=taken(declared.scale, who))
            first, second = (taken(each, (slice(None), who)) for each in (before, after))
            often = None if problem.stateful else _LONG if adjacencies == [AGENT] else 1
            _require_within(whose, first, second, own, adjacencies, often)
    if sensitivity.changes.keys() & round_:
        # In every second replica agents release after every round.
        acted = np.any(
            [array.reshape(*one.shape, agents, -1).any(axis=-1) for array in before.values()], axis=0
        )
        acted &= honest & (np.arange(replicas) % 2 == 0)[:, np.newaxis]
        both, last = acted & np.roll(acted, 2, axis=1), mapped(partial(np.roll, shift=2, axis=1), before)
        scale = {name: array + np.zeros(before[name].shape) for name, array in sensitivity.scale.items()}
        own = unpaired._replace(
            scale={n: np.maximum(a, np.roll(a, 2, axis=1))[both] for n, a in scale.items()}
        )
        first, second = (taken(taken(each, both), np.newaxis) for each in (before, last))
        _require_within("two replicas in one round", first, second, own, round_)


def _require_within(
    whose: str,
    before: Arrays,
    after: Arrays,
    sensitivity: Sensitivity,
    adjacencies: Sequence[str],
    often: int | None = None,
) -> None:
    """Requires that two releases differ by at most the largest change that is declared for some adjacencies.

    Args:
        whose: Description of the releases, for the error message.
        before: The first releases, arrays by name with the leading axes ``(rounds, rows)``.
        after: The second releases, arrays of the same shapes.
        sensitivity: The declared sensitivity; scales lead with ``(rows)``.
        adjacencies: Names of the adjacencies that are considered; names that are not declared are ignored.
        often: In how many rounds releases may differ. With None, only the first of them are compared.
    """
    scale = sensitivity.scale
    change = {name: np.subtract(after[name], before[name], dtype=np.float64) for name in scale}
    units = np.concatenate([_in_units(change[name], scale[name]) for name in scale], axis=-1)
    differs = (np.abs(units) > _SLACK).any(axis=-1)
    found = differs.sum(axis=0).max(initial=0)
    fits = often is None or found <= often
    require(
        fits,
        f"sensitivity is too small: {whose} differ in {found} releases; {often} is required of what one round changes",
    )
    compared = [("releases", units, sensitivity.changes)]
    if sensitivity.pair is not None:
        total, good, changes = sensitivity.pair
        pair = change[good], change[total] - change[good]
        units = np.concatenate([_in_units(part, scale[good]) for part in pair], axis=-1)
        compared.append(("good and defective outcomes", units, changes))
    differs &= (differs.cumsum(axis=0) == 1) | (often is not None)
    for what, units, changes in compared:
        allowed = [changes[adjacency] for adjacency in adjacencies if adjacency in changes]
        units = np.abs(units[differs])
        values = [units.sum(axis=-1), (units**2).sum(axis=-1)] if AGENT not in changes else []
        if what == "releases":
            values.append((units > _SLACK).sum(axis=-1))
        for measure, found, most in (
            ("number of values that differ", np.max(values, axis=0), [change.values for change in allowed]),
            ("Euclidean norm", np.linalg.norm(units, axis=-1), [change.norm for change in allowed]),
        ):
            worst = found.max(initial=0)
            require(
                worst <= max(most, default=np.inf) * (1 + _SLACK),
                f"sensitivity is too small: {what} of {whose} differ, and the {measure} is {worst:.6g} in "
                f"declared units; at most {max(most, default=0):.6g} is declared for {' or '.join(adjacencies)}",
            )


def _in_units(change: Array, scale: Array) -> Array:
    """Returns a change divided by its scale, ``(rounds, rows, values)``; infinity where it changes at a scale of 0."""
    units = np.divide(change, scale, out=np.where(change == 0, 0.0, np.inf), where=scale > 0)
    return units.reshape(*units.shape[:2], int(np.prod(units.shape[2:])))


def _releases(trial: Trial, other_outcomes: Array | None = None) -> Arrays:
    """Plays an episode, and returns its releases, arrays by name ``(rounds, replicas, agents, ...)``.

    Args:
        trial: The federation, seeds, actions and senders.
        other_outcomes: The rounds in which the chosen agents get other outcomes, bool ``(rounds, replicas)``.
    """
    drawn: list[Draws] = []

    def draws(randomness: EpisodeRandomness, purpose: Purpose, *key: int) -> Draws:
        each = _draws(randomness, purpose, *key)
        drawn.extend([each] if purpose in _OF_OUTCOMES else ())
        return each

    played = trial.again()
    with patch.object(EpisodeRandomness, "draws", draws):
        played.env.reset_batch(trial.seeds)
    releases = []
    for t in range(_LONG):
        own = [each.key.copy() for each in drawn]
        if other_outcomes is not None:
            for row in np.argwhere(trial.chosen & other_outcomes[t][:, np.newaxis]).tolist():
                for each in drawn:
                    keys = _extreme_keys(int(each.round[*row]))
                    each.key[*row] = keys[row[0] % len(keys)]
        releases.append(next(played.rounds(t, t + 1))["release"])
        for each, key in zip(drawn, own, strict=True):
            each.key[...] = key
    return {name: np.stack([each[name] for each in releases]) for name in releases[0]}


@lru_cache
def _extreme_keys(round_: int) -> Array:
    """Returns keys of random numbers, uint32 ``(32, 2)``, half of them extreme in a round.

    With each of the first 16 keys one of the first 8 uniform numbers is the smallest or the largest of 65,536.
    """
    keys = np.random.default_rng(0).integers(2**32, size=(1, 2**16, 2), dtype=np.uint32)
    uniforms = Draws(keys, np.full(keys.shape[:2], round_, np.uint32)).uniforms(8)[0]
    return keys[0, np.concatenate([uniforms.argmin(axis=0), uniforms.argmax(axis=0), np.arange(16)])]


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
    return _draws(randomness, purpose, *key, *((1,) if purpose in _OF_OUTCOMES else ()))
