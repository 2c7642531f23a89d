"""Wrappers of federated environments. Every wrapper belongs to one of four layers, listed here from the inside out.

Data: :class:`Byzantine`, :class:`Interleaved`, :class:`Messages`, :class:`Participation`, :class:`Placebo`,
:class:`Quota`; :class:`Clip`, which privatizers put inside of themselves.
Noise: :class:`Privatizer` with any mechanism; :class:`ContinualPrivatizer`, :class:`GaussianPrivatizer`,
:class:`LaplacePrivatizer`, :class:`RandomizedResponsePrivatizer`, :class:`VectorSumPrivatizer`.
Transport: :class:`Channel`, :class:`Server`.
Observation: :class:`LearningReward`, :class:`Reveal`.
"""

from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.registry.registration import Registry, subclass_of
from fedbandit_envs.wrappers.byzantine import Byzantine
from fedbandit_envs.wrappers.messages import Messages
from fedbandit_envs.wrappers.observation import LearningReward, Reveal
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.privacy.privatizer import Clip, Privatizer
from fedbandit_envs.wrappers.privacy.privatizers import (
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
    VectorSumPrivatizer,
)
from fedbandit_envs.wrappers.releases import Interleaved, Placebo, Quota
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

__all__ = [
    "Byzantine",
    "Channel",
    "Clip",
    "ContinualPrivatizer",
    "GaussianPrivatizer",
    "Interleaved",
    "LaplacePrivatizer",
    "LearningReward",
    "Messages",
    "Participation",
    "Placebo",
    "Privatizer",
    "Quota",
    "RandomizedResponsePrivatizer",
    "Reveal",
    "Server",
    "VectorSumPrivatizer",
]


WRAPPERS: Registry[type[FederatedWrapper]] = Registry(
    {name: wrapper for name in __all__ if (wrapper := globals()[name]).examples},
    wrappers=subclass_of(FederatedWrapper),
)
"""The wrappers' classes by name, for all wrappers whose arguments besides the environment can be written as JSON.

This project's wrappers have the names of their classes, wrappers of plug-ins the names of their entry points.
"""
