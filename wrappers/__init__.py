"""Wrappers of federated environments. Every wrapper belongs to one of four layers, listed here from the inside out.

Data: :class:`Byzantine`, :class:`Interleaved`, :class:`Messages`, :class:`Participation`, :class:`Placebo`,
:class:`Quota`; :class:`Clip`, which privatizers put inside of themselves.
Noise: :class:`Privatizer` with any mechanism; :class:`ContinualPrivatizer`, :class:`GaussianPrivatizer`,
:class:`LaplacePrivatizer`, :class:`RandomizedResponsePrivatizer`, :class:`VectorSumPrivatizer`.
Transport: :class:`Channel`, :class:`Server`.
Observation: :class:`LearningReward`, :class:`Reveal`.
"""

from fedbandit_envs.wrappers.byzantine import Byzantine
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.learning_reward import LearningReward
from fedbandit_envs.wrappers.messages import Messages
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.privatizer import Clip, Privatizer
from fedbandit_envs.wrappers.privacy.privatizers import (
    ContinualPrivatizer,
    GaussianPrivatizer,
    LaplacePrivatizer,
    RandomizedResponsePrivatizer,
    VectorSumPrivatizer,
)
from fedbandit_envs.wrappers.quota import Quota
from fedbandit_envs.wrappers.reveal import Reveal
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
