"""All baselines by name, collected from the ``registered.py`` of each folder.

Each folder lists its baselines in ``BASELINES``. Further forms of some baselines are made here, so that folders give
only their names: ``PLACEBOS`` those of placebos, whose messages hold noise but no data, and ``ON_TRUE_DATA`` those of
forms without noise. Tuned forms, with noise and without, follow from ``tuned.json``.
"""

from dataclasses import replace
from typing import Any

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import Baseline, WrapperSpec
from fedbandit_envs.baselines.tuned import TUNED_NAMES, constants
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.registry.registration import Registry, registered
from fedbandit_envs.wrappers.releases import Placebo


def forms(family: Any) -> dict[str, Baseline]:
    """Returns the baselines of a folder or a plug-in by name, with those that are derived from them.

    Args:
        family: The module ``registered``: ``BASELINES`` by name and, where it has them, ``PLACEBOS`` and
            ``ON_TRUE_DATA``, names of derived baselines by the names of those that they derive from.
    """
    found = dict(family.BASELINES)
    for of, name in getattr(family, "PLACEBOS", {}).items():
        base = family.BASELINES[of]
        # Messages that agents write replace statistics, so that they become zeros outside of that wrapper.
        written = {part: wrapper for part, wrapper in base.wrappers.items() if part == "messages"}
        wrappers = {**written, "placebo": WrapperSpec(Placebo), **base.wrappers}
        summary = f"{of} on messages that contain noise and no data"
        found[name] = replace(base, summary=summary, reference="placebo", wrappers=wrappers)
    for of, name in getattr(family, "ON_TRUE_DATA", {}).items():
        base = family.BASELINES[of]
        wrappers = {part: wrapper for part, wrapper in base.wrappers.items() if part != "privatizer"}
        summary = f"{of} on messages without noise"
        found[name] = replace(base, summary=summary, reference="control", wrappers=wrappers)
    return found


def _own() -> dict[str, Baseline]:
    own: dict[str, Baseline] = {}
    on_true_data: dict[str, str] = {}
    for family in registered(baselines):
        own |= forms(family)
        on_true_data |= getattr(family, "ON_TRUE_DATA", {})
    tuned = {}
    for of, name in TUNED_NAMES.items():
        summary, reference = f"{of} with tuned constants", "tuned on other seeds by `fedbandit tune`"
        form = replace(own[of].tuned_by(constants(name)), summary=summary, reference=reference)
        tuned[name] = form
        true = on_true_data.get(of)
        # With the same constants it would play the same runs.
        if true and form.policy_kwargs != own[true].policy_kwargs:
            summary, wrappers = f"{true} with the constants of {name}", own[true].wrappers
            tuned[f"{true}-tuned"] = replace(form, summary=summary, reference="control", wrappers=wrappers)
    return own | tuned


BASELINES: Registry[Baseline] = Registry(_own(), baselines=lambda plugin: forms(plugin.content))
"""Every baseline by name; a plug-in of the group ``baselines`` names a module like a folder's ``registered``."""


def find_baseline(name: str) -> Baseline:
    """Returns the baseline with a name, or a new one without wrappers for the entry point of an unregistered policy.

    Args:
        name: A key of :data:`BASELINES`; or the entry point of a policy, ``"module:Class"`` or ``"file.py:Class"``,
            whose baseline then accepts environments of any problem.

    Raises:
        ValueError: No baseline has this name, and the name has no colon, as an entry point would.
        ImportError: The module of the entry point does not exist.
        AttributeError: The module of the entry point has no such attribute.
        TypeError: The entry point is no class or function.
    """
    if name.endswith(".py"):
        raise ValueError(
            f"baseline is {name!r}; '{name}:Class' is required, with the name of a class in the file"
        )
    if ":" not in name:
        require_choice("baseline", name, BASELINES)
        return BASELINES[name]
    policy = resolve(name)
    if not callable(policy):
        raise TypeError(
            f"baseline is {name!r}, which is {type(policy).__name__}; a class or function that makes a policy is "
            "required"
        )
    # FederatedEnv is the base class of all environments, so that the baseline accepts every problem.
    return Baseline("a policy that is not registered", "-", FederatedEnv, policy)
