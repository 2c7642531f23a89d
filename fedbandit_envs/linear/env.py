"""The linear contextual bandit: agents learn one parameter from contexts of their own."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy  # imports its large parts, such as special, only when they are used
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import LARGEST, chosen_sizes, require_array, require_choice, require_number
from fedbandit_envs.core.actions import Estimates, OwnActions
from fedbandit_envs.core.policy_spec import ActionFormat
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.core.rendering import viewers_of
from fedbandit_envs.linear import actions, rounds
from fedbandit_envs.linear.contexts import FixedContexts, count, make_distribution
from fedbandit_envs.randomness.draws import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose, stream

ParameterName = Literal["sphere", "orthant", "diagonal", "sphere_without_bias", "first_axis"]
StatisticName = Literal["outer", "moments"]


class LinearProblem(Problem):
    """The base class of problems in which the expected reward of an arm with context x follows from <x, theta*>.

    It is <x, theta*>, or with logistic rewards 1 / (1 + exp(-<x, theta*>)).

    Observations are those of :class:`~fedbandit_envs.linear.env.LinearEnv`. Subclasses define the actions
    (:meth:`_formats`) and regret, and pull arms by :meth:`_pull`.

    Attributes:
        defaults: Values of arguments that are None: ``num_agents``, ``num_arms``, ``dim``, ``contexts``, ``reward``
            and ``parameter``.
    """

    statistics = ("statistic",)
    learned = ("pulled_context", "last_reward", "pool_pulls", "pool_rewards")
    added_arguments: ClassVar[Mapping[str, Any]] = {"reward_offset": 0.0, "statistic": "outer"}
    defaults: ClassVar[Mapping[str, Any]]

    def __init__(
        self,
        num_agents: int | None = None,
        num_arms: int | None = None,
        dim: int | None = None,
        max_cycles: int = 1000,
        contexts: Any = None,
        gap: float = 0.1,
        context_bound: float = 1.0,
        reward: rounds.RewardName | None = None,
        reward_sd: float = 0.1,
        reward_bound: float = 1.0,
        reward_offset: float = 0.0,
        parameter: Any = None,
        statistic: StatisticName = "outer",
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Sets the federation up; theta* is drawn at reset.

        Args:
            num_agents: M, number of agents; None for the number of agents in given contexts, or else the problem's
                default (:attr:`defaults`).
            num_arms: K, number of arms offered to each agent in a round; None for the number of arms in given contexts,
                or else the problem's default.
            dim: d, dimension of contexts; None for the dimension of given contexts or of a given parameter, or else the
                problem's default.
            max_cycles: Rounds until truncation.
            contexts: The distribution of contexts, ``"band"``, ``"unit_ball"``, ``"hypercube"``,
                ``"signed_hypercube"`` or ``"sphere_and_bias"`` (see :mod:`fedbandit_envs.linear.contexts`); vectors of
                a ``"pool"``, also ``{"name": "pool", "size": 1000}``, or ``"separated"`` ones, drawn for each agent at
                the start and then fixed (see :mod:`fedbandit_envs.linear.contexts`); or documents of your own copy of a
                learning-to-rank data set, ``{"name": "queries", "path": "Fold1/train.txt", "features":
                "anchor_and_url"}`` (see :func:`fedbandit_envs.linear.tables.read_queries`); rows of your own table,
                ``{"name": "table", "table": "visits.csv", "features": ["age", "dose"], "arms": 3, "agent": "clinic"}``
                (further entries are the arguments of :class:`~fedbandit_envs.linear.tables.TableContexts`), or of a
                labelled one, whose classes are the arms, ``{"name": "classification", "data": "digits"}`` (see
                :class:`~fedbandit_envs.linear.labelled.LabelledContexts`); or fixed contexts: arrays or nested lists,
                ``(num_arms, dim)`` or ``(num_agents, num_arms, dim)``. Only with fixed and separated contexts is an arm
                the same arm in every round. None for the problem's default distribution.
            gap: For contexts from the band: the smallest difference between the best expected reward and any other.
            context_bound: L > 0, the largest norm a context can have.
            reward: The distribution of rewards, ``"beta"``, ``"bernoulli"``, ``"normal"`` or ``"logistic"`` (1 with the
                probability 1 / (1 + exp(-<x, theta*>)), else 0); None for the problem's default.
            reward_sd: Standard deviation of normal rewards.
            reward_bound: B > 0: rewards are clipped to [-B, B].
            reward_offset: Number that is added to every reward before it is clipped; regret does not depend on it. It
                must be 0 with logistic rewards.
            parameter: theta*, ``(dim,)`` with norm at most 1, or one for each arm, ``(num_arms, dim)``; or its
                distribution: ``"sphere"`` (uniform on the unit sphere), ``"orthant"`` (uniform on [0, 1]^dim, scaled to
                norm 1), ``"diagonal"`` (1/sqrt(dim) in every entry), ``"first_axis"`` (1, 0, ..., 0) or
                ``"sphere_without_bias"`` (uniform on a sphere of radius sqrt(1/2) in the first dim - 1 dimensions, with
                0 as its last entry); None for the problem's default, and with documents, or a table with
                rewards or labels, for the one that was fitted to their relevances, rewards or labels.
            statistic: What agents release, each a sum over their rounds: ``"outer"``, [x; y][x; y]^T, or ``"moments"``,
                the same without the squares y^2 of rewards (0 instead), which needs less noise and suffices for
                regression.
            instance_seed: None draws a new theta* in each episode; an integer fixes it; from a sequence of n integers,
                an episode with seed s takes entry s mod n.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            ImportError: A table is to be read without the ``[data]`` extra.
            TypeError: A parameter has the wrong type.
            OSError: The file of documents, or of a table, cannot be read.
            ValueError: A parameter is out of its range, or does not fit the others; or a file is malformed.
        """
        contexts = self.defaults["contexts"] if contexts is None else contexts
        kind: rounds.RewardName = self.defaults["reward"] if reward is None else reward
        self._context_bound = require_number("context_bound", context_bound, 0, LARGEST, open_below=True)
        laws = get_args(rounds.RewardName)
        self._law = laws.index(require_choice("reward", kind, laws))
        self._logistic = kind == "logistic"
        self._sd = require_number("reward_sd", reward_sd, 0, np.inf)
        self._reward_bound = require_number("reward_bound", reward_bound, 0, LARGEST, open_below=True)
        self._offset = require_number("reward_offset", reward_offset, -np.inf, np.inf)
        if self._logistic and self._offset != 0:
            raise ValueError(f"reward_offset must be 0 with reward='logistic', got {self._offset}")
        self._squares = require_choice("statistic", statistic, get_args(StatisticName)) == "outer"
        self._distribution = make_distribution(contexts, self._context_bound, gap)
        if self._distribution.exact and (parameter is not None or kind == "logistic"):
            raise ValueError(
                f"parameter is {parameter!r} and reward {kind!r}; None and another reward than 'logistic' are required "
                "with exact=True or a labelled table, where expected rewards are those of the table"
            )
        if parameter is None:
            fitted = self._distribution.parameter
            parameter = self.defaults["parameter"] if fitted is None else fitted
        if isinstance(parameter, str):
            require_choice("parameter", parameter, get_args(ParameterName))
        self._parameter_name = parameter if isinstance(parameter, str) else None
        self._parameter: Array | None = None
        if not isinstance(parameter, str):
            self._parameter = require_array("parameter", parameter, {1: "(dim,)", 2: "(num_arms, dim)"})
            if np.linalg.norm(self._parameter, axis=-1).max() > 1.0 + 1e-9:
                raise ValueError(f"parameter is {self._parameter.tolist()}; a norm of at most 1 is required")
        agents, arms, dim = self._sizes({"num_agents": num_agents, "num_arms": num_arms, "dim": dim})
        named = contexts.get("name") if isinstance(contexts, Mapping) else contexts
        named = named if isinstance(named, str) else ""
        least = {"sphere_and_bias": max(dim, 2), "separated": 2}.get(named, 1)
        if (dim < 2 and (least > 1 or self._parameter_name == "sphere_without_bias")) or arms < least:
            raise ValueError(
                f"num_arms is {arms} and dim {dim}; at least 2 dimensions and {least} arms are required with "
                f"contexts={named!r} and parameter={parameter!r}"
            )
        fixed = {"diagonal": np.full(dim, dim**-0.5), "first_axis": np.eye(1, dim)[0]}
        self._parameter = fixed.get(self._parameter_name or "", self._parameter)
        if self._parameter is not None and self._parameter.ndim == 2 and named == "band":
            raise ValueError(
                f"parameter has shape {self._parameter.shape}; (dim,) is required with contexts='band'"
            )
        self._require_means_in_range(kind, named)
        formats, longest = self._formats(agents, arms, dim), self._context_bound
        shape = (dim,) if self._parameter is None else self._parameter.shape
        most = float(MOST)
        size = arms if isinstance(self._distribution, FixedContexts) else self._distribution.pool_size
        pool: dict[str, spaces.Space[Any]] = {}
        if size:
            pool = {
                "pool_index": spaces.Box(0, size - 1, (arms,), np.int64),
                "pool_pulls": spaces.Box(0, MOST, (size,), np.int64),
                "pool_rewards": spaces.Box(-most, most, (size,), np.float64),
            }
        super().__init__(
            num_agents=agents,
            max_cycles=max_cycles,
            observation={
                "contexts": spaces.Box(-longest, longest, (arms, dim), np.float64),
                "pulled_context": spaces.Box(-longest, longest, (dim,), np.float64),
                "last_reward": spaces.Box(-self._reward_bound, self._reward_bound, (1,), np.float64),
                "total_statistic": spaces.Box(-most, most, (dim + 1, dim + 1), np.float64),
                **pool,
                **self._also_seen(),
            },
            hidden={"parameter": spaces.Box(-1.0, 1.0, shape, np.float64)},
            action_formats=formats,
            instance_seed=instance_seed,
            render_mode=render_mode,
        )
        self._distribution.deal(agents, arms, max_cycles)
        # `fixed`: whether arms stay the same in all rounds. `noise_sd`: R, the sub-Gaussian constant of rewards, which
        # for rewards in [0, 1] is at most 1/2. `reward_variance`: the largest variance that one reward can have.
        # `least_slope`: the slope of the logistic function at the largest <x, theta*>.
        normal = kind == "normal"
        variance = self._sd**2 if normal else 0.125 if kind == "beta" else 0.25
        known = {"noise_sd": self._sd if normal else 0.5, "reward_variance": variance}
        if normal:
            known["reward_sd"] = self._sd
        if self._logistic:
            known["least_slope"] = float(np.prod(scipy.special.expit([longest, -longest])))
        self.public = {"fixed": isinstance(self._distribution, FixedContexts), "reward": kind, **known}

    @abstractmethod
    def _formats(self, agents: int, arms: int, dim: int) -> Mapping[str, ActionFormat]:
        """Returns the action formats by name, the problem's own first."""

    def _also_seen(self) -> Mapping[str, spaces.Space[Any]]:
        """Returns the spaces of further entries of the observation, by name; none unless a subclass overrides this."""
        return {}

    def _sizes(self, asked: Mapping[str, int | None]) -> tuple[int, ...]:
        """Returns the numbers of agents, arms and dimensions, from arguments, given data or defaults."""
        parameter = () if self._parameter is None else self._parameter.shape
        fewer, shape = sorted((parameter, self._distribution.shape), key=len)
        if fewer != shape[len(shape) - len(fewer) :]:
            raise ValueError(
                f"parameter has shape {parameter}, contexts have shape {self._distribution.shape}; "
                "the same numbers of arms and dimensions are required"
            )
        return chosen_sizes(asked, shape, self.defaults, "given")

    def _require_means_in_range(self, reward: str, named: str) -> None:
        """Raises a ``ValueError`` if means of binary or Beta rewards can leave [0, 1], or of data [-B, B]."""
        means, longest = self._distribution.means(self._parameter), self._distribution.longest
        # theta* has a norm of at most 1.
        reach = np.inf if longest is None else longest
        low, high = (-reach, reach) if means is None else (means.min(), means.max())
        if reward in ("beta", "bernoulli") and named != "band" and not 0.0 <= low <= high <= 1.0:
            raise ValueError(
                f"reward is {reward!r}, which needs means in [0, 1]; 'normal' is required unless contexts are the "
                "'band', or features whose products with the parameter given lie there, or exact rewards there"
            )
        if longest is None:
            return
        ends = (low, high) if reward == "normal" else (0.0, 1.0)
        largest = float(np.abs(np.add(ends, self._offset)).max())
        if largest > self._reward_bound * (1 + 1e-9):
            raise ValueError(
                f"reward_bound is {self._reward_bound:g}; at least {largest:.6g}, the largest expected reward that the "
                "data allow, is required, since larger rewards are clipped (or divide the data by a constant)"
            )

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        rows, (arms, dim) = self._reward.shape, self._observation["contexts"].shape[2:]
        self._theta = np.stack([self._draw_parameter(seed, dim) for seed in instance_seeds])
        self._means = np.zeros((*rows, arms))
        # _scores: <x, theta*>, from which expected rewards follow.
        self._scores = np.zeros((*rows, arms)) if self._logistic else self._means
        # Where each arm has its own parameter, these scores are those of the first arm's; _draw_round replaces them.
        common = self._theta if self._theta.ndim == 2 else self._theta[:, 0]
        # The number of rounds may have been changed since the construction.
        self._distribution.deal(self.max_num_agents, arms, self.max_cycles)
        instances = rounds.Instances(randomness, common, self._across, self._scores, instance_seeds)
        self._distribution.begin(instances)
        if "pool_index" in self._observation:
            self._observation["pool_index"] = self._distribution.index
        self._outcomes, self._scratch = randomness.draws(Purpose.OUTCOME), np.empty(rounds.TERMS)

    def _blank(self, rows: tuple[int, int]) -> Arrays:
        blank = super()._blank(rows)
        # Arms are the last axis in memory, see `_across`.
        blank["contexts"] = blank["contexts"].swapaxes(2, 3).copy().swapaxes(2, 3)
        return blank

    def _require_shown(self, shown: Arrays) -> None:
        longest = np.linalg.norm(shown["contexts"], axis=1).max()
        if longest > self._context_bound * (1 + 1e-9):
            raise ValueError(
                f"observation 'contexts' has one of norm {longest:.6g}; at most context_bound, "
                f"{self._context_bound:g}, is required"
            )

    @property
    def _across(self) -> Array:
        """A view of the contexts in their memory layout, ``(replicas, agents, dim, arms)``; arms last is faster."""
        return self._observation["contexts"].swapaxes(2, 3)

    def _draw_round(self) -> None:
        self._distribution.draw(self._active, self._across, self._scores)
        if self._theta.ndim == 3 and not self._distribution.exact:
            # <x, theta_k>, added up from the first dimension to the last.
            terms = self._across * self._theta[0].T
            self._scores[...] = sum(terms[:, :, i] for i in range(terms.shape[2]))
        if self._logistic:
            scipy.special.expit(self._scores, out=self._means)

    def _draw_parameter(self, seed: int, dim: int) -> Array:
        if self._parameter is not None:
            return self._distribution.parameter_of(seed, self._parameter)
        draws = stream(seed, Purpose.PARAMETER)
        direction = draws.random(dim) if self._parameter_name == "orthant" else draws.standard_normal(dim)
        if self._parameter_name == "sphere_without_bias":
            direction[-1] = 0.0
            return direction * (np.sqrt(0.5) / np.linalg.norm(direction))
        return direction / np.linalg.norm(direction)

    def _pull(self, arm: Array) -> None:
        """Pulls one arm for each agent, int64 ``(replicas, agents)``: draws rewards and updates the observations."""
        rounds.draw_rewards(
            self._active, arm, self._means, self._law, self._sd, self._reward_bound, self._offset, self._scratch,
            *self._outcomes, self._reward, self._info["clipped"],
        )  # fmt: skip
        self._take_in(arm, self._reward)

    def _take_in(self, arm: Array, reward: Array) -> None:
        """Writes contexts and rewards of pulled arms to the observations, and adds them to the statistic."""
        seen = self._observation
        rounds.take_in(
            self._active, arm, self._across, reward, seen["last_reward"], seen["pulled_context"],
            seen["total_statistic"],
        )  # fmt: skip
        if "pool_index" in seen:
            count(self._active, arm, reward, seen["pool_index"], seen["pool_pulls"], seen["pool_rewards"])
        if not self._squares:
            seen["total_statistic"][..., -1, -1] = 0.0

    def _sensitivity(self) -> Sensitivity:
        shape = self._observation["total_statistic"].shape
        bounds = rounds.of_outer if self._squares else rounds.of_moments
        return bounds(shape, self._context_bound, self._reward_bound)

    def _largest_reward(self) -> Array:
        return np.full(self._reward.shape, self._reward_bound)

    def _hidden(self) -> Arrays:
        shape = (*self._reward.shape, *self._theta.shape[1:])
        return {"parameter": np.broadcast_to(self._theta[:, np.newaxis], shape).copy()}

    def _scenery(self) -> Arrays:
        parameter = self.hidden()["parameter"]
        average = parameter if parameter.ndim == 3 else parameter.mean(axis=2)
        return {"parameter": average, "means": self._means}


class LinearEnv(LinearProblem, name="linear_v0"):
    r"""Federated linear contextual bandits.

    ## Description

    In every round each agent is offered $K$ arms, each with a context $x \in \mathbb{R}^d$ that it sees, and pulls one.
    The expected reward is $\langle x, \theta^* \rangle$ with one parameter $\theta^*$, $\|\theta^*\| \le 1$, the same
    for all agents and known to none. So the data of one agent are useful to all (Dubey and Pentland 2020). With
    `reward="logistic"` the expected reward is $1 / (1 + e^{-\langle x, \theta^* \rangle})$ instead (Li and Wang 2022).
    Arms can have a parameter each (Huang et al. 2021).

    With a labelled table as contexts (`FedClassification-v0`), classification becomes a bandit: agents see a row of the
    table, an arm is a class, and the reward is 1 if the arm is the row's label and 0 if not. Then no $\theta^*$ gives
    the expected rewards; what stands for it is the best linear prediction of the labels. Regret is 1 for every row
    whose label was not pulled. See :class:`~fedbandit_envs.linear.labelled.LabelledContexts` for tables that come with
    the extra `data`, for your own, and for how rows are given to agents.

    ## Action Space

    `Discrete(num_arms)`: the arm to pull. An integer out of range, a wrong shape or dtype is an error that names agent
    and value; the state does not change.

    Views for learning agents also offer `action_format="parameter"` (`Box(-1, 1, (dim,))`: an estimate of $\theta^*$,
    whose best arm is pulled) and `"values"` (`Box(-1, 1, (num_arms,))`: estimates of the arms' mean rewards, of which
    the largest is pulled).

    ## Observation Space

    A `Dict` for each agent; $K$ arms, $d$ dimensions:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `contexts` | (K, d) | float64 | contexts of the arms offered now, with norms at most $L$ |
    | `pulled_context` | (d,) | float64 | the context of the arm pulled in the last round |
    | `last_reward` | (1,) | float64 | the reward of the last round, in $[-B, B]$ |
    | `total_statistic` | (d + 1, d + 1) | float64 | $\sum [x; y][x; y]^\top$ over all rounds so far |

    In `total_statistic`, $x$ is the context pulled in a round and $y$ its reward; with `statistic="moments"` the sum of
    $y^2$ is replaced by 0. Before the first round the last three are 0.

    Contexts that come from a finite set of P vectors (`contexts="pool"`, `"separated"` or fixed ones, P = K in the
    latter two) have further entries:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `pool_index` | (K,) | int64 | the number of each offered vector, from 0 |
    | `pool_pulls` | (P,) | int64 | how often the agent has pulled each vector so far |
    | `pool_rewards` | (P,) | float64 | the sum of its rewards from each vector so far |

    Views for learning agents also offer `features=True`: a flat box of features in [-1, 1] instead of this `Dict`, see
    :class:`~fedbandit_envs.linear.actions.LinearFeatures`.

    ## Starting State

    $\theta^*$ is drawn uniformly from the unit sphere (or taken as given), and the first arms are offered. With
    `instance_seed=None` every episode draws its own $\theta^*$ from the episode's seed; an integer fixes it, and pools
    or separated contexts with it, and the episode's seed then draws all the rest.

    Contexts from the band depend on $\theta^*$: the mean of all contexts that an agent sees points along $\theta^*$. So
    a policy that pulls the arm with the largest $\langle x, \text{mean context} \rangle$ reads no reward and has no
    regret (0.00 over 4 seeds of 2,000 rounds). That is the paper's construction, with a gap between the best arm and
    the others (Dubey and Pentland 2020, section 4.4). A policy that is to show what communication is worth must learn
    from rewards only, as the baselines do.

    ## Rewards

    The reward of the pulled arm, with the mean $\mu = \langle x, \theta^* \rangle$, is drawn from
    $\text{Beta}(\mu, 1 - \mu)$ (as in the paper), $\text{Bernoulli}(\mu)$ or $N(\mu, \text{sd}^2)$, and clipped to
    $[-B, B]$. Logistic rewards are Bernoulli with the mean $1 / (1 + e^{-\langle x, \theta^* \rangle})$. Beta and
    Bernoulli rewards need means in $[0, 1]$. Contexts from the band have such means; others raise an error with these
    rewards, unless contexts and $\theta^*$ are given and all means lie there. A table that has the rewards of all arms
    can be played as it is (`exact`): $\mu$ is then the arm's reward in the row, whether or not it is linear.

    Agents know how noisy rewards are, as the papers below assume: `PolicySpec.public` has the sub-Gaussian constant
    `noise_sd` (sd, or 1/2 for rewards in $[0, 1]$) and `reward_variance`, the largest variance of a reward (its
    square, or 1/8 for Beta rewards and 1/4 for binary ones).

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the largest expected reward of the arms that were offered, less that of the arm pulled (pseudo-regret:
      clipping of rewards does not change it).
    * `clipped`: whether the reward was clipped.

    ## Arguments

    See the constructor. All of them are JSON-serialisable. Arms can be documents of your own copy of MSLR-WEB10K, see
    :func:`~fedbandit_envs.linear.tables.read_queries`, and contexts the rows of your own table, see
    :class:`~fedbandit_envs.linear.tables.TableContexts`, which says what one row is for privacy.

    ## Registered Configurations

    | id | contexts and rewards |
    |---|---|
    | `FedLinear-v0` | the band with a gap of 0.1, Beta rewards; 10 agents, 100 arms, d = 10 |
    | `FedLinearBall-v0` | uniform in the unit ball, normal rewards with sd 0.1 |
    | `FedLinearCube-v0` | uniform on $[0, 1]^d / \sqrt{d}$, normal rewards with sd 0.1 |
    | `FedLinearAsync-v0` | uniform on $[-1, 1]^{15} / \sqrt{15}$, 25 arms, sd 0.3; 15 agents, one acts (He et al.) |
    | `FedLinearInTurn-v0` | the same, agents take turns |
    | `FedLinearSphere-v0` | points of a sphere with a bias, sd 0.5; 100 agents (Zhou and Chowdhury), rewards less 1/2 |
    | `FedLinearSpherePrinted-v0` | the same with rewards as printed, neither centred nor bounded in practice |
    | `FedLogistic-v0` | 1,000 vectors of norm $\sqrt{2}$, logistic rewards; 200 agents, 25 arms (Li and Wang) |
    | `FedClassification-v0` | 10 principal components of handwritten digits, and their classes; 10 agents, 10 arms |
    | `FedFixed-v0` | fixed contexts of each agent, $\theta^* = (1, 0, 0)$, sd 1; 100 agents, 10 arms (Huang et al.) |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.linear_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import linear_v0
    >>> env = linear_v0.parallel_env(num_agents=2, num_arms=5, dim=3)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
    >>> sorted(observations), infos["agent_0"]["regret"] >= 0
    (['agent_0', 'agent_1'], True)

    ```

    ## References

    * A. Dubey, A. Pentland: Differentially-Private Federated Linear Bandits. NeurIPS 2020.
    * J. He, T. Wang, Y. Min, Q. Gu: A Simple and Provably Efficient Algorithm for Asynchronous Federated Contextual
      Linear Bandits. NeurIPS 2022.
    * X. Zhou, S. R. Chowdhury: On Differentially Private Federated Linear Contextual Bandits. ICLR 2024.
    * C. Li, H. Wang: Communication Efficient Federated Learning for Generalized Linear Bandits. NeurIPS 2022.
    * R. Huang, W. Wu, J. Yang, C. Shen: Federated Linear Contextual Bandits. NeurIPS 2021.
    * D. Zhou, L. Li, Q. Gu: Neural Contextual Bandits with UCB-based Exploration. ICML 2020.
    * C. Riquelme, G. Tucker, J. Snoek: Deep Bayesian Bandits Showdown. ICLR 2018.
    * T.-M. H. Hsu, H. Qi, M. Brown: Measuring the Effects of Non-Identical Data Distribution for Federated Visual
      Classification. 2019.
    * L. Li, W. Chu, J. Langford, R. E. Schapire: A Contextual-Bandit Approach to Personalized News Article
      Recommendation. WWW 2010.

    ## Version History

    * v0: first version.
    """

    defaults = {  # noqa: RUF012 - never written to
        "num_agents": 10,
        "num_arms": 100,
        "dim": 10,
        "contexts": "band",
        "reward": "beta",
        "parameter": "sphere",
    }
    information = {"clipped": np.bool_}  # noqa: RUF012 - never written to
    viewers = viewers_of(actions.picture)
    features = actions.LinearFeatures
    neighbours = staticmethod(rounds.worst_neighbours)

    def _formats(self, agents: int, arms: int, dim: int) -> Mapping[str, ActionFormat]:
        return {
            "arm": OwnActions(spaces.Discrete(arms)),
            "parameter": Estimates(dim, actions.arm_by_parameter),
            "values": Estimates(arms, actions.arm_by_values),
        }

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the arm with the largest mean; see :meth:`.Problem.clairvoyant`."""
        return self._means.argmax(axis=-1)

    def _learn(self, action: Array, outcome: Any) -> None:
        """Adds [x; y][x; y]^T; ``outcome`` is the reward y, a number in [-reward_bound, reward_bound]."""
        reward = require_number("outcome", outcome, -self._reward_bound, self._reward_bound)
        self._take_in(action, np.full((1, 1), reward))

    def _play_round(self, action: Array) -> None:
        rounds.pseudo_regret(self._active, action, self._means, self._info["regret"])
        self._pull(action)
