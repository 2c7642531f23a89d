"""Checks of the batch API: spaces, arrays, seeds, replicas, horizons, pickling, rendering, invalid input."""

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector.utils import batch_space

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.testing.assertions import mapped, refusal, require, require_same, require_zero, taken
from fedbandit_envs.testing.episodes import (
    SEEDS,
    Trial,
    by_agent,
    copied,
    random_choices,
    require_in_space,
)

_NUMBER = spaces.Box(np.finfo(np.float64).min, np.finfo(np.float64).max, (), np.float64)


def check_action_formats(trial: Trial) -> None:
    """Checks that every action format produces playable actions, and that the first is the environment's own."""
    env = trial.env
    first = next(iter(env.action_formats.values()))
    require_same("the space of the first action format", first.space, env.single_action_space)
    for form in env.action_formats.values():
        observation = env.reset_batch(SEEDS).observation
        for choice in random_choices(form.space, trial.rows, rounds=3):
            observation = env.step_batch(form.to_action(choice, observation)).observation


def check_arrays(trial: Trial) -> None:
    """Checks that results of reset and step lie in their spaces, and that their arrays are read-only.

    Information must be all zero after a reset.
    """
    env, rows = trial.env, trial.rows
    reset = env.reset_batch(SEEDS)
    most = env.largest_reward()
    most = None if most is None else copied(most)
    _require_arrays("reset_batch", reset, trial)
    for name, array in reset.info.items():
        require_zero(f"info {name!r} at reset", array, "nothing has happened yet")
    for action in trial.actions:
        step = env.step_batch(action)
        _require_arrays("step_batch", step, trial)
        at_reset, now = (mapped(np.result_type, info) for info in (reset.info, step.info))
        require_same(
            "info at reset", at_reset, now, "reset_batch must return the names and dtypes of step_batch"
        )
        advice = "a constant is required over an episode"
        require_same("largest_reward() after a round", env.largest_reward(), most, advice)
        over = step.truncated
        require_same("truncated", [over.dtype, over.shape], [np.dtype(np.bool_), rows])
        require_in_space("reward", step.reward, _NUMBER, rows)
        if most is not None:
            require_in_space("largest_reward()", most, _NUMBER, rows)
            beyond = np.abs(step.reward) > most * (1.0 + 1e-9)
            found, bound = step.reward[beyond][:1], most[beyond][:1]
            require(not beyond.any(), f"reward is {found} where largest_reward() is {bound}")


def _require_arrays(call: str, result: BatchReset | BatchStep, trial: Trial) -> None:
    """Requires that the result of a reset or a step, and the hidden parameters after it, are valid arrays."""
    env, rows = trial.env, trial.rows
    require_in_space(f"{call}: observation", result.observation, env.single_observation_space, rows)
    require_in_space(f"hidden() after {call}:", env.hidden(), env.hidden_space, rows)
    require_in_space(f"{call}: regret of info", result.info.get("regret"), _NUMBER, rows)
    shapes = mapped(np.shape, result.info)
    require_same(f"{call}: the shape of info", shapes, dict.fromkeys(shapes, rows))
    writeable = mapped(lambda array: array.flags.writeable, result._asdict())
    allowed = mapped(lambda array: False, writeable)
    require_same(f"{call}: whether one can write into", writeable, allowed, "use core.buffers.Buffers")


def check_seeds(trial: Trial) -> None:
    """Checks that a replica depends on its own seed and actions alone, not on other replicas or earlier episodes."""
    first = trial.episode()
    # Skipped with a noise layer: noise from a seed of its own differs between episodes, and a transport delivers noisy
    # releases, so that observations differ as well.
    if find_layer(trial.env, "noise") is None:
        advice = "let reset forget all of the episode before"
        require_same("of an episode and its repetition after reset, round", trial.episode(), first, advice)
    advice = "draw from streams.stream(seed, Purpose...) only"
    require_same("of two episodes of the same seeds, round", trial.again().episode(), first, advice)
    for i, seed in enumerate(trial.seeds):
        alone, part = Trial(trial.make, [seed], len(trial.actions)), slice(i, i + 1)
        alone.actions = [taken(action, part) for action in trial.actions]
        alone.senders = trial.senders[:, part]
        expected = [taken(result, part) for result in first]
        advice = "let each replica depend on its own seed and data alone"
        require_same(f"of replica {i}, alone and among the others, round", alone.episode(), expected, advice)


def check_horizon(trial: Trial) -> None:
    """Checks that episodes are truncated at the horizon, and that calls before a reset or after the end are errors.

    The horizon is changed between some of the episodes.
    """
    env, action = trial.env, trial.actions[0]
    calls = {
        "step_batch": lambda: env.step_batch(action),
        "step": lambda: env.step(by_agent(env, action)),
        "release": lambda: env.release(trial.nobody),
        "sensitivity": env.sensitivity,
        "hidden": env.hidden,
        "privacy": env.privacy,
    }
    for name, call in calls.items():
        with refusal(f"{name} before reset", ResetNeeded):
            call()
    for horizon in (5, 5, 3):
        env.max_cycles = horizon
        env.reset_batch(SEEDS)
        over = [bool(env.step_batch(action).truncated.all()) for _ in range(horizon)]
        expected = [False] * (horizon - 1) + [True]
        require(over == expected, f"with max_cycles {horizon}, truncated is {over} by round, not {expected}")
        with refusal(f"step_batch after max_cycles = {horizon} rounds", ResetNeeded):
            env.step_batch(action)


def check_rendering(trial: Trial) -> None:
    """Checks that ``render`` works in every render mode of the metadata, after a reset and after a round."""
    env = trial.env
    for mode in env.metadata["render_modes"]:
        env.unwrapped.render_mode = mode
        env.reset_batch(SEEDS)
        pictures = [env.render()]
        env.step_batch(trial.actions[0])
        for picture in (*pictures, env.render()):
            if mode == "ansi":
                drawn = isinstance(picture, str) and picture != ""
            else:
                drawn = picture.dtype == np.uint8 and picture.shape[2:] == (3,)
            require(drawn, f"render() in the mode {mode!r} returns {picture!r:.60}; a picture is required")


def check_disturbances(trial: Trial) -> None:
    """Checks that a federation goes on as if nothing had happened after each of several disturbances.

    These are invalid input, which raises errors; writing into arrays that ``release``, ``hidden`` and ``sensitivity``
    return; and pickling, after which the copy goes on. The next round is compared with that of a second federation,
    which was left alone.
    """
    open_above = getattr(trial.env.unwrapped, "open_above", False)
    disturbances: list[tuple[str, Callable[[FederatedEnv], Any]]] = [
        (f"step_batch with {what}", partial(_refused, "step_batch", bad))
        for what, bad in _bad_actions(trial.env.single_action_space, trial.actions[0], open_above)
    ]
    disturbances += [
        ("reset_batch(())", partial(_refused, "reset_batch", ())),
        ("reset_batch((-1,))", partial(_refused, "reset_batch", (-1,))),
        ("release with an agent less", partial(_refused, "release", trial.everyone[:, 1:])),
        ("writing into what release, hidden and sensitivity return", partial(_overwritten, trial.nobody)),
        ("pickling in mid-episode", lambda env: pickle.loads(pickle.dumps(env))),
    ]
    trials = [Trial(trial.make, rounds=len(disturbances) + 1) for _ in range(2)]
    for each in trials:
        each.env.reset_batch(SEEDS)
        next(each.rounds())
    for t, (what, disturb) in enumerate(disturbances, 1):
        try:
            before, trials[0].env = trials[0].env, disturb(trials[0].env)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error
        if trials[0].env is not before:
            # A copy is compared with its original: both know that their noise is drawn twice.
            trials[1].env = before
        found, expected = ([each.env.hidden(), each.env.privacy(), *each.rounds(t, t + 1)] for each in trials)
        require_same(f"after {what}, the next round", found, expected, "a disturbance must change nothing")


def _refused(method: str, argument: Any, env: FederatedEnv) -> FederatedEnv:
    """Requires that a method refuses an argument, and returns the environment."""
    with refusal("it", TypeError, ValueError):
        getattr(env, method)(argument)
    return env


def _overwritten(nobody: Array, env: FederatedEnv) -> FederatedEnv:
    """Overwrites what an environment hands out, and returns the environment."""
    handed_out = {"release": env.release(nobody), "hidden": env.hidden(), "scale": env.sensitivity().scale}
    mapped(lambda array: array.flags.writeable and array.fill(1), handed_out)
    return env


def _bad_actions(space: spaces.Space[Any], good: Any, open_above: bool) -> Iterator[tuple[str, Any]]:
    """Yields invalid actions, each with a description of its fault.

    Args:
        space: One agent's action space.
        good: A valid action of all agents.
        open_above: Whether the environment accepts values above the space's upper bound.
    """
    if isinstance(space, spaces.Dict):
        yield "an action that is no mapping", next(iter(good.values()))
        for name, part in space.items():
            for what, bad in _bad_actions(part, good[name], open_above and name == "action"):
                yield f"{what} in {name!r}", {**good, name: bad}
        return
    yield "an axis more", good[..., np.newaxis]
    yield "an agent less", good[:, 1:]
    # Gymnasium makes a box of every space of numbers, after two steps at most.
    box: Any = batch_space(batch_space(space, 1), 1)
    whole = not np.issubdtype(box.dtype, np.floating)
    low, high = (bound[0, 0].astype(np.int64 if whole else np.float64) for bound in (box.low, box.high))
    values = {"a NaN": np.nan, "a value below the space's": low - 1}
    if whole:
        values["a fraction"] = 0.5
    if not open_above:
        values["a value above the space's"] = high + 1
    for what, value in values.items():
        if what == "a NaN" or np.isfinite(value).all():
            bad = good.astype(np.result_type(good, value))
            bad[-1, -1] = value
            yield what, bad
