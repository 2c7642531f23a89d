"""The base class of problems with a linear model: contexts, unknown parameter, rewards and the released statistic."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import chosen_sizes, require_choice, require_number
from fedbandit_envs.core.policy_spec import ActionFormat
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.linear.contexts import DistributionName, QueryContexts, make_distribution
from fedbandit_envs.linear.expectation import expect_by_arm
from fedbandit_envs.linear.instances import Instances
from fedbandit_envs.linear.labelled import LabelledContexts
from fedbandit_envs.linear.neighbours import of_moments, of_outer
from fedbandit_envs.linear.pools import FixedContexts, PoolContexts, count
from fedbandit_envs.linear.rewards import RewardDistribution, RewardName
from fedbandit_envs.linear.rounds import take_in
from fedbandit_envs.linear.tables import TableContexts
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
    added_arguments: ClassVar[Mapping[str, Any]] = {"reward_offset": 0.0, "statistic": "outer"}
    defaults: ClassVar[Mapping[str, Any]]

    def __init__(
        self,
        num_agents: int | None = None,
        num_arms: int | None = None,
        dim: int | None = None,
        max_cycles: int = 1000,
        contexts: DistributionName | Any = None,
        gap: float = 0.1,
        context_bound: float = 1.0,
        reward: RewardName | None = None,
        reward_sd: float = 0.1,
        reward_bound: float = 1.0,
        reward_offset: float = 0.0,
        parameter: ParameterName | Any = None,
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
                the start and then fixed (see :mod:`fedbandit_envs.linear.pools`); or documents of your own copy of a
                learning-to-rank data set, ``{"name": "queries", "path": "Fold1/train.txt", "features":
                "anchor_and_url"}`` (see :func:`fedbandit_envs.linear.queries.read_queries`); rows of your own table,
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
        kind: RewardName = self.defaults["reward"] if reward is None else reward
        self._context_bound = require_number("context_bound", context_bound, 0, np.inf, open_below=True)
        self._rewards = RewardDistribution(kind, reward_sd, reward_bound, reward_offset)
        self._squares = require_choice("statistic", statistic, get_args(StatisticName)) == "outer"
        self._distribution = make_distribution(contexts, self._context_bound, gap)
        exact = isinstance(self._distribution, LabelledContexts) or (
            isinstance(self._distribution, TableContexts) and self._distribution.rewards is not None
        )
        if exact and (parameter is not None or kind == "logistic"):
            raise ValueError(
                f"parameter is {parameter!r} and reward {kind!r}; None and another reward than 'logistic' are required "
                "with exact=True or a labelled table, where expected rewards are those of the table"
            )
        if parameter is None:
            fitted = getattr(self._distribution, "parameter", None)
            parameter = self.defaults["parameter"] if fitted is None else fitted
        if isinstance(parameter, str):
            require_choice("parameter", parameter, get_args(ParameterName))
        self._parameter_name = parameter if isinstance(parameter, str) else None
        self._parameter = None if isinstance(parameter, str) else _checked_parameter(parameter)
        sizes = self._sizes({"num_agents": num_agents, "num_arms": num_arms, "dim": dim})
        arms, dim = sizes["num_arms"], sizes["dim"]
        if isinstance(contexts, str) and contexts == "sphere_and_bias" and not 2 <= dim <= arms:
            raise ValueError(
                f"num_arms is {arms} and dim {dim}; at least 2 dimensions and as many arms are required with "
                "contexts='sphere_and_bias', of which d arms never change"
            )
        if self._parameter_name == "sphere_without_bias" and dim < 2:
            raise ValueError(f"dim is {dim}; at least 2 is required with parameter='sphere_without_bias'")
        if isinstance(contexts, str) and contexts == "separated" and min(dim, arms) < 2:
            raise ValueError(
                f"num_arms is {arms} and dim {dim}; at least 2 of each are required with contexts='separated'"
            )
        if self._parameter_name == "diagonal":
            self._parameter = np.full(dim, dim**-0.5)
        if self._parameter_name == "first_axis":
            self._parameter = np.eye(dim)[0]
        banded = isinstance(contexts, str) and contexts == "band"
        if self._parameter is not None and self._parameter.ndim == 2 and banded:
            raise ValueError(
                f"parameter has shape {self._parameter.shape}; (dim,) is required with contexts='band'"
            )
        if isinstance(self._distribution, QueryContexts):
            self._distribution.check(sizes["num_agents"], arms)
        self._reward_bound = float(reward_bound)
        self._refuse_improbable_means(contexts, kind)
        formats, longest = self._formats(sizes["num_agents"], arms, dim), self._context_bound
        super().__init__(
            num_agents=sizes["num_agents"],
            max_cycles=max_cycles,
            observation={
                "contexts": spaces.Box(-longest, longest, (arms, dim), np.float64),
                "pulled_context": spaces.Box(-longest, longest, (dim,), np.float64),
                "last_reward": spaces.Box(-self._reward_bound, self._reward_bound, (1,), np.float64),
                "total_statistic": spaces.Box(-float(MOST), float(MOST), (dim + 1, dim + 1), np.float64),
                **self._seen_of_pool(arms),
                **self._also_seen(),
            },
            action=next(iter(formats.values())).space,
            hidden={"parameter": spaces.Box(-1.0, 1.0, self._shape_of_parameter(dim), np.float64)},
            action_formats=formats,
            instance_seed=instance_seed,
            render_mode=render_mode,
        )
        if isinstance(self._distribution, TableContexts | LabelledContexts):
            self._distribution.deal(self.max_num_agents, max_cycles)

    @abstractmethod
    def _formats(self, agents: int, arms: int, dim: int) -> Mapping[str, ActionFormat]:
        """Returns the action formats by name, the problem's own first."""

    def _seen_of_pool(self, arms: int) -> Mapping[str, spaces.Space[Any]]:
        """Returns the spaces of what agents see of a pool of contexts, by name; none where contexts have no pool."""
        if not isinstance(self._distribution, FixedContexts | PoolContexts):
            return {}
        size, most = self._distribution.size(arms), float(MOST)
        return {
            "pool_index": spaces.Box(0, size - 1, (arms,), np.int64),
            "pool_pulls": spaces.Box(0, MOST, (size,), np.int64),
            "pool_rewards": spaces.Box(-most, most, (size,), np.float64),
        }

    def _shape_of_parameter(self, dim: int) -> tuple[int, ...]:
        return (dim,) if self._parameter is None else self._parameter.shape

    def _also_seen(self) -> Mapping[str, spaces.Space[Any]]:
        """Returns the spaces of further entries of the observation, by name; none unless a subclass overrides this."""
        return {}

    def _sizes(self, asked: Mapping[str, int | None]) -> dict[str, int]:
        """Returns the numbers of agents, arms and dimensions by name, from arguments, given data or defaults."""
        given: dict[str, int] = {}
        if self._parameter is not None:
            given |= dict(zip(("dim", "num_arms"), reversed(self._parameter.shape), strict=False))
        shape = getattr(self._distribution, "shape", ())
        if shape:
            if given.get("dim", shape[-1]) != shape[-1]:
                raise ValueError(
                    f"parameter has {given['dim']} entries; {shape[-1]}, the dimension of contexts, is required"
                )
            arms = shape[-2] if len(shape) > 1 else None
            if arms is not None and given.get("num_arms", arms) != arms:
                raise ValueError(
                    f"parameter is for {given['num_arms']} arms; {arms}, the arms of contexts, are required"
                )
            given |= dict(zip(("dim", "num_arms", "num_agents"), reversed(shape), strict=False))
        return chosen_sizes(asked, given, self.defaults, "given")

    def _refuse_improbable_means(self, contexts: Any, reward: str) -> None:
        """Raises a ``ValueError`` if rewards need means in [0, 1] and means could lie outside."""
        banded = isinstance(contexts, str) and contexts == "band"
        if not self._rewards.needs_probabilities or banded:
            return
        means = None
        if isinstance(self._distribution, FixedContexts | TableContexts | LabelledContexts):
            means = self._distribution.means(self._parameter)
        if means is not None and means.min() >= 0.0 and means.max() <= 1.0:
            return
        raise ValueError(
            f"reward is {reward!r}, which needs means in [0, 1]; 'normal' is required unless contexts are the 'band', "
            "or features whose products with the parameter given lie there, or exact rewards there"
        )

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        rows, (arms, dim) = self._reward.shape, self._observation["contexts"].shape[2:]
        self._theta = np.stack([self._draw_parameter(seed, dim) for seed in instance_seeds])
        self._observation["contexts"] = np.zeros((*rows, dim, arms)).swapaxes(2, 3)
        self._means = np.zeros((*rows, arms))
        # _scores: <x, theta*>, from which expected rewards follow.
        self._scores = np.zeros((*rows, arms)) if self._rewards.logistic else self._means
        # Where each arm has its own parameter, _draw_round replaces the scores that follow from the first arm's.
        common = self._theta if self._theta.ndim == 2 else self._theta[:, 0]
        if isinstance(self._distribution, LabelledContexts):
            # The number of rounds may have been changed since the construction.
            self._distribution.deal(self.max_num_agents, self.max_cycles)
        self._distribution.begin(Instances(randomness, common, self._across, self._scores, instance_seeds))
        if isinstance(self._distribution, FixedContexts | PoolContexts):
            self._observation["pool_index"] = self._distribution.index
        self._rewards.begin(randomness)

    @property
    def _across(self) -> Array:
        """A view of the contexts in their memory layout, ``(replicas, agents, dim, arms)``; arms last is faster."""
        return self._observation["contexts"].swapaxes(2, 3)

    def _draw_round(self) -> None:
        self._distribution.draw(self._active, self._across, self._scores)
        if self._theta.ndim == 3 and not isinstance(self._distribution, LabelledContexts):
            expect_by_arm(self._active, self._across, self._theta[0], self._scores)
        self._rewards.link(self._scores, self._means)

    def _draw_parameter(self, seed: int, dim: int) -> Array:
        if isinstance(self._distribution, LabelledContexts):
            return self._distribution.parameter_of(seed)
        if self._parameter is not None:
            return self._parameter
        draws = stream(seed, Purpose.PARAMETER)
        direction = draws.random(dim) if self._parameter_name == "orthant" else draws.standard_normal(dim)
        if self._parameter_name == "sphere_without_bias":
            direction[-1] = 0.0
            return direction * (np.sqrt(0.5) / np.linalg.norm(direction))
        return direction / np.linalg.norm(direction)

    def _pull(self, arm: Array) -> None:
        """Pulls one arm for each agent, int64 ``(replicas, agents)``: draws rewards and updates the observations."""
        seen = self._observation
        self._rewards.draw(self._active, arm, self._means, self._reward, self._info["clipped"])
        take_in(
            self._active, arm, self._across, self._reward, seen["last_reward"], seen["pulled_context"],
            seen["total_statistic"],
        )  # fmt: skip
        if "pool_index" in seen:
            count(
                self._active, arm, self._reward, seen["pool_index"], seen["pool_pulls"], seen["pool_rewards"]
            )
        if not self._squares:
            seen["total_statistic"][..., -1, -1] = 0.0

    def _sensitivity(self) -> Sensitivity:
        shape = self._observation["total_statistic"].shape
        return (of_outer if self._squares else of_moments)(shape, self._context_bound, self._reward_bound)

    def _largest_reward(self) -> Array:
        return np.full(self._reward.shape, self._reward_bound)

    def _hidden(self) -> Arrays:
        shape = (*self._reward.shape, *self._theta.shape[1:])
        return {"parameter": np.broadcast_to(self._theta[:, np.newaxis], shape).copy()}

    def _scenery(self) -> Arrays:
        parameter = self.hidden()["parameter"]
        average = parameter if parameter.ndim == 3 else parameter.mean(axis=2)
        return {"parameter": average, "means": self._means}


def _checked_parameter(parameter: Any) -> Array:
    array = np.array(parameter, np.float64)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"parameter has shape {array.shape}; (dim,) or (num_arms, dim) is required")
    if not np.isfinite(array).all() or np.linalg.norm(array, axis=-1).max() > 1.0 + 1e-9:
        raise ValueError(
            f"parameter is {array.tolist()}; finite entries and a norm of at most 1 are required"
        )
    return array
