"""Constants of tuned baselines, as ``fedbandit tune`` found them.

``tuned.json`` beside this file is what that command writes: the command, the version that ran, the seeds (which no
experiment plays), all that was tried for each baseline, and what had the least regret.
"""

import json
from importlib.resources import files
from typing import Any

DATA: dict[str, Any] = json.loads(files("fedbandit_envs.baselines").joinpath("tuned.json").read_text())
"""Content of the file; see :func:`fedbandit_envs.leaderboard.tuning.best_constants`."""

TUNED_NAMES: dict[str, str] = {entry["of"]: name for name, entry in DATA["baselines"].items()}
"""Names of tuned baselines by the names of the baselines that were tuned."""


def constants(name: str) -> dict[str, Any]:
    """Returns the tuned arguments of a baseline's policy.

    Args:
        name: Name of the tuned baseline, such as ``"SS-UCB-tuned"``.
    """
    return dict(DATA["baselines"][name]["chosen"])
