"""What stands between an environment and a policy; every wrapper says which layer it is.

Data: :class:`Byzantine`, :class:`Interleaved`, :class:`Participation`, :class:`Placebo`, :class:`Quota`.
Noise: :class:`ContinualPrivatizer`, :class:`GaussianPrivatizer`, :class:`LaplacePrivatizer`,
:class:`RandomizedResponsePrivatizer`. Transport: :class:`Channel`, :class:`Server`. View: :class:`LearningReward`,
:class:`Reveal`.
"""

from fedbandit_envs.wrappers.byzantine import Byzantine
from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.learning_reward import LearningReward
from fedbandit_envs.wrappers.participation import Participation
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.laplace import LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.randomized_response import RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.quota import Quota
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel
from fedbandit_envs.wrappers.transport.server import Server

__all__ = [
    "Byzantine",
    "Channel",
    "ContinualPrivatizer",
    "GaussianPrivatizer",
    "Interleaved",
    "LaplacePrivatizer",
    "LearningReward",
    "Participation",
    "Placebo",
    "Quota",
    "RandomizedResponsePrivatizer",
    "Reveal",
    "Server",
]
