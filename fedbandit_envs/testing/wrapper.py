"""Conformance checks of wrappers."""

from itertools import takewhile
from typing import get_args

from fedbandit_envs.core.actions import take_entry
from fedbandit_envs.core.wrapper import FederatedWrapper, Layer, find_layer, layers
from fedbandit_envs.testing import federation
from fedbandit_envs.testing.assertions import require, require_same
from fedbandit_envs.testing.batch_api import check_rendering
from fedbandit_envs.testing.episodes import Make, Trial, Wrap, around
from fedbandit_envs.testing.isolation import check_isolation
from fedbandit_envs.testing.noise import check_noise

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""All layers, from the inside out."""


def _added(wrap: Wrap, make: Make) -> tuple[list[FederatedWrapper], list[FederatedWrapper]]:
    """Returns the wrappers that ``wrap`` adds to a federation, and those that the federation already has.

    Before that it requires that each of the added wrappers has a valid layer.
    """
    env = make()
    try:
        wrapped = wrap(env)
    except Exception as error:
        raise AssertionError(f"wrap(env) raises {error!r}; a wrapper around env is required") from error
    inside = [level for level in layers(env) if isinstance(level, FederatedWrapper)]
    outer = takewhile(lambda level: level is not env, layers(wrapped))
    added = [level for level in outer if isinstance(level, FederatedWrapper)]
    require(
        bool(added) and any(level is env for level in layers(wrapped)),
        f"wrap(env) returns {type(wrapped).__name__}, which is not around env"
        "; a FederatedWrapper that hands env to FederatedWrapper.__init__ is required",
    )
    for level in added:
        require(
            getattr(level, "layer", None) in LAYERS,
            f"{type(level).__name__}.layer is {getattr(level, 'layer', None)!r}"
            f"; one of {', '.join(map(repr, LAYERS))} is required",
        )
    return added, inside


def _check_what_passes(wrap: Wrap, make: Make, added: set[Layer]) -> None:
    """Checks that wrappers change only what their layer may change.

    Only data layers may change rewards, information and the sensitivity of releases, and only observation layers may
    change observations. If an observation layer changes rewards, the information must contain the environment's own as
    ``raw_reward``. Observation layers must not change releases.

    Args:
        wrap: A function that puts the wrappers around a federation.
        make: A function that makes the federation inside.
        added: The layers of the wrappers.
    """
    if "data" in added:
        return
    outside, bare = Trial(around(wrap, make)), Trial(make)
    chosen = outside.env.policy_spec.chooses_sending and not bare.env.policy_spec.chooses_sending
    bare.actions = [take_entry(action, "send")[0] if chosen else action for action in outside.actions]
    quiet = added != {"observation"} or find_layer(bare.env, "transport") is not None
    for trial in (outside, bare):
        trial.senders = trial.senders & (not quiet)
    for outer, inner in zip(outside.episode(), bare.episode(), strict=True):
        if "observation" in added:
            outer["reward"] = outer["info"].get("raw_reward", outer.get("reward"))
            del inner["observation"]
        if quiet:
            inner.pop("release", None)
        for part, expected in inner.items():
            found = outer[part]
            if isinstance(expected, dict):
                found = {name: found[name] for name in found if name in expected}
            require_same(
                f"outside and inside of {type(outside.env).__name__}, {part}",
                found,
                expected,
                "equality is required: only data layers change what agents live through, and only observation "
                "layers what they see",
            )
    require_same(
        f"sensitivity of {type(outside.env).__name__} and of what it stands around,",
        list(outside.env.sensitivity()),
        list(bare.env.sensitivity()),
        "equality is required: only data layers change what is released before noise",
    )


_STUBS = [type(f"{layer.capitalize()}Stub", (FederatedWrapper,), {"layer": layer}) for layer in LAYERS]
"""A wrapper of each layer that changes nothing."""


def _check_order(
    wrap: Wrap, make: Make, added: list[FederatedWrapper], inside: list[FederatedWrapper]
) -> None:
    """Checks that stacks in the right order of layers are built, and that all others raise an error.

    The error must name the two wrappers that are in the wrong order.
    """
    for stub in _STUBS:
        around_all = [(stub, type(level)) for level in (*added, *inside)]
        _require_order(f"{stub.__name__}(wrap(env))", around(stub, around(wrap, make)), around_all)
        if not any(_forbidden(stub, type(level)) for level in inside):
            within = [(type(level), stub) for level in added]
            _require_order(f"wrap({stub.__name__}(env))", around(wrap, around(stub, make)), within)


def _require_order(
    call: str, build: Make, pairs: list[tuple[type[FederatedWrapper], type[FederatedWrapper]]]
) -> None:
    """Requires that building a stack raises an error if and only if two of its wrappers are in a forbidden order.

    Args:
        call: Description of how the stack is built, for error messages.
        build: A function that builds the stack.
        pairs: Pairs of an outer and an inner wrapper's class, all that the stack may get wrong.
    """
    forbidden = [(outer, inner) for outer, inner in pairs if _forbidden(outer, inner)]
    try:
        build()
    except ValueError as error:
        message = str(error)
        named = any(outer.__name__ in message and inner.__name__ in message for outer, inner in forbidden)
        required = f"that order is allowed: from the inside out, {', '.join(LAYERS)}"
        if forbidden:
            required = "the ValueError of FederatedWrapper.__init__, which names both layers, is required"
        require(named, f"{call} raises {error!r}; {required}")
        return
    require(
        not forbidden,
        f"{call} goes through, with {' or '.join(f'{o.__name__} around {i.__name__}' for o, i in forbidden)}"
        "; a ValueError is required: let __init__ call FederatedWrapper.__init__ first",
    )


def _forbidden(outer: type[FederatedWrapper], inner: type[FederatedWrapper]) -> bool:
    places = LAYERS.index(outer.layer), LAYERS.index(inner.layer)
    return places[0] < places[1] or (outer.layer == inner.layer and outer.layer in ("noise", "transport"))


def check_wrapper(wrap: Wrap, make: Make) -> None:
    """Checks that a wrapper fulfils what :class:`~fedbandit_envs.core.wrapper.FederatedWrapper` documents.

    The wrapper must change only what its layer may change and raise errors if layers are in the wrong order. The
    wrapped federation must pass :func:`~fedbandit_envs.testing.federation.check_federation`; its rendering is checked
    only if the wrapper overrides ``render``. Agents must learn about each other's data by counted releases only
    (:mod:`fedbandit_envs.testing.isolation`). Noise must have the variance that releases announce and be as large as
    the recorded privacy events require (:mod:`fedbandit_envs.testing.noise`; this check fails a correct noise layer
    with probability 1e-6 at most).

    Args:
        wrap: A function that puts the wrapper around a federation: the class ``MyWrapper`` itself, or a function that
            adds arguments.
        make: A function that makes the federation inside: a new one at each call, always with the same settings. It
            should be small.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    added, inside = _added(wrap, make)
    _check_what_passes(wrap, make, {level.layer for level in added})
    _check_order(wrap, make, added, inside)
    draws = type(wrap(make())).render is not FederatedWrapper.render
    for check_wrapped in federation.CHECKS:
        if draws or check_wrapped is not check_rendering:
            check_wrapped(Trial(around(wrap, make)))
    check_isolation(around(wrap, make))
    if any(level.layer == "noise" for level in added):
        check_noise(wrap, make)
