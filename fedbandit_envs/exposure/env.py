"""Exposure fairness: arms are to be pulled in proportion to their merit, which is not known."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.actions import Estimates, OwnActions, Simplex, require_finite
from fedbandit_envs.core.policy_spec import ActionFormat, PolicySpec
from fedbandit_envs.core.rendering import Picture, viewers_of
from fedbandit_envs.exposure.merit import Merit, Merits, expose, make_merit, shares_of
from fedbandit_envs.linear.actions import LinearFeatures
from fedbandit_envs.linear.env import LinearProblem
from fedbandit_envs.linear.labelled import LabelledContexts
from fedbandit_envs.linear.ridge import expected_rewards
from fedbandit_envs.linear.rounds import worst_neighbours
from fedbandit_envs.randomness.draws import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose

_STEEPNESS = 10.0
"""Factor of the logits before the softmax: with logits in [-1, 1], shares can then differ by a factor of up to e^20."""


def _shares_by_logits(choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the distribution over arms that is the softmax of ten times the logits.

    Args:
        choice: Logits, ``(replicas, agents, arms)``.
        observation: The agents' observations.

    Raises:
        ValueError: A logit is not finite.
    """
    require_finite("logits", choice)
    return shares_of(_STEEPNESS * np.asarray(choice, np.float64))


def _shares_by_parameter(merits: Merits, choice: Array, observation: Mapping[str, Array]) -> Array:
    """Returns the shares that arms would deserve if an estimate of theta* were right.

    These are in proportion to f(<x, estimate>), where f is the agent's merit function and x an arm's context.

    Args:
        merits: The agents' merit functions.
        choice: Estimates of theta*, ``(replicas, agents, dim)``.
        observation: The agents' observations.

    Raises:
        ValueError: An entry of an estimate is not finite.
    """
    require_finite("parameter", choice)
    means = expected_rewards(observation["contexts"], choice)
    return shares_of(merits.logarithm(means, observation.get("merit")))


class ExposureFeatures(LinearFeatures):
    """Features of each offered arm: the linear bandit's estimates of its mean, and the share that the arm deserves.

    To the features of :class:`~fedbandit_envs.linear.actions.LinearFeatures` these are added:

    | of each arm | meaning |
    |---|---|
    | `deserved` | 2 share - 1, with the share of pulls that the arm deserves if `estimate` is right |
    | `pooled_deserved` | as `deserved`, computed from `pooled_estimate`; only where agents receive messages |
    """

    def __init__(self, spec: PolicySpec) -> None:
        """Sets the features' names, sizes and bounds, and takes the agents' merit functions from ``spec.public``."""
        super().__init__(spec)
        self._merits: Merits = spec.public["merits"]
        self._estimates = [place for place, name in enumerate(self.each) if name.endswith("estimate")]
        of_messages = ("pooled_deserved",) if self._inbox.exists else ()
        self.each = (*self.each, "deserved", *of_messages)

    def _write(self, observation: Arrays, each: Array, shared: Array) -> None:
        super()._write(observation, each, shared)
        first = len(self.each) - len(self._estimates)
        for place, estimate in enumerate(self._estimates):
            means = each[..., estimate].astype(np.float64)
            shares = shares_of(self._merits.logarithm(means, observation.get("merit")))
            each[..., first + place] = 2.0 * shares - 1.0


def _picture(scene: Arrays) -> Picture:
    """Returns agents' shares of arms by rank, and what an arm of a rank deserves and gets on average over agents."""
    rank = np.argsort(-scene["deserved"], axis=1)
    shares, deserved = (np.take_along_axis(scene[name], rank, 1) for name in ("shares", "deserved"))
    values = {"mean deserved share": deserved.mean(axis=0), "mean share": shares.mean(axis=0)}
    return Picture(shares, "share", "arm, in order of each agent's merits", values)


class ExposureEnv(LinearProblem, name="exposure_v0"):
    r"""Federated linear bandits in which every arm is to get the exposure that it deserves.

    ## Description

    In every round each agent is offered $K$ arms, each with a context $x \in \mathbb{R}^d$ that it sees, and chooses
    the probability of pulling each of them; the environment draws the arm. The expected reward of an arm is
    $\mu = \langle x, \theta^* \rangle$, with one parameter $\theta^*$, $\|\theta^*\| = 1$, that is the same for all
    agents and known to none. An arm's merit is $f(\mu)$, and what it deserves is a share of the pulls in proportion to
    its merit:

    $$\text{deserved}_i = \frac{f(\mu_i)}{\sum_k f(\mu_k)}$$

    To pull the best arm alone is no fairer than to pull at random. Agents have one merit function, or each has its own
    (Solanki's thesis, chapter 6, after Wang, Bai, Sun and Joachims, ICML 2021).

    ## Action Space

    `Simplex((num_arms,))`: a distribution over the arms, numbers >= 0 that sum to 1 (up to 1e-6; they are divided by
    their sum). A negative entry, one that is not a number, another sum, a wrong shape or dtype is an error that
    names agent and entry; the state does not change.

    Views for learning agents, which never hit the simplex exactly, also offer `action_format="logits"` (`Box(-1, 1,
    (num_arms,))`: the softmax of ten times them) and `"parameter"` (`Box(-1, 1, (dim,))`: an estimate of $\theta^*$;
    arms get what they would deserve if it were right).

    ## Observation Space

    A `Dict` for each agent; $K$ arms, $d$ dimensions:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `contexts` | (K, d) | float64 | contexts of the arms offered now, with norms at most $L$ |
    | `pulled_context` | (d,) | float64 | the context of the arm drawn in the last round |
    | `last_reward` | (1,) | float64 | the reward of the last round, in $[-B, B]$ |
    | `total_statistic` | (d + 1, d + 1) | float64 | $\sum [x; y][x; y]^\top$ over all rounds so far |
    | `merit` | (1,) | int64 | number of the agent's merit function; only where there are several |

    Before the first round the third to fifth entries are 0. In `total_statistic` $x$ is the context of the arm drawn in
    a round and $y$ its reward. Policies find the merit functions in `PolicySpec.public["merits"]`, and beside them how
    noisy rewards are (`noise_sd` and `reward_variance`, see :class:`~fedbandit_envs.linear.env.LinearEnv`).

    Views for learning agents also offer `features=True`: a flat box of features in [-1, 1] instead of this `Dict`, see
    :class:`~fedbandit_envs.exposure.env.ExposureFeatures`.

    ## Starting State

    $\theta^*$ is drawn uniformly from $[0, 1]^d$ and scaled to norm 1 (or drawn from another distribution, or given),
    and the first arms are offered. With `instance_seed=None` every episode draws its own $\theta^*$ from the episode's
    seed; an integer fixes it, and the episode's seed then draws contexts, arms and rewards only.

    ## Rewards

    The reward of the drawn arm: $N(\langle x, \theta^* \rangle, \text{sd}^2)$, clipped to $[-B, B]$, or another
    distribution of the linear problem.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the **fairness regret** $\sum_i |\text{deserved}_i - \text{share}_i|$, from 0 to 2, in expectation over
      the arm drawn.
    * `reward_regret`: $\sum_i \text{deserved}_i \, \mu_i - \sum_i \text{share}_i \, \mu_i$, where $\mu_i$ is the mean
      of arm $i$. It is negative if the agent's shares have a larger expected reward than the deserved shares, as for a
      best-arm learner.
    * `arm`: the arm that was drawn; 0 for agents that did not act.
    * `clipped`: whether the reward was clipped.

    ## Arguments

    See the constructor. All of them are JSON-serialisable.

    ## Registered Configurations

    | id | arms and merits |
    |---|---|
    | `FedExposure-v0` | contexts uniform on $[0, 1]^5 / \sqrt{5}$, $f(\mu) = e^{10 \mu}$, sd 0.1; 10 agents, 10 arms |
    | `FedExposureNoisy-v0` | the same with sd 0.5 and rewards clipped to $[-2.5, 2.5]$ |
    | `FedExposureLinear-v0` | the same with $f(\mu) = \max(\mu, 0.1)$ |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.exposure_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import exposure_v0
    >>> env = exposure_v0.parallel_env(num_agents=2, num_arms=4, dim=3)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: [0.25] * 4 for agent in env.agents})
    >>> sorted(observations), infos["agent_0"]["regret"] >= 0
    (['agent_0', 'agent_1'], True)

    ```

    ## References

    * S. Solanki: Optimizing Federated Agents For Fairness And Privacy In Bandits. Master's thesis, IIIT Hyderabad,
      2024; chapter 6.
    * L. Wang, Y. Bai, W. Sun, T. Joachims: Fairness of Exposure in Stochastic Bandits. ICML 2021.

    ## Version History

    * v0: first version.
    """

    defaults = {  # noqa: RUF012 - never written to
        "num_agents": 10,
        "num_arms": 10,
        "dim": 5,
        "contexts": "hypercube",
        "reward": "normal",
        "parameter": "orthant",
    }
    information = {  # noqa: RUF012 - never written to
        "reward_regret": np.float64,
        "arm": np.int64,
        "clipped": np.bool_,
    }
    viewers = viewers_of(_picture)
    features = ExposureFeatures
    neighbours = staticmethod(partial(worst_neighbours, as_shares=True))

    def __init__(
        self, merit: Merit | str | Mapping[str, Any] | Sequence[Any] = "exponential", **linear: Any
    ) -> None:
        """Creates the federation; theta* is drawn at reset.

        Args:
            merit: The merit function f, see :mod:`fedbandit_envs.exposure.merit`; or a sequence of them, one an agent.
            **linear: Arguments of the linear model, see :class:`~fedbandit_envs.linear.env.LinearProblem`.

        Raises:
            TypeError: A parameter has the wrong type, or is unknown.
            ValueError: A parameter is out of its range, or does not fit the others.
        """
        if isinstance(merit, Sequence) and not isinstance(merit, str):
            self._merits = Merits(tuple(make_merit(spec) for spec in merit), one_each=True)
        else:
            self._merits = Merits((make_merit(merit),), one_each=False)
        super().__init__(**linear)
        self.public = {**self.public, "merits": self._merits}
        labelled = isinstance(self._distribution, LabelledContexts)
        if labelled or self._logistic or (self._parameter is not None and self._parameter.ndim == 2):
            raise ValueError(
                "reward is 'logistic', parameter has an axis of arms, or contexts are a labelled table; rewards that "
                "are linear in one parameter are required"
            )

    def _formats(self, agents: int, arms: int, dim: int) -> Mapping[str, ActionFormat]:
        given = len(self._merits.functions)
        if self._merits.one_each and given != agents:
            raise ValueError(
                f"merit is a sequence of {given}; one function for all, or num_agents = {agents} of them, are required"
            )
        return {
            "distribution": OwnActions(Simplex((arms,))),
            "logits": Estimates(arms, _shares_by_logits),
            "parameter": Estimates(dim, partial(_shares_by_parameter, self._merits)),
        }

    def _also_seen(self) -> Mapping[str, spaces.Space[Any]]:
        if not self._merits.one_each:
            return {}
        return {"merit": spaces.Box(0, len(self._merits.functions) - 1, (1,), np.int64)}

    @property
    def totals(self) -> Arrays:
        """Sums over the episode for reports: number of ``pulls`` of each arm, and the shares that it ``deserved``.

        Both arrays are float64 ``(replicas, agents, arms)``.
        """
        return {name: array.copy() for name, array in self._totals.items()}

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        super()._start(randomness, instance_seeds)
        self._arms = randomness.draws(Purpose.ARM)
        self._deserved = np.zeros(self._means.shape)
        self._shares = np.zeros(self._means.shape)
        self._totals = {name: np.zeros(self._means.shape) for name in ("pulls", "deserved")}
        if self._merits.one_each:
            self._observation["merit"][..., 0] = np.arange(self.max_num_agents)

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the shares that arms deserve; see :meth:`.Problem.clairvoyant`."""
        return shares_of(self._merits.logarithm(self._means, observation.get("merit")))

    def _play_round(self, action: Array) -> None:
        # Merits are computed first, before any state changes, since a user's own function may raise an error.
        logarithms = self._merits.logarithm(self._means, self._observation.get("merit"))
        info = self._info
        expose(
            self._active, action, logarithms, self._means, *self._arms,
            self._deserved, info["arm"], info["regret"], info["reward_regret"], *self._totals.values(),
        )  # fmt: skip
        self._shares[...] = action
        self._pull(info["arm"])

    def _scenery(self) -> Arrays:
        return {**super()._scenery(), "shares": self._shares, "deserved": self._deserved}
