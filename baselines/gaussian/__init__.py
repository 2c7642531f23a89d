"""Policies for federations of unlike agents with Gaussian arms: UCB, plans of a server, and PF-UCB's agents."""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from fedbandit_envs.baselines.policy import require_around
from fedbandit_envs.basics.arrays import Array, Arrays, everyone
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import InboxTotals, PolicySpec


class GaussianUCB:
    r"""Pulls the arm with the largest upper confidence bound from own and received rewards.

    The bound of arm $i$ in round $t$ is $m_i + c \sqrt{2 \sigma^2 \ln t / n_i}$: $n_i$ is the number of pulls, own and
    received, $m_i$ the mean of their rewards, $\sigma$ their known standard deviation, and $c$ is ``radius_scale``.
    Arms without pulls come first. Where all agents hear all others in every round, all pull the same arm,
    and the bound is that of the global mean.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> env = gaussian_v0.parallel_env(num_agents=3, num_arms=4)
        >>> policy = GaussianUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def __init__(self, radius_scale: float = 1.0) -> None:
        """Sets the factor of the confidence radius, >= 0.

        Raises:
            TypeError: ``radius_scale`` is no number.
            ValueError: It is below 0.
        """
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets what was received; see :meth:`Policy.reset`."""
        arms = spec.observation["total_pulls"].shape or (0,)
        self._width = self._scale * sqrt(2.0) * spec.public["reward_sd"]
        self._inbox = InboxTotals(spec, {"pulls": arms, "rewards": arms})
        self._inbox.reset(seeds.shape)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        pulls, sums = observation["total_pulls"], observation["total_rewards"]
        if self._inbox.exists:
            if observation["inbox_mask"].any():
                self._inbox.add(observation)
            pulls, sums = pulls + self._inbox.totals["pulls"], sums + self._inbox.totals["rewards"]
        many = np.maximum(pulls, 1.0)
        radius = self._width * np.sqrt(np.log(observation["round"] + 1) / many)
        return np.where(pulls > 0, sums / many + radius, np.inf).argmax(axis=-1)


class NamedArm:
    """Pulls the arm that the server has named last.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.wrappers import Server
        >>> env = Server(make_federation("FedMixed-v0"), "every_round", "every_round", policy="leader")
        >>> policy = NamedArm()
        >>> policy.reset(env.policy_spec, np.zeros((1, 4), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 4)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Checks that there is a server; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that names arms, or agents choose when to upload.
        """
        fits = "server_arm" in spec.observation.spaces and not spec.chooses_sending
        require_around(spec, fits, "a Server whose policy answers an arm, with a schedule fixed in advance,")

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        return observation["server_arm"].copy()


class PlannedPulls:
    """Pulls the arms of the server's plan in order, each as often as planned, and then the arm ``server_rest``.

    The plan, ``server_pulls``, is an array of numbers of pulls, ``(parts, arms)``, whose rows are carried out in order.
    The next plan replaces it when it arrives.

    Example:
        >>> from fedbandit_envs import gaussian_v0
        >>> from fedbandit_envs.wrappers import Server
        >>> env = gaussian_v0.parallel_env(num_agents=3, num_arms=4)
        >>> env = Server(env, schedule="announced", answers="every_round", policy={"name": "elimination", "pulls": 5})
        >>> policy = PlannedPulls()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).shape
        (1, 3)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets the plan; see :meth:`Policy.reset`.

        Raises:
            UnfitError: There is no server that answers plans, or agents choose when to upload.
        """
        seen = spec.observation.spaces
        plan = seen["server_pulls"].shape if "server_pulls" in seen else None
        fits = plan is not None and len(plan) == 2 and not spec.chooses_sending
        require_around(spec, fits, "a Server whose policy answers plans, with schedule='announced',")
        parts, self._arms = plan or (0, 0)
        self._reach = np.zeros((*seeds.shape, parts * self._arms), np.int64)
        self._place = np.zeros(seeds.shape, np.int64)
        self._everyone = everyone(*seeds.shape, 1)
        self._begun = False

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        active = observation.get("active", self._everyone)[..., 0]
        new = observation["server_mask"][..., 0] if self._begun else active
        self._begun = True
        if new.any():
            pulls = observation["server_pulls"][new]
            self._reach[new] = pulls.reshape(len(pulls), -1).cumsum(axis=1)
            self._place[new] = 0
        part = (self._place[..., np.newaxis] >= self._reach).sum(axis=-1)
        rests = part == self._reach.shape[-1]
        arm = part % self._arms
        if rests.any():
            arm = np.where(rests, self._rest(observation), arm)
        self._place += active
        return arm

    def _rest(self, observation: Arrays) -> Array:
        """Returns the arm that an agent pulls when it has done its part of a phase, ``(replicas, agents)``."""
        return observation["server_rest"]


class PersonalPulls(PlannedPulls):
    r"""The agents' side of PF-UCB: an agent that waits for others pulls the arm that it deems best (Shi et al. 2021).

    That is the arm which the agent keeps for good, if it has one, and else that with the largest mixed mean among the
    arms that remain for it: $\alpha m_{ji} + (1 - \alpha) \frac{1}{M} \sum_k m_{ki}$ for agent $j$ of $M$ and arm $i$,
    with the sample means $m_{ki}$ of all agents at the last upload.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> from fedbandit_envs.baselines import BASELINES
        >>> env = BASELINES["PF-UCB"].wrap(make_federation("FedMixed-v0"))
        >>> policy = PersonalPulls()
        >>> policy.reset(env.policy_spec, np.zeros((1, 4), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).tolist()
        [[0, 0, 0, 0]]
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Forgets the plan; see :meth:`PlannedPulls.reset`."""
        super().reset(spec, seeds)
        self._alpha = float(spec.public["alpha"])

    def _rest(self, observation: Arrays) -> Array:
        own = observation["total_rewards"] / np.maximum(observation["total_pulls"], 1)
        worth = self._alpha * own + (1 - self._alpha) * observation["server_mean"]
        best = np.where(observation["server_own"], worth, -np.inf).argmax(axis=-1)
        fixed = observation["server_fixed"]
        return np.where(fixed >= 0, fixed, best)


class PersonalReporter:
    """Reports an agent's sample means and, when the server asks with their averages, which arms remain for the agent.

    An arm remains if its mixed mean, alpha (own sample mean) + (1 - alpha) (average of all agents' sample means), is at
    most two radii below the largest mixed mean among the arms that remained before. Together with the arms the agent
    reports gaps d = min(1, largest mixed mean - mixed mean + 2 radii) for the enhanced algorithm. The radius comes with
    the question (:class:`~fedbandit_envs.baselines.servers.plans.PersonalServer`).

    Example:
        >>> from fedbandit_envs import make_federation
        >>> reporter = PersonalReporter()
        >>> env = make_federation("FedMixed-v0")
        >>> reporter.reset(env.policy_spec, np.zeros((1, 4), np.uint64))
        >>> reporter.observe(env.reset_batch([0]).observation)
        >>> reporter.report(None)["means"].shape
        (1, 4, 9)
    """

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Stores alpha, the weight of an agent's own mean; see :meth:`.Reporter.reset`."""
        self._alpha = float(spec.public["alpha"])

    def observe(self, observation: Arrays) -> None:
        """Keeps the sample means of all arms; see :meth:`.Reporter.observe`."""
        self._means = observation["total_rewards"] / np.maximum(observation["total_pulls"], 1)

    def report(self, question: Arrays | None) -> Mapping[str, Array]:
        """Returns means, remaining arms and gaps; see :meth:`.Reporter.report`.

        Args:
            question: ``mean``, the averages of sample means, and ``arms``, the arms that remained for the agent before,
                bool, each ``(replicas, agents, arms)``; and ``radius``, ``(replicas, agents)``. None for a report of
                sample means alone.
        """
        nothing = np.zeros(self._means.shape)
        if question is None:
            return {"means": self._means, "arms": nothing.astype(np.bool_), "gaps": nothing}
        mixed = self._alpha * self._means + (1 - self._alpha) * question["mean"]
        had, twice = question["arms"], 2 * question["radius"][..., np.newaxis]
        best = np.where(had, mixed, -np.inf).max(axis=-1, keepdims=True)
        short = np.where(np.isfinite(best), best, mixed) - mixed
        return {
            "means": self._means,
            "arms": had & (short <= twice),
            "gaps": np.clip(short + twice, 0.0, 1.0),
        }


PEERS = GaussianUCB
"""The policy of a learner's peers, unless the learner's environment is told another."""
