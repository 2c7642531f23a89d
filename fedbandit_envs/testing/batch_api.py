"""Checks of the batch API: spaces, arrays, seeds, replicas, horizons, pickling, rendering, invalid input."""

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.federated_env import BatchReset, BatchStep
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.testing.assertions import difference, refusal, require, require_same, taken
from fedbandit_envs.testing.episodes import (
    HORIZON,
    SEEDS,
    Trial,
    by_agent,
    copied,
    random_choices,
    require_in_space,
)


def check_spaces(trial: Trial) -> None:
    """Checks that names, spaces, horizon and metadata are as :class:`FederatedEnv` documents them."""
    env = trial.make()
    names = [f"agent_{j}" for j in range(env.max_num_agents)]
    require(
        bool(names) and list(env.possible_agents) == names,
        f"possible_agents is {env.possible_agents}; 'agent_0', 'agent_1' and so on are required",
    )
    require(
        isinstance(env.max_cycles, int | np.integer) and env.max_cycles >= 1,
        f"max_cycles is {env.max_cycles!r}; an integer >= 1 is required",
    )
    for what, found, kind in (
        ("single_observation_space", env.single_observation_space, spaces.Dict),
        ("single_release_space", env.single_release_space, spaces.Dict),
        ("hidden_space", env.hidden_space, spaces.Dict),
        ("metadata['name']", env.metadata.get("name"), str),
        ("metadata['render_modes']", env.metadata.get("render_modes"), list),
    ):
        require(isinstance(found, kind), f"{what} is {found!r}; a {kind.__name__} is required")
    for name in ("observation", "action"):
        single = getattr(env, f"single_{name}_space")
        for agent in names:
            require(
                getattr(env, f"{name}_space")(agent) is single,
                f"{name}_space({agent!r}) is not single_{name}_space"
                "; the same object is required at each call",
            )
    expected = PolicySpec(
        observation=env.single_observation_space,
        action=env.single_action_space,
        horizon=env.max_cycles,
        release=env.single_release_space,
        agents=env.max_num_agents,
        public=env.public,
        action_formats=env.action_formats,
        features=getattr(env, "features", None),
    )
    require(
        not difference(env.policy_spec, expected), f"policy_spec is {env.policy_spec}; {expected} is required"
    )


def check_action_formats(trial: Trial) -> None:
    """Checks that every action format produces playable actions, and that the first is the environment's own."""
    env = trial.env
    formats = env.action_formats
    require(bool(formats), "action_formats is empty; the environment's own actions at least are required")
    first = next(iter(formats))
    require(
        formats[first].space == env.single_action_space,
        f"the first of action_formats, {first!r}, has the space {formats[first].space}"
        f"; the environment's own, {env.single_action_space}, is required",
    )
    for name, form in formats.items():
        observation = env.reset_batch(SEEDS).observation
        for choice in random_choices(form.space, trial.rows, rounds=3):
            try:
                observation = env.step_batch(form.to_action(choice, observation)).observation
            except Exception as error:
                raise AssertionError(
                    f"an element of action_formats[{name!r}].space cannot be played: {error!r}; its to_action must "
                    "return actions that step_batch takes"
                ) from error


def check_arrays(trial: Trial) -> None:
    """Checks that results of reset and step lie in their spaces, and that their arrays are read-only.

    Information must be all zero after a reset.
    """
    env, rows = trial.env, trial.rows
    reset = env.reset_batch(SEEDS)
    largest_at_reset = copied(env.largest_reward())
    _require_arrays("reset_batch", reset, BatchReset, trial)
    for name, array in reset.info.items():
        require(not array.any(), f"info {name!r} is {array[array != 0][:1]} at reset; zeros are required")
    for action in trial.actions:
        step = env.step_batch(action)
        _require_arrays("step_batch", step, BatchStep, trial)
        kinds = [{name: array.dtype for name, array in info.items()} for info in (reset.info, step.info)]
        require(
            kinds[0] == kinds[1],
            f"info has {kinds[0]} at reset and {kinds[1]} after a round"
            "; reset_batch must return the names and dtypes of step_batch, with zeros",
        )
        largest = env.largest_reward()
        require_same(
            "largest_reward() after a round and at reset",
            copied(largest),
            largest_at_reset,
            "a constant is required over an episode: it must not depend on data",
        )
        bound = [] if largest is None else [("largest_reward()", largest, np.float64)]
        for name, array, dtype in (
            ("reward", step.reward, np.float64),
            ("truncated", step.truncated, np.bool_),
            *bound,
        ):
            require(
                array.dtype == dtype and array.shape == rows,
                f"{name} is {array.dtype} {array.shape}"
                f"; {dtype.__name__} (replicas, agents) = {rows} is required",
            )
        bad = step.reward[~np.isfinite(step.reward)]
        require(not bad.size, f"reward is {bad[:1]} in places; finite numbers are required")
        if largest is not None:
            beyond = np.abs(step.reward) > largest * (1.0 + 1e-9)
            require(
                not beyond.any(),
                f"reward is {step.reward[beyond][:1]} where largest_reward() is {largest[beyond][:1]}"
                "; a size of at most that is required",
            )


def _require_arrays(
    call: str, result: BatchReset | BatchStep, kind: type[BatchReset | BatchStep], trial: Trial
) -> None:
    """Requires that the result of a reset or a step, and the hidden parameters after it, are valid arrays.

    Args:
        call: Name of the method that has returned the result, for error messages.
        result: The result.
        kind: The type that the result must have.
        trial: The federation and the shape of its arrays.
    """
    require(
        isinstance(result, kind), f"{call} returns a {type(result).__name__}; a {kind.__name__} is required"
    )
    env, rows = trial.env, trial.rows
    require_in_space(f"{call}: observation", result.observation, env.single_observation_space, rows)
    require_in_space(f"hidden() after {call}:", env.hidden(), env.hidden_space, rows)
    require(
        "regret" in result.info and result.info["regret"].dtype == np.float64,
        f"{call}: info has {[f'{name}: {array.dtype}' for name, array in result.info.items()]}"
        "; regret, float64, is required among it",
    )
    for name, array in result.info.items():
        require(
            array.shape == rows,
            f"{call}: info {name!r} has shape {array.shape}; (replicas, agents) = {rows} is required",
        )
    arrays = {
        f"{part} {name!r}": array
        for part in ("observation", "info")
        for name, array in getattr(result, part).items()
    }
    if isinstance(result, BatchStep):
        arrays |= {"reward": result.reward, "truncated": result.truncated}
    for what, array in arrays.items():
        require(
            not array.flags.writeable,
            f"{call}: {what} can be written to"
            "; a read-only view is required, as fedbandit_envs.core.buffers.Buffers makes them",
        )


def check_seeds(trial: Trial) -> None:
    """Checks that a replica depends on its own seed and actions alone, not on other replicas or earlier episodes."""
    first = trial.episode()
    require_same(
        "of two episodes of the same seeds and actions, round",
        trial.again().episode(),
        first,
        "equality is required: draw from streams.stream(seed, Purpose...) only",
    )
    # Skipped with a noise layer: noise from a seed of its own differs between episodes, and a transport delivers noisy
    # releases, so that observations differ as well.
    if find_layer(trial.env, "noise") is None:
        require_same(
            "of two episodes one after the other, of the same seeds and actions, round",
            trial.episode(),
            first,
            "equality is required: let reset_batch forget all of the episode before",
        )
    for i, seed in enumerate(SEEDS):
        part = slice(i, i + 1)
        alone = Trial(trial.make, [seed])
        alone.actions = [taken(action, part) for action in trial.actions]
        alone.senders = trial.senders[:, part]
        require_same(
            f"of a replica alone and as number {i} of {len(SEEDS)}, round",
            alone.episode(),
            [taken(result, part) for result in first],
            "equality is required: let each replica draw from a stream of its own seed",
        )


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
        require(
            over == [False] * (horizon - 1) + [True],
            f"with max_cycles {horizon}, truncated is {over} by round"
            "; all of it is required in the last round, and nothing before",
        )
        with refusal(f"step_batch after max_cycles = {horizon} rounds", ResetNeeded):
            env.step_batch(action)


def check_pickling(trial: Trial) -> None:
    """Checks that a copy of a federation, made by ``pickle`` in mid-episode, continues exactly like the original."""
    half = HORIZON // 2
    trial.env.reset_batch(SEEDS)
    for _ in trial.rounds(0, half):
        pass
    try:
        copy = trial.again()
        copy.env = pickle.loads(pickle.dumps(trial.env))
    except Exception as error:
        raise AssertionError(
            f"pickling in mid-episode raises {error!r}; keep no functions, generators or open files in the state"
        ) from error
    found, expected = ([*each.rounds(half), each.env.privacy(), each.env.hidden()] for each in (copy, trial))
    require_same(
        f"of a pickled federation and its original, in mid-episode, round {half} +",
        found,
        expected,
        "equality is required: views come back as arrays of their own, unless they are "
        "fedbandit_envs.core.buffers.Buffers",
    )


def check_rendering(trial: Trial) -> None:
    """Checks that ``render`` works in every render mode of the metadata, after a reset and after a round."""
    env = trial.env
    for mode in env.metadata["render_modes"]:
        env.unwrapped.render_mode = mode
        env.reset_batch(SEEDS)
        at_reset = env.render()
        env.step_batch(trial.actions[0])
        for picture in (at_reset, env.render()):
            image = (
                isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)
            )
            drawn = {"ansi": isinstance(picture, str) and picture != "", "rgb_array": image}
            require(
                drawn.get(mode, True),
                f"render() in the mode {mode!r} returns {repr(picture)[:60]}"
                "; text in 'ansi', and a uint8 array (height, width, 3) in 'rgb_array', are required",
            )


def check_refusals(trial: Trial) -> None:
    """Checks that invalid input raises errors that leave the state untouched.

    The next round is compared with that of a second federation, which was not given the invalid input.
    """
    env, good = trial.env, trial.actions[0]
    open_above = getattr(env.unwrapped, "open_above", False)
    calls: list[tuple[str, Callable[[], Any]]] = [
        *(
            (f"step_batch with {what}", partial(env.step_batch, bad))
            for what, bad in _bad_actions(env.single_action_space, good, open_above)
        ),
        ("reset_batch(())", partial(env.reset_batch, ())),
        ("reset_batch((-1,))", partial(env.reset_batch, (-1,))),
        ("release with an agent less", partial(env.release, trial.everyone[:, 1:])),
    ]
    rounds = len(calls) + 1
    trials = Trial(lambda: env, rounds=rounds), Trial(trial.make, rounds=rounds)
    for each in trials:
        each.env.reset_batch(SEEDS)
        next(each.rounds())
    for t, (call, ask) in enumerate(calls, 1):
        with refusal(call, *((TypeError, ValueError) if "step" in call else (ValueError,))):
            ask()
        found, expected = ([each.env.hidden(), each.env.privacy(), *each.rounds(t, t + 1)] for each in trials)
        require_same(
            f"{call} is refused, but then what the next round says, in comparison with a twin that was not asked,",
            found,
            expected,
            "a refusal must leave the state untouched: check all before anything happens",
        )


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
    whole = not np.issubdtype(space.dtype, np.floating)
    yield "a NaN", _altered(good, np.nan, np.float64)
    if whole:
        yield "a fraction", _altered(good, 0.5, np.float64)
    low, high = _ends(space)
    dtype = np.int64 if whole else np.float64
    if np.isfinite(low).all():
        yield "a value below the space's", _altered(good, low - 1, dtype)
    if np.isfinite(high).all() and not open_above:
        yield "a value above the space's", _altered(good, high + 1, dtype)


def _altered(good: Array, value: Any, dtype: type) -> Array:
    """Returns a copy of an action with another value for the last agent of the last replica."""
    bad: Array = good.astype(dtype)
    bad[-1, -1] = value
    return bad


def _ends(space: Any) -> tuple[Array, Array]:
    """Returns the lower and the upper bounds of a space of numbers, as two arrays."""
    if isinstance(space, spaces.Box):
        return space.low.astype(np.float64), space.high.astype(np.float64)
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape), np.ones(space.shape)
    count = space.n if isinstance(space, spaces.Discrete) else space.nvec
    return np.asarray(space.start), np.asarray(space.start + count - 1)
