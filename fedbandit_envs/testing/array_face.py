"""Checks of the array face: spaces, arrays, seeds, replicas, horizons, pickles, pictures."""

import pickle

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.arrays import Array
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.testing.episodes import (
    HORIZON,
    SEEDS,
    Make,
    by_agent,
    episode,
    fresh,
    random_actions,
    random_choices,
    random_senders,
    require_in_space,
    rounds_of,
    rows_of,
)
from fedbandit_envs.testing.findings import refusal, require, require_same, taken
from fedbandit_envs.wrapper import find_layer


def check_spaces(make: Make) -> None:
    """Names, spaces, horizon and metadata are what :class:`FederatedEnv` says."""
    env = make()
    names = [f"agent_{j}" for j in range(env.max_num_agents)]
    require(
        bool(names) and list(env.possible_agents) == names,
        f"possible_agents is {env.possible_agents}",
        "'agent_0', 'agent_1' and so on are required",
    )
    require(
        isinstance(env.max_cycles, int | np.integer) and env.max_cycles >= 1,
        f"max_cycles is {env.max_cycles!r}",
        "an integer >= 1 is required",
    )
    for name in ("single_observation_space", "single_release_space", "hidden_space"):
        space = getattr(env, name)
        require(isinstance(space, spaces.Dict), f"{name} is {space!r}", "a Dict is required")
    for name in ("observation", "action"):
        single = getattr(env, f"single_{name}_space")
        for agent in names:
            require(
                getattr(env, f"{name}_space")(agent) is single,
                f"{name}_space({agent!r}) is not single_{name}_space",
                "the same object is required at each call",
            )
    spaces_told = Spaces(
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
        env.policy_spaces == spaces_told,
        f"policy_spaces is {env.policy_spaces}",
        f"{spaces_told} is required",
    )
    for name, kind in (("name", str), ("render_modes", list)):
        require(
            isinstance(env.metadata.get(name), kind),
            f"metadata[{name!r}] is {env.metadata.get(name)!r}",
            f"a {kind.__name__} is required",
        )


def check_action_formats(make: Make) -> None:
    """Every action format makes actions that are played; the first is the environment's own."""
    env = fresh(make)
    formats = env.action_formats
    require(bool(formats), "action_formats is empty", "the environment's own actions at least are required")
    first = next(iter(formats))
    require(
        formats[first].space == env.single_action_space,
        f"the first of action_formats, {first!r}, has the space {formats[first].space}",
        f"the environment's own, {env.single_action_space}, is required",
    )
    for name, form in formats.items():
        observation = env.reset_batch(SEEDS).observation
        for choice in random_choices(form.space, rows_of(env), rounds=3):
            try:
                observation = env.step_batch(form.to_action(choice, observation)).observation
            except Exception as error:
                raise AssertionError(
                    f"an element of action_formats[{name!r}].space cannot be played: {error!r}; its to_action must "
                    "return actions that step_batch takes"
                ) from error


def check_arrays(make: Make) -> None:
    """Whatever is returned fits its space, with the leading axes; information starts at zero; nobody can write."""
    env = fresh(make)
    rows = rows_of(env)
    reset = env.reset_batch(SEEDS)
    require(
        isinstance(reset, BatchReset),
        f"reset_batch returns a {type(reset).__name__}",
        "a BatchReset is required",
    )
    _require_told("reset_batch", reset, env, rows)
    for name, array in reset.info.items():
        require(not array.any(), f"info {name!r} is {array[array != 0][:1]} at reset", "zeros are required")
    for action in random_actions(env):
        step = env.step_batch(action)
        require(
            isinstance(step, BatchStep),
            f"step_batch returns a {type(step).__name__}",
            "a BatchStep is required",
        )
        _require_told("step_batch", step, env, rows)
        kinds = [{name: array.dtype for name, array in info.items()} for info in (reset.info, step.info)]
        require(
            kinds[0] == kinds[1],
            f"info has {kinds[0]} at reset and {kinds[1]} after a round",
            "reset_batch must return the names and dtypes of step_batch, with zeros",
        )
        for name, array, dtype in (
            ("reward", step.reward, np.float64),
            ("truncated", step.truncated, np.bool_),
        ):
            require(
                array.dtype == dtype and array.shape == rows,
                f"{name} is {array.dtype} {array.shape}",
                f"{dtype.__name__} (replicas, agents) = {rows} is required",
            )
            _require_read_only(f"step_batch: {name}", array)
        bad = step.reward[~np.isfinite(step.reward)]
        require(not bad.size, f"reward is {bad[:1]} in places", "finite numbers are required")
        _require_bounded(env.largest_reward(), step.reward)


def _require_bounded(largest: Array | None, reward: Array) -> None:
    """Requires rewards as large as was said at most, up to rounding; of those of whom nothing was said, nothing."""
    if largest is None:
        return
    require(
        largest.dtype == np.float64 and largest.shape == reward.shape,
        f"largest_reward() is {largest.dtype} {largest.shape}",
        f"None, or float64 (replicas, agents) = {reward.shape}, is required",
    )
    beyond = np.abs(reward) > largest * (1.0 + 1e-9)
    require(
        not beyond.any(),
        f"reward is {reward[beyond][:1]} where largest_reward() is {largest[beyond][:1]}",
        "a size of at most that is required",
    )


def _require_told(
    call: str, result: BatchReset | BatchStep, env: FederatedEnv, rows: tuple[int, int]
) -> None:
    """Requires of observation and information what both a reset and a step must keep to."""
    require_in_space(f"{call}: observation", result.observation, env.single_observation_space, rows)
    require(
        "regret" in result.info and result.info["regret"].dtype == np.float64,
        f"{call}: info has {[f'{name}: {array.dtype}' for name, array in result.info.items()]}",
        "regret, float64, is required among it",
    )
    for name, array in result.info.items():
        require(
            array.shape == rows,
            f"{call}: info {name!r} has shape {array.shape}",
            f"(replicas, agents) = {rows} is required",
        )
    for part in ("observation", "info"):
        for name, array in getattr(result, part).items():
            _require_read_only(f"{call}: {part} {name!r}", array)


def _require_read_only(what: str, array: Array) -> None:
    require(
        not array.flags.writeable,
        f"{what} can be written to",
        "a read-only view is required, as fedbandit_envs.buffers.Buffers makes them",
    )


def check_hidden(make: Make) -> None:
    """What is hidden lies in its space, at reset and later."""
    env = fresh(make)
    env.reset_batch(SEEDS)
    require_in_space("hidden() at reset:", env.hidden(), env.hidden_space, rows_of(env))
    for _ in rounds_of(env, random_actions(env)):
        require_in_space("hidden():", env.hidden(), env.hidden_space, rows_of(env))


def check_seeds(make: Make) -> None:
    """An episode depends on its seeds and actions alone, and not on the episode before."""
    one, other = fresh(make), fresh(make)
    actions, senders = random_actions(one), random_senders(one)
    first = episode(one, SEEDS, actions, senders)
    require_same(
        "of two episodes of the same seeds and actions, round",
        episode(other, SEEDS, actions, senders),
        first,
        "equality is required: draw from streams.stream(seed, Purpose...) only",
    )
    # Noise with entropy of its own is never the same twice, and a transport shows it.
    if find_layer(one, "noise") is None:
        require_same(
            "of two episodes one after the other, of the same seeds and actions, round",
            episode(one, SEEDS, actions, senders),
            first,
            "equality is required: let reset_batch forget all of the episode before",
        )


def check_replicas(make: Make) -> None:
    """A replica alone is what it is among others."""
    env = fresh(make)
    actions, senders = random_actions(env), random_senders(env)
    whole = episode(env, SEEDS, actions, senders)
    for i, seed in enumerate(SEEDS):
        part = slice(i, i + 1)
        alone = episode(
            fresh(make),
            [seed],
            [taken(action, part) for action in actions],
            [sends[part] for sends in senders],
        )
        require_same(
            f"of a replica alone and as number {i} of {len(SEEDS)}, round",
            alone,
            [taken(result, part) for result in whole],
            "equality is required: let each replica draw from a stream of its own seed",
        )


def check_horizon(make: Make) -> None:
    """Episodes are truncated at the horizon, which may change between them; before and after there is none."""
    env = fresh(make)
    (action,) = random_actions(env, SEEDS[:1], rounds=1)
    nobody = np.zeros(rows_of(env, SEEDS[:1]), np.bool_)
    calls = {
        "step_batch": lambda: env.step_batch(action),
        "step": lambda: env.step(by_agent(env, action)),
        "release": lambda: env.release(nobody),
        "sensitivity": env.sensitivity,
        "hidden": env.hidden,
        "privacy": env.privacy,
    }
    for name, call in calls.items():
        with refusal(f"{name} before reset", ResetNeeded):
            call()
    for horizon in (5, 5, 3):
        env.max_cycles = horizon
        env.reset_batch(SEEDS[:1])
        over = [bool(env.step_batch(action).truncated.all()) for _ in range(horizon)]
        require(
            over == [False] * (horizon - 1) + [True],
            f"with max_cycles {horizon}, truncated is {over} by round",
            "all of it is required in the last round, and nothing before",
        )
        with refusal(f"step_batch after max_cycles = {horizon} rounds", ResetNeeded):
            env.step_batch(action)


def check_pickling(make: Make) -> None:
    """A federation that is pickled in mid-episode goes on as if nothing had happened."""
    env = fresh(make)
    actions, senders = random_actions(env), random_senders(env)
    half = HORIZON // 2
    episode(env, SEEDS, actions[:half], senders[:half])
    try:
        twin = pickle.loads(pickle.dumps(env))
    except Exception as error:
        raise AssertionError(
            f"pickling in mid-episode raises {error!r}; keep no functions, generators or open files in the state"
        ) from error
    copy, original = (
        [*rounds_of(each, actions[half:], senders[half:]), each.privacy(), each.hidden()]
        for each in (twin, env)
    )
    require_same(
        f"of a pickled federation and its original, in mid-episode, round {half} +",
        copy,
        original,
        "equality is required: views come back as arrays of their own, unless they are fedbandit_envs.buffers.Buffers",
    )


def check_rendering(make: Make) -> None:
    """Every render mode that is announced draws something, at reset and after a round."""
    env = fresh(make)
    for mode in env.metadata["render_modes"]:
        env.unwrapped.render_mode = mode
        env.reset_batch(SEEDS)
        pictures = [env.render()]
        env.step_batch(random_actions(env, rounds=1)[0])
        for picture in (*pictures, env.render()):
            image = (
                isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)
            )
            drawn = {"ansi": isinstance(picture, str) and picture != "", "rgb_array": image}
            require(
                drawn.get(mode, True),
                f"render() in the mode {mode!r} returns {repr(picture)[:60]}",
                "text in 'ansi', and a uint8 array (height, width, 3) in 'rgb_array', are required",
            )
