"""What stands around a federation, and in which order: data, noise, transport, view."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

from gymnasium import spaces
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.federation import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.sensitivity import Sensitivity

Layer = Literal["data", "noise", "transport", "view"]
"""What a wrapper does, from the inside out; see :class:`FederatedWrapper`."""


class FederatedWrapper(FederatedEnv, BaseParallelWrapper[str, Arrays, Array]):
    """Passes the array face through, to be overridden in part; the PettingZoo face follows from it.

    Attributes that a wrapper does not set are those of the wrapped environment. Every wrapper says which layer it is:

    * ``data``: changes what agents live through or hold; any number, in any order;
    * ``noise``: randomises what leaves them and keeps accounts of it; one at most;
    * ``transport``: carries what leaves to whom it is for; one at most;
    * ``view``: changes what agents are shown and paid, and nothing else; any number. Rewards that it changes stay in
      the information as they were, as ``raw_reward``.

    Layers stand around each other in this order, whoever wrote them: noise outside of a transport would come too late.

    Attributes:
        layer: Which of them it is.
        examples: Keyword arguments with which the wrapper is tried around every registered environment.
    """

    layer: ClassVar[Layer]
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    env: FederatedEnv

    def __init__(self, env: FederatedEnv) -> None:
        """Wraps ``env``.

        Raises:
            TypeError: ``env`` is no :class:`FederatedEnv`, or a wrapper does not say which layer it is.
            ValueError: The layers would be in the wrong order, or a second one where one is allowed.
        """
        if not isinstance(env, FederatedEnv):
            raise TypeError(f"env is a {type(env).__name__}; a FederatedEnv is required")
        _require_order(self, [inner for inner in layers(env) if isinstance(inner, FederatedWrapper)])
        FederatedEnv.__init__(self)
        self.env = env
        self._door = env._door
        self._height = env._height + 1

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode a seed; see :meth:`FederatedEnv.reset_batch`."""
        return self.env.reset_batch(seeds)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        return self.env.step_batch(action)

    def summon(self, acting: Array) -> None:
        """Says who acts in the coming round; see :meth:`FederatedEnv.summon`."""
        self.env.summon(acting)

    def _release(self, sends: Array) -> Arrays:
        return self.env._release(sends)

    def sensitivity(self) -> Sensitivity:
        """Says how much a release can betray; see :meth:`FederatedEnv.sensitivity`."""
        return self.env.sensitivity()

    def largest_reward(self) -> Array | None:
        """Says how large rewards can be; see :meth:`FederatedEnv.largest_reward`."""
        return self.env.largest_reward()

    def permit(self, senders: Array) -> Array:
        """Says who of those who want to send may; see :meth:`FederatedEnv.permit`."""
        return self.env.permit(senders)

    def hidden(self) -> Arrays:
        """Returns what the agents do not know; see :meth:`FederatedEnv.hidden`."""
        return self.env.hidden()

    def render(self, replica: int = 0) -> Any:
        """Draws a replica, as what is wrapped draws it."""
        return self.env.render(replica)

    @property
    def max_cycles(self) -> int:
        """The horizon, the same for the whole stack."""
        return self.env.max_cycles

    @max_cycles.setter
    def max_cycles(self, horizon: int) -> None:
        self.env.max_cycles = horizon

    @property
    def hidden_space(self) -> spaces.Dict:
        """One agent's space of :meth:`hidden`."""
        return self.env.hidden_space

    def told_apart(self) -> Arrays | None:
        """Returns what is said to each receiver beyond what is said to all; see :meth:`FederatedEnv.told_apart`."""
        return self.env.told_apart()

    @property
    def groups(self) -> Mapping[str, Sequence[int]]:
        """Agents whose results are to be told apart; see :attr:`FederatedEnv.groups`."""
        return self.env.groups

    @property
    def totals(self) -> Arrays:
        """What the episode adds up to so far; see :attr:`FederatedEnv.totals`."""
        return self.env.totals

    @property
    def public(self) -> Mapping[str, Any]:
        """What is known to all agents from the start; see :attr:`FederatedEnv.public`."""
        return self.env.public


def layers(env: FederatedEnv) -> Iterator[FederatedEnv]:
    """Yields a stack's environments from the outside in."""
    yield env
    while isinstance(env, FederatedWrapper):
        env = env.env
        yield env


def find_layer(env: FederatedEnv, layer: Layer) -> FederatedWrapper | None:
    """Returns the outermost wrapper of a layer in a stack, or None."""
    for wrapper in layers(env):
        if isinstance(wrapper, FederatedWrapper) and wrapper.layer == layer:
            return wrapper
    return None


_LAYERS: tuple[Layer, ...] = get_args(Layer)
_AT_MOST_ONE: tuple[Layer, ...] = ("noise", "transport")


def _place(wrapper: FederatedWrapper) -> int:
    layer = getattr(type(wrapper), "layer", None)
    if layer not in _LAYERS:
        raise TypeError(
            f"{type(wrapper).__name__}.layer is {layer!r}; one of {', '.join(map(repr, _LAYERS))} is required of every "
            "wrapper"
        )
    return _LAYERS.index(layer)


def _require_order(outer: FederatedWrapper, stack: list[FederatedWrapper]) -> None:
    """Refuses a second layer where one is allowed, and layers in the wrong order."""
    places = [_place(wrapper) for wrapper in (outer, *stack)]
    for inner in stack:
        if inner.layer == outer.layer and outer.layer in _AT_MOST_ONE:
            raise ValueError(
                f"env already has a {outer.layer} layer, {type(inner).__name__}, inside of {type(outer).__name__}; at "
                "most one is allowed"
            )
    for inner, place in zip(stack, places[1:], strict=True):
        if place > places[0]:
            raise ValueError(
                f"env has {type(inner).__name__}, a {inner.layer} layer, inside of {type(outer).__name__}, a "
                f"{outer.layer} layer; from the inside out the order {', '.join(_LAYERS)} is required"
            )
