"""LinUCB on what a server has computed from every observation of all agents, and policies for fixed features.

For fixed features there are a local UCB, and what agents of Fed-PE tell the server.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError, require_around, require_fixed, require_pool
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


def told(uploads: Arrays, mask: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """Returns the observations in uploads: replica, context, number in the pool and reward of each.

    Args:
        uploads: The uploads by name, ``(replicas, agents, ...)``.
        mask: Whose uploads these are, ``(replicas, agents)``.
        size: Number of vectors in the pool; larger numbers, which no honest agent sends, are left out.
    """
    index = uploads["index"].astype(np.int64)
    replica, agent = np.nonzero(mask & (index >= 0) & (index < size))
    rows = replica, agent
    return replica, uploads["context"][rows], index[rows], uploads["reward"][rows]


class TellingReporter:
    """Reports each agent's last observation; a server that is told in every round has them all.

    An agent that has not acted in the last round reports the number -1.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedLogistic-v0", num_agents=3, num_arms=4, dim=2)
        >>> reporter = TellingReporter()
        >>> reporter.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["context"].shape
        (1, 3, 2)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks the environment; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Contexts do not come from a pool.
        """
        require_pool(spec)
        self._pulls = np.zeros((*seeds.shape, *(spec.observation["pool_pulls"].shape or ())), np.int64)

    def observe(self, observation: Arrays) -> None:
        """Keeps the last observation; see :meth:`.Reporter.observe`."""
        grown = observation["pool_pulls"] - self._pulls
        self._told = {
            "context": observation["pulled_context"],
            "index": np.where(grown.any(axis=-1), grown.argmax(axis=-1), -1),
            "reward": observation["last_reward"][..., 0],
        }
        self._pulls[...] = observation["pool_pulls"]

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns the last observation; see :meth:`.Reporter.report`."""
        return self._told


class ServedLinUCB:
    r"""Pulls the arm with the largest upper confidence bound from the server's estimate.

    With the server's $\theta$ and $V^{-1}$ it is the arm whose context $x$ has the largest
    $\langle x, \theta \rangle + \beta \sqrt{x^\top V^{-1} x}$. Both are the agent's last download from a
    :class:`~fedbandit_envs.baselines.servers.RidgeServer` or, with a theta and a V for each arm, a
    :class:`~fedbandit_envs.baselines.servers.DisjointServer`; before the first, theta is 0 and V = ridge I. An agent
    uses no own data but those that have been to the server, and does no linear algebra but products.

    Example:
        >>> from fedbandit_envs import linear_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = linear_v0.parallel_env(num_agents=3, num_arms=4, dim=2)
        >>> env = Server(env, schedule="every_round", policy="ridge")
        >>> policy = ServedLinUCB(beta=0.5)
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, beta: float = 0.5, ridge: float = 1.0) -> None:
        """Sets the policy's constants.

        Args:
            beta: The radius, >= 0.
            ridge: Multiple of I in V before the first download, > 0.

        Raises:
            TypeError: A parameter has the wrong type.
            ValueError: A parameter is out of its range.
        """
        self._beta = require_number("beta", beta, 0, np.inf)
        self._ridge = require_number("ridge", ridge, 0, np.inf, open_below=True)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets all downloads; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that answers ``theta`` and ``inverse``, or agents choose when to upload.
        """
        seen = spec.observation.spaces
        fits = {"server_theta", "server_inverse"} <= seen.keys() and not spec.chooses_sending
        require_around(spec, fits, "a Server with policy='ridge' and a schedule fixed in advance")
        shape = seen["server_inverse"].shape or (0,)
        self._inverse = np.zeros((*seeds.shape, *shape)) + np.eye(shape[-1]) / self._ridge

    def act(self, observation: Arrays) -> Any:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        new = observation["server_mask"][..., 0]
        self._inverse[new] = observation["server_inverse"][new]
        contexts, theta = observation["contexts"], observation["server_theta"]
        if theta.ndim == 4:
            mean = (contexts * theta).sum(axis=-1)
            squared_width = np.einsum("rjad,rjade,rjae->rja", contexts, self._inverse, contexts)
        else:
            mean = (contexts @ theta[..., np.newaxis])[..., 0]
            squared_width = ((contexts @ self._inverse) * contexts).sum(axis=-1)
        return np.argmax(mean + self._beta * np.sqrt(np.maximum(squared_width, 0.0)), axis=-1)


class LocalUCB:
    r"""Pulls the arm with the largest upper confidence bound from an agent's own rewards.

    The bound of arm $i$ is

    $$m_i + \sigma \sqrt{2 \ln(1 + t \ln(t)^2) / n_i}$$

    with the mean $m_i$ of its rewards, its number of pulls $n_i$ and the number $t$ of pulls of all arms. Arms without
    pulls come first. With normal rewards $\sigma$ is their standard deviation, with others 0.5. It is the
    asymptotically optimal UCB with which the program of Huang et al. (2021) compares Fed-PE.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedFixed-v0", num_agents=3, num_arms=4)
        >>> policy = LocalUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).tolist()
        [[0, 0, 0]]
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Reads sd; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Arms do not stay the same.
        """
        require_fixed(spec)
        self._width = float(spec.public["noise_sd"]) * np.sqrt(2.0)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        pulls = observation["pool_pulls"]
        t = np.maximum(pulls.sum(axis=-1, keepdims=True), 1)
        many = np.maximum(pulls, 1)
        radius = self._width * np.sqrt(np.log1p(t * np.log(t) ** 2) / many)
        bound = observation["pool_rewards"] / many + radius
        return np.where(pulls > 0, bound, np.inf).argmax(axis=-1)


class PhasedReporter:
    """Reports sums of rewards along an agent's features, and drops arms by the server's estimates.

    The agent sends ``rewards``, for each arm the sum of its rewards times x / ||x||^2 for its features x, and
    ``shortest``, the smallest norm of its features; with a message that has ``lengths``, all of their norms.

    When the server asks (:class:`~fedbandit_envs.baselines.servers.phases.PhasedServer`), an arm stays if its upper
    confidence bound is at least the lower one of the best arm that was left before. The agent reports which arms are
    ``left`` and the number of the ``best``.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["Fed-PE"].wrap(make_federation("FedFixed-v0")).env
        >>> reporter = PhasedReporter()
        >>> reporter.reset(env.policy_spec, np.zeros((1, 100), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["rewards"].shape
        (1, 100, 10, 3)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks the environment; see :meth:`.Reporter.reset`.

        Raises:
            UnfitError: Arms have no features that stay the same, or rewards are not normal with sd > 0.
        """
        require_fixed(spec)
        # A first upload that can be exactly 0 has no direction from which the server could learn that of features.
        reward = spec.public.get("reward")
        if reward != "normal" or not spec.public["reward_sd"] > 0:
            raise UnfitError(f"reward is {reward!r}; 'normal' with reward_sd > 0 is required")
        self._names = spec.release.spaces.keys()

    def observe(self, observation: Arrays) -> None:
        """Keeps features and sums of rewards; see :meth:`.Reporter.observe`.

        Raises:
            UnfitError: All features of an arm are 0, so that nothing can be learned from it.
        """
        self._features, self._sums = observation["contexts"], observation["pool_rewards"]
        self._lengths = np.linalg.norm(self._features, axis=-1)
        if not self._lengths.all():
            raise UnfitError("contexts have norm 0 for some arm; features of a positive norm are required")

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns sums of rewards, or which arms are left; see :meth:`.Reporter.report`.

        Args:
            question: ``estimate``, the parameters of arms, ``(replicas, agents, arms, dim)``; ``spread``, ``(...,
                arms, dim, dim)``; ``radius``, three numbers from which the radius follows; and ``left``, the arms that
                were left before, ``(replicas, agents, arms)``. None for a report of sums.
        """
        x, lengths = self._features, self._lengths
        left, best = np.ones(lengths.shape, np.bool_), np.zeros(lengths.shape[:2], np.int64)
        if question is not None:
            left, best = self._remaining(question)
        message = {
            "rewards": x * (self._sums / lengths**2)[..., np.newaxis],
            "shortest": lengths.min(axis=-1),
            "lengths": lengths,
            "left": left,
            "best": best,
        }
        return {name: message[name] for name in self._names}

    def _remaining(self, question: Arrays) -> tuple[Array, Array]:
        x, left = self._features, question["left"]
        estimate = (x * question["estimate"]).sum(axis=-1)
        variance = np.einsum("rjad,rjade,rjae->rja", x, question["spread"], x)
        base, constant, slope = np.moveaxis(question["radius"], -1, 0)[..., np.newaxis]
        spread = np.maximum(base + variance, 1e-300)
        radius = np.sqrt(np.maximum(spread * (constant + slope * np.log(spread)), 0.0))
        best = np.where(left, estimate, -np.inf).argmax(axis=-1)
        lower = np.take_along_axis(estimate - radius, best[..., np.newaxis], axis=-1)
        return left & (estimate + radius >= lower), best
