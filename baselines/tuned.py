"""Constants of tuned baselines and the best silent baselines, as ``fedbandit tune`` found them.

The file ``tuned.json`` beside this one is a copy of what that command has written:

* ``baselines`` holds for each tuned form the name of the baseline (``of``), the tasks, their number of rounds and the
  date. Under ``at`` it has, by epsilon (``inf`` without noise), the chosen constants and all that were tried:
  constants, the mean regret of an agent on each task, its standard errors, and the number of seeds.
* ``silence`` holds for each suite the silent baseline with the least regret, the date of the choice, and for each
  candidate the means, their standard errors and the number of seeds.

Seeds are ``first_seed`` and those after it, which no experiment plays. Entries with ``old`` come from an earlier way of
tuning: their tasks are environments, of whose means only the geometric mean was kept, at a short horizon.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from math import log
from typing import Any

DATA: dict[str, Any] = json.loads(files("fedbandit_envs.baselines").joinpath("tuned.json").read_text())
"""Content of ``tuned.json``."""

TUNED_NAMES: dict[str, str] = {entry["of"]: name for name, entry in DATA["baselines"].items()}
"""The name of the tuned form of each baseline that was tuned, by the name of the original baseline."""

Constants = Mapping[str, Any]
"""Arguments with which a policy is made, by name."""

# Infinity and zero stand for these, so that logarithms differ by a number.
_ENDS = 1e-100, 1e100


def by_epsilon(name: str) -> dict[float, Constants]:
    """Returns the constants of a tuned baseline by the epsilon that they were tuned for; infinity without noise.

    Args:
        name: Name of the tuned baseline, such as ``"SS-UCB-tuned"``.
    """
    return {float(epsilon): found["chosen"] for epsilon, found in DATA["baselines"][name]["at"].items()}


def nearest(tuned: Mapping[float, Constants], epsilon: float) -> Constants:
    """Returns the constants that were tuned for the epsilon that is nearest to a given one, on a logarithmic scale.

    Args:
        tuned: Constants by epsilon.
        epsilon: Epsilon of all releases together, >= 0.
    """

    def scale(value: float) -> float:
        return log(min(max(value, _ENDS[0]), _ENDS[1]))

    return tuned[min(tuned, key=lambda one: abs(scale(one) - scale(epsilon)))]


def constants(name: str, epsilon: float = float("inf")) -> dict[str, Any]:
    """Returns the arguments with which a tuned baseline makes its policy, by name.

    Args:
        name: Name of the tuned baseline, such as ``"SS-UCB-tuned"``.
        epsilon: Epsilon of all its releases together; infinity without noise.
    """
    return dict(nearest(by_epsilon(name), epsilon))


def best_silence(suite: str) -> str | None:
    """Returns the name of a suite's best silence: the silent baseline with the least expected regret on tuning seeds.

    Args:
        suite: Name of a suite of the leaderboard, full or quick.

    Returns:
        The name of the baseline, or None for a suite that has none.
    """
    found: dict[str, Any] = DATA["silence"].get(suite.removesuffix("-quick"), {})
    return found.get("name")
