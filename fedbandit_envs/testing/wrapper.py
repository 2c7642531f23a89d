"""Conformance of wrappers."""

from itertools import takewhile
from typing import Any, get_args

from gymnasium import spaces

from fedbandit_envs.federation import FederatedEnv
from fedbandit_envs.testing import federation
from fedbandit_envs.testing.array_face import check_rendering
from fedbandit_envs.testing.episodes import SEEDS, Make, Wrap, around, fresh, random_actions, told
from fedbandit_envs.testing.findings import require, require_same
from fedbandit_envs.wrapper import FederatedWrapper, Layer, layers

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""From the inside out."""


def check_layer(wrap: Wrap, make: Make) -> None:
    """What is put around a federation are wrappers, and each says which layer it is."""
    env = make()
    try:
        wrapped = wrap(env)
    except Exception as error:
        raise AssertionError(f"wrap(env) raises {error!r}; a wrapper around env is required") from error
    added = _added(env, wrapped)
    require(
        bool(added) and any(level is env for level in layers(wrapped)),
        f"wrap(env) returns {type(wrapped).__name__}, which is not around env",
        "a FederatedWrapper that hands env to FederatedWrapper.__init__ is required",
    )
    for level in added:
        require(
            getattr(level, "layer", None) in LAYERS,
            f"{type(level).__name__}.layer is {getattr(level, 'layer', None)!r}",
            f"one of {', '.join(map(repr, LAYERS))} is required",
        )


def _added(env: FederatedEnv, wrapped: FederatedEnv) -> list[FederatedWrapper]:
    """Returns what has been put around a federation, from the outside in."""
    outer = takewhile(lambda level: level is not env, layers(wrapped))
    return [level for level in outer if isinstance(level, FederatedWrapper)]


def check_what_passes(wrap: Wrap, make: Make) -> None:
    """But for data layers, rounds stay as they are; but for views, so does what agents see of them.

    Rewards that a view changes stay in the information.
    """
    inside = make()
    added = {level.layer for level in _added(inside, wrap(inside))}
    if "data" in added:
        return
    env, bare = fresh(around(wrap, make)), fresh(make)
    chosen = (
        isinstance(env.single_action_space, spaces.Dict)
        and env.single_action_space != bare.single_action_space
    )
    parts = ["reward", "truncated", "info"] + ([] if "view" in added else ["observation"])
    outer, inner = told(env.reset_batch(SEEDS)), told(bare.reset_batch(SEEDS))
    for action in (None, *random_actions(env)):
        if action is not None:
            outer = told(env.step_batch(action))
            inner = told(bare.step_batch(action["action"] if chosen else action))
        if "view" in added:
            outer["reward"] = outer["info"].get("raw_reward", outer.get("reward"))
        for part in [part for part in parts if part in inner]:
            require_same(
                f"outside and inside of {type(env).__name__}, {part}",
                _of_the_names_in(inner[part], outer[part]),
                inner[part],
                "equality is required: only data layers change what agents live through, and only views what they see",
            )


def _of_the_names_in(inner: Any, outer: Any) -> Any:
    """Leaves away what a wrapper adds."""
    return {name: outer[name] for name in outer if name in inner} if isinstance(inner, dict) else outer


class DataStub(FederatedWrapper):
    """Stands for any data layer."""

    layer = "data"


class NoiseStub(FederatedWrapper):
    """Stands for any noise layer."""

    layer = "noise"


class TransportStub(FederatedWrapper):
    """Stands for any transport."""

    layer = "transport"


class ViewStub(FederatedWrapper):
    """Stands for any view."""

    layer = "view"


def check_order(wrap: Wrap, make: Make) -> None:
    """Layers stand around each other from data over noise and transport to views, or are refused by name."""
    inside = make()
    wrapped = wrap(inside)
    stack = [level for level in layers(wrapped) if isinstance(level, FederatedWrapper)]
    added = _added(inside, wrapped)
    for stub in (DataStub, NoiseStub, TransportStub, ViewStub):
        _require_order(
            f"{stub.__name__}(wrap(env))",
            around(stub, around(wrap, make)),
            [(stub, type(level)) for level in stack],
        )
        within = [level for level in stack if level not in added]
        if not any(_forbidden(stub, type(level)) for level in within):
            _require_order(
                f"wrap({stub.__name__}(env))",
                around(wrap, around(stub, make)),
                [(type(level), stub) for level in added],
            )


def _require_order(
    call: str, build: Make, pairs: list[tuple[type[FederatedWrapper], type[FederatedWrapper]]]
) -> None:
    """Requires that a stack with a forbidden pair, of an outer and an inner layer, is refused, and no other is."""
    forbidden = [(outer, inner) for outer, inner in pairs if _forbidden(outer, inner)]
    try:
        build()
    except ValueError as error:
        told = str(error)
        named = any(outer.__name__ in told and inner.__name__ in told for outer, inner in forbidden)
        required = f"that order is allowed: from the inside out, {', '.join(LAYERS)}"
        if forbidden:
            required = "the ValueError of FederatedWrapper.__init__, which names both layers, is required"
        require(named, f"{call} raises {error!r}", required)
        return
    require(
        not forbidden,
        f"{call} goes through, with {' or '.join(f'{o.__name__} around {i.__name__}' for o, i in forbidden)}",
        "a ValueError is required: let __init__ call FederatedWrapper.__init__ first",
    )


def _forbidden(outer: type[FederatedWrapper], inner: type[FederatedWrapper]) -> bool:
    places = LAYERS.index(outer.layer), LAYERS.index(inner.layer)
    return places[0] < places[1] or (outer.layer == inner.layer and outer.layer in ("noise", "transport"))


CHECKS = (check_layer, check_what_passes, check_order)
"""What :func:`check_wrapper` checks before it checks the wrapped federation."""


def check_wrapper(wrap: Wrap, make: Make) -> None:
    """Checks that a wrapper is what :class:`~fedbandit_envs.wrapper.FederatedWrapper` says, around a federation.

    It keeps to its layer, is refused in the wrong places, and with it the federation is still one: see
    :func:`~fedbandit_envs.testing.federation.check_federation`. Pictures are those of what is inside, unless it draws
    its own.

    Args:
        wrap: Puts the wrapper around a federation: ``MyWrapper`` itself, or a function that adds arguments.
        make: Makes the federation inside, a new one at each call, always the same, and a small one.

    Raises:
        AssertionError: Something is otherwise; it says what, what is required and where to mend it.
    """
    for check in CHECKS:
        check(wrap, make)
    draws = type(wrap(make())).render is not FederatedWrapper.render
    for check_wrapped in federation.CHECKS:
        if draws or check_wrapped is not check_rendering:
            check_wrapped(around(wrap, make))
