"""Policies of agents that follow a server's plan: which arms to pull how often in a phase."""

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.buffers import everyone
from fedbandit_envs.core.policy_spec import PolicySpec


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
        if plan is None or len(plan) != 2 or spec.chooses_sending:
            raise UnfitError(
                "a Server whose policy answers plans, with schedule='announced', is required around the environment; "
                f"its observations are {sorted(seen)} and its actions {spec.action}"
            )
        parts, self._arms = plan
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
    """The agents' side of PF-UCB: an agent that waits for others pulls the arm that it deems best (Shi et al. 2021).

    That is the arm which the agent keeps for good, if it has one, and else that with the largest mixed mean among the
    arms that remain for it: alpha (own sample mean) + (1 - alpha) (average of all agents' sample means at the last
    upload).

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
