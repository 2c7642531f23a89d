"""Policies for bandits with Bernoulli arms."""

from fedbandit_envs.baselines.arms.policies import (
    CUCB,
    UCB1,
    EpsilonDecreasingPolicy,
    EpsilonGreedyPolicy,
    FairLearn,
    PursuitPolicy,
    SoftmaxPolicy,
    ThompsonSampling,
    UniformArms,
)

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
