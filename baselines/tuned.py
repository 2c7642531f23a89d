"""Constants of tuned baselines, as ``fedbandit tune`` found them.

That command writes the file ``tuned.json`` beside this one. It holds the command itself, the version of the package,
the seeds (which no experiment plays), all constants that were tried for each baseline, and those with the least regret.
"""

import json
from importlib.resources import files
from typing import Any

DATA: dict[str, Any] = json.loads(files("fedbandit_envs.baselines").joinpath("tuned.json").read_text())
"""Content of ``tuned.json``; :func:`fedbandit_envs.experiments.tuning.best_constants` describes its entries."""

TUNED_NAMES: dict[str, str] = {entry["of"]: name for name, entry in DATA["baselines"].items()}
"""The name of the tuned form of each baseline that was tuned, by the name of the original baseline."""


def constants(name: str) -> dict[str, Any]:
    """Returns the arguments with which a tuned baseline makes its policy, by name.

    Args:
        name: Name of the tuned baseline, such as ``"SS-UCB-tuned"``.
    """
    return dict(DATA["baselines"][name]["chosen"])


def best_silence(suite: str) -> str | None:
    """Returns the name of a suite's best silence: the silent baseline with the least expected regret on tuning seeds.

    Args:
        suite: Name of a suite of the leaderboard, full or quick.

    Returns:
        The name of the baseline, or None for a suite that has none.
    """
    found: dict[str, Any] = DATA["silence"].get(suite.removesuffix("-quick"), {})
    return found.get("name")
