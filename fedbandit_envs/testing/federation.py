"""Conformance of environments."""

from fedbandit_envs.testing import array_face, door, features, keyed_face, refusals
from fedbandit_envs.testing.episodes import Make

CHECKS = (
    array_face.check_spaces,
    array_face.check_arrays,
    array_face.check_hidden,
    array_face.check_action_formats,
    array_face.check_horizon,
    array_face.check_seeds,
    array_face.check_replicas,
    array_face.check_pickling,
    array_face.check_rendering,
    features.check_features,
    keyed_face.check_parallel_api,
    keyed_face.check_both_faces,
    keyed_face.check_copies,
    keyed_face.check_episode_seeds,
    refusals.check_refusals,
    refusals.check_missing_agents,
    door.check_release,
    door.check_increments,
    door.check_ownership,
    door.check_sensitivity,
    door.check_claims,
)
"""What :func:`check_federation` checks, one after the other."""


def check_federation(make: Make) -> None:
    """Checks that a federation is what :class:`~fedbandit_envs.federation.FederatedEnv` says, to the letter.

    Of whatever stands around it, it is asked no more than it can give: releases add up where there is no noise, and
    are made inside of a transport, which makes its own.

    Args:
        make: Makes the federation, with its wrappers if any: ``make()`` is a new one at each call, always the same.
            Make it small, since it plays a good many rounds. Horizon and render mode are set by the checks. A budget
            must last for twenty releases of an agent, or silence whom it does not allow any more.

    Raises:
        AssertionError: Something is otherwise; it says what, what is required and where to mend it.
    """
    for check in CHECKS:
        check(make)
