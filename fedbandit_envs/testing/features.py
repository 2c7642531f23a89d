"""Checks of features for neural networks."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.core.policy_spec import Features
from fedbandit_envs.testing.assertions import require_same, taken
from fedbandit_envs.testing.episodes import SEEDS, Trial, require_in_space

_PLACE = (slice(-1, None), slice(-1, None))


def check_features(trial: Trial) -> None:
    """Checks an environment's features for neural networks; environments without features pass.

    Features must lie in their space, those of one agent must follow from its own observations alone, and a reset must
    forget earlier episodes.
    """
    env, rows = trial.env, trial.rows
    kind: type[Features] | None = getattr(env, "features", None)
    if kind is None:
        return
    whole, alone = kind(env.policy_spec), kind(env.policy_spec)
    episodes: list[list[Array]] = []
    for _ in range(2):
        whole.reset(rows)
        alone.reset((1, 1))
        shown: list[Array] = []
        kept: list[Array] = []
        played: Iterator[Any] = chain([env.reset_batch(SEEDS)], map(env.step_batch, trial.actions))
        for result in played:
            seen = whole.see(result.observation)
            require_in_space(
                f"{kind.__name__}.see:", {"features": seen}, spaces.Dict({"features": whole.space}), rows
            )
            require_same(
                f"{kind.__name__}.see: features of one row, alone and among others",
                alone.see(taken(result.observation, _PLACE)),
                seen[_PLACE],
                "equality is required: features of a row follow from what that row has observed",
            )
            shown.append(seen)
            kept.append(np.array(seen))
        require_same(
            f"{kind.__name__}.see: what was returned before",
            shown,
            kept,
            "an array of the caller's own is required",
        )
        episodes.append(kept)
    require_same(
        f"{kind.__name__}.reset: features of an episode and of the same one played again",
        episodes[1],
        episodes[0],
        "equality is required: let _start forget what was kept of an episode",
    )
