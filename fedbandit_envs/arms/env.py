"""Bernoulli arms: agents pull arms whose means they share, or nearly so."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.arms import actions, rounds
from fedbandit_envs.arms.ratings import DataName
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.problem import MOST, Problem
from fedbandit_envs.core.rendering import viewers_of
from fedbandit_envs.randomness.draws import EpisodeRandomness
from fedbandit_envs.randomness.streams import Purpose


class ArmsEnv(Problem, name="arms_v0"):
    r"""Federated Bernoulli bandits.

    ## Description

    In every round each agent pulls one of $K$ arms, or a superarm (a set) of $m$ of them. Arm $k$ succeeds with a
    probability $\mu_k$, its mean, that no agent knows. Either all agents have the same means, so that the data of one
    are useful to all; or each agent has its own means near the common ones (`spread`). Arms may sleep: in each round
    and for each agent every arm is available with the probability `awake`. (One agent: Auer et al. 2002; superarms:
    Chen et al. 2013; sleeping arms: Kleinberg et al. 2010.)

    In SAMBA's vertical federation each data owner has one of these arms: `fedbandit_envs.samba.owners`.

    ## Action Space

    `Discrete(num_arms)`: the arm to pull. With `slots=m` > 1 `MultiDiscrete([num_arms] * m)`: the arms of the superarm,
    in any order. A slot with an arm that sleeps, or that another slot pulls already, pulls nothing; such slots are
    counted in `info["wasted"]`. An integer out of range, a wrong shape or dtype is an error that names agent and value;
    the state does not change.

    Views for learning agents also offer `action_format="values"` (`Box(0, 1, (num_arms,))`: estimates of the means, of
    which the largest m awake are pulled).

    ## Observation Space

    A `Dict` for each agent; $K$ arms:

    | key | shape | dtype | meaning |
    |---|---|---|---|
    | `round` | (1,) | int64 | rounds played so far |
    | `total_pulls` | (K,) | int64 | how often the agent has pulled each arm |
    | `total_successes` | (K,) | int64 | how many of these pulls succeeded |
    | `awake` | (K,) | bool | which arms can be pulled now; only with `awake` < 1 |

    Views for learning agents also offer `features=True`: a flat box of features in [-1, 1] instead of this `Dict`, see
    :class:`~fedbandit_envs.arms.actions.ArmsFeatures`.

    ## Starting State

    Means are drawn from $U[0, 1]$ (or taken as given, with `permuted` in a random order) and nothing has been pulled.
    With `instance_seed=None` every episode draws its own means, or their order, from the episode's seed; an integer
    fixes them, and the episode's seed then draws outcomes only.

    ## Rewards

    The number of successes, up to m. Every arm of a superarm is observed by itself (semi-bandit).

    ## Episode End

    Never terminates; truncates after `max_cycles` rounds.

    ## Information

    After each step, one number for each agent; after reset the same names with zeros:

    * `regret`: the sum of the means of the best superarm of awake arms, minus the sum of the means of the arms that
      were pulled, $\max_S \sum_{k \in S} \mu_k - \sum_{k \text{ pulled}} \mu_k$. With `regret="own"` these are the
      agent's own means; with `"federation"` they are averaged over all agents, so that an agent whose own means differ
      can have regret even with its own best arm; with a number $\alpha$ they are $\alpha$ times the former plus
      $1 - \alpha$ times the latter.
    * `wasted`: slots that pulled nothing.

    ## Arguments

    See the constructor. All of them are JSON-serialisable.

    ## Registered Configurations

    | id | what it is |
    |---|---|
    | `FedArms-v0` | means from $U[0, 1]$, 10 arms; 10 agents |
    | `FedArmsMovieLens-v1` | means of 100 films in random order, `means="movielens"`, `permuted=True` |
    | `FedArmsJester-v1` | means of 100 jokes in random order, `means="jester"`, `permuted=True` |
    | `FedArmsSleeping-v0` | an arm is available with probability 0.7, `awake=0.7` |
    | `FedArmsSuper-v0` | superarms of three arms, `slots=3` |
    | `FedArmsSpread-v0` | agents' means differ by up to 0.2 from the common ones, `spread=0.2` |
    | `FedArmsUnreliable-v0` | messages along a ring in rounds 1, 2, 4, ..., delayed, a fifth lost and a fifth doubled |

    The means of films and jokes are those of SAMBA's experiments: the share of all users who rated an item high. With a
    smaller `num_arms` the largest means are kept. In version 1 of these two ids the episode's seed draws the order of
    the arms; in version 0, `FedArmsMovieLens-v0` and `FedArmsJester-v0`, it is the data set's in all episodes, so that
    a policy that knows the number of the best arm has no regret. `fedbandit_envs.arms.ratings` computes means from any
    table of ratings.

    `gym.make(id)` is one learning agent among peers, `gym.make(id, joint=True)` controls all agents;
    `fedbandit_envs.arms_v0.parallel_env()` is the federation itself, `env()` the same agent after agent.

    ## Example

    ```python
    >>> from fedbandit_envs import arms_v0
    >>> env = arms_v0.parallel_env(num_agents=2, num_arms=3)
    >>> observations, infos = env.reset(seed=7)
    >>> observations, rewards, _, _, infos = env.step({agent: 0 for agent in env.agents})
    >>> sorted(observations), infos["agent_0"]["regret"] >= 0
    (['agent_0', 'agent_1'], True)

    ```

    ## References

    * P. Auer, N. Cesa-Bianchi, P. Fischer: Finite-time Analysis of the Multiarmed Bandit Problem. Machine Learning
      2002.
    * W. Chen, Y. Wang, Y. Yuan: Combinatorial Multi-Armed Bandit: General Framework and Applications. ICML 2013.
    * R. Ciucanu, P. Lafourcade, G. Marcadet, M. Soare: SAMBA: A Generic Framework for Secure Federated Multi-Armed
      Bandits. JAIR 2022.
    * R. Kleinberg, A. Niculescu-Mizil, Y. Sharma: Regret Bounds for Sleeping Experts and Bandits. Machine Learning
      2010.

    ## Version History

    * v1 (`FedArmsMovieLens`, `FedArmsJester`): the episode's seed draws the order of the arms.
    * v0: first version.
    """

    statistics = ("pulls", "successes")
    information = {"wasted": np.int64}  # noqa: RUF012 - never written to
    viewers = viewers_of(actions.picture)
    features = actions.ArmsFeatures
    neighbours = staticmethod(rounds.worst_neighbours)

    def __init__(
        self,
        num_agents: int | None = None,
        num_arms: int | None = None,
        max_cycles: int = 1000,
        means: DataName | Any = None,
        spread: float = 0.0,
        regret: rounds.Aim = "own",
        slots: int = 1,
        oracle: str = "largest",
        awake: float = 1.0,
        permuted: bool = False,
        instance_seed: int | Sequence[int] | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Creates the federation; means are drawn at reset.

        Args:
            num_agents: Number of agents; 10 by default, or as many as means are given for.
            num_arms: Number of arms K; 10 by default, or as many as means are given. Of a data set or table the arms
                with the largest means are kept.
            max_cycles: Rounds until truncation.
            means: None draws them from U[0, 1]; ``"movielens"`` or ``"jester"``; those of your own table of ratings,
                ``{"name": "ratings", "table": "ratings.csv", "scale": [1, 5], "threshold": 4, "agent": "region"}``, in
                which each region is then an agent with its own means (without ``"agent"`` all agents have the same;
                further entries are the arguments of :func:`~fedbandit_envs.arms.ratings.table_means`); or means that
                stay, ``(num_arms,)`` or ``(num_agents, num_arms)``, arrays or nested lists.
            spread: In [0, 1]: each agent's means differ from the common ones by U[-spread, spread], clipped to
                [0, 1].
            regret: The means by which regret is measured: the agent's ``"own"``; ``"federation"``, the average over
                all agents; or alpha in [0, 1] for alpha times the former plus 1 - alpha times the latter.
            slots: m, how many arms an agent pulls in a round; at most ``num_arms``.
            oracle: The function that finds the best superarm: ``"largest"`` takes the arms with the largest means; the
                entry point of an :data:`~fedbandit_envs.arms.actions.Oracle` is needed where not every set of m arms is
                a superarm.
            awake: In (0, 1]: the probability with which an arm can be pulled, for each agent and round by itself.
            permuted: Whether each instance has the arms in a random order of its own, the same for all agents, so that
                the number of an arm says nothing about its mean; other random numbers stay the same.
            instance_seed: None draws new means in each episode; an integer fixes them; from a sequence of n integers,
                an episode with seed s takes entry s mod n.
            render_mode: None, ``"ansi"`` or ``"rgb_array"`` (needs matplotlib).

        Raises:
            ImportError: A table is to be read without the ``[data]`` extra.
            OSError: A table cannot be read.
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range, or a table is malformed.
        """
        self._weight_of_own = rounds.weight_of_own(regret)
        self._chance = require_number("awake", awake, 0, 1, open_below=True)
        self._slots = require_integer("slots", slots, 1)
        self._distribution = rounds.Means(means, num_agents, num_arms, spread, permuted)
        agents, arms = self._distribution.shape
        if slots > arms:
            raise ValueError(f"slots is {slots}; at most {arms}, the number of arms, is required")
        self._oracle = actions.make_oracle(oracle)
        self.approximate_oracle = oracle != "largest"
        counts = spaces.Box(0, MOST, (arms,), np.int64)
        seen: dict[str, spaces.Space[Any]] = {"total_pulls": counts, "total_successes": counts}
        if awake < 1:
            seen["awake"] = spaces.Box(0, 1, (arms,), np.bool_)
        super().__init__(
            num_agents=agents,
            max_cycles=max_cycles,
            observation=seen,
            hidden={"mean": spaces.Box(0.0, 1.0, (arms,), np.float64)},
            action_formats=actions.arm_formats(arms, slots),
            instance_seed=instance_seed,
            render_mode=render_mode,
        )

    def _start(self, randomness: EpisodeRandomness, instance_seeds: Sequence[int]) -> None:
        self._means = self._distribution.draw(instance_seeds)
        self._cutoffs = _cutoff(self._means)
        self._values = self._means
        if self._weight_of_own < 1:
            average = self._means.mean(axis=1, keepdims=True)
            self._values = self._weight_of_own * self._means + (1 - self._weight_of_own) * average
        self._best = np.zeros(self._means.shape[:2])
        self._outcomes = randomness.draws(Purpose.OUTCOME)
        self._sleeping = randomness.draws(Purpose.CONTEXT)
        self._awake = self._observation.get("awake", np.ones(self._means.shape, np.bool_))
        self._measure()

    def _measure(self) -> None:
        """Sets each agent's best superarm and ``_best``, its value, against which regret is measured."""
        best = self._superarms = self._oracle(np.where(self._awake, self._values, -np.inf), self._slots)
        shape, arms = (*self._best.shape, self._slots), self._distribution.shape[1]
        if best.shape != shape or best.dtype.kind not in "iu" or best.min() < 0 or best.max() >= arms:
            raise ValueError(
                f"oracle returns {best.dtype} of shape {best.shape}, from {best.min()} to {best.max()}; arms, integers "
                f"in [0, {arms - 1}] of shape (replicas, agents, slots) = {shape}, are required"
            )
        rounds.add_values(np.ascontiguousarray(best), self._awake, self._values, self._best)

    def _draw_round(self) -> None:
        if self._chance == 1.0:
            return
        rounds.wake(self._active, *self._sleeping, _cutoff(self._chance), self._awake)
        self._measure()

    def _play_round(self, action: Array) -> None:
        rounds.play_round(
            self._active, action.reshape(*self._best.shape, self._slots), *self._outcomes,
            self._awake, self._cutoffs, self._values, self._best,
            self._observation["total_pulls"], self._observation["total_successes"],
            self._reward, self._info["regret"], self._info["wasted"],
        )  # fmt: skip

    def _learn(self, action: Array, outcome: Any) -> None:
        """Adds pulls and successes; ``outcome`` has for each slot whether its arm succeeded, 0 or 1 ``(slots,)``."""
        awake = self._observation.get("awake", np.ones((1, 1, self._distribution.shape[1]), np.bool_))[0, 0]
        grown = rounds.statistic(action.reshape(self._slots), outcome, awake)
        for name, array in grown.items():
            self._observation[f"total_{name}"][0, 0] += array

    def _sensitivity(self) -> Sensitivity:
        return rounds.sensitivity(self._observation["total_pulls"])

    def _largest_reward(self) -> Array:
        return np.full(self._reward.shape, float(self._slots))

    def clairvoyant(self, observation: Arrays) -> Array:
        """Returns the best superarm of those that are awake; see :meth:`.Problem.clairvoyant`."""
        return self._superarms[..., 0] if self._slots == 1 else self._superarms

    def _hidden(self) -> Arrays:
        return {"mean": self._means.copy()}


def _cutoff(chance: Any) -> Any:
    """Returns the int64 cutoff below which a random 32-bit word lies with a given probability, rounded to 2^-32.

    The probability 0 gives the cutoff 0 (never below), and 1 gives 2^32 (always below).
    """
    return np.rint(np.multiply(chance, 2.0**32)).astype(np.int64)
