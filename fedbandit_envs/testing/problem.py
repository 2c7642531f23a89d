"""Checks of what a problem declares, such as its sensitivity, against played episodes, and of who learns of whom."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch
from warnings import warn

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.privacy import AGENT, Sensitivity
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.randomness.draws import Draws, EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose
from fedbandit_envs.testing.assertions import mapped, require, require_same, require_zero, taken
from fedbandit_envs.testing.episodes import Trial, copied, results

TRIES = 36
"""Number of replicas. In each of them, one agent acts differently in a second episode."""

ROUNDS = 6
"""Number of rounds of an episode."""

_LONG, _NUMBERS = 12, 2_000_000
"""The number of rounds of the episodes in which releases are compared, and how many numbers these may contain."""

_OF_OUTCOMES = (Purpose.OUTCOME, Purpose.ARM)
"""The purposes of random numbers over which regret is an expectation."""

_SLACK = 1e-9
"""The tolerance for rounding errors."""

_ADVICE = "common random numbers are required, or stateful = True; regret is an expectation over outcomes"
"""What is required of rewards and regret in rounds that are not altered."""


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
    """Checks that an altered action or outcome changes its own round only, and one release by the declared sensitivity.

    In each replica one agent acts differently in one round, or other random numbers bring about the outcomes of that
    round, in some replicas the smallest or the largest of 65,536. At most one release may then differ, by no more than
    the declared adjacency that fits the alteration allows, or the widest one where none fits. All later releases must
    be equal, and so must a problem's rewards and regret of other rounds, which takes common random numbers. Regret must
    not change with the outcomes of its own round either, since it is an expectation over them. If ``agent`` is
    declared, an agent also acts differently in all rounds, and every release may differ within its bound. Two replicas
    that both release after one round may differ by no more than the change of one round. Problems whose rounds depend
    on earlier ones (``stateful``) are compared in the first release that differs. Byzantine agents (the group
    ``liars``) have no protection, and are left out.

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
    before = _played(trial)
    otherwise = "agents that act otherwise in one round"
    for whose, other, declared, adjacencies in (
        (otherwise, trial.altered(one, one_component=True), sensitivity, quantity),
        (otherwise, trial.altered(one), sensitivity, ["one-round"]),
        ("agents with other outcomes in one round", None, unpaired, outcome),
        ("agents that act otherwise", trial.altered(one | True), sensitivity, [AGENT]),
    ):
        if adjacencies not in (quantity, outcome) and not sensitivity.changes.keys() & adjacencies:
            continue
        after = _played(trial, one) if other is None else _played(other)
        if env is problem and adjacencies != [AGENT]:
            # Whether an action was best does not depend on the outcomes of its own round either.
            same = one.cumsum(axis=0) == 0 if problem.stateful else ~one
            for name, rounds in (("reward", same), ("regret", same | (one & (other is None)))):
                own = rounds[..., np.newaxis] & who
                require_same(f"{name} of {whose}, elsewhere,", after[name][own], before[name][own], _ADVICE)
        own = declared._replace(scale=taken(declared.scale, who))
        first, second = (taken(each, (slice(None), who)) for each in (before, after))
        often = None if problem.stateful else _LONG if adjacencies == [AGENT] else 1
        _require_within(whose, first, second, own, adjacencies, often)
    if sensitivity.changes.keys() & round_:
        # In every second replica agents release after every round.
        sent = [before[name].reshape(*one.shape, agents, -1).any(axis=-1) for name in sensitivity.scale]
        acted = np.any(sent, axis=0)
        acted &= honest & (np.arange(replicas) % 2 == 0)[:, np.newaxis]
        both, last = acted & np.roll(acted, 2, axis=1), mapped(partial(np.roll, shift=2, axis=1), before)
        scale = {}
        for name, array in sensitivity.scale.items():
            larger = np.maximum(array, np.roll(array, 2, axis=0))
            scale[name] = np.broadcast_to(larger, before[name].shape)[both]
        own = unpaired._replace(scale=scale)
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
    too_often = f"sensitivity is too small: {whose} differ in {found} releases; {often} is required"
    require(often is None or found <= often, f"{too_often} of what one round changes")
    compared = [("releases", units, sensitivity.changes)]
    if sensitivity.pair is not None:
        total, good, changes = sensitivity.pair
        pair = change[good], change[total] - change[good]
        units = np.concatenate([_in_units(part, scale[good]) for part in pair], axis=-1)
        compared.append(("good and defective outcomes", units, changes))
    differs &= (differs.cumsum(axis=0) == 1) | (often is not None)
    for what, units, changes in compared:
        allowed = [changes[adjacency] for adjacency in adjacencies if adjacency in changes]
        most = np.max([*allowed], axis=0) if allowed else (np.inf, np.inf)
        units = np.abs(units[differs])
        values = [units.sum(axis=-1), (units**2).sum(axis=-1)] if AGENT not in changes else []
        if what == "releases":
            values.append((units > _SLACK).sum(axis=-1))
        sizes = np.max(values, axis=0), np.linalg.norm(units, axis=-1)
        measures = "number of values that differ", "Euclidean norm"
        for measure, each, bound in zip(measures, sizes, most, strict=True):
            worst = each.max(initial=0)
            of = f"sensitivity is too small: {what} of {whose} differ, and the {measure} is {worst:.6g}"
            declared = f"at most {bound:.6g} is declared for {' or '.join(adjacencies)}"
            require(worst <= bound * (1 + _SLACK), f"{of} in declared units; {declared}")


def _in_units(change: Array, scale: Array) -> Array:
    """Returns a change divided by its scale, ``(rounds, rows, values)``; infinity where it changes at a scale of 0."""
    units = np.divide(change, scale, out=np.where(change == 0, 0.0, np.inf), where=scale > 0)
    return units.reshape(*units.shape[:2], int(np.prod(units.shape[2:])))


def _played(trial: Trial, other_outcomes: Array | None = None) -> Arrays:
    """Plays an episode, and returns releases, ``reward`` and ``regret``, arrays ``(rounds, replicas, agents, ...)``.

    Args:
        trial: The federation, seeds, actions and senders.
        other_outcomes: The rounds in which the chosen agents get other outcomes, bool ``(rounds, replicas)``.
    """
    drawn: list[Draws] = []
    own_draws = EpisodeRandomness.draws

    def draws(randomness: EpisodeRandomness, purpose: Purpose, *key: int) -> Draws:
        each = own_draws(randomness, purpose, *key)
        drawn.extend([each] if purpose in _OF_OUTCOMES else ())
        return each

    played = trial.again()
    with patch.object(EpisodeRandomness, "draws", draws):
        played.env.reset_batch(trial.seeds)
    rounds: list[Arrays] = []
    for t in range(_LONG):
        own = [each.key.copy() for each in drawn]
        if other_outcomes is not None:
            for row in np.argwhere(trial.chosen & other_outcomes[t][:, np.newaxis]).tolist():
                for each in drawn:
                    keys = _extreme_keys(int(each.round[*row]))
                    each.key[*row] = keys[row[0] % len(keys)]
        after = next(played.rounds(t, t + 1))
        rounds.append({"reward": after["reward"], "regret": after["info"]["regret"], **after["release"]})
        for each, key in zip(drawn, own, strict=True):
            each.key[...] = key
    return {name: np.stack([each[name] for each in rounds]) for name in rounds[0]}


@lru_cache
def _extreme_keys(round_: int) -> Array:
    """Returns keys of random numbers, uint32 ``(32, 2)``, half of them extreme in a round.

    With each of the first 16 keys one of the first 8 uniform numbers is the smallest or the largest of 65,536.
    """
    keys = np.random.default_rng(0).integers(2**32, size=(1, 2**16, 2), dtype=np.uint32)
    uniforms = Draws(keys, np.full(keys.shape[:2], round_, np.uint32)).uniforms(8)[0]
    return keys[0, np.concatenate([uniforms.argmin(axis=0), uniforms.argmax(axis=0), np.arange(16)])]


def check_regret(trial: Trial) -> None:
    """Checks that regret is at least 0, and 0 for the best actions, those of the problem's ``clairvoyant``.

    If it returns none, their regret is not checked. If it does, random actions must have some regret.
    """
    env: Any = trial.env
    regret = np.array([after["info"]["regret"] for after in trial.again().episode()])
    fits, required = env.approximate_oracle or regret.min() >= -_SLACK, "a number >= 0 is required"
    require(fits, f"regret is {regret.min()} under random actions; {required}, or approximate_oracle = True")
    observation, over = env.reset_batch(trial.seeds).observation, False
    while not over and (action := env.clairvoyant(observation)) is not None:
        step = env.step_batch(action)
        observation, over, worst = step.observation, step.truncated.all(), np.abs(step.info["regret"]).max()
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


def check_isolation(trial: Trial) -> None:
    """Checks that agents see the data of others in inboxes and server arrays only, after releases that were counted.

    Two episodes are compared. In each replica one agent acts differently in the second episode, from the first round
    on, and once more from the middle. The observations, rewards and releases of all other agents must be equal to the
    bit in both episodes until the ledger counts the next release of that agent; afterwards only their ``inbox_*`` and
    ``server_*`` arrays may differ, and these only with a transport. Nothing else may differ if no data of that agent
    leave it: if releases of the noise layer, or else of the environment, are replaced by zeros, or if the environment
    does not allow the agent to send. If agents choose when to send, all that can show these times may differ: inboxes,
    server arrays, ``sent``, rewards and information. Problems whose agents interact are not checked; a warning says so.
    """
    if getattr(trial.env, "interacting", False):
        unchecked = "not checked is whether agents see of others what was not released"
        warn(f"{type(trial.env.unwrapped).__name__} declares interacting = True: {unchecked}", stacklevel=2)
        return
    half = len(trial.actions) // 2
    for releases, start in (("as they are", 0), ("as they are", half), ("zeros", 0), ("forbidden", 0)):
        _require_isolation(trial, releases, start)


def _require_isolation(trial: Trial, releases: str, start: int) -> None:
    """Plays both episodes and compares them round by round; the chosen agents act differently from ``start`` on.

    What both release is the problem's data ``as they are``, ``zeros``, or ``forbidden``: nothing of the chosen agents.
    """
    both = trial.again(), trial.altered(np.arange(len(trial.actions))[:, np.newaxis] >= start)
    chosen, env = trial.chosen, both[0].env
    name, delivers = type(env).__name__, find_layer(env, "transport") is not None
    for each in both:
        stack = list(layers(each.env))
        # Releases come from the wrapper of authored messages, or from the problem.
        source: Any = next((level for level in reversed(stack) if level.message_bits), stack[-1])
        if releases == "zeros":
            source = find_layer(each.env, "noise") or source
            source._release = lambda sends, own=source._release: mapped(np.zeros_like, own(sends))
        elif releases == "forbidden":
            source.allowed_senders = lambda senders: np.asarray(senders, np.bool_) & ~chosen
    played = [results(each.env.reset_batch(each.seeds)) for each in both]
    rounds = [each.rounds() for each in both]
    counted = _counted(both)
    for t in range(len(trial.actions) + 1):
        if t > 0:
            played = [next(each) for each in rounds]
        now = _counted(both)
        counted = now if t <= start else counted
        released: Array = np.any(now > counted, axis=0)
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
        shown = (each["observation"] | concealed(each["observation"]) for each in played)
        seen = [taken(observation, chosen) for observation in shown]
        for array in seen[0]:
            one, other = (each[array] for each in seen)
            fits = not array.startswith("inbox_") or np.allclose(one, other, rtol=1e-6, atol=1e-6)
            require(fits, f"{array!r} of {name} contains the agent's own data, and there is no 'sent'")


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
    shown, free = played["observation"], ("inbox_", "server_")
    seen = {name: shown[name] for name in shown if name != "sent" and not name.startswith(free)}
    return {"observation": seen} if timed else {**played, "observation": seen}
