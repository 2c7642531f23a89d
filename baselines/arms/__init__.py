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
    "PEERS",
    "UCB1",
    "EpsilonDecreasingPolicy",
    "EpsilonGreedyPolicy",
    "FairLearn",
    "PursuitPolicy",
    "SoftmaxPolicy",
    "ThompsonSampling",
    "UniformArms",
]

PEERS = UCB1
"""The policy of a learner's peers, unless the learner's environment is told another."""
