"""What an arm is worth to an agent: its mean for the agent itself, or on average over the federation, or in between."""

from typing import Any, Literal

from fedbandit_envs.basics.checks import require_choice, require_number

Aim = Literal["own", "federation"] | float
"""``"own"`` or 1: an agent's own means; ``"federation"`` or 0: the global means; in between: alpha own + (1 - alpha)
global, for alpha in [0, 1] (Shi, Shen and Yang 2021)."""


def weight_of_own(regret: Any) -> float:
    """Returns alpha, the weight of an agent's own means in what its arms are worth.

    Args:
        regret: An :data:`Aim`.

    Raises:
        TypeError: ``regret`` is neither a string nor a number.
        ValueError: It is no aim.
    """
    if isinstance(regret, str):
        return {"own": 1.0, "federation": 0.0}[require_choice("regret", regret, ("own", "federation"))]
    return require_number("regret", regret, 0, 1)
