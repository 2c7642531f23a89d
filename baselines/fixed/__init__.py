"""Policies for linear bandits with fixed features: a local UCB, and what agents of Fed-PE tell the server."""

from collections.abc import Mapping

import numpy as np

from fedbandit_envs.baselines.policy import UnfitError, require_fixed
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.policy_spec import PolicySpec


class LocalUCB:
    """Pulls the arm with the largest mean + radius_scale sd sqrt(2 ln(1 + t ln(t)^2) / n) of an agent's own rewards.

    n is the number of pulls of the arm, t of all arms. Arms without pulls come first. With normal rewards sd is their
    standard deviation, with others 0.5. It is the asymptotically optimal UCB with which the program of Huang et al.
    (2021) compares Fed-PE.

    Example:
        >>> from fedbandit_envs import make_federation
        >>> env = make_federation("FedFixed-v0", num_agents=3, num_arms=4)
        >>> policy = LocalUCB()
        >>> policy.reset(env.policy_spec, np.zeros((1, 3), np.uint64))
        >>> policy.act(env.reset_batch([0]).observation).tolist()
        [[0, 0, 0]]
    """

    def __init__(self, radius_scale: float = 1.0) -> None:
        """Sets the factor of the confidence radius, >= 0.

        Raises:
            TypeError: ``radius_scale`` is no number.
            ValueError: It is below 0.
        """
        self._scale = require_number("radius_scale", radius_scale, 0, np.inf)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Reads sd; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Arms do not stay the same.
        """
        require_fixed(spec)
        # Rewards that are not normal lie in an interval of length 1.
        self._width = self._scale * float(spec.public.get("reward_sd", 0.5)) * np.sqrt(2.0)

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)``; see :meth:`Policy.act`."""
        pulls = observation["pool_pulls"]
        t = np.maximum(pulls.sum(axis=-1, keepdims=True), 1)
        many = np.maximum(pulls, 1)
        bound = observation["pool_rewards"] / many + self._width * np.sqrt(
            np.log1p(t * np.log(t) ** 2) / many
        )
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
        if spec.public.get("reward") != "normal" or not spec.public["reward_sd"] > 0:
            raise UnfitError(
                f"reward is {spec.public.get('reward')!r} and can be exactly 0, so that an agent's first upload has no "
                "direction from which the server could learn that of its features; 'normal' with reward_sd > 0 is "
                "required"
            )
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
