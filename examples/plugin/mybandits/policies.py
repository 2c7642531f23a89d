"""UCB1 on personal arms, alone or with what others have sent."""

import numpy as np

from fedbandit_envs.baselines.aggregators import InboxSpec, make_aggregator


class PersonalUCB:
    """UCB1 (Auer et al. 2002) on an agent's own pulls, to which received ones are added with a weight.

    Example:
        >>> from mybandits.env import PersonalGaussianEnv
        >>> env, policy = PersonalGaussianEnv(num_agents=2), PersonalUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 2), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation)
        array([[0, 0]])
    """

    def __init__(self, scale: float = 0.5, weight: float = 0.5) -> None:
        """Sets the constants.

        Args:
            scale: The bonus of an arm with n known pulls is ``sqrt(scale * ln t / n)``.
            weight: What a received pull counts for, in [0, 1]: others' arms have other means.
        """
        self._scale, self._weight = scale, weight

    def reset(self, spec, seeds) -> None:
        """Forgets everything."""
        self._received = None
        if "inbox_mask" in spec.observation.spaces:
            self._received = make_aggregator("sum").start(InboxSpec.of(spec, seeds.shape, "pulls", "rewards"))

    def act(self, observation) -> np.ndarray:
        """Returns the arms with the largest indices, int64 ``(replicas, agents)``; unknown arms come first."""
        pulls, rewards = (observation[f"total_{name}"].astype(float) for name in ("pulls", "rewards"))
        if self._received is not None:
            self._received.add(observation)
            # Noise can make what was received negative.
            received = np.maximum(self._received.totals["pulls"], 0.0)
            pulls += self._weight * received
            rewards += self._weight * np.clip(self._received.totals["rewards"], 0.0, received)
        t = observation["round"] + 1
        with np.errstate(divide="ignore", invalid="ignore"):
            index = rewards / pulls + np.sqrt(self._scale * np.log(t) / pulls)
        return np.where(pulls > 0, index, np.inf).argmax(axis=2)
