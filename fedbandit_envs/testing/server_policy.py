"""Conformance checks of server policies."""

from copy import deepcopy
from typing import Any

import numpy as np

from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.basics.entry_points import HANDED_DOWN
from fedbandit_envs.testing.assertions import mapped, require, require_same
from fedbandit_envs.testing.batch_api import check_seeds
from fedbandit_envs.testing.episodes import Make, Trial, copied

HORIZON = 40
"""Number of rounds that a server policy plays."""


def check_server_policy(policy: Any, make_env: Make) -> None:
    """Checks that a server's answers and questions to a replica follow from that replica's uploads and seed alone.

    The protocol is :class:`~fedbandit_envs.wrappers.transport.server_policy.ServerPolicy`. An episode is played, in
    which agents act and upload at random. It is repeated after another reset, by a new server, and replica by replica.
    What agents receive must be the same. Names, shapes, dtypes and bounds of answers must be as declared, and all
    numbers finite. The policy must not write into what it is given.

    Args:
        policy: The policy, as :class:`~fedbandit_envs.wrappers.Server` accepts it; it is copied.
        make_env: A function that makes the federation inside of the server. It should be small; each call must make a
            new one.

    Raises:
        AssertionError: A requirement does not hold; the message has what was found, what is required and where to
            correct it.
    """

    def served(overwrites: bool = False) -> Any:
        # Wrappers are a higher layer of the package.
        server = HANDED_DOWN["wrappers"]()["Server"](make_env(), "on_request", policy=policy)
        server._policy = _Checked(server, overwrites)
        return server

    trial = Trial(served, rounds=HORIZON)
    try:
        plain, overwritten = trial.episode(), Trial(lambda: served(True), rounds=HORIZON).episode()
        what = "of two episodes, one with uploads and mask that are overwritten after each call, round"
        require_same(what, overwritten, plain, "copy what is to be kept of uploads and mask")
        check_seeds(trial)
    except (KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"the server refuses a reply, or the policy fails: {error!r}") from error


class _Checked:
    """A server policy that passes everything on to another one, and checks the answers."""

    def __init__(self, server: Any, overwrites: bool) -> None:
        """Takes the policy's server; ``overwrites`` says whether the policy's inputs are overwritten afterwards."""
        self.policy, self.boxes = server._policy, server._downloads
        self.overwrites = overwrites

    def reset(self, spec: Any, seeds: Array) -> Any:
        return self.policy.reset(spec, seeds)

    def answer(self, uploads: Arrays, mask: Array) -> Any:
        given = {"uploads": uploads, "mask": mask}
        if self.overwrites:
            given = copied(given)
        reply = deepcopy(self.policy.answer(**given))
        if not isinstance(reply, tuple):
            for name, box in self.boxes.items():
                found = np.asarray(reply[name])
                fits = found.dtype == box.dtype and ((found >= box.low) & (found <= box.high)).all()
                what = f"answer {name!r} is {found.dtype} from {found.min()} to {found.max()}"
                require(fits, f"{what}; an element of {box}, as declared in downloads, is required")
        if self.overwrites:
            mapped(lambda array: array.fill(1), given)
        return reply
