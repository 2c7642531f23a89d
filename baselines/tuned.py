"""Tuned baselines: registered ones with the constants that ``fedbandit tune`` found, which are kept as data.

``tuned.json`` beside this file is what that command writes: the command itself, the version it ran in, the seeds (which
no experiment plays), what was tried for every baseline, and what came out least.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from fedbandit_envs.baselines.baseline import Baseline

DATA: dict[str, Any] = json.loads(files("fedbandit_envs.baselines").joinpath("tuned.json").read_text())
"""What the file says; see :func:`fedbandit_envs.leaderboard.reproduction.tuning.findings`."""


def constants(name: str) -> dict[str, Any]:
    """Returns the chosen constants of a tuned baseline: arguments of its policy.

    Args:
        name: Of the tuned baseline, ``"SS-UCB-tuned"``.
    """
    return dict(DATA["baselines"][name]["chosen"])


def tuned(baselines: Mapping[str, Baseline]) -> dict[str, Baseline]:
    """Returns the tuned form of every baseline that was tuned, by its name.

    Args:
        baselines: Those that they are tuned forms of.
    """
    return {
        name: replace(
            baselines[entry["of"]],
            summary=f"{entry['of']} with tuned constants",
            reference="tuned on seeds of its own; `fedbandit tune`",
            policy_kwargs={**baselines[entry["of"]].policy_kwargs, **constants(name)},
        )
        for name, entry in DATA["baselines"].items()
    }
