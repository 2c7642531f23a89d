"""A policy that plays a trained module of TorchRL."""

from typing import Any

import numpy as np

from fedbandit_envs.baselines.adapters.agent_io import AgentIO
from fedbandit_envs.baselines.adapters.fixed_batches import in_fixed_batches
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.core.policy_spec import PolicySpec

_REPLICAS = 16
"""Number of replicas in a batch for a module; always the same, so that outputs do not depend on how many there are.

:mod:`fedbandit_envs.baselines.adapters.fixed_batches` explains why they otherwise would.
"""


class TorchRLPolicy:
    """Plays all agents by a trained ``TensorDictModule``, without exploration.

    The module reads ``(group, "observation")``, or entries of it by name, as in training, with batch size
    ``[replicas]``, and writes ``(group, "action")``. Each agent's action depends on its own observation alone, and not
    on its number, if agents share the module's parameters and are not centralised
    (``MultiAgentMLP(centralized=False, share_params=True)``).

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
            module: A module of ``tensordict``; a ``ProbabilisticActor`` plays its deterministic actions.
            action_format: Format of the module's actions, as in the environment on which it was trained; None for the
                environment's own actions.
            features: Whether the module was trained on features instead of raw observations.
            group: Key of the agents' entries in a ``TensorDict``; ``"agent"`` is the key that ``PettingZooWrapper``
                uses. None where entries have no such key, as in environments of Gymnasium.
        """
        self._module = module
        self._group = group
        self._io = AgentIO(action_format, features)

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode, which resets the features; see :meth:`Policy.reset`."""
        self._io.reset(spec, seeds)
        self._agents = max(spec.agents, seeds.shape[1])

    def act(self, observation: Arrays) -> Any:
        """Returns the module's actions; see :meth:`Policy.act`.

        Raises:
            KeyError: The module does not write an entry ``"action"``, or not under the key ``group``.
            ValueError: An action has the wrong shape or is NaN.
        """
        shown = self._io.shown(observation)
        answers = [
            self._ask(block)[: here.stop - here.start, : self._io.rows[1]]
            for here, block in in_fixed_batches(self._all_agents(shown), _REPLICAS)
        ]
        return self._io.action(type(self._module).__name__, np.concatenate(answers))

    def _all_agents(self, shown: Any) -> Any:
        """Returns observations with as many agents as the module was trained with; missing agents are zeros.

        Agents are missing where only some agents of a federation are played by themselves.
        """
        if isinstance(shown, dict):
            return {name: self._all_agents(array) for name, array in shown.items()}
        missing = self._agents - shown.shape[1]
        return np.pad(shown, [(0, 0), (0, missing), *[(0, 0)] * (shown.ndim - 2)]) if missing else shown

    def _ask(self, block: Any) -> Array:
        """Returns the module's actions for a batch of observations, ``(replicas, agents, ...)``."""
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
