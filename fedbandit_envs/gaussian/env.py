"""Gaussian arms: agents whose means may differ aim at their own best arm, the global one, or a mixture."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from fedbandit_envs.arms.actions import arm_formats, picture
from fedbandit_envs.arms.rounds import Aim, weight_of_own
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import LARGEST, require_number
from fedbandit_envs.core.policy_spec import Features, PolicySpec
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.core.rendering import viewers_of
from fedbandit_envs.gaussian import rounds
from fedbandit_envs.randomness.draws import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose


class GaussianFeatures(Features):
    """Features of each arm: the average of its rewards and how uncertain it is.

    | of each arm | meaning |
    |---|---|
    | `estimate` | m / (1 + abs(m)), where m is the average of the agent's own rewards, 0 before the first |
    | `doubt` | 1 / sqrt(pulls + 1), from the agent's own data |
    | `heard_estimate` | as `estimate`, from received data; only where agents receive messages |
    | `heard_doubt` | as `doubt`, from received data; noise can make received pulls negative, which count as 0 |

    | once for all arms | meaning |
    |---|---|
    | `time_left` | 1 before the first round, falling to -1 after the last |
    """

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the names of the features and the number of arms, from the spaces of the environment."""
        arms = spec.observation["total_pulls"].shape or (0,)
        super().__init__(spec, {"pulls": arms, "rewards": arms})
        self.items = arms[0]
        self.each = ("estimate", "doubt", *(("heard_estimate", "heard_doubt") if self._inbox.exists else ()))

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        each[..., 0], each[..., 1] = _judged(observation["total_pulls"], observation["total_rewards"])
        if self._inbox.exists:
            each[..., 2], each[..., 3] = _judged(*self._inbox.totals.values())


def _judged(pulls: Array, sums: Array) -> tuple[Array, Array]:
    counts = np.maximum(pulls, 0.0)
    mean = sums / np.maximum(counts, 1.0)
    return mean / (1.0 + np.abs(mean)), 1.0 / np.sqrt(counts + 1.0)


class GaussianEnv(Problem, name="gaussian_v0"):
    r"""Federated Gaussian bandits in which the mean of an arm differs between agents.

    ## Description

    $M$ agents pull one of $K$ arms in every round. The reward of arm $k$ is drawn from $N(\mu_{km}, \text{sd}^2)$ for
    agent $m$. Rewards are unbounded unless `reward_bound` is set. An agent aims at the arm with the largest *worth*,

    $$\alpha \, \mu_{km} + (1 - \alpha) \, \mu_k,$$

    where $\mu_k$ is the global mean of the arm; the argument `regret` sets $\alpha$. With $\alpha = 0$ all agents look
    for the arm that is best for the federation (Shi and Shen 2021), with $\alpha = 1$ each looks for its own best arm,
    and numbers in between are those of personalised federated bandits (Shi, Shen and Yang 2021). An agent observes only
    its own pulls and their rewards, from which global means cannot be learned: for $\alpha < 1$ communication is
    necessary.

    ## Action Space

    `Discrete(num_arms)`: the arm to pull. An integer out of range, a wrong shape or dtype is an error that names agent
    and value; the state does not change. Views for learning agents also accept `action_format="values"`
    (`Box(0, 1, (num_arms,))`: a score for each arm, of which the arm with the largest is pulled), and offer
    `features=True`, a flat box in [-1, 1] instead of the `Dict` below, see
    :class:`~fedbandit_envs.gaussian.env.GaussianFeatures`.

    ## Observation Space

    A `Dict` for each agent; K arms:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `total_pulls` | (K,) | int64 | how often the agent has pulled each arm |
    | `total_rewards` | (K,) | float64 | sum of the rewards of each arm |

    ## Starting State

    The argument `law` says how the means of agents follow from the argument `means`:

    | law | agents' means $\mu_{km}$ | global means $\mu_k$ |
    |---|---|---|
    | `exact` | `means`; if None, drawn from U[0, 1] for each agent and arm | the average over all agents |
    | `concentrated` | each arm is far better for one agent than for others | `means`; if None, drawn from U[0, 1] |
    | `approximate` | drawn from $N(\mu_k, \text{spread}^2)$, for each agent and arm | as with `concentrated` |

    For `concentrated` see :func:`~fedbandit_envs.gaussian.rounds.concentrated`. `means` may be a table of your own
    ratings, `{"name": "ratings", "table": "ratings.csv", "scale": [1, 5]}` with the arguments of
    :func:`~fedbandit_envs.arms.ratings.mean_ratings`: arms are the `num_arms` most rated items, and their means the
    average ratings, scaled to [0, 1]. With `exact` agents are people, the `num_agents` users who rated most of these
    items; an item that a user has not rated has the item's average plus the user's average deviation from such
    averages, clipped to [0, 1]. Averages are those over all agents,
    whether they are active or not. What is drawn is drawn anew in every episode, from its seed, if `instance_seed` is
    None; an integer fixes it, and the episode's seed then draws rewards only.

    ## Rewards

    The reward of the pulled arm, $N(\mu_{km}, \text{sd}^2)$ with the standard deviation `reward_sd`, clipped to
    $[-B, B]$ if `reward_bound` is $B$. For a given seed, the reward that an agent would get from an arm in a round does
    not depend on any policy.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the largest worth of an arm minus the worth of the arm that was pulled (pseudo-regret, by the means
      before rewards are clipped). Communication costs nothing here; `Channel` and `Server` report it as `messages`.
    * `clipped`: whether the reward was clipped.

    ## Arguments

    See the constructor. All of them can be given as JSON.

    ## Registered Configurations

    | id | setting |
    |---|---|
    | `FedGaussian-v0` | Shi and Shen's exact model (`law="concentrated"`): 5 agents, 10 arms, sd 0.5; $\alpha = 0$ |
    | `FedGaussianSampled-v0` | their approximate model (spread 0.02): 62 agents, 10 arms, sd 0.5; $\alpha = 0$ |
    | `FedMixed-v0` | Shi, Shen and Yang's 4 agents and 9 arms, sd 1, `law="exact"`; $\alpha = 0.5$ |

    `gym.make(id)` controls one agent among peers, `gym.make(id, joint=True)` all agents;
    `fedbandit_envs.gaussian_v0.parallel_env()` is the federation itself, `env()` the same for one agent after another.
    Agents are active in every round, unless a server or :class:`~fedbandit_envs.wrappers.Participation` decides which
    agents take part: inactive agents do not pull and have no regret.

    ## Example

    ```python
    >>> from fedbandit_envs import gaussian_v0
    >>> env = gaussian_v0.parallel_env(means=[[1.0, 0.0, 0.6], [0.0, 1.0, 0.6]], regret=0.0)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
    >>> float(round(infos["agent_0"]["regret"], 6))
    0.1

    ```

    ## References

    * C. Shi, C. Shen: Federated Multi-Armed Bandits. AAAI 2021.
    * C. Shi, C. Shen, J. Yang: Federated Multi-armed Bandits with Personalization. AISTATS 2021.

    ## Version History

    * v0: first version.
    """

    statistics = ("pulls", "rewards")
    information: ClassVar[Mapping[str, npt.DTypeLike]] = {"clipped": np.bool_}
    viewers = viewers_of(picture)
    features = GaussianFeatures
    neighbours = staticmethod(rounds.worst_neighbours)

    def __init__(
        self,
        num_agents: int | None = None,
        num_arms: int | None = None,
        max_cycles: int = 1000,
        means: Any = None,
        law: rounds.Law = "exact",
        spread: float = 0.0,
        reward_sd: float = 1.0,
        reward_bound: float | None = None,
        regret: Aim = "own",
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Creates the federation; means are drawn at reset.

        Args:
            num_agents: M, number of agents; by default the number of rows of ``means``, or 10. If it is another number
                than there are rows, agent j has row j modulo their number; at most the users of a table of ratings.
            num_arms: K, number of arms; 10 by default, or as many as means are given or items are in a table.
            max_cycles: Rounds until truncation.
            means: The means from which those of agents follow, the same in every episode: ``(num_arms,)`` or, with
                ``law="exact"``, also ``(agents, num_arms)``, arrays or nested lists; or a table of ratings, see above;
                None draws them.
            law: ``"exact"``, ``"concentrated"`` or ``"approximate"``, see above.
            spread: Standard deviation of agents' means around the global ones with ``law="approximate"``; must be 0
                with other laws.
            reward_sd: Standard deviation of rewards, >= 0.
            reward_bound: B > 0: rewards are clipped to [-B, B]; None clips nothing. Claims about the privacy of sums of
                rewards need a bound.
            regret: Sets alpha, the weight of an agent's own means in the worth of an arm: ``"own"`` is 1,
                ``"federation"`` is 0, or a number in [0, 1].
            instance_seed: None draws new means in each episode; an integer fixes them; from a sequence of n integers,
                an episode with seed s takes entry s mod n.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            ImportError: There is a table of ratings, and pandas is missing, or for Parquet pyarrow.
            OSError: The table of ratings cannot be read.
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or a table of ratings is malformed.
        """
        self._weight_of_own = weight_of_own(regret)
        self._deviation = require_number("reward_sd", reward_sd, 0, np.inf, open_above=True)
        self._bound = np.inf
        if reward_bound is not None:
            self._bound = require_number("reward_bound", reward_bound, 0, LARGEST, open_below=True)
        self._distribution = rounds.GaussianMeans(means, num_agents, num_arms, law, spread)
        if self._distribution.largest > self._bound:
            raise ValueError(
                f"reward_bound is {reward_bound}; at least {self._distribution.largest:.6g}, the largest mean, is "
                "required, since larger rewards are clipped"
            )
        # `alpha` is the weight of own means, `spread` that of agents' means around the global ones.
        self.public = {"alpha": self._weight_of_own, "reward_sd": self._deviation, "spread": float(spread)}
        agents, arms = self._distribution.shape
        most = float(MOST)
        super().__init__(
            num_agents=agents,
            max_cycles=max_cycles,
            observation={
                "total_pulls": spaces.Box(0, MOST, (arms,), np.int64),
                "total_rewards": spaces.Box(-most, most, (arms,), np.float64),
            },
            hidden={name: spaces.Box(-most, most, (arms,), np.float64) for name in ("mean", "worth")},
            action_formats=arm_formats(arms, 1),
            instance_seed=instance_seed,
            render_mode=render_mode,
        )

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        self._means, common = self._distribution.draw(instance_seeds)
        alpha = self._weight_of_own
        self._worths = alpha * self._means + (1 - alpha) * common
        self._best = self._worths.max(axis=-1)
        self._outcomes = randomness.draws(Purpose.OUTCOME)

    def _play_round(self, action: Array) -> None:
        rounds.play_round(
            self._active, action, *self._outcomes, self._means, self._deviation, self._bound, self._worths, self._best,
            self._observation["total_pulls"], self._observation["total_rewards"], self._reward, self._info["regret"],
            self._info["clipped"],
        )  # fmt: skip

    def _learn(self, action: Array, outcome: Any) -> None:
        """Adds the pull and its reward; ``outcome`` is the reward, a number in [-reward_bound, reward_bound]."""
        reward = require_number("outcome", outcome, -self._bound, self._bound)
        self._observation["total_pulls"][0, 0, action[0, 0]] += 1
        self._observation["total_rewards"][0, 0, action[0, 0]] += reward

    def _sensitivity(self) -> Sensitivity:
        return rounds.sensitivity(self._observation["total_pulls"], self._bound)

    def _largest_reward(self) -> Array | None:
        return np.full(self._reward.shape, self._bound) if np.isfinite(self._bound) else None

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the arm that is worth most; see :meth:`.Problem.clairvoyant`."""
        return self._worths.argmax(axis=-1)

    def _hidden(self) -> Arrays:
        return {"mean": self._means.copy(), "worth": self._worths.copy()}

    def _scenery(self) -> Arrays:
        return {**self.hidden(), "total_successes": self._observation["total_rewards"]}
