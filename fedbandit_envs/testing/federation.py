"""Conformance checks of environments."""

from collections.abc import Callable

from fedbandit_envs.testing import batch_api, features, ledger, pettingzoo_api, problem
from fedbandit_envs.testing.episodes import Make, Trial

CHECKS: list[Callable[[Trial], None]] = [
    check
    for module in (batch_api, features, pettingzoo_api, ledger)
    for name, check in vars(module).items()
    if name.startswith("check_")
]
"""The checks that :func:`check_federation` makes of the whole stack, in order; each is given a trial of its own."""

PROBLEM_CHECKS: list[Callable[[Trial], None]] = [
    check for name, check in vars(problem).items() if name.startswith("check_")
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
