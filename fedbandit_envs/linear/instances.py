"""The inputs of a distribution of contexts at the start of an episode."""

from collections.abc import Sequence
from typing import NamedTuple

from fedbandit_envs.basics.arrays import Array
from fedbandit_envs.randomness.draws import EpisodeRandomness


class Instances(NamedTuple):
    """The linear bandits of an episode, one for each replica.

    Attributes:
        randomness: Generator of the random numbers of the episode's rounds.
        parameter: theta*, ``(replicas, dim)``; where each arm has its own, the first arm's.
        contexts: The array that the distribution fills with contexts, ``(replicas, agents, dim, arms)``.
        means: The array that the distribution fills with <x, theta*>, ``(replicas, agents, arms)``.
        seeds: Seed of each replica's instance, for quantities that are drawn once and stay fixed during the episode.
    """

    randomness: EpisodeRandomness
    parameter: Array
    contexts: Array
    means: Array
    seeds: Sequence[int]
