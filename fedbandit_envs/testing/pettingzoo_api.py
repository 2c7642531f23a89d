"""Checks of the PettingZoo API: PettingZoo's own test, equality with the batch API, copies, seeds."""

import io
import warnings
from contextlib import redirect_stdout
from typing import Any

from pettingzoo.test import parallel_api_test

from fedbandit_envs.core.wrapper import layers
from fedbandit_envs.randomness.streams import EpisodeSeeds
from fedbandit_envs.testing.assertions import require, require_same, taken
from fedbandit_envs.testing.episodes import HORIZON, Trial, by_agent, copied, results


def check_parallel_api(trial: Trial) -> None:
    """Checks that the federation and each environment inside of it pass PettingZoo's ``parallel_api_test``."""
    for height in range(len(list(layers(trial.env)))):
        level = list(layers(trial.make()))[height]
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            # Warnings of that test are treated as errors. It gives an option that it invents.
            warnings.filterwarnings("ignore", r"options is .* ignored")
            warnings.filterwarnings("error", module=r"pettingzoo\.test")
            try:
                parallel_api_test(level, num_cycles=HORIZON)
            except (AssertionError, Warning) as error:
                call = f"PettingZoo's parallel_api_test of {type(level).__name__}"
                raise AssertionError(f"{call} finds: {error or repr(error)}") from error


def check_both_apis(trial: Trial) -> None:
    """Checks that the PettingZoo API returns the same numbers as the batch API, in seeded and unseeded episodes.

    Between rounds, all observations of the PettingZoo API are overwritten, as agents may do.
    """
    trial, keyed = Trial(trial.make, [7]), trial.env
    batched, names, seeds = trial.env, keyed.possible_agents, EpisodeSeeds()
    for seed in (7, None):
        call = f"reset(seed={seed})"
        reset = results(batched.reset_batch([seeds.next(seed)]))
        observations, infos = keyed.reset(seed=seed)
        _require_same_rows(call, {"observation": observations, "info": infos}, reset)
        for action in trial.actions:
            _write_into(observations)
            before, kept = observations, copied(observations)
            step = results(batched.step_batch(action))
            observations, rewards, over, truncated, infos = keyed.step(by_agent(keyed, action))
            require_same("after the next round, what agents wrote into observations", before, kept)
            found = {"observation": observations, "reward": rewards, "truncated": truncated, "info": infos}
            _require_same_rows(f"a step after {call}", found, step)
            require_same("terminations", over, dict.fromkeys(names, False))
        require_same("agents after the last round", keyed.agents, [])


def _require_same_rows(call: str, keyed: dict[str, Any], batched: dict[str, Any]) -> None:
    for part, by_name in keyed.items():
        for j, (agent, found) in enumerate(by_name.items()):
            what = f"{call}: {part} of {agent} in the PettingZoo API and in the batch API"
            require_same(what, found, taken(batched[part], (0, j)))


def _write_into(observations: dict[str, Any]) -> None:
    """Overwrites all observations, after requiring that each is a copy of the agent's own, which it may write to."""
    for agent, observation in observations.items():
        for name, array in observation.items():
            what = f"observation {name!r} of {agent} in the PettingZoo API"
            require(array.base is None and array.flags.writeable, f"{what} is a view; a copy is required")
            array.fill(1)
