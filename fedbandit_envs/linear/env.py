"""The linear contextual bandit: agents learn one parameter from contexts of their own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy  # imports its large parts, such as special, only when they are used
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.actions import Estimates, OwnActions
from fedbandit_envs.core.policy_spec import ActionFormat
from fedbandit_envs.linear.actions import arm_by_parameter, arm_by_values
from fedbandit_envs.linear.features import LinearFeatures
from fedbandit_envs.linear.model import LinearProblem
from fedbandit_envs.linear.neighbours import worst_neighbours
from fedbandit_envs.linear.pools import FixedContexts
from fedbandit_envs.linear.rounds import pseudo_regret
from fedbandit_envs.linear.viewer import render_ansi, render_rgb_array


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
    :class:`~fedbandit_envs.linear.features.LinearFeatures`.

    ## Starting State

    $\theta^*$ is drawn uniformly from the unit sphere (or taken as given), and the first arms are offered. With
    `instance_seed=None` every episode draws its own $\theta^*$ from the episode's seed; an integer fixes it, and pools
    or separated contexts with it, and the episode's seed then draws all the rest.

    ## Rewards

    The reward of the pulled arm, with the mean $\mu = \langle x, \theta^* \rangle$, is drawn from
    $\text{Beta}(\mu, 1 - \mu)$ (as in the paper), $\text{Bernoulli}(\mu)$ or $N(\mu, \text{sd}^2)$, and clipped to
    $[-B, B]$. Logistic rewards are Bernoulli with the mean $1 / (1 + e^{-\langle x, \theta^* \rangle})$. Beta and
    Bernoulli rewards need means in $[0, 1]$. Contexts from the band have such means; others raise an error with these
    rewards, unless contexts and $\theta^*$ are given and all means lie there. A table that has the rewards of all arms
    can be played as it is (`exact`): $\mu$ is then the arm's reward in the row, whether or not it is linear.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the largest expected reward of the arms that were offered, less that of the arm pulled (pseudo-regret:
      clipping of rewards does not change it).
    * `clipped`: whether the reward was clipped.

    ## Arguments

    See the constructor. All of them are JSON-serialisable. Arms can be documents of your own copy of MSLR-WEB10K, see
    :func:`~fedbandit_envs.linear.queries.read_queries`, and contexts the rows of your own table, see
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
    viewers = {"ansi": render_ansi, "rgb_array": render_rgb_array}  # noqa: RUF012 - never written to
    features = LinearFeatures
    neighbours = staticmethod(worst_neighbours)

    def _formats(self, agents: int, arms: int, dim: int) -> Mapping[str, ActionFormat]:
        return {
            "arm": OwnActions(spaces.Discrete(arms)),
            "parameter": Estimates(dim, arm_by_parameter),
            "values": Estimates(arms, arm_by_values),
        }

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the arm with the largest mean; see :meth:`.Problem.clairvoyant`."""
        return self._means.argmax(axis=-1)

    @property
    def public(self) -> Mapping[str, Any]:
        """Public constants: ``fixed``, whether arms stay the same in all rounds, and the law of rewards.

        The law is ``reward``, the name of the distribution, with ``reward_sd`` for normal and, for logistic rewards,
        ``least_slope``, the slope of the logistic function at L, the largest <x, theta*>.
        """
        law, largest = self._rewards, self._context_bound
        known = {"reward_sd": law.sd} if law.name == "normal" else {}
        if law.logistic:
            known["least_slope"] = float(np.prod(scipy.special.expit([largest, -largest])))
        return {"fixed": isinstance(self._distribution, FixedContexts), "reward": law.name, **known}

    def _play_round(self, action: Array) -> None:
        pseudo_regret(self._active, action, self._means, self._info["regret"])
        self._pull(action)
