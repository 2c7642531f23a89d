"""Conformance checks of environments and wrappers."""

from collections.abc import Callable

from fedbandit_envs.core.actions import take_entry
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.wrapper import FederatedWrapper, Layer, find_layer, layers
from fedbandit_envs.testing import api, ledger, policy, problem
from fedbandit_envs.testing.assertions import require, require_same
from fedbandit_envs.testing.episodes import Make, Trial, Wrap
from fedbandit_envs.testing.noise import check_noise

CHECKS: list[Callable[[Trial], None]] = [
    *(check for name, check in [*vars(api).items(), *vars(ledger).items()] if name.startswith("check_")),
    policy.check_features,
]
"""The checks that :func:`check_federation` makes of the whole stack, in order; each is given a trial of its own."""

PROBLEM_CHECKS: list[Callable[[Trial], None]] = [
    *(check for name, check in vars(problem).items() if name.startswith("check_")),
    ledger.check_increments,
]
"""The checks that :func:`check_federation` makes afterwards of the problem alone, without its wrappers."""


def check_federation(make: Make) -> None:
    """Checks that a federation fulfils what :class:`~fedbandit_envs.core.federated_env.FederatedEnv` documents.

    Some checks depend on the wrappers: that releases add up to the statistic is checked only if there is no noise, and
    inside of a transport, since a transport releases by itself. What the problem declares about itself (sensitivity,
    regret, who learns of whom) is checked without its wrappers: see :mod:`fedbandit_envs.testing.problem`.

    Args:
        make: A function that makes the federation, with its wrappers if it has any: a new one at each call, always with
            the same settings. It should be small, since the checks play many rounds. They set its horizon and render
            mode. A privacy budget must last for twenty releases of an agent, or silence agents that have exhausted it.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    for check in CHECKS:
        check(Trial(make))
    for check in PROBLEM_CHECKS:
        check(Trial(lambda: make().unwrapped, range(problem.TRIES), problem.ROUNDS))


def _check_what_passes(wrapped: Make, make: Make, added: set[Layer]) -> None:
    """Checks that wrappers change only what their layer may change.

    Only data layers may change rewards and information, only data and noise layers (by a clip) the sensitivity of
    releases, and only observation layers observations. If an observation layer changes rewards, the information must
    contain the environment's own as ``raw_reward``. Observation layers must not change releases.

    Args:
        wrapped: A function that makes the federation with the wrappers.
        make: A function that makes the federation inside.
        added: The layers of the wrappers.
    """
    if "data" in added:
        return
    outside, bare = Trial(wrapped), Trial(make)
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


def check_wrapper(wrap: Wrap, make: Make) -> None:
    """Checks that a wrapper fulfils what :class:`~fedbandit_envs.core.wrapper.FederatedWrapper` documents.

    The wrapper must change only what its layer may change. The wrapped federation must pass :func:`check_federation`;
    its rendering is checked only if the wrapper overrides ``render``. Agents must learn about each other's data by
    counted releases only (:func:`fedbandit_envs.testing.problem.check_isolation`). Neighbours may differ in what leaves
    data layers by no more than the sensitivity (:func:`fedbandit_envs.testing.problem.check_worse_neighbours`). Noise
    must have the announced variance and the booked distribution, and an attack must not refute what a mechanism of your
    own claims (:mod:`fedbandit_envs.testing.noise`, which also says what it does not find; this check fails a correct
    noise layer with probability 1e-6 at most).

    Args:
        wrap: A function that puts the wrapper around a federation: the class ``MyWrapper`` itself, or a function that
            adds arguments.
        make: A function that makes the federation inside: a new one at each call, always with the same settings. It
            should be small.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """

    def wrapped() -> FederatedEnv:
        return wrap(make())

    env = make()
    stack = list(layers(wrap(env)))
    require(env in stack[1:], f"wrap(env) returns {type(stack[0]).__name__}, which is not around env")
    added: set[Layer] = {type(level).layer for level in stack[: stack.index(env)]}
    _check_what_passes(wrapped, make, added)
    draws = type(stack[0]).render is not FederatedWrapper.render
    for check_wrapped in CHECKS:
        if draws or check_wrapped is not api.check_rendering:
            check_wrapped(Trial(wrapped))
    problem.check_isolation(Trial(wrapped, range(max(3, make().max_num_agents))))
    if "noise" in added:
        check_noise(wrap, make)
