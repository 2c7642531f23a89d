"""Wrappers around a federation: their base class, their order in a stack, and stacks built from JSON."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal, get_args

from gymnasium.error import ResetNeeded
from pettingzoo.utils.wrappers import BaseParallelWrapper

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import handed_down, resolve
from fedbandit_envs.core.federated_env import BatchReset, BatchStep, FederatedEnv
from fedbandit_envs.core.privacy import Sensitivity

Layer = Literal["data", "noise", "transport", "observation"]
"""The layer of a wrapper, from the inside out; see :class:`FederatedWrapper`."""


class _ResetNeededError(ResetNeeded, AttributeError):
    """Raised when an attribute that a wrapper creates at reset is read before the first reset.

    It is an ``AttributeError`` as well, so that ``hasattr`` returns False then.
    """


class FederatedWrapper(FederatedEnv, BaseParallelWrapper[str, Arrays, Array]):
    """A wrapper that passes the batch API on to the environment inside; subclasses override what they change.

    Attributes that a wrapper does not set are those of the wrapped environment. The PettingZoo API follows from the
    batch API. Every wrapper has a layer:

    * ``data``: changes what agents experience or hold; any number of wrappers, in any order;
    * ``noise``: adds noise to releases and keeps account of it; at most one;
    * ``transport``: delivers releases to their receivers; at most one;
    * ``observation``: changes observations and rewards and nothing else; any number. If it changes rewards, the
      information keeps the environment's own as ``raw_reward``.

    Layers must be stacked in this order, from the environment outwards: noise outside of a transport would be added
    after messages have been delivered.

    Attributes:
        layer: The wrapper's layer.
        interacting: Whether what an agent does changes what others experience, because of the problem or of a wrapper,
            which then sets it to True; see :class:`~fedbandit_envs.core.problem.Problem`.
        examples: Keyword arguments with which the tests try the wrapper around every registered environment.

    Example:
        >>> from fedbandit_envs import arms_v0
        >>> class Shout(FederatedWrapper):
        ...     layer = "observation"
        >>> env = Shout(arms_v0.parallel_env(num_agents=2))
        >>> env.max_num_agents, [type(each).__name__ for each in layers(env)]
        (2, ['Shout', 'ArmsEnv'])
    """

    layer: ClassVar[Layer]
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ({},)
    env: FederatedEnv

    def __init__(self, env: FederatedEnv) -> None:
        """Wraps ``env``.

        Raises:
            TypeError: ``env`` is no :class:`FederatedEnv`, or a wrapper has no valid ``layer``.
            ValueError: The layers would be in the wrong order, or there would be a second noise or transport layer.
        """
        if not isinstance(env, FederatedEnv):
            raise TypeError(f"env is a {type(env).__name__}; a FederatedEnv is required")
        _require_order(self, [inner for inner in layers(env) if isinstance(inner, FederatedWrapper)])
        FederatedEnv.__init__(self)
        self.env = env
        self._ledger = env._ledger
        self._ledger.interacting |= self.interacting
        self._height = env._height + 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise _ResetNeededError(f"{type(self).__name__} has no {name} before its reset; call reset first")
        return super().__getattr__(name)

    def reset_batch(self, seeds: Sequence[int]) -> BatchReset:
        """Starts one episode for each seed; see :meth:`FederatedEnv.reset_batch`."""
        return self.env.reset_batch(seeds)

    def step_batch(self, action: Array) -> BatchStep:
        """Plays one round in all replicas; see :meth:`FederatedEnv.step_batch`."""
        return self.env.step_batch(action)

    def set_active(self, active: Array) -> None:
        """Sets which agents act in the next round; see :meth:`FederatedEnv.set_active`."""
        self.env.set_active(active)

    def admit(self, agents: Array) -> None:
        """Lets further agents act from the coming round on; see :meth:`FederatedEnv.admit`."""
        self.env.admit(agents)

    def _release(self, sends: Array) -> Arrays:
        return self.env._release(sends)

    def sensitivity(self) -> Sensitivity:
        """Returns by how much a release can differ between neighbours; see :meth:`FederatedEnv.sensitivity`."""
        return self.env.sensitivity()

    def largest_reward(self) -> Array | None:
        """Returns the largest absolute value of a reward; see :meth:`FederatedEnv.largest_reward`."""
        return self.env.largest_reward()

    def allowed_senders(self, senders: Array) -> Array:
        """Returns which senders are allowed to send; see :meth:`FederatedEnv.allowed_senders`."""
        return self.env.allowed_senders(senders)

    def hidden(self) -> Arrays:
        """Returns the parameters that agents do not know; see :meth:`FederatedEnv.hidden`."""
        return self.env.hidden()

    def render(self, replica: int = 0) -> Any:
        """Renders a replica as the wrapped environment does."""
        return self.env.render(replica)

    @property
    def max_cycles(self) -> int:
        """The number of rounds of an episode, the same for the whole stack."""
        return self.env.max_cycles

    @max_cycles.setter
    def max_cycles(self, horizon: int) -> None:
        self.env.max_cycles = horizon

    hidden_space: Any = property(attrgetter("env.hidden_space"))
    groups: Any = property(attrgetter("env.groups"))
    totals = property(attrgetter("env.totals"))
    message_bits: Any = property(attrgetter("env.message_bits"))
    asked_arrays: Any = property(attrgetter("env.asked_arrays"))
    public: Any = property(attrgetter("env.public"))


def layers(env: FederatedEnv) -> Iterator[FederatedEnv]:
    """Yields a stack's wrappers and its environment, from the outermost inwards."""
    yield env
    while isinstance(env, FederatedWrapper):
        env = env.env
        yield env


def find_layer(env: FederatedEnv, layer: Layer) -> FederatedWrapper | None:
    """Returns the outermost wrapper of a stack that has the given layer; None if the stack has no such wrapper."""
    found = (one for one in layers(env) if isinstance(one, FederatedWrapper) and type(one).layer == layer)
    return next(found, None)


_LAYERS: tuple[Layer, ...] = get_args(Layer)
_AT_MOST_ONE: tuple[Layer, ...] = ("noise", "transport")


def _require_order(outer: FederatedWrapper, stack: list[FederatedWrapper]) -> None:
    """Raises an error if a wrapper's layer does not fit around a stack.

    Errors are a wrapper without a layer, a second noise or transport layer, and layers in the wrong order.

    Args:
        outer: The wrapper that is put around the stack.
        stack: The stack's wrappers, from the outermost inwards.
    """
    for wrapper in (outer, *stack):
        layer = getattr(type(wrapper), "layer", None)
        if layer not in _LAYERS:
            raise TypeError(
                f"{type(wrapper).__name__}.layer is {layer!r}; one of {', '.join(map(repr, _LAYERS))} is required of "
                "every wrapper"
            )
    outside = _LAYERS.index(type(outer).layer)
    allowed = _LAYERS[: outside + (type(outer).layer not in _AT_MOST_ONE)]
    for inner in stack:
        if type(inner).layer not in allowed:
            raise ValueError(
                f"env has {type(inner).__name__}, of layer {inner.layer!r}, inside of {type(outer).__name__}, of "
                f"layer {outer.layer!r}; from the inside out the order {', '.join(_LAYERS)} is required, with at most "
                "one layer of noise and one of transport"
            )


Stack = Sequence[Sequence[Any]]
"""Wrappers from the inside out, each a pair of its entry point and its keyword arguments; can be written as JSON."""


def build(federation: str, stack: Stack, **kwargs: Any) -> FederatedEnv:
    """Builds a federation and puts wrappers around it.

    Args:
        federation: Entry point ``"module:Class"`` of the federation.
        stack: Wrappers from the inside out: pairs of a wrapper's name or entry point and keyword arguments, such as
            ``["Channel", {"schedule": "every_round"}]``.
        **kwargs: Passed to the federation.

    Returns:
        The outermost wrapper, or the federation if the stack is empty.

    Raises:
        TypeError: The stack is not of that form.
        ValueError: An entry point is not of the form ``"module:attribute"``.
        Exception: Any error of the federation or a wrapper; a note names its position in the stack.
    """
    layers = checked(stack)
    env: FederatedEnv = resolve(federation)(**kwargs)
    for place, (entry_point, arguments) in enumerate(layers):
        try:
            env = find_wrapper(entry_point)(env, **arguments)
        except Exception as error:
            error.add_note(f"raised by stack[{place}], {entry_point!r} with {dict(arguments)}")
            raise
    return env


def find_wrapper(name: str) -> Any:
    """Returns a wrapper's class, given its entry point ``"module:Class"`` or its name in the registry of wrappers.

    Raises:
        ValueError: No wrapper has this name, and the name has no colon, as an entry point would.
        ImportError: The module of the entry point does not exist.
        AttributeError: The module of the entry point has no such attribute.
    """
    if ":" in name:
        return resolve(name)
    wrappers = handed_down("wrappers")
    require_choice("wrapper", name, wrappers)
    return wrappers[name]


def checked(stack: Any) -> Stack:
    """Returns a stack unchanged after checking its form.

    Raises:
        TypeError: The stack is not a sequence of pairs, each of a string (the wrapper) and a mapping from strings (its
            keyword arguments).
    """
    if isinstance(stack, str) or not isinstance(stack, Sequence):
        raise TypeError(f"stack is {stack!r}; a sequence of [entry point, keyword arguments] is required")
    for place, layer in enumerate(stack):
        match layer:
            case [str(), Mapping() as arguments] if all(isinstance(name, str) for name in arguments):
                continue
        raise TypeError(
            f"stack[{place}] is {layer!r}; [entry point, keyword arguments], a string and a mapping, is required"
        )
    return stack
