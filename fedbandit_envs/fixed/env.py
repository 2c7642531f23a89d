"""The linear bandit whose arms keep their features, which differ between agents."""

from fedbandit_envs.linear.env import LinearEnv


class FixedEnv(LinearEnv, name="fixed_v0"):
    r"""Federated linear bandits with fixed features.

    ## Description

    Each agent i has K arms, whose features x_ia in R^d stay the same in all rounds. The expected reward of arm a is
    <x_ia, theta_a>, where the parameter theta_a is the same for all agents (Huang et al. 2021). So an agent learns
    about its own arm from others' pulls of theirs, but each agent's best arm is its own.

    ## Action Space

    `Discrete(num_arms)`: the arm to pull. Views for learning agents also offer the formats of
    :class:`~fedbandit_envs.linear.env.LinearEnv`.

    ## Observation Space

    That of :class:`~fedbandit_envs.linear.env.LinearEnv` with its entries for contexts from a pool, which here is the
    agent's arms: `pool_index`, `pool_pulls` and `pool_rewards`. Before the first round everything but `contexts` and
    `pool_index` is 0.

    ## Starting State

    Features are drawn for each agent: a first entry between 0.5 and 0.6 and little ones besides, but for one arm, never
    the last one, whose first entry lies between 0.7 and 0.8. All parameters are (1, 0, ..., 0), which agents are not
    told. Features follow from the instance's seed.

    ## Rewards

    The expected reward and normal noise of standard deviation `reward_sd`, clipped to [-B, B].

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the largest expected reward of the agent's arms, less that of the arm pulled.
    * `clipped`: whether the reward was clipped.

    ## Arguments

    Those of :class:`~fedbandit_envs.linear.env.LinearEnv`, with other defaults. `contexts` can be an array of features,
    `(num_agents, num_arms, dim)`, and `parameter` an array with one parameter for each arm, `(num_arms, dim)`.

    ## Registered Configurations

    | id | features and rewards |
    |---|---|
    | `FedFixed-v0` | drawn as above, d = 3, noise of sd 1; 100 agents, 10 arms (Huang et al.) |

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.fixed_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import fixed_v0
    >>> env = fixed_v0.parallel_env(num_agents=2, num_arms=5)
    >>> before, infos = env.reset(seed=7)
    >>> after, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
    >>> bool((before["agent_1"]["contexts"] == after["agent_1"]["contexts"]).all())
    True

    ```

    ## References

    * R. Huang, W. Wu, J. Yang, C. Shen: Federated Linear Contextual Bandits. NeurIPS 2021.

    ## Version History

    * v0: first version.
    """

    defaults = {  # noqa: RUF012 - never written to
        "num_agents": 100,
        "num_arms": 10,
        "dim": 3,
        "contexts": "separated",
        "reward": "normal",
        "parameter": "first_axis",
    }
