"""Policies for bandits with Bernoulli arms."""

from fedbandit_envs.baselines.arms.classics import (
    CUCB,
    UCB1,
    EpsilonDecreasingPolicy,
    EpsilonGreedyPolicy,
    PursuitPolicy,
    SoftmaxPolicy,
    ThompsonSampling,
    UniformArms,
)
from fedbandit_envs.baselines.arms.fair import FairLearn

__all__ = [
    "CUCB",
    "UCB1",
    "EpsilonDecreasingPolicy",
    "EpsilonGreedyPolicy",
    "FairLearn",
    "PursuitPolicy",
    "SoftmaxPolicy",
    "ThompsonSampling",
    "UniformArms",
]
