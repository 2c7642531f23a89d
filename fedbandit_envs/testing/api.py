"""Checks of the batch API (spaces, arrays, seeds, horizons, pickling, invalid input) and of the PettingZoo API."""

import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector.utils import batch_space
from pettingzoo.test import parallel_api_test

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.inbox import concealed
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.randomness.streams import EpisodeSeeds
from fedbandit_envs.testing.assertions import mapped, refusal, require, require_same, require_zero, taken
from fedbandit_envs.testing.episodes import SEEDS, Trial, by_agent, random_choices, require_in_space, results

_NUMBER = spaces.Box(np.finfo(np.float64).min, np.finfo(np.float64).max, (), np.float64)


def check_action_formats(trial: Trial) -> None:
    """Checks that every action format produces playable actions, and that the first is the environment's own.

    What an agent's choice means must follow from its own observation.
    """
    env, first = trial.env, (slice(None), slice(1))
    formats = list(env.action_formats.values())
    require_same("the space of the first action format", formats[0].space, env.single_action_space)
    for form in formats:
        env.reset_batch(SEEDS)
        for played, choice in zip(trial.actions[::2], random_choices(form.space, trial.rows), strict=False):
            observation = env.step_batch(played).observation
            action = form.to_action(choice, observation)
            alone = form.to_action(taken(choice, first), taken(observation, first))
            require_same("the first agent's action, beside others,", taken(action, first), alone)
            env.step_batch(action)


def check_arrays(trial: Trial) -> None:
    """Checks that results of reset and step lie in their spaces, and that their arrays are read-only.

    Information must be all zero after a reset. The largest reward, the sensitivity and public constants must stay the
    same in an episode.
    """
    env, rows = trial.env, trial.rows
    public = deepcopy(env.public)
    reset = env.reset_batch(SEEDS)
    constants = {**deepcopy(_constants(env)), "public": public}
    most = constants["largest_reward()"]
    _require_arrays("reset_batch", reset, trial)
    for name, array in reset.info.items():
        require_zero(f"info {name!r} at reset", array, "nothing has happened yet")
    for action in trial.actions:
        step = env.step_batch(action)
        _require_arrays("step_batch", step, trial)
        at_reset, now = (mapped(np.result_type, info) for info in (reset.info, step.info))
        advice = "reset_batch must return the names and dtypes of step_batch"
        require_same("info at reset", at_reset, now, advice)
        advice = "a constant is required over an episode, whatever the data are"
        require_same("what is told of an episode, after a round,", _constants(env), constants, advice)
        require_same("truncated", [step.truncated.dtype, step.truncated.shape], [np.dtype(np.bool_), rows])
        require_in_space("reward", step.reward, _NUMBER, rows)
        if most is not None:
            require_in_space("largest_reward()", most, _NUMBER, rows)
            beyond = np.abs(step.reward) > most * (1.0 + 1e-9)
            found, bound = step.reward[beyond][:1], most[beyond][:1]
            require(not beyond.any(), f"reward is {found} where largest_reward() is {bound}")


def _constants(env: FederatedEnv) -> dict[str, Any]:
    told = env.sensitivity()._asdict()
    return {"largest_reward()": env.largest_reward(), "public": env.public, "sensitivity()": told}


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
    for i in range(len(trial.seeds)):
        part = slice(i, i + 1)
        alone, expected = trial.again(part).episode(), [taken(result, part) for result in first]
        advice = "let each replica depend on its own seed and data alone"
        require_same(f"of replica {i}, alone and among the others, round", alone, expected, advice)


def check_horizon(trial: Trial) -> None:
    """Checks that episodes are truncated at the horizon, and that calls before a reset or after the end are errors.

    The horizon is changed between some of the episodes.
    """
    env, action = trial.env, trial.actions[0]
    before = {"step_batch": [action], "step": [by_agent(env, action)], "sensitivity": [], "hidden": []}
    for method, arguments in before.items():
        with refusal(f"{method} before reset", ResetNeeded):
            getattr(env, method)(*arguments)
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
        before = env.render()
        env.step_batch(trial.actions[0])
        for picture in (before, env.render()):
            image = getattr(picture, "dtype", None) == np.uint8 and picture.shape[2:] == (3,)
            drawn = isinstance(picture, str) and picture if mode == "ansi" else image
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
        env = trials[0].env
        try:
            copy = disturb(env)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error
        if copy is not None:
            # A copy is compared with its original: both know that their noise is drawn twice.
            trials[0].env, trials[1].env = copy, env
        found, expected = ([each.env.hidden(), each.env.privacy(), *each.rounds(t, t + 1)] for each in trials)
        require_same(f"after {what}, the next round", found, expected, "a disturbance must change nothing")


def _refused(method: str, argument: Any, env: FederatedEnv) -> None:
    with refusal("it", TypeError, ValueError):
        getattr(env, method)(argument)


def _overwritten(nobody: Array, env: FederatedEnv) -> None:
    handed_out = {"release": env.release(nobody), "hidden": env.hidden(), "scale": env.sensitivity().scale}
    mapped(lambda array: array.flags.writeable and array.fill(1), handed_out)


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
    values = {"a NaN": np.nan, "a value below the space's": low - 1, "a fraction": 0.5 if whole else np.inf}
    values["a value above the space's"] = np.inf if open_above else high + 1
    for what, value in values.items():
        if what == "a NaN" or np.isfinite(value).all():
            bad = good.astype(np.result_type(good, value))
            bad[-1, -1] = value
            yield what, bad


def check_parallel_api(trial: Trial) -> None:
    """Checks that the federation and each environment inside of it pass PettingZoo's ``parallel_api_test``."""
    for height in range(len(list(layers(trial.env)))):
        level = list(layers(trial.make()))[height]
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            # Warnings of that test are treated as errors. It gives an option that it invents.
            warnings.filterwarnings("ignore", r"options is .* ignored")
            warnings.filterwarnings("error", module=r"pettingzoo\.test")
            try:
                parallel_api_test(level, num_cycles=len(trial.actions))
            except (AssertionError, Warning) as error:
                call = f"PettingZoo's parallel_api_test of {type(level).__name__}"
                raise AssertionError(f"{call} finds: {error or repr(error)}") from error


def check_both_apis(trial: Trial) -> None:
    """Checks that the PettingZoo API returns the same numbers as the batch API, in seeded and unseeded episodes.

    Between rounds, all observations of the PettingZoo API are overwritten, as agents may do.
    """
    trial, keyed = Trial(trial.make, [7]), trial.env
    batched, names, seeds = trial.env, keyed.possible_agents, EpisodeSeeds()
    same = " in the PettingZoo API and in the batch API: what it returns"
    for seed in (7, None):
        reset = results(batched.reset_batch([seeds.next(seed)]))
        reset["observation"] |= concealed(reset["observation"])
        observations, infos = keyed.reset(seed=seed)
        found: dict[str, Any] = {"observation": observations, "info": infos}
        expected = {part: by_agent(keyed, each) for part, each in reset.items()}
        require_same(f"reset(seed={seed})" + same, found, expected)
        for action in trial.actions:
            for agent, observation in observations.items():
                for name, array in observation.items():
                    what = f"observation {name!r} of {agent} in the PettingZoo API"
                    own = array.base is None and array.flags.writeable
                    require(own, f"{what} is a view; a copy is required")
                    array.fill(1)
            before, kept = observations, deepcopy(observations)
            step = results(batched.step_batch(action))
            step["observation"] |= concealed(step["observation"])
            observations, rewards, over, truncated, infos = keyed.step(by_agent(keyed, action))
            require_same("after the next round, what agents wrote into observations", before, kept)
            found = {"observation": observations, "reward": rewards, "truncated": truncated, "info": infos}
            expected = {part: by_agent(keyed, each) for part, each in step.items()}
            require_same(f"a step after reset(seed={seed})" + same, found, expected)
            require_same("terminations", over, dict.fromkeys(names, False))
        require_same("agents after the last round", keyed.agents, [])
