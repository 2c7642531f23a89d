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
    "UCB1",
    "EpsilonDecreasingPolicy",
    "EpsilonGreedyPolicy",
    "FairLearn",
    "PursuitPolicy",
    "SoftmaxPolicy",
    "ThompsonSampling",
    "UniformArms",
]
