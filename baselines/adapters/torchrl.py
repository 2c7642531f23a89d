"""A module of TorchRL as a policy."""

from typing import Any

import numpy as np

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.adapters.blocks import in_blocks
from fedbandit_envs.baselines.adapters.meaning import Meaning
from fedbandit_envs.spaces import Spaces

_REPLICAS = 16
"""Replicas that a module is fed at once; see :mod:`fedbandit_envs.baselines.adapters.blocks`."""


class TorchRLPolicy:
    """Plays every row by a ``TensorDictModule``, without exploration.

    The module reads what it read in training: ``(group, "observation")``, or entries of it by name, batch
    ``[replicas]``, and writes ``(group, "action")``. It acts row by row if agents share its parameters and it looks at
    each of them alone (``MultiAgentMLP(centralized=False, share_params=True)``).
    """

    def __init__(
        self,
        module: Any,
        action_format: str | None = None,
        features: bool = True,
        group: str | None = "agent",
    ) -> None:
        """Takes a module.

        Args:
            module: Of ``tensordict``; also a ``ProbabilisticActor``, whose deterministic samples are played.
            action_format: That of the environment on which it was trained.
            features: Likewise.
            group: Under which key agents are; ``"agent"`` is that of ``PettingZooWrapper``. None where there is none,
                as in environments of Gymnasium.
        """
        self._module = module
        self._group = group
        self._meaning = Meaning(action_format, features)

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`."""
        self._meaning.reset(spaces, seeds)
        self._agents = max(spaces.agents, seeds.shape[1])

    def act(self, observation: Arrays) -> Any:
        """Returns the module's actions; see :meth:`Policy.act`.

        Raises:
            KeyError: The module writes no action where it is to be.
            ValueError: An answer has the wrong shape or is NaN.
        """
        shown = self._meaning.shown(observation)
        answers = [
            self._ask(block)[: here.stop - here.start, : self._meaning.rows[1]]
            for here, block in in_blocks(self._all_agents(shown), _REPLICAS)
        ]
        return self._meaning.action(type(self._module).__name__, np.concatenate(answers))

    def _all_agents(self, shown: Any) -> Any:
        """Fills rows up with zeros to as many agents as the module knows, for rows that are fed alone."""
        if isinstance(shown, dict):
            return {name: self._all_agents(array) for name, array in shown.items()}
        missing = self._agents - shown.shape[1]
        return np.pad(shown, [(0, 0), (0, missing), *[(0, 0)] * (shown.ndim - 2)]) if missing else shown

    def _ask(self, block: Any) -> Array:
        """Returns the module's answers for a block, ``(replicas, agents, ...)``."""
        import torch
        from tensordict import TensorDict
        from torchrl.envs.utils import ExplorationType, set_exploration_type

        batch = (_REPLICAS, self._agents)
        if isinstance(block, dict):
            seen: Any = TensorDict({name: torch.from_numpy(part) for name, part in block.items()}, batch)
        else:
            seen = torch.from_numpy(block)
        rows = TensorDict({"observation": seen}, batch)
        asked = rows if self._group is None else TensorDict({self._group: rows}, batch[:1])
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            answered = self._module(asked)
        answer: Array = answered["action" if self._group is None else (self._group, "action")].numpy()
        return answer
