"""A function for measurements that plays a vertical federation (an owner for each arm), encrypted or not."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.runs import SambaSettings, run_plain, run_samba


def select(
    seeds: range, advance: Callable[[float], None], noted: Sequence[int] = (), **settings: Any
) -> dict[str, Any]:
    """Plays one algorithm on a vertical federation, one seed after the other.

    Args:
        seeds: One seed for each run.
        advance: Called with the share of the work that was done since its last call.
        noted: Rounds after which the cumulative reward is returned as well; only for runs without encryption.
        **settings: Fields of :class:`~fedbandit_envs.samba.runs.SambaSettings`, except the seed.

    Returns:
        ``reward``: cumulative reward, int64 ``(seeds,)``; ``bytes``: bytes sent between the roles, int64 ``(seeds,)``,
        0 without encryption; ``roles``: names of the roles, only ``plain`` without encryption; ``seconds``: CPU seconds
        of each role, ``(seeds, roles)``; ``spent``: CPU seconds of all roles together, ``(seeds,)``; ``claim``: privacy
        claim of the run, None without encryption; ``means``: means of the owners' arms; ``noted``: as given. Without
        encryption also ``rewards``: cumulative rewards after the rounds ``noted``, ``(seeds, rounds)``; ``pulls``:
        number of pulls of each owner, int64 ``(seeds, owners)``; ``regret``: cumulative regret, computed from the means
        of the arms that were pulled, ``(seeds,)``.
    """
    chosen = SambaSettings(**settings)
    means = arm_means(chosen.ratings, chosen.arms)
    algorithm = Algorithm(chosen.algorithm, chosen.parameters)
    # A short run loads the compiled kernels, so that loading does not count as CPU time of the first run.
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
