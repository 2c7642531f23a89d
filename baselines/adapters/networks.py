"""Policies that play trained networks of other libraries: Stable-Baselines3, sb3-contrib and TorchRL."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces

from fedbandit_envs.baselines.adapters.functions import AgentIO
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.tables import require_file
from fedbandit_envs.core.policy_spec import PolicySpec
from fedbandit_envs.views.control import flat

BATCH = 64
"""Number of rows (agents of replicas) in a batch for a network.

Matrix products of different sizes are summed in different orders. So the output of a network for a single row may
differ, in the last bit, from that for the same row in a batch of forty. With batches of one size, filled up with zeros,
it does not.
"""


def in_fixed_batches(rows: Arrays, size: int = BATCH) -> Iterator[tuple[slice, dict[str, Array]]]:
    """Yields batches of a fixed number of rows, copied from arrays; the last batch is filled up with zeros.

    Args:
        rows: Arrays by name, whose first axis goes over rows.
        size: Number of rows in a batch.

    Yields:
        The slice of ``rows`` that the batch contains, and the batch.
    """
    number = len(next(iter(rows.values())))
    for start in range(0, number, size):
        here = slice(start, min(start + size, number))
        yield here, {name: _padded(array[here], size, axis=0) for name, array in rows.items()}


def _padded(array: Array, size: int, axis: int) -> Array:
    missing = [(0, size - length if place == axis else 0) for place, length in enumerate(array.shape)]
    return np.pad(array, missing)


_LIBRARIES = ("stable_baselines3", "sb3_contrib")


class SB3Policy:
    """Plays all agents by one trained model; each agent has its own features, recurrent state and random numbers.

    A model that samples its actions is called separately for each agent, which takes about 0.3 ms each, so that an
    agent's random numbers follow from its own seed alone. Models that use action masks are given them.

    Files that SB3 saves contain pickles, which can run code when they are read: read only files that you trust.

    Example:
        >>> from fedbandit_envs.baselines.adapters import SB3Policy
        >>> policy = SB3Policy("ppo.zip", "PPO")  # doctest: +SKIP
    """

    def __init__(
        self,
        model: Any,
        algorithm: str | None = None,
        action_format: str | None = None,
        features: bool = True,
        deterministic: bool = True,
        normalizer: Any = None,
    ) -> None:
        """Sets the model.

        Args:
            model: The model, or the path of the file that its ``save`` wrote.
            algorithm: For a path, the name of the class that wrote the file: ``"PPO"``, ``"RecurrentPPO"`` and so on.
            action_format: Format of the model's actions, as in the environment's view on which it was trained; None for
                the environment's own actions.
            features: Whether the model was trained on features instead of raw observations.
            deterministic: Whether the most likely actions are played; else actions are sampled.
            normalizer: The ``VecNormalize`` with which the model was trained, or the path of the file that its ``save``
                wrote; None if there was none.

        Raises:
            ImportError: A library of the extra ``[sb3]`` is not installed.
            ValueError: Neither library has a class with the name ``algorithm``.
            FileNotFoundError: There is no file at a path.
        """
        self._io = AgentIO(action_format, features)
        self._model = _load(algorithm, model) if isinstance(model, str | Path) else model
        if isinstance(normalizer, str | Path):
            normalizer = pickle.loads(require_file("normalizer", normalizer).read_bytes())
        self._normalizer = normalizer
        self._deterministic = deterministic
        self._takes_masks = "action_masks" in signature(self._model.predict).parameters

    def reset(self, spec: PolicySpec, seeds: Array) -> None:
        """Prepares for an episode: new features, recurrent states and random numbers; see :meth:`Policy.reset`.

        Raises:
            UnfitError: The model was trained on observations or actions of another shape.
        """
        self._io.reset(spec, seeds)
        for what in ("observation_space", "action_space"):
            trained, here = getattr(self._model, what), getattr(self._io, what)
            if _shape(trained) != _shape(here):
                raise UnfitError(f"the model was trained with {what} {trained}; rows have {here}")
        self._random = [np.random.default_rng(int(seed)) for seed in seeds.flat]
        self._memory: dict[int, Any] = {}
        self._first = True

    def act(self, observation: Arrays) -> Any:
        """Returns the model's actions; see :meth:`Policy.act`.

        Raises:
            ValueError: The model returns NaN.
        """
        shown = flat(self._io.shown(observation))
        if self._normalizer is not None:
            shown = self._normalizer.normalize_obs(shown)
        rows = dict(shown) if isinstance(shown, dict) else {"": shown}
        if self._takes_masks and (masks := self._io.allowed()) is not None:
            rows["action_masks"] = flat(masks)
        space = self._io.action_space
        answers = np.empty((len(self._random), *(space.shape or ())), space.dtype)
        with _random_state_kept(self._model):
            for here, block in in_fixed_batches(rows, BATCH if self._deterministic else 1):
                if not self._deterministic:
                    _seed(self._model, int(self._random[here.start].integers(2**32)))
                given = {name: block.pop(name) for name in {"action_masks"} & block.keys()}
                seen, memory = block.get("", block), self._memory.get(here.start)
                starts = np.full(len(next(iter(block.values()))), self._first)
                answer, memory = self._model.predict(seen, memory, starts, self._deterministic, **given)
                answers[here], self._memory[here.start] = answer[: here.stop - here.start], memory
        self._first = False
        return self._io.action(type(self._model).__name__, answers)


def _load(algorithm: str | None, path: str | Path) -> Any:
    for library in _LIBRARIES:
        found = getattr(import_module(library), algorithm or "", None)
        if found is not None:
            return found.load(path, device="cpu")
    raise ValueError(f"algorithm is {algorithm!r}; a class in {' or '.join(_LIBRARIES)} is required")


def _shape(space: gym_spaces.Space[Any]) -> Any:
    """Returns the types and sizes of a space, to compare the spaces of training and play.

    A network depends on them. Bounds are left out, because normalisation changes them.
    """
    if isinstance(space, gym_spaces.Dict):
        return {name: _shape(part) for name, part in space.items()}
    sizes = getattr(space, "n", None), np.ravel(getattr(space, "nvec", ())).tolist()
    return type(space), space.shape, sizes


def _seed(model: Any, seed: int) -> None:
    """Seeds all random number generators from which SB3's models sample actions."""
    import torch

    # For all devices it takes a hundred times as long.
    (torch.default_generator if model.device.type == "cpu" else torch).manual_seed(seed)
    # Off-policy algorithms for discrete actions explore with random numbers of NumPy's global generator and of the
    # action space's own generator.
    np.random.seed(seed)  # noqa: NPY002 - SB3 draws from it
    model.action_space.seed(seed)


@contextmanager
def _random_state_kept(model: Any) -> Iterator[None]:
    """Restores the states of the global random number generators, and of the model's action space, on exit."""
    import torch

    numpys = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
    spaces = model.action_space.np_random.bit_generator.state
    with torch.random.fork_rng(devices=[]):
        yield
    np.random.set_state(numpys)  # noqa: NPY002 - as above
    model.action_space.np_random.bit_generator.state = spaces


_REPLICAS = 16
"""Number of replicas in a batch for a module; always the same, so that outputs do not depend on how many there are.

:mod:`fedbandit_envs.baselines.adapters.networks` explains why they otherwise would.
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
        named = shown if isinstance(shown, dict) else {"": shown}
        # Agents are missing where only some agents of a federation are played by themselves. The module is given as
        # many as it was trained with; missing ones are zeros.
        rows = {name: _padded(array, self._agents, axis=1) for name, array in named.items()}
        answers = [
            self._ask(block)[: here.stop - here.start, : self._io.rows[1]]
            for here, block in in_fixed_batches(rows, _REPLICAS)
        ]
        return self._io.action(type(self._module).__name__, flat(np.concatenate(answers)))

    def _ask(self, block: dict[str, Array]) -> Array:
        """Returns the module's actions for a batch of observations, ``(replicas, agents, ...)``."""
        import torch
        from tensordict import TensorDict
        from torchrl.envs.utils import ExplorationType, set_exploration_type

        batch = (_REPLICAS, self._agents)
        seen = {name: torch.from_numpy(part) for name, part in block.items()}
        rows = TensorDict({"observation": seen[""] if "" in seen else TensorDict(seen, batch)}, batch)
        asked = rows if self._group is None else TensorDict({self._group: rows}, batch[:1])
        with torch.no_grad(), set_exploration_type(ExplorationType.DETERMINISTIC):
            answered = self._module(asked)
        return answered["action" if self._group is None else (self._group, "action")].numpy()
