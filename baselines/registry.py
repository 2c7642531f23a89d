"""Baselines by name: each family says in ``registered.py`` what it has, and some of them have tuned forms."""

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.tuned import tuned
from fedbandit_envs.checks import require_choice
from fedbandit_envs.collection import registered
from fedbandit_envs.entry_points import resolve
from fedbandit_envs.federation import FederatedEnv

BASELINES: dict[str, Baseline] = {}
"""Every baseline of this package by name."""

for _family in registered(baselines):
    for _name, _entry in _family.BASELINES.items():
        if _name in BASELINES:
            raise ValueError(f"{_family.__name__} has a baseline {_name!r}, which another family has already")
        BASELINES[_name] = _entry

BASELINES.update(tuned(BASELINES))


def find_baseline(name: str) -> Baseline:
    """Returns the baseline of a name, or makes one of anybody's policy.

    Args:
        name: In :data:`BASELINES`; or the entry point ``"module:Class"`` of a policy, which then plays any problem,
            without wrappers.

    Raises:
        ValueError: There is no baseline of the name, or it is no entry point.
        ImportError: There is no such module.
        AttributeError: The module has no such attribute.
        TypeError: The entry point cannot be called.
    """
    if ":" not in name:
        require_choice("baseline", name, BASELINES)
        return BASELINES[name]
    policy = resolve(name)
    if not callable(policy):
        raise TypeError(
            f"baseline is {name!r}, which is {type(policy).__name__}; what makes a policy is required"
        )
    # Any problem will do, so it is the base class that stands for it.
    return Baseline("a policy that is not registered", "-", FederatedEnv, policy)
