"""Checks of the batch API: spaces, arrays, seeds, replicas, horizons, pickling, rendering."""

import pickle

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.core.wrapper import find_layer
from fedbandit_envs.testing import episodes
from fedbandit_envs.testing.assertions import refusal, require, require_same, taken
from fedbandit_envs.testing.episodes import HORIZON, SEEDS, Make


def check_spaces(make: Make) -> None:
    """Checks that names, spaces, horizon and metadata are as :class:`FederatedEnv` documents them."""
    env = make()
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
    require(env.policy_spec == expected, f"policy_spec is {env.policy_spec}; {expected} is required")


def check_action_formats(make: Make) -> None:
    """Checks that every action format produces playable actions, and that the first is the environment's own."""
    env = episodes.fresh(make)
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
        for choice in episodes.random_choices(form.space, episodes.rows_of(env), rounds=3):
            try:
                observation = env.step_batch(form.to_action(choice, observation)).observation
            except Exception as error:
                raise AssertionError(
                    f"an element of action_formats[{name!r}].space cannot be played: {error!r}; its to_action must "
                    "return actions that step_batch takes"
                ) from error


def check_arrays(make: Make) -> None:
    """Checks that results lie in their spaces, that information starts at zero and that arrays are read-only."""
    env = episodes.fresh(make)
    rows = episodes.rows_of(env)
    reset = env.reset_batch(SEEDS)
    _require_arrays("reset_batch", reset, BatchReset, env)
    for name, array in reset.info.items():
        require(not array.any(), f"info {name!r} is {array[array != 0][:1]} at reset; zeros are required")
    for action in episodes.random_actions(env):
        step = env.step_batch(action)
        _require_arrays("step_batch", step, BatchStep, env)
        kinds = [{name: array.dtype for name, array in info.items()} for info in (reset.info, step.info)]
        require(
            kinds[0] == kinds[1],
            f"info has {kinds[0]} at reset and {kinds[1]} after a round"
            "; reset_batch must return the names and dtypes of step_batch, with zeros",
        )
        largest = env.largest_reward()
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
    call: str, result: BatchReset | BatchStep, kind: type[BatchReset | BatchStep], env: FederatedEnv
) -> None:
    """Requires what holds for the results of both a reset and a step, and for the hidden parameters after them."""
    require(
        isinstance(result, kind), f"{call} returns a {type(result).__name__}; a {kind.__name__} is required"
    )
    rows = episodes.rows_of(env)
    episodes.require_in_space(f"{call}: observation", result.observation, env.single_observation_space, rows)
    episodes.require_in_space(f"hidden() after {call}:", env.hidden(), env.hidden_space, rows)
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


def check_seeds(make: Make) -> None:
    """Checks that a replica depends on its seed and actions alone: not on other replicas or the episode before."""
    env = episodes.fresh(make)
    actions, senders = episodes.random_actions(env), episodes.random_senders(env)
    first = episodes.episode(env, SEEDS, actions, senders)
    require_same(
        "of two episodes of the same seeds and actions, round",
        episodes.episode(episodes.fresh(make), SEEDS, actions, senders),
        first,
        "equality is required: draw from streams.stream(seed, Purpose...) only",
    )
    # Noise with entropy of its own differs between episodes, and a transport puts it into observations.
    if find_layer(env, "noise") is None:
        require_same(
            "of two episodes one after the other, of the same seeds and actions, round",
            episodes.episode(env, SEEDS, actions, senders),
            first,
            "equality is required: let reset_batch forget all of the episode before",
        )
    for i, seed in enumerate(SEEDS):
        part = slice(i, i + 1)
        alone = episodes.episode(
            episodes.fresh(make),
            [seed],
            [taken(action, part) for action in actions],
            [sends[part] for sends in senders],
        )
        require_same(
            f"of a replica alone and as number {i} of {len(SEEDS)}, round",
            alone,
            [taken(result, part) for result in first],
            "equality is required: let each replica draw from a stream of its own seed",
        )


def check_horizon(make: Make) -> None:
    """Checks that episodes are truncated at the horizon, which may change between them, and need a reset to start."""
    env = episodes.fresh(make)
    (action,) = episodes.random_actions(env, SEEDS[:1], rounds=1)
    nobody = np.zeros(episodes.rows_of(env, SEEDS[:1]), np.bool_)
    calls = {
        "step_batch": lambda: env.step_batch(action),
        "step": lambda: env.step(episodes.by_agent(env, action)),
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
            f"with max_cycles {horizon}, truncated is {over} by round"
            "; all of it is required in the last round, and nothing before",
        )
        with refusal(f"step_batch after max_cycles = {horizon} rounds", ResetNeeded):
            env.step_batch(action)


def check_pickling(make: Make) -> None:
    """Checks that a copy pickled in mid-episode continues like the original."""
    env = episodes.fresh(make)
    actions, senders = episodes.random_actions(env), episodes.random_senders(env)
    half = HORIZON // 2
    episodes.episode(env, SEEDS, actions[:half], senders[:half])
    try:
        twin = pickle.loads(pickle.dumps(env))
    except Exception as error:
        raise AssertionError(
            f"pickling in mid-episode raises {error!r}; keep no functions, generators or open files in the state"
        ) from error
    copy, original = (
        [*episodes.rounds_of(each, actions[half:], senders[half:]), each.privacy(), each.hidden()]
        for each in (twin, env)
    )
    require_same(
        f"of a pickled federation and its original, in mid-episode, round {half} +",
        copy,
        original,
        "equality is required: views come back as arrays of their own, unless they are "
        "fedbandit_envs.core.buffers.Buffers",
    )


def check_rendering(make: Make) -> None:
    """Checks that every render mode of the metadata renders, at reset and after a round."""
    env = episodes.fresh(make)
    for mode in env.metadata["render_modes"]:
        env.unwrapped.render_mode = mode
        env.reset_batch(SEEDS)
        at_reset = env.render()
        env.step_batch(episodes.random_actions(env, rounds=1)[0])
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
