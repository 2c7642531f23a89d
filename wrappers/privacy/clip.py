"""The part of a privatizer that bounds the norm of releases before noise is added."""

from collections.abc import Sequence
from typing import Any

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_number
from fedbandit_envs.core.buffers import Buffers
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import Sensitivity
from fedbandit_envs.core.wrapper import FederatedWrapper


class Clip(FederatedWrapper):
    """A wrapper that scales releases down to a Euclidean norm of at most C, directly inside of a privatizer.

    A privatizer with ``clip=C`` puts it around the environment; alone it gives no privacy, since it adds no noise. The
    norm is that of all numbers in a release together. What is cut off is lost. Releases within the bound stay as they
    are, to the bit.

    Example:
        >>> import numpy as np
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import Clip
        >>> env = Clip(parallel_env(num_agents=2), clip=3.0)
        >>> _ = env.reset_batch([0])
        >>> for _ in range(10):
        ...     step = env.step_batch(np.zeros((1, 2), np.int64))
        >>> released = env.release(np.array([[True, False]]))
        >>> norm = np.sqrt(sum(np.sum(array[0, 0] ** 2) for array in released.values()))
        >>> round(float(norm), 6), step.info["clipped_releases"].tolist()
        (3.0, [[1, 0]])
    """

    layer = "data"
    # Empty, so that the registry of wrappers skips this class: only privatizers use it.
    examples = ()

    def __init__(self, env: FederatedEnv, clip: float) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without a privatizer.
            clip: The largest norm of a release, a number > 0.

        Raises:
            TypeError: ``clip`` is no number.
            ValueError: It is not positive, or not finite.
        """
        require_number("clip", clip, 0, float("inf"), open_below=True, open_above=True)
        super().__init__(env)
        self._clip = float(clip)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._shown = Buffers({"clipped_releases": self._ledger.clipped_releases})
        return reset._replace(info={**reset.info, **self._shown.views})

    def step_batch(self, action: Any) -> BatchStep:
        """Plays one round; see :meth:`FederatedEnv.step_batch`.

        ``info["clipped_releases"]``, int64 ``(replicas, agents)``, counts the releases after this round that were
        scaled down. It depends on raw data and is for the agent itself; nobody else may see it.
        """
        step = self.env.step_batch(action)
        self._ledger.clipped_releases.fill(0)
        return step._replace(info={**step.info, **self._shown.views})

    def _release(self, sends: Array) -> Arrays:
        return self._ledger.clipped(self.env._release(sends), sends, self._clip)

    def sensitivity(self) -> Sensitivity:
        """Returns the sensitivity of clipped releases, see :meth:`.Sensitivity.clipped`.

        Every released number has the scale C, the clip. Another history of an agent, however different, moves each of
        its releases by a Euclidean norm of at most 2 C; that is the adjacency ``agent``.
        """
        return self.env.sensitivity().clipped(self._clip)
