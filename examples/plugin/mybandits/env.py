"""Gaussian arms whose means differ from agent to agent."""

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from scipy.stats import norm

from fedbandit_envs import Problem
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.actions import OwnActions
from fedbandit_envs.core.privacy import Change, History, Neighbours, Sensitivity, pairs_of
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.randomness.streams import Purpose, stream


class PersonalGaussianEnv(Problem, name="personal_gaussian_v0"):
    """Each agent pulls one arm a round; the reward is normal around the agent's own mean of the arm, clipped to [0, 1].

    Arm k has the mean ``base[k] + difference[j, k]`` for agent j, clipped to [0, 1]; ``base`` is from U[0, 1] and
    ``difference`` from U[-spread, spread]. Regret is measured by the expectation of the clipped reward. Clipping bounds
    a reward's influence on a release; ``info["clipped"]`` counts it.

    Example:
        >>> env = PersonalGaussianEnv(num_agents=3, num_arms=4)
        >>> env.reset_batch([0]).observation["total_pulls"].shape
        (1, 3, 4)
    """

    statistics = ("pulls", "rewards")
    information: ClassVar = {"clipped": np.bool_}

    def __init__(
        self,
        num_agents: int = 10,
        num_arms: int = 10,
        max_cycles: int = 1000,
        spread: float = 0.1,
        sd: float = 0.3,
        means: Any = None,
        instance_seed: Any = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up.

        Args:
            num_agents: Number of agents.
            num_arms: Number of arms.
            max_cycles: Horizon: rounds until truncation.
            spread: In [0, 1]: the largest difference of an agent's mean from the base.
            sd: Standard deviation of rewards before clipping, >= 0.
            means: Means in place of random ones, ``(arms,)`` for all agents or ``(agents, arms)``; None draws them.
            instance_seed: See :class:`fedbandit_envs.Problem`.
            render_mode: None.
        """
        require_number("spread", spread, 0, 1)
        require_number("sd", sd, 0, np.inf)
        self._spread, self._sd, self._given = spread, sd, None if means is None else np.asarray(means, float)
        if self._given is not None:
            num_arms = self._given.shape[-1]
            self._given = np.broadcast_to(self._given, (num_agents, num_arms))
        per_arm = {"pulls": np.int64, "rewards": np.float64}
        super().__init__(
            num_agents=num_agents,
            max_cycles=max_cycles,
            observation={
                f"total_{name}": spaces.Box(0, MOST, (num_arms,), kind) for name, kind in per_arm.items()
            },
            hidden={"mean": spaces.Box(0.0, 1.0, (num_arms,), np.float64)},
            action_formats={"arm": OwnActions(spaces.Discrete(num_arms))},
            instance_seed=instance_seed,
            render_mode=render_mode,
        )

    def _draw_means(self, seed: int) -> np.ndarray:
        agents, arms = self.max_num_agents, int(self.single_action_space.n)
        base = stream(seed, Purpose.ARM).random(arms)
        own = [
            stream(seed, Purpose.PARAMETER, j).uniform(-self._spread, self._spread, arms)
            for j in range(agents)
        ]
        return np.clip(base + np.array(own), 0.0, 1.0)

    def _start(self, randomness, instance_seeds) -> None:
        drawn = [self._draw_means(seed) if self._given is None else self._given for seed in instance_seeds]
        self._means = np.stack(drawn)
        low, high = -self._means / (self._sd or 1e-12), (1 - self._means) / (self._sd or 1e-12)
        inside = self._means * (norm.cdf(high) - norm.cdf(low)) + self._sd * (norm.pdf(low) - norm.pdf(high))
        self._expected = inside + norm.sf(high)
        self._noise = randomness.draws(Purpose.OUTCOME)

    def _play_round(self, action) -> None:
        arm = action[..., np.newaxis]
        mean, expected = (np.take_along_axis(one, arm, 2)[..., 0] for one in (self._means, self._expected))
        raw = mean + self._sd * self._noise.normals()
        paid = np.where(self._active, np.clip(raw, 0.0, 1.0), 0.0)
        pulled = (arm == np.arange(self._means.shape[2])) & self._active[..., np.newaxis]
        self._observation["total_pulls"] += pulled
        self._observation["total_rewards"] += pulled * paid[..., np.newaxis]
        self._reward[...] = paid
        self._info["regret"][...] = np.where(self._active, self._expected.max(axis=2) - expected, 0.0)
        self._info["clipped"][...] = self._active & (raw != np.clip(raw, 0.0, 1.0))

    def _sensitivity(self) -> Sensitivity:
        # Another arm pulled, and another reward: a pull and a reward of at most 1 move from one arm to another.
        ones = np.ones(self._means.shape)
        return Sensitivity({"pulls": ones, "rewards": ones}, {"one-observation": Change(4, 2.0)})

    @staticmethod
    def neighbours(adjacency: str) -> list[Neighbours]:
        """Returns two histories that differ as far as a release can: a reward of 1 on one arm or on another."""
        first, second, idle = (np.array(arm) for arm in range(3))
        settings = {"means": [1.0, 1.0, 0.0], "sd": 0.0}
        pairs = {"one-observation": [(History(settings, first), History(settings, second))]}
        return pairs_of(pairs, adjacency, idle)

    def _largest_reward(self) -> np.ndarray:
        return np.ones(self._reward.shape)

    def _hidden(self) -> dict[str, np.ndarray]:
        return {"mean": self._means.copy()}
