"""The linear contextual bandit: agents learn one parameter from contexts of their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.checks import require_integer, require_number
from fedbandit_envs.claim import Adjacency
from fedbandit_envs.federation import Array, Arrays
from fedbandit_envs.linear.actions import Arm, Parameter
from fedbandit_envs.linear.contexts import Features, LawName, Offer, make_law
from fedbandit_envs.linear.neighbours import sensitivity, worst_neighbours
from fedbandit_envs.linear.rewards import RewardLaw, RewardName
from fedbandit_envs.linear.rounds import play_round
from fedbandit_envs.linear.viewer import render_ansi, render_rgb_array
from fedbandit_envs.luck import Luck
from fedbandit_envs.neighbours import Neighbours
from fedbandit_envs.problem import MOST, Problem
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Purpose, stream


class LinearEnv(Problem, name="linear_v0"):
    r"""Federated linear contextual bandits.

    ## Description

    In every round each agent is offered K arms, each with a context x in R^d that it sees, and pulls one. The expected
    reward is <x, theta*>, with one parameter theta*, ||theta*|| = 1, that is the same for all agents and known to none.
    So whatever one agent observes teaches all of them, if it is told (Dubey and Pentland 2020).

    ## Action Space

    `Discrete(num_arms)`: the arm to pull. Another integer, a wrong shape or dtype is an error that names agent and
    value; the state stays untouched.

    Views for learning agents also offer `action_format="parameter"` (`Box(-1, 1, (dim,))`: an estimate of theta*, whose
    best arm is pulled).

    ## Observation Space

    A `Dict` for each agent; K arms, d dimensions:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `contexts` | (K, d) | float64 | what is offered now, norms at most L |
    | `pulled_context` | (d,) | float64 | the context of the arm pulled in the last round |
    | `last_reward` | (1,) | float64 | what it paid, in [-B, B] |
    | `total_statistic` | (d + 1, d + 1) | float64 | sum of [x; y][x; y]^T over all rounds so far |

    Before the first round the last three are 0.

    ## Starting State

    theta* is drawn uniformly from the unit sphere (or taken as given), and the first arms are offered. With
    `instance_seed=None` every episode draws its own from the episode's seed; an integer fixes it, and the episode's
    seed then draws contexts and rewards only.

    ## Rewards

    The pulled arm's: Beta(mu, 1 - mu) with mu = <x, theta*> (the paper's), Bernoulli(mu) or N(mu, sd^2), clipped to
    [-B, B]. Beta and Bernoulli need means in [0, 1], which the band has; other contexts are refused with them where
    some mean could lie outside.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one value an agent; after reset the same names with zeros:

    * `regret`: max_x <x, theta*> - <x_t, theta*>, over the arms that were offered (pseudo-regret: clipped rewards do
      not change it).
    * `clipped`: whether the reward was clipped.

    ## Arguments

    See the constructor. All of them can be written as JSON.

    ## Registered Configurations

    | id | contexts and rewards |
    |---|---|
    | `FedLinear-v0` | the band with a gap of 0.1, Beta rewards; 10 agents, 100 arms, d = 10 |
    | `FedLinearBall-v0` | uniform in the unit ball, normal rewards with sd 0.1 |
    | `FedLinearCube-v0` | uniform on [0, 1]^d / sqrt(d), normal rewards with sd 0.1 |
    | `FedLinearAsync-v0` | uniform on [-1, 1]^15 / sqrt(15), 25 arms, sd 0.3; 15 agents, one a round acts (He et al.) |
    | `FedLinearInTurn-v0` | the same, agents take turns |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.linear_v0.parallel_env()` is the federation itself.

    ## References

    * A. Dubey, A. Pentland: Differentially-Private Federated Linear Bandits. NeurIPS 2020.
    * J. He, T. Wang, Y. Min, Q. Gu: A Simple and Provably Efficient Algorithm for Asynchronous Federated Contextual
      Linear Bandits. NeurIPS 2022.
    * L. Li, W. Chu, J. Langford, R. E. Schapire: A Contextual-Bandit Approach to Personalized News Article
      Recommendation. WWW 2010.

    ## Version History

    * v0: first version.
    """

    statistics = ("statistic",)
    information = {"clipped": np.bool_}  # noqa: RUF012 - never written to
    viewers = {"ansi": render_ansi, "rgb_array": render_rgb_array}  # noqa: RUF012 - never written to

    def __init__(
        self,
        num_agents: int | None = None,
        num_arms: int | None = None,
        dim: int | None = None,
        max_cycles: int = 1000,
        contexts: LawName | Any = "band",
        gap: float = 0.1,
        context_bound: float = 1.0,
        reward: RewardName = "beta",
        reward_sd: float = 0.1,
        reward_bound: float = 1.0,
        parameter: Any = None,
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; theta* is drawn at reset.

        Args:
            num_agents: M, number of agents; 10 by default, or as many as features are given for.
            num_arms: K, arms offered to each agent in a round; 100 by default, or as many as features have.
            dim: d, dimension of contexts; 10 by default, or that of what is given.
            max_cycles: Rounds until truncation.
            contexts: The law that draws contexts, ``"band"``, ``"unit_ball"``, ``"hypercube"`` or
                ``"signed_hypercube"`` (see :mod:`fedbandit_envs.linear.contexts`), or features that stay: arrays or
                nested lists, ``(num_arms, dim)`` or ``(num_agents, num_arms, dim)``. Only with features is an arm the
                same arm in every round.
            gap: Of the band: least difference between the best mean and any other.
            context_bound: L > 0, the largest norm a context can have.
            reward: The law of rewards, ``"beta"``, ``"bernoulli"`` or ``"normal"``.
            reward_sd: Standard deviation of normal rewards.
            reward_bound: B > 0: rewards are clipped to [-B, B].
            parameter: theta*, ``(dim,)`` with norm at most 1; ``"diagonal"`` for 1/sqrt(dim) in every entry; None to
                draw it.
            instance_seed: None draws a new theta* each episode; an integer fixes it; of several, an episode takes the
                one at its own seed modulo their number.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        require_number("context_bound", context_bound, 0, np.inf, open_below=True)
        self._rewards = RewardLaw(reward, reward_sd, reward_bound)
        self._law = make_law(contexts, float(context_bound), gap)
        diagonal = isinstance(parameter, str) and parameter == "diagonal"
        self._parameter = None if parameter is None or diagonal else _checked_parameter(parameter)
        given: dict[str, int] = {}
        if self._parameter is not None:
            given["dim"] = self._parameter.size
        if isinstance(self._law, Features):
            if given.get("dim", self._law.matrix.shape[-1]) != self._law.matrix.shape[-1]:
                raise ValueError(
                    f"parameter has {given['dim']} entries; {self._law.matrix.shape[-1]}, the dimension of contexts, "
                    "is required"
                )
            given |= dict(
                zip(("dim", "num_arms", "num_agents"), reversed(self._law.matrix.shape), strict=False)
            )
        sizes = {"num_agents": 10, "num_arms": 100, "dim": 10, **given}
        for name, value in (("num_agents", num_agents), ("num_arms", num_arms), ("dim", dim)):
            if value is not None:
                require_integer(name, value, 1)
                if given.get(name, value) != value:
                    raise ValueError(f"{name} is {value}; None or {given[name]}, as given, is required")
                sizes[name] = int(value)
        arms, dim = sizes["num_arms"], sizes["dim"]
        if diagonal:
            self._parameter = np.full(dim, dim**-0.5)
        self._context_bound, self._reward_bound = float(context_bound), float(reward_bound)
        self._refuse_improbable_means(contexts, reward)
        arm, longest = Arm(arms), self._context_bound
        super().__init__(
            num_agents=sizes["num_agents"],
            max_cycles=max_cycles,
            observation={
                "contexts": spaces.Box(-longest, longest, (arms, dim), np.float64),
                "pulled_context": spaces.Box(-longest, longest, (dim,), np.float64),
                "last_reward": spaces.Box(-self._reward_bound, self._reward_bound, (1,), np.float64),
                "total_statistic": spaces.Box(-float(MOST), float(MOST), (dim + 1, dim + 1), np.float64),
            },
            action=arm.space,
            hidden={"parameter": spaces.Box(-1.0, 1.0, (dim,), np.float64)},
            action_formats={"arm": arm, "parameter": Parameter(dim)},
            instance_seed=instance_seed,
            render_mode=render_mode,
        )

    def _refuse_improbable_means(self, contexts: Any, reward: str) -> None:
        """Refuses laws of rewards in [0, 1] where means could lie outside."""
        if not self._rewards.needs_probabilities or contexts == "band":
            return
        if isinstance(self._law, Features) and self._parameter is not None:
            means = self._law.matrix @ self._parameter
            if means.min() >= 0.0 and means.max() <= 1.0:
                return
        raise ValueError(
            f"reward is {reward!r}, which needs means in [0, 1]; 'normal' is required unless contexts are the 'band', "
            "or features whose products with the parameter given lie there"
        )

    def _begin(self, luck: Luck, instance_seeds: Sequence[int]) -> None:
        contexts = self._seen["contexts"]
        self._theta = np.stack([self._draw_parameter(seed, contexts.shape[3]) for seed in instance_seeds])
        self._means = np.zeros(contexts.shape[:3])
        self._offer = Offer(contexts, self._means)
        self._law.begin(luck, self._theta, self._offer)
        self._rewards.begin(luck)

    def _meet(self) -> None:
        self._law.draw(self._offer, self._acting)

    def _draw_parameter(self, seed: int, dim: int) -> Array:
        if self._parameter is not None:
            return self._parameter
        direction = stream(seed, Purpose.PARAMETER).standard_normal(dim)
        return direction / np.linalg.norm(direction)

    def _play(self, action: Array) -> None:
        seen = self._seen
        mean = np.take_along_axis(self._means, action[..., np.newaxis], axis=-1)[..., 0]
        reward, clipped = self._rewards.draw(mean, self._acting)
        self._reward[...] = reward
        self._info["clipped"][...] = clipped
        seen["last_reward"][..., 0] = reward
        play_round(
            self._acting, action, seen["contexts"], self._means, reward,
            seen["pulled_context"], seen["total_statistic"], self._info["regret"],
        )  # fmt: skip

    def _sensitivity(self) -> Sensitivity:
        bound = self._context_bound**2 + self._reward_bound**2
        return sensitivity(np.full(self._seen["total_statistic"].shape, bound))

    @classmethod
    def neighbours(cls, adjacency: Adjacency) -> list[Neighbours]:
        """Returns the worst neighbouring histories to tell apart; see :meth:`Problem.neighbours`."""
        return worst_neighbours(adjacency)

    def _hidden(self) -> Arrays:
        shape = (*self._reward.shape, self._theta.shape[1])
        return {"parameter": np.broadcast_to(self._theta[:, np.newaxis], shape).copy()}

    def _scenery(self) -> Arrays:
        return {**self.hidden(), "means": self._means}


def _checked_parameter(parameter: Any) -> Array:
    array = np.array(parameter, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"parameter has shape {array.shape}; (dim,) is required")
    if not np.isfinite(array).all() or np.linalg.norm(array) > 1.0 + 1e-9:
        raise ValueError(
            f"parameter is {array.tolist()}; finite entries and a norm of at most 1 are required"
        )
    return array
