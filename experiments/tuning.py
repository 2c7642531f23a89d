"""Tuning of a problem's baselines: all on one grid of constants, on seeds that no experiment plays.

Regret that a policy saves by tuning is not saved by communication. So the baseline that does not communicate is tuned,
too, and every baseline that is compared with it is tuned on the same grid, for as many rounds and on the same seeds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import gmean

from fedbandit_envs.baselines import find_baseline
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.registry.problems import TuningSpec
from fedbandit_envs.registry.registration import PROBLEMS, Registry, problem_of

FIRST_SEED = 1_000_000
"""The first seed that is used for tuning; experiments play smaller seeds."""


TUNINGS: Registry[TuningSpec] = Registry(
    {name: problem.tuning for name, problem in PROBLEMS.items() if problem.tuning},
    problems=lambda plugin: {plugin.name: tuning} if (tuning := problem_of(plugin).tuning) else {},
)
"""How each problem's baselines are tuned, by the name of the problem's folder or plug-in."""


def tuning_runs(
    problem: str, rounds: int | None = None, seeds: int | None = None
) -> dict[str, list[list[RunSpec]]]:
    """Returns the runs that tune a problem's baselines.

    Args:
        problem: One of :data:`TUNINGS`.
        rounds: Horizon; None for the problem's own.
        seeds: Number of seeds; None for the problem's own.

    Returns:
        By the name of each tuned baseline, a list with an element for each point of the grid of constants: the list of
        its runs, one for each environment id.

    Raises:
        SettingsError: A number is out of range.
    """
    tuning = TUNINGS[problem]
    rounds = tuning.rounds if rounds is None else rounds
    seeds = tuning.seeds if seeds is None else seeds

    def run(name: str, env_id: str, constants: dict[str, Any]) -> RunSpec:
        base = find_baseline(name)
        form = base.tuned_by(constants)
        kwargs: dict[str, Any] = {"policy_kwargs": constants}
        if form.wrappers != base.wrappers:
            kwargs = {"wrapper_kwargs": {"server": {"policy": form.wrappers["server"].kwargs["policy"]}}}
        return RunSpec(name, env_id, rounds, seeds, FIRST_SEED, labels=constants, **kwargs)

    return {
        name: [[run(baseline, env_id, constants) for env_id in tuning.env_ids] for constants in tuning.grid]
        for name, baseline in tuning.baselines.items()
    }


def mean_regret(results: Sequence[RunResult]) -> float:
    """Returns cumulative regret per agent at the horizon, averaged over seeds.

    Args:
        results: Results of one baseline, one for each environment id. Several are averaged by their geometric mean, or
            the smallest is returned if it is not positive.
    """
    means = [float(result.regret[-1].mean(axis=1).mean()) for result in results]
    return float(gmean(means)) if min(means) > 0.0 else min(means)


def best_constants(
    runs: Mapping[str, Sequence[Sequence[RunSpec]]], load: Callable[[RunSpec], RunResult]
) -> dict[str, dict[str, Any]]:
    """Returns for each tuned baseline the constants with the least regret.

    Args:
        runs: The runs that were played, as :func:`tuning_runs` returns them, of one problem or several.
        load: Returns a run's result.

    Returns:
        By the name of each tuned baseline: ``of`` (name of the baseline before tuning), ``env_ids``, ``rounds``,
        ``seeds``, ``chosen`` (the constants with the least regret; the first of them in a tie), and ``tried`` (pairs of
        constants and regret).
    """
    found = {}
    for name, grid in runs.items():
        regrets = [round(mean_regret([load(run) for run in alike]), 2) for alike in grid]
        tried = [[dict(alike[0].labels), regret] for alike, regret in zip(grid, regrets, strict=True)]
        first = grid[0][0]
        found[name] = {
            "of": first.baseline,
            "env_ids": [run.env_id for run in grid[0]],
            "rounds": first.rounds,
            "seeds": first.seeds,
            "chosen": tried[int(np.argmin(regrets))][0],
            "tried": tried,
        }
    return found
