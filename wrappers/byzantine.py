"""Byzantine agents: agents that release false statistics."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from fedbandit_envs.basics.arrays import Array, Arrays, zeros
from fedbandit_envs.basics.checks import require_integer, require_number
from fedbandit_envs.basics.entry_points import by_name, checked, make_rule
from fedbandit_envs.core.federated_env import BatchReset, FederatedEnv
from fedbandit_envs.core.problem import MOST
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.randomness.streams import Purpose, stream

Attack = Callable[[Array, bool, np.random.Generator], Array]
"""A function that returns the false statistic that a Byzantine agent releases, in the shape of the true one.

Its three arguments are the sum of the agent's true statistics up to this release, an array of any shape and dtype;
whether the last two axes of that array are symmetric matrices; and a random generator of the agent and round."""


@checked(lambda scale=1.0: require_number("scale", scale, 0, np.inf, open_below=True))
def _garbage(
    total: Array, symmetric: bool, generator: np.random.Generator, *, scale: float = 1000.0
) -> Array:
    drawn = generator.standard_normal(total.shape)
    if symmetric:
        drawn = np.tril(drawn) + np.swapaxes(np.tril(drawn, -1), -1, -2)
    return float(scale) * np.sqrt(np.square(total, dtype=np.float64).mean()) * drawn


@checked(lambda scale=1.0: require_number("scale", scale, -np.inf, np.inf))
def _scaled(total: Array, symmetric: bool, generator: np.random.Generator, *, scale: float = 1000.0) -> Array:
    return float(scale) * total


def _sign_flip(total: Array, symmetric: bool, generator: np.random.Generator) -> Array:
    return -1.0 * total


ATTACKS = by_name(_garbage, _sign_flip, _scaled)
"""The built-in attacks, by the name that a specification gives them."""


class Byzantine(FederatedWrapper):
    """A wrapper in which some agents are Byzantine: they release a false statistic instead of their own.

    | attack | arguments | what a Byzantine agent releases |
    |---|---|---|
    | `garbage` | `scale` (1000) | normal random numbers, `scale` times as large as the true ones in quadratic mean |
    | `sign_flip` | | the true statistic with the opposite sign |
    | `scaled` | `scale` (1000) | the true statistic times `scale` |

    An attack invents a false sum of all statistics of the episode so far, and the agent releases the difference between
    this sum and all it has released before. So after each release, the sum of the agent's releases is the false sum.
    Garbage is drawn anew at each release, from a random stream of the agent and round. False counts are whole numbers,
    and false matrices are symmetric if the true ones are. But they may be negative, and there may be more good units
    than units in all, so that the space of releases is wider than the environment's. All receivers get the same
    message.

    Byzantine agents act on their true observations; only their releases are false. Privatizers add the same noise to
    false statistics as to true ones. Sensitivity and privacy claims are those of the true statistic: they hold for
    agents that follow the protocol. Results are reported separately for the groups ``liars`` (the Byzantine agents) and
    ``honest`` (all others), see :attr:`groups`.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> env = Byzantine(parallel_env(num_agents=3), agents=[2], attack="sign_flip")
        >>> env.groups
        {'liars': [2], 'honest': [0, 1]}
        >>> reset = env.reset_batch([0])
        >>> step = env.step_batch(np.zeros((1, 3), np.int64))
        >>> env.release(np.ones((1, 3), bool))["pulls"][0, :, 0].tolist()
        [1, 1, -1]
    """

    layer = "data"
    groups: Mapping[str, Sequence[int]] = {}
    examples = (
        {"agents": [0]},
        {"agents": 0.5, "attack": "sign_flip"},
        {"agents": [1], "attack": {"name": "scaled", "scale": -2.5}},
    )

    def __init__(
        self,
        env: FederatedEnv,
        agents: float | Sequence[int] = 0.2,
        attack: Attack | str | Mapping[str, Any] = "garbage",
    ) -> None:
        """Wraps ``env``.

        Args:
            env: The environment, without privatizer and channel.
            agents: The Byzantine agents: a sequence of indices, or a share of all agents in [0, 1]. A share is rounded
                to a number of agents, and so many agents with the highest indices are Byzantine.
            attack: A name in the table, a mapping of ``name`` and the attack's arguments, or a function, see
                :data:`Attack`.

        Raises:
            TypeError: An argument has the wrong type, or the attack has no argument of that name.
            ValueError: A name is unknown, or an argument out of its range.
        """
        super().__init__(env)
        self._liars = _numbers(agents, self.max_num_agents)
        self._attack: Attack = make_rule("attack", attack, ATTACKS)
        liars = sorted({*self._liars, *env.groups.get("liars", ())})
        honest = [agent for agent in range(self.max_num_agents) if agent not in liars]
        named = {"liars": liars, "honest": honest}
        self.groups = {**env.groups, **{name: agents for name, agents in named.items() if agents}}
        # False releases have the shape and dtype of true ones, and no bounds. Releases are boxes, whose dtype is set;
        # Gymnasium's type allows None for other spaces.
        self.single_release_space = spaces.Dict(
            {
                name: spaces.Box(-np.inf, np.inf, space.shape, space.dtype.type)  # type: ignore[union-attr]
                for name, space in env.single_release_space.items()
            }
        )

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed, with nothing released so far; see :meth:`FederatedEnv.reset_batch`."""
        reset = self.env.reset_batch(seeds)
        self._seeds = [int(seed) for seed in seeds]
        self._symmetric = self.env.sensitivity().symmetric
        self._honest, self._released = (
            zeros(self.single_release_space, (len(seeds), self.max_num_agents)) for _ in range(2)
        )
        return reset

    def _release(self, sends: Array) -> Arrays:
        released = {name: array.copy() for name, array in self.env._release(sends).items()}
        played = self.unwrapped._round
        for agent in self._liars:
            for replica in np.flatnonzero(sends[:, agent]).tolist():
                generator = stream(self._seeds[replica], Purpose.LIE, agent, played)
                # With the ellipsis, a single number is a view, too.
                row = (replica, agent, ...)
                for name, array in released.items():
                    total, before = self._honest[name][row], self._released[name][row]
                    total += array[row]
                    lie = np.clip(self._attack(total, self._symmetric, generator), -MOST, MOST)
                    if np.issubdtype(before.dtype, np.integer):
                        lie = np.rint(lie).astype(before.dtype)
                    array[row] = lie - before
                    before[...] = lie
        return released


def _numbers(agents: Any, num_agents: int) -> list[int]:
    """Returns the sorted indices of the Byzantine agents, from a sequence of indices or a share of all agents."""
    if isinstance(agents, str) or not isinstance(agents, Sequence):
        require_number("agents", agents, 0, 1)
        return list(range(num_agents - round(float(agents) * num_agents), num_agents))
    last = num_agents - 1
    return sorted({require_integer(f"agents[{k}]", agent, 0, last) for k, agent in enumerate(agents)})
