"""What stands between an environment and a policy; every wrapper says which layer it is.

Data: :class:`Interleaved`, :class:`Placebo`. Noise: :class:`ContinualPrivatizer`, :class:`GaussianPrivatizer`,
:class:`LaplacePrivatizer`, :class:`RandomizedResponsePrivatizer`. Transport: :class:`Channel`. View: :class:`Reveal`.
"""

from fedbandit_envs.wrappers.interleaved import Interleaved
from fedbandit_envs.wrappers.placebo import Placebo
from fedbandit_envs.wrappers.privacy.continual import ContinualPrivatizer
from fedbandit_envs.wrappers.privacy.gaussian import GaussianPrivatizer
from fedbandit_envs.wrappers.privacy.laplace import LaplacePrivatizer
from fedbandit_envs.wrappers.privacy.randomized_response import RandomizedResponsePrivatizer
from fedbandit_envs.wrappers.reveal import Reveal
from fedbandit_envs.wrappers.transport.channel import Channel

__all__ = [
    "Channel",
    "ContinualPrivatizer",
    "GaussianPrivatizer",
    "Interleaved",
    "LaplacePrivatizer",
    "Placebo",
    "RandomizedResponsePrivatizer",
    "Reveal",
]
