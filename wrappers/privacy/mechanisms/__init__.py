"""Mechanisms: objects that randomise releases and return the privacy events to account for."""

from collections.abc import Mapping

from fedbandit_envs.registry.registration import Plugin, Registry
from fedbandit_envs.wrappers.privacy.mechanisms.additive import (
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
)
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.vector_sum import VectorSum


def _of_plugin(plugin: Plugin) -> Mapping[str, type[Mechanism]]:
    if not (isinstance(plugin.content, type) and issubclass(plugin.content, Mechanism)):
        raise TypeError(f"{plugin.content!r} is no subclass of Mechanism")
    return {plugin.name: plugin.content}


MECHANISMS: Registry[type[Mechanism]] = Registry(
    {
        "gaussian": Gaussian,
        "laplace": Laplace,
        "matrix": MatrixMechanism,
        "randomized-response": RandomizedResponse,
        "vector_sum": VectorSum,
    },
    mechanisms=_of_plugin,
)
"""The mechanisms' classes by name; those of plug-ins (entry points in the group ``mechanisms``) are included."""
