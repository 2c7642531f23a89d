"""A module of TorchRL as a policy."""

from typing import Any

import numpy as np

from fedbandit_envs.baselines.adapters.agent_io import AgentIO
from fedbandit_envs.baselines.adapters.fixed_batches import in_fixed_batches
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec

_REPLICAS = 16
"""Replicas that a module is fed at once; see :mod:`fedbandit_envs.baselines.adapters.fixed_batches`."""


class TorchRLPolicy:
    """Plays every row by a ``TensorDictModule``, without exploration.

    The module reads what it read in training, ``(group, "observation")`` or entries of it by name, with batch size
    ``[replicas]``, and writes ``(group, "action")``. It acts row by row if agents share its parameters and it sees each
    of them alone (``MultiAgentMLP(centralized=False, share_params=True)``).

    Example:
        >>> from fedbandit_envs.baselines.adapters import TorchRLPolicy
        >>> policy = TorchRLPolicy(actor)  # doctest: +SKIP
    """

    def __init__(
        self,
        module: Any,
        action_format: str | None = None,
        features: bool = True,
        group: str | None = "agent",
    ) -> None:
        """Sets the module.

        Args:
            module: A module of ``tensordict``; of a ``ProbabilisticActor`` the deterministic samples are played.
            action_format: That of the environment on which it was trained.
            features: That of the environment on which it was trained.
            group: Key under which agents are; ``"agent"`` is that of ``PettingZooWrapper``. None where there is none,
                as in environments of Gymnasium.
        """
        self._module = module
        self._group = group
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode; see :meth:`Policy.reset`."""
        self._io.reset(spec, seeds)
        self._agents = max(spec.agents, seeds.shape[1])

    def act(self, observation: Arrays) -> Any:
        """Returns the module's actions; see :meth:`Policy.act`.

        Raises:
            KeyError: The module does not write an action under its key.
            ValueError: An answer has the wrong shape or is NaN.
        """
        shown = self._io.shown(observation)
        answers = [
            self._ask(block)[: here.stop - here.start, : self._io.rows[1]]
            for here, block in in_fixed_batches(self._all_agents(shown), _REPLICAS)
        ]
        return self._io.action(type(self._module).__name__, np.concatenate(answers))

    def _all_agents(self, shown: Any) -> Any:
        """Pads rows that are played alone with zeros to as many agents as the module was trained with."""
        if isinstance(shown, dict):
            return {name: self._all_agents(array) for name, array in shown.items()}
        missing = self._agents - shown.shape[1]
        return np.pad(shown, [(0, 0), (0, missing), *[(0, 0)] * (shown.ndim - 2)]) if missing else shown

    def _ask(self, block: Any) -> Array:
        """Returns the module's answers for a batch, ``(replicas, agents, ...)``."""
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
