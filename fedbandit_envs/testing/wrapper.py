"""Conformance checks of wrappers."""

from typing import Any, get_args

from fedbandit_envs.core.actions import take_entry
from fedbandit_envs.core.wrapper import FederatedWrapper, Layer, find_layer, layers
from fedbandit_envs.testing import federation
from fedbandit_envs.testing.assertions import refusal, require, require_same
from fedbandit_envs.testing.batch_api import check_rendering
from fedbandit_envs.testing.episodes import Make, Trial, Wrap, around
from fedbandit_envs.testing.isolation import check_isolation
from fedbandit_envs.testing.noise import check_noise

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""All layers, from the inside out."""


def _added(wrap: Wrap, make: Make) -> list[Any]:
    """Returns the classes of the wrappers that ``wrap`` puts around a federation."""
    env = make()
    stack = list(layers(wrap(env)))
    require(env in stack[1:], f"wrap(env) returns {type(stack[0]).__name__}, which is not around env")
    return [type(level) for level in stack[: stack.index(env)]]


def _check_what_passes(wrap: Wrap, make: Make, added: set[Layer]) -> None:
    """Checks that wrappers change only what their layer may change.

    Only data layers may change rewards and information, only data and noise layers (by a clip) the sensitivity of
    releases, and only observation layers observations. If an observation layer changes rewards, the information must
    contain the environment's own as ``raw_reward``. Observation layers must not change releases.

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
    what = f"outside and inside of {type(outside.env).__name__}"
    required = "equality is required: only data layers change what agents live through and release"
    for outer, inner in zip(outside.episode(), bare.episode(), strict=True):
        if "observation" in added:
            outer["reward"] = outer["info"].get("raw_reward", outer.get("reward"))
            del inner["observation"]
        if "transport" in added and find_layer(bare.env, "noise") is not None:
            # Releases of the transport change what noise layers and clips count.
            own = {"regret", *bare.env.unwrapped.information}
            inner["info"] = {name: array for name, array in inner["info"].items() if name in own}
        if quiet:
            inner.pop("release", None)
        for part, expected in inner.items():
            found = outer[part]
            if isinstance(expected, dict):
                found = {name: found[name] for name in found if name in expected}
            require_same(f"{what}, {part}", found, expected, required)
    if "noise" not in added:
        told, expected = (list(trial.env.sensitivity()) for trial in (outside, bare))
        require_same(f"{what}, sensitivity", told, expected, required)


_STUBS: list[Any] = [
    type(f"{layer.capitalize()}Stub", (FederatedWrapper,), {"layer": layer}) for layer in LAYERS
]
"""A wrapper of each layer that changes nothing."""


def _check_order(wrapped: Make, added: list[Any]) -> None:
    """Checks that no further wrapper can be put around the added ones in the wrong order of layers."""
    for stub in _STUBS:
        outer = LAYERS.index(stub.layer)
        for kind in added:
            inner = LAYERS.index(kind.layer)
            if outer < inner or (outer == inner and stub.layer in ("noise", "transport")):
                with refusal(f"{stub.__name__} around {kind.__name__}", ValueError):
                    stub(wrapped())


def check_wrapper(wrap: Wrap, make: Make) -> None:
    """Checks that a wrapper fulfils what :class:`~fedbandit_envs.core.wrapper.FederatedWrapper` documents.

    The wrapper must change only what its layer may change and raise errors if layers are in the wrong order. The
    wrapped federation must pass :func:`~fedbandit_envs.testing.federation.check_federation`; its rendering is checked
    only if the wrapper overrides ``render``. Agents must learn about each other's data by counted releases only
    (:mod:`fedbandit_envs.testing.isolation`). Neighbours may differ in what leaves data layers by no more than the
    sensitivity (:func:`fedbandit_envs.testing.problem.check_worse_neighbours`). Noise must have the announced variance
    and the booked distribution, and an attack must not refute what a mechanism of your own claims
    (:mod:`fedbandit_envs.testing.noise`, which also says what it does not find; this check fails a correct noise layer
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
    added = _added(wrap, make)
    kinds = {kind.layer for kind in added}
    _check_what_passes(wrap, make, kinds)
    wrapped = around(wrap, make)
    _check_order(wrapped, added)
    draws = type(wrapped()).render is not FederatedWrapper.render
    for check_wrapped in federation.CHECKS:
        if draws or check_wrapped is not check_rendering:
            check_wrapped(Trial(wrapped))
    check_isolation(Trial(wrapped, range(max(3, make().max_num_agents))))
    if "noise" in kinds:
        check_noise(wrap, make)
