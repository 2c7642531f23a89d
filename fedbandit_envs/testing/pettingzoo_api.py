"""Checks of the PettingZoo API: PettingZoo's test, equality with the batch API, copies, seeds, missing agents."""

import io
import warnings
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from pettingzoo.test import parallel_api_test

from fedbandit_envs.core.wrapper import layers
from fedbandit_envs.testing.assertions import refusal, require, require_same, taken
from fedbandit_envs.testing.episodes import HORIZON, Trial, by_agent, copied, results


def check_parallel_api(trial: Trial) -> None:
    """Checks that the federation and each environment inside of it pass PettingZoo's ``parallel_api_test``."""
    for height in range(len(list(layers(trial.env)))):
        level = list(layers(trial.make()))[height]
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            # Warnings of that test are treated as errors.
            warnings.filterwarnings("error", module=r"pettingzoo\.test")
            try:
                parallel_api_test(level, num_cycles=HORIZON)
            except (AssertionError, Warning) as error:
                raise AssertionError(
                    f"PettingZoo's parallel_api_test of {type(level).__name__} finds: {error or repr(error)}; the "
                    "PettingZoo API of FederatedEnv passes it as it stands, so correct what overrides it"
                ) from error


def check_both_apis(trial: Trial) -> None:
    """Checks that the PettingZoo API returns the same numbers as the batch API.

    Between rounds, all observations of the PettingZoo API are overwritten, as agents may do.
    """
    trial, keyed = Trial(trial.make, [7]), trial.env
    batched = trial.env
    reset = results(batched.reset_batch([7]))
    observations, infos = keyed.reset(seed=7)
    _require_same_rows("reset", {"observation": observations, "info": infos}, reset)
    names = keyed.possible_agents
    for action in trial.actions:
        _write_into(observations)
        before, kept = observations, copied(observations)
        step = results(batched.step_batch(action))
        observations, rewards, terminations, truncations, infos = keyed.step(by_agent(keyed, action))
        require_same(
            "what agents wrote into the PettingZoo API's observations, after the next round: that of",
            before,
            kept,
            "copies, which later rounds leave alone, are required",
        )
        require(
            terminations == dict.fromkeys(names, False),
            f"step: terminations are {terminations}"
            "; False for every agent is required: episodes are truncated",
        )
        found = {"observation": observations, "reward": rewards, "truncated": truncations, "info": infos}
        _require_same_rows("step", found, step)
    require(keyed.agents == [], f"agents is {keyed.agents} after the last round; nobody is required")
    after = keyed.step({})
    require(
        after == ({}, {}, {}, {}, {}), f"step({{}}) after the last round returns {after}; {{}} is required"
    )


def _require_same_rows(call: str, keyed: dict[str, Any], batched: dict[str, Any]) -> None:
    for part, by_name in keyed.items():
        for j, (agent, found) in enumerate(by_name.items()):
            require_same(
                f"{call}: {part} of {agent} in the PettingZoo API and in the batch API",
                found,
                taken(batched[part], (0, j)),
                "equality is required: let the PettingZoo API follow from reset_batch and step_batch, and hand out "
                "copies, since agents write into their observations",
            )


def _write_into(observations: dict[str, Any]) -> None:
    """Overwrites all observations, after requiring that each can be written to and is a copy of the agent's own."""
    owners: dict[int, str] = {}
    for agent, observation in observations.items():
        for name, array in observation.items():
            if isinstance(array, np.generic):
                continue
            what = f"{name!r} of {agent}"
            require(
                array.flags.writeable,
                f"observation {what} in the PettingZoo API cannot be written to"
                "; a copy of the agent's own is required",
            )
            owner = owners.setdefault(id(_root(array)), what)
            require(
                owner == what,
                f"in the PettingZoo API, observation {what} shares its base with {owner}"
                "; a copy for each agent is required",
            )
            array.fill(1)


def _root(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def check_episode_seeds(trial: Trial) -> None:
    """Checks that a seed determines its own episode and also the episodes of later resets without a seed."""
    envs = trial.env, trial.again().env
    actions = [by_agent(trial.env, action) for action in trial.actions]
    for seed in (11, None, None):
        one, other = ([env.reset(seed=seed), *map(env.step, actions)] for env in envs)
        require_same(
            f"of two federations in the PettingZoo API, after reset(seed=11) and in reset(seed={seed}), round",
            one,
            other,
            "equality is required: take unseeded episodes' seeds from EpisodeSeeds",
        )


def check_missing_agents(trial: Trial) -> None:
    """Checks that actions of too few and of too many agents are errors and leave the state untouched."""
    asked, twin = trial.env, trial.again().env
    action, follows = (by_agent(asked, choice) for choice in trial.actions[:2])
    without = {agent: choice for agent, choice in action.items() if agent != "agent_0"}
    asked.reset(seed=7)
    twin.reset(seed=7)
    unknown = {**action, "nobody": next(iter(action.values()))}
    for what, bad in (("without agent_0", without), ("of an unknown agent", unknown)):
        with refusal(f"step with actions {what}", ValueError):
            asked.step(bad)
    require_same(
        "the round after refused actions of too few and of too many agents, in comparison with a twin's,",
        asked.step(follows),
        twin.step(follows),
        "a refusal must leave the state untouched",
    )
