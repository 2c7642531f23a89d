"""Mechanisms: objects that randomise releases and return the privacy events to account for."""

from fedbandit_envs.registry.registration import Registry, subclass_of
from fedbandit_envs.wrappers.privacy.mechanisms.additive import (
    Gaussian,
    Laplace,
    Mechanism,
    RandomizedResponse,
)
from fedbandit_envs.wrappers.privacy.mechanisms.matrix import MatrixMechanism
from fedbandit_envs.wrappers.privacy.mechanisms.vector_sum import VectorSum

MECHANISMS: Registry[type[Mechanism]] = Registry(
    {
        "gaussian": Gaussian,
        "laplace": Laplace,
        "matrix": MatrixMechanism,
        "randomized-response": RandomizedResponse,
        "vector_sum": VectorSum,
    },
    # It is never called, so that it may be abstract.
    mechanisms=subclass_of(Mechanism),  # type: ignore[type-abstract]
)
"""The mechanisms' classes by name; those of plug-ins (entry points in the group ``mechanisms``) are included."""
