"""Conformance checks of environments."""

from fedbandit_envs.testing import batch_api, features, invalid_input, ledger, pettingzoo_api
from fedbandit_envs.testing.episodes import Make

CHECKS = (
    batch_api.check_spaces,
    batch_api.check_arrays,
    batch_api.check_action_formats,
    batch_api.check_horizon,
    batch_api.check_seeds,
    batch_api.check_pickling,
    batch_api.check_rendering,
    features.check_features,
    pettingzoo_api.check_parallel_api,
    pettingzoo_api.check_both_apis,
    pettingzoo_api.check_episode_seeds,
    invalid_input.check_refusals,
    invalid_input.check_missing_agents,
    ledger.check_release,
    ledger.check_increments,
    ledger.check_ownership,
    ledger.check_sensitivity,
    ledger.check_claims,
)
"""The checks of :func:`check_federation`, in order."""


def check_federation(make: Make) -> None:
    """Checks that a federation fulfils what :class:`~fedbandit_envs.core.federated_env.FederatedEnv` documents.

    With wrappers the checks require what is possible there: releases add up to the statistic only without noise, and
    inside of a transport, which releases by itself.

    Args:
        make: Makes the federation, with its wrappers if any: ``make()`` is a new one at each call, always the same.
            It should be small, since the checks play many rounds. They set horizon and render mode. A privacy budget
            must last for twenty releases of an agent, or silence agents that have exhausted it.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """
    for check in CHECKS:
        check(make)
