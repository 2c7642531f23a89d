"""Checks of features for neural networks."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

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
            shown.append(whole.see(result.observation))
            kept.append(np.array(shown[-1]))
            require_in_space(f"{kind.__name__}.see: features", shown[-1], whole.space, rows)
            own, what = alone.see(taken(result.observation, _PLACE)), "one row, alone and among others"
            require_same(f"{kind.__name__}.see: features of {what}", own, kept[-1][_PLACE])
        advice = "an array of the caller's own is required"
        require_same(f"{kind.__name__}.see: what was returned before", shown, kept, advice)
        episodes.append(kept)
    what = f"{kind.__name__}.reset: features of an episode and of the same one played again"
    require_same(what, episodes[1], episodes[0], "let _start forget what was kept of an episode")
