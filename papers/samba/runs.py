"""Runs of a vertical federation, encrypted or in the open, as a function that a measurement calls."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.runs import SambaSettings, run_plain, run_samba


def select(
    seeds: range, advance: Callable[[float], None], noted: Sequence[int] = (), **settings: Any
) -> dict[str, Any]:
    """Plays one algorithm on a vertical federation, one seed after the other.

    Args:
        seeds: One for each run.
        advance: Called with the share of the work that was done since its last call.
        noted: Rounds after which the cumulative reward is kept as well; of runs in the open alone.
        **settings: Fields of :class:`~fedbandit_envs.samba.runs.SambaSettings` but the seed.

    Returns:
        ``reward``: cumulative reward, int64 ``(seeds,)``; ``bytes``: bytes of all frames, int64 ``(seeds,)``, 0 in the
        open; ``roles``: names of the roles, in the open ``plain`` alone; ``seconds``: their CPU seconds,
        ``(seeds, roles)``; ``spent``: the same of all roles together, ``(seeds,)``; ``claim``: what is kept from whom,
        None in the open; ``means``: means of the owners' arms. In the open also ``noted`` and ``rewards``: the rounds
        asked for and the cumulative rewards after them, ``(seeds, rounds)``; ``pulls``: number of pulls of each owner,
        int64 ``(seeds, owners)``; ``regret``: by the means of the owners picked, ``(seeds,)``.
    """
    chosen = SambaSettings(**settings)
    means = arm_means(chosen.ratings, chosen.arms)
    algorithm = Algorithm(chosen.algorithm, chosen.parameters)
    # Kernels are loaded here, so that their loading counts as no run's CPU time.
    run_plain(means.tolist(), algorithm, chosen.arms + 2, 0)
    roles, claim, rows = ["plain"], None, []
    for seed in seeds:
        if chosen.plain:
            result, spent = run_plain(means.tolist(), algorithm, chosen.budget, seed, noted)
            row = {"reward": result.reward, "bytes": 0, "seconds": [spent]}
            rows.append({**row, "rewards": result.noted, "pulls": result.pulls})
            advance(1 / len(seeds))
        else:
            run = run_samba(
                replace(chosen, seed=seed), lambda rounds: advance(rounds / chosen.budget / len(seeds))
            )
            roles, claim = list(run["cpu_seconds"]), run["claim"]
            row = {"reward": run["cumulative_reward"], "bytes": run["bytes"]}
            rows.append({**row, "seconds": list(run["cpu_seconds"].values())})
    arrays = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    if chosen.plain:
        arrays["regret"] = arrays["pulls"] @ (means.max() - means)
    arrays["spent"] = arrays["seconds"].sum(axis=1)
    return {**arrays, "noted": list(noted), "roles": roles, "claim": claim, "means": means.tolist()}
