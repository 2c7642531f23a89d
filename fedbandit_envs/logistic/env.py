"""The logistic contextual bandit, in which sums of sufficient statistics do not tell an agent what to do."""

from fedbandit_envs.linear.env import LinearEnv


class LogisticEnv(LinearEnv, name="logistic_v0"):
    r"""Federated logistic bandits with a pool of contexts.

    ## Description

    In every round each agent is offered K vectors x in R^d of a pool of P, drawn with replacement, and pulls one. The
    reward is 1 with the probability 1 / (1 + exp(-<x, theta*>)), else 0, with one parameter theta* for all agents (Li
    and Wang 2022). The best estimate of theta* solves an equation that agents cannot solve from sums of [x; y]: they
    send gradients, or a server sends them models.

    ## Action Space

    `Discrete(num_arms)`: the place of the vector to pull. Views for learning agents also offer the formats of
    :class:`~fedbandit_envs.linear.env.LinearEnv`.

    ## Observation Space

    That of :class:`~fedbandit_envs.linear.env.LinearEnv` with its entries for contexts from a pool: `pool_index`,
    `pool_pulls` and `pool_rewards`. Before the first round everything but `contexts` and `pool_index` is 0.

    ## Starting State

    theta* is drawn uniformly from the unit sphere, and the pool from Li and Wang's law: before they are scaled to norm
    L, the first d - 1 vectors are e_i + e_d, the next one is e_d, and all others are (u, 1) with u uniform on the unit
    sphere. Both follow from the instance's seed.

    ## Rewards

    The reward of the pulled vector, 0 or 1.

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the largest probability of a reward among the vectors that were offered, less that of the one pulled.
    * `clipped`: whether the reward was clipped.

    ## Arguments

    Those of :class:`~fedbandit_envs.linear.env.LinearEnv`, with other defaults. `contexts` can be any of its laws.

    ## Registered Configurations

    | id | contexts and rewards |
    |---|---|
    | `FedLogistic-v0` | a pool of 1,000 vectors of norm sqrt(2), d = 10; 200 agents, 25 arms, 2,000 rounds (Li and Wang) |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.logistic_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import logistic_v0
    >>> env = logistic_v0.parallel_env(num_agents=2, num_arms=5, dim=3)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
    >>> set(rewards.values()) <= {0.0, 1.0}, int(observations["agent_0"]["pool_pulls"].sum())
    (True, 1)

    ```

    ## References

    * C. Li, H. Wang: Communication Efficient Federated Learning for Generalized Linear Bandits. NeurIPS 2022.

    ## Version History

    * v0: first version.
    """

    defaults = {  # noqa: RUF012 - never written to
        "num_agents": 200,
        "num_arms": 25,
        "dim": 10,
        "contexts": "pool",
        "reward": "logistic",
        "parameter": "sphere",
    }
