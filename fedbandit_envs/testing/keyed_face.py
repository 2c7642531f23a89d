"""Checks of the PettingZoo face: its own test, equality with the array face, copies, seeds."""

import io
import warnings
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from pettingzoo.test import parallel_api_test

from fedbandit_envs.testing.episodes import (
    HORIZON,
    SEEDS,
    Make,
    by_agent,
    copied,
    fresh,
    random_actions,
    told,
)
from fedbandit_envs.testing.findings import require, require_same, taken
from fedbandit_envs.wrapper import layers


def check_parallel_api(make: Make) -> None:
    """PettingZoo's own test passes at every level of the stack."""
    for height in range(len(list(layers(make())))):
        level = list(layers(make()))[height]
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            # What it only warns of is wrong as well.
            warnings.filterwarnings("error", module=r"pettingzoo\.test")
            try:
                parallel_api_test(level, num_cycles=HORIZON)
            except (AssertionError, Warning) as error:
                raise AssertionError(
                    f"PettingZoo's parallel_api_test of {type(level).__name__} finds: {error or repr(error)}; the "
                    "keyed face of FederatedEnv passes it as it stands, so mend what overrides it"
                ) from error


def check_both_faces(make: Make) -> None:
    """Both faces tell the same, step by step, and the keyed face ends with the episode."""
    batched, keyed = fresh(make), fresh(make)
    reset = told(batched.reset_batch([7]))
    observations, infos = keyed.reset(seed=7)
    _require_same_rows("reset", {"observation": observations, "info": infos}, reset)
    names = keyed.possible_agents
    for action in random_actions(batched, [7]):
        step = told(batched.step_batch(action))
        observations, rewards, terminations, truncations, infos = keyed.step(by_agent(keyed, action))
        require(
            terminations == dict.fromkeys(names, False),
            f"step: terminations are {terminations}",
            "False for every agent is required: episodes are truncated",
        )
        found = {"observation": observations, "reward": rewards, "truncated": truncations, "info": infos}
        _require_same_rows("step", found, step)
    require(keyed.agents == [], f"agents is {keyed.agents} after the last round", "nobody is required")
    after = keyed.step({})
    require(
        after == ({}, {}, {}, {}, {}), f"step({{}}) after the last round returns {after}", "{} is required"
    )


def _require_same_rows(call: str, keyed: dict[str, Any], batched: dict[str, Any]) -> None:
    for part, by_name in keyed.items():
        for j, (agent, found) in enumerate(by_name.items()):
            require_same(
                f"{call}: {part} of {agent} in the keyed face and in the array face",
                found,
                taken(batched[part], (0, j)),
                "equality is required: let the keyed face follow from reset_batch and step_batch",
            )


def check_copies(make: Make) -> None:
    """Agents may write into what the keyed face gives them: it is nobody else's, and stays as it is."""
    env, twin = fresh(make), fresh(make)
    observations, _ = env.reset(seed=7)
    twin.reset(seed=7)
    for action in random_actions(env, [7]):
        owners: dict[int, str] = {}
        for agent, observation in observations.items():
            for name, array in observation.items():
                if isinstance(array, np.generic):
                    continue
                require(
                    array.flags.writeable,
                    f"observation {name!r} of {agent} in the keyed face cannot be written to",
                    "a copy of the agent's own is required",
                )
                owner = owners.setdefault(id(_root(array)), f"{name!r} of {agent}")
                require(
                    owner == f"{name!r} of {agent}",
                    f"in the keyed face, observation {name!r} of {agent} shares its base with {owner}",
                    "a copy for each agent is required",
                )
                array.fill(1)
        before, kept = observations, copied(observations)
        observations = env.step(by_agent(env, action))[0]
        require_same(
            "what agents wrote into the keyed face's observations, after the next round: that of",
            before,
            kept,
            "copies, which later rounds leave alone, are required",
        )
        require_same(
            "after agents wrote into the keyed face's observations, those of",
            observations,
            twin.step(by_agent(twin, action))[0],
            "what a twin shows whose agents did not write is required: hand out copies",
        )


def _root(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def check_episode_seeds(make: Make) -> None:
    """A seed fixes its episode and those of the unseeded resets that follow."""
    envs = fresh(make), fresh(make)
    actions = random_actions(envs[0], SEEDS[:1])
    for seed in (11, None, None):
        one, other = (
            [env.reset(seed=seed), *(env.step(by_agent(env, action)) for action in actions)] for env in envs
        )
        require_same(
            f"of two federations in the keyed face, after reset(seed=11) and in reset(seed={seed}), round",
            one,
            other,
            "equality is required: take unseeded episodes' seeds from EpisodeSeeds",
        )
