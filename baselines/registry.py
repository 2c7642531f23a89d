"""All baselines by name, collected from the ``registered.py`` of each folder.

Each folder lists its baselines in ``BASELINES``, and says in ``PLACEBOS`` and ``ON_TRUE_DATA`` which of them there are
in these forms, too; tuned forms follow from ``tuned.json``.
"""

from collections.abc import Iterator

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.tuned import TUNED_NAMES, constants
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.registry.discovery import registered

BASELINES: dict[str, Baseline] = {}
"""Every baseline of this package by name."""


def _collected() -> Iterator[tuple[str, Baseline]]:
    for family in registered(baselines):
        yield from family.BASELINES.items()
        for of, name in getattr(family, "PLACEBOS", {}).items():
            yield name, family.BASELINES[of].placebo(of)
        for of, name in getattr(family, "ON_TRUE_DATA", {}).items():
            yield name, family.BASELINES[of].on_true_data(of)
    for of, name in TUNED_NAMES.items():
        yield name, BASELINES[of].tuned(of, constants(name))


for _name, _baseline in _collected():
    if _name in BASELINES:
        raise ValueError(f"two baselines have the name {_name!r}; one name each is required")
    BASELINES[_name] = _baseline


def find_baseline(name: str) -> Baseline:
    """Returns the baseline of a name, or one without wrappers around a policy that is not registered.

    Args:
        name: A key of :data:`BASELINES`; or the entry point ``"module:Class"`` of a policy, which then may play any
            problem.

    Raises:
        ValueError: There is no baseline of the name, and it is no entry point.
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
            f"baseline is {name!r}, which is {type(policy).__name__}; a class or function that makes a policy is "
            "required"
        )
    # The base class of all environments stands for any problem.
    return Baseline("a policy that is not registered", "-", FederatedEnv, policy)
