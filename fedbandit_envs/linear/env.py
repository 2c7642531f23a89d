"""The linear contextual bandit: agents learn one parameter from contexts of their own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from fedbandit_envs.checks import require_choice, require_integer, require_number
from fedbandit_envs.federation import Array, Arrays, BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.linear.actions import Arm, Parameter
from fedbandit_envs.linear.contexts import Features, LawName, Offer, make_law
from fedbandit_envs.linear.neighbours import changes
from fedbandit_envs.linear.rewards import RewardLaw, RewardName
from fedbandit_envs.linear.rounds import play_round
from fedbandit_envs.linear.viewer import render_ansi, render_rgb_array
from fedbandit_envs.sensitivity import Sensitivity
from fedbandit_envs.streams import Purpose, stream


class LinearEnv(FederatedEnv):
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
    `parameter_seed=None` every episode draws its own from the episode's seed; an integer fixes it, and the episode's
    seed then draws contexts and rewards only.

    ## Rewards

    The pulled arm's: Beta(mu, 1 - mu) with mu = <x, theta*> (the paper's), Bernoulli(mu) or N(mu, sd^2), clipped to
    [-B, B]. Beta and Bernoulli need means in [0, 1], which the band has; other contexts are refused with them where
    some mean could lie outside.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one value an agent:

    * `regret`: max_x <x, theta*> - <x_t, theta*>, over the arms that were offered (pseudo-regret: clipped rewards do
      not change it).
    * `clipped`: whether the reward was clipped.

    After reset there is no information.

    ## Arguments

    See the constructor. All of them can be written as JSON.

    ## Registered Configurations

    | id | contexts and rewards |
    |---|---|
    | `FedLinear-v0` | the band with a gap of 0.1, Beta rewards; 10 agents, 100 arms, d = 10 |
    | `FedLinearBall-v0` | uniform in the unit ball, normal rewards with sd 0.1 |
    | `FedLinearCube-v0` | uniform on [0, 1]^d / sqrt(d), normal rewards with sd 0.1 |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.linear_v0.parallel_env()` is the federation itself.

    ## References

    * A. Dubey, A. Pentland: Differentially-Private Federated Linear Bandits. NeurIPS 2020.
    * L. Li, W. Chu, J. Langford, R. E. Schapire: A Contextual-Bandit Approach to Personalized News Article
      Recommendation. WWW 2010.

    ## Version History

    * v0: first version.
    """

    metadata = {  # noqa: RUF012 - PettingZoo's own form
        "name": "linear_v0",
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
        "is_parallelizable": True,
    }

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
        parameter_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; theta* is drawn at reset.

        Args:
            num_agents: M, number of agents; 10 by default, or as many as features are given for.
            num_arms: K, arms offered to each agent in a round; 100 by default, or as many as features have.
            dim: d, dimension of contexts; 10 by default, or that of what is given.
            max_cycles: Rounds until truncation.
            contexts: The law that draws contexts, ``"band"``, ``"unit_ball"`` or ``"hypercube"`` (see
                :mod:`fedbandit_envs.linear.contexts`), or features that stay: arrays or nested lists,
                ``(num_arms, dim)`` or ``(num_agents, num_arms, dim)``. Only with features is an arm the same arm in
                every round.
            gap: Of the band: least difference between the best mean and any other.
            context_bound: L > 0, the largest norm a context can have.
            reward: The law of rewards, ``"beta"``, ``"bernoulli"`` or ``"normal"``.
            reward_sd: Standard deviation of normal rewards.
            reward_bound: B > 0: rewards are clipped to [-B, B].
            parameter: theta*, ``(dim,)`` with norm at most 1; None to draw it.
            parameter_seed: None draws a new theta* each episode; an integer fixes it; of several, an episode takes the
                one at its own seed modulo their number.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        super().__init__()
        require_integer("max_cycles", max_cycles, 1)
        require_number("context_bound", context_bound, 0, np.inf, open_below=True)
        require_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        self._rewards = RewardLaw(reward, reward_sd, reward_bound)
        self._law = make_law(contexts, float(context_bound), gap)
        self._parameter = None if parameter is None else _checked_parameter(parameter)
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
        self._num_arms, self._dim = sizes["num_arms"], sizes["dim"]
        self._context_bound, self._reward_bound = float(context_bound), float(reward_bound)
        self._refuse_improbable_means(contexts, reward)
        self.render_mode = render_mode
        self.max_cycles = max_cycles
        self.possible_agents = [f"agent_{j}" for j in range(sizes["num_agents"])]
        self._parameter_seeds = [parameter_seed] if isinstance(parameter_seed, int) else parameter_seed
        self._round = max_cycles
        arm = Arm(self._num_arms)
        self.single_action_space = arm.space
        self.action_formats = {"arm": arm, "parameter": Parameter(self._dim)}
        self.single_observation_space = self._make_observation_space()
        self.single_release_space = spaces.Dict(
            {"statistic": self.single_observation_space["total_statistic"]}
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

    def _make_observation_space(self) -> spaces.Dict:
        most = 2.0**53
        longest, highest = self._context_bound, self._reward_bound
        square = (self._dim + 1, self._dim + 1)
        return spaces.Dict(
            {
                "round": spaces.Box(0, 2**53, (1,), np.int64),
                "contexts": spaces.Box(-longest, longest, (self._num_arms, self._dim), np.float64),
                "pulled_context": spaces.Box(-longest, longest, (self._dim,), np.float64),
                "last_reward": spaces.Box(-highest, highest, (1,), np.float64),
                "total_statistic": spaces.Box(-most, most, square, np.float64),
            }
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Draws theta* and the first contexts; see :meth:`FederatedEnv.reset_batch`."""
        seeds = list(seeds)
        if not seeds:
            raise ValueError("seeds is empty; one seed a replica is required")
        rows = (len(seeds), self.max_num_agents)
        self._theta = np.stack([self._draw_parameter(seed) for seed in seeds])
        self._means = np.zeros((*rows, self._num_arms))
        self._observation: Arrays = {
            name: np.zeros((*rows, *(space.shape or ())), space.dtype)
            for name, space in self.single_observation_space.items()
        }
        self._offer = Offer(self._observation["contexts"], self._means)
        self._law.begin(seeds, self._theta, self._offer)
        self._rewards.begin(seeds, self.max_num_agents)
        self._law.draw(self._offer)
        self._has_released = False
        self._released = np.zeros_like(self._observation["total_statistic"])
        self._reward = np.zeros(rows)
        self._info: Arrays = {"regret": np.zeros(rows), "clipped": np.zeros(rows, np.bool_)}
        self._round = 0
        return BatchReset(dict(self._observation), {})

    def _draw_parameter(self, seed: int) -> Array:
        if self._parameter is not None:
            return self._parameter
        if self._parameter_seeds is not None:
            seed = self._parameter_seeds[seed % len(self._parameter_seeds)]
        direction = stream(seed, Purpose.PARAMETER).standard_normal(self._dim)
        return direction / np.linalg.norm(direction)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`.

        Args:
            action: Arms, any integer dtype, ``(replicas, agents)``.
        """
        if self._round >= self.max_cycles:
            raise ResetNeeded(f"no episode is running (max_cycles is {self.max_cycles}); call reset first")
        self._refuse_bad(action)
        if action.dtype != np.int64:
            action = action.astype(np.int64)
        seen = self._observation
        mean = np.take_along_axis(self._means, action[..., np.newaxis], axis=-1)[..., 0]
        reward, clipped = self._rewards.draw(mean)
        self._reward[...] = reward
        self._info["clipped"][...] = clipped
        seen["last_reward"][..., 0] = reward
        play_round(
            action, seen["contexts"], self._means, reward,
            seen["pulled_context"], seen["total_statistic"], self._info["regret"],
        )  # fmt: skip
        self._round += 1
        seen["round"].fill(self._round)
        self._law.draw(self._offer)
        truncated = np.full(self._reward.shape, self._round == self.max_cycles)
        return BatchStep(dict(seen), self._reward, truncated, dict(self._info))

    def _refuse_bad(self, action: Array) -> None:
        """Raises on an action that is no array of arms, naming agent and value."""
        shape = self._reward.shape
        if not isinstance(action, np.ndarray):
            raise TypeError(f"action is a {type(action).__name__}; a numpy array is required")
        if action.shape != shape:
            raise ValueError(f"action has shape {action.shape}; (replicas, agents) = {shape} is required")
        if not np.issubdtype(action.dtype, np.integer):
            raise TypeError(f"action has dtype {action.dtype}; an integer dtype is required")
        if action.min() < 0 or action.max() >= self._num_arms:
            replica, agent = (int(i) for i in np.argwhere((action < 0) | (action >= self._num_arms))[0])
            raise ValueError(
                f"action: {self.possible_agents[agent]} (replica {replica}) pulls arm {action[replica, agent]}; "
                f"an integer in [0, {self._num_arms - 1}] is required"
            )

    def release(self, senders: Array) -> Arrays:
        """Lets contexts and rewards leave, as sums of squares; see :meth:`FederatedEnv.release`.

        Returns:
            ``statistic``, float64 ``(replicas, agents, dim + 1, dim + 1)``: the sum of [x; y][x; y]^T over the rounds
            since the agent last sent.
        """
        sends = np.asarray(senders, np.bool_)
        self._has_released = self._has_released or bool(sends.any())
        total = self._observation["total_statistic"]
        grown = np.where(sends[..., np.newaxis, np.newaxis], total - self._released, 0.0)
        self._released[sends] = total[sends]
        return {"statistic": grown}

    def sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`.

        Returns:
            The scale of every entry is L^2 + B^2, the largest Frobenius norm of [x; y][x; y]^T.
        """
        if not hasattr(self, "_observation"):
            raise ResetNeeded("sensitivity() was called before reset()")
        statistic = self._observation["total_statistic"]
        scale = np.full(statistic.shape, self._context_bound**2 + self._reward_bound**2)
        return Sensitivity({"statistic": scale}, changes(self._dim), symmetric=True)

    def hidden(self) -> Arrays:
        """Returns ``parameter``, theta*, float64 ``(replicas, agents, dim)``."""
        shape = (*self._reward.shape, self._dim)
        return {"parameter": np.broadcast_to(self._theta[:, np.newaxis], shape).copy()}

    @property
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""
        return spaces.Dict({"parameter": spaces.Box(-1.0, 1.0, (self._dim,), np.float64)})

    def render(self) -> str | Array | None:
        """Draws replica 0 in the mode chosen at construction: text, an RGB array, or nothing."""
        if self.render_mode is None:
            return None
        if not hasattr(self, "_observation"):
            raise ResetNeeded("render() was called before reset()")
        scene = {name: array[0] for name, array in (*self._observation.items(), *self._info.items())}
        draw = render_ansi if self.render_mode == "ansi" else render_rgb_array
        return draw(scene, self._means[0], self._theta[0])


def _checked_parameter(parameter: Any) -> Array:
    array = np.array(parameter, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"parameter has shape {array.shape}; (dim,) is required")
    if not np.isfinite(array).all() or np.linalg.norm(array) > 1.0 + 1e-9:
        raise ValueError(
            f"parameter is {array.tolist()}; finite entries and a norm of at most 1 are required"
        )
    return array
