"""SAMBA on small federations, with roles that can be looked into, beside the same run in the open."""

from typing import NamedTuple

import numpy as np

from fedbandit_envs.arms.masks import Streams, owner_keys
from fedbandit_envs.arms.ratings import keep_largest, packaged_means
from fedbandit_envs.arms.vertical import PlainSelector, VerticalResult, run_vertical
from fedbandit_envs.wrappers.secure.casting import cast
from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.keys import deal
from fedbandit_envs.wrappers.secure.link import Link, LinkKeys
from fedbandit_envs.wrappers.secure.local import Observed, run_roles
from fedbandit_envs.wrappers.secure.plan import Algorithm
from fedbandit_envs.wrappers.secure.roles.role import Role
from fedbandit_envs.wrappers.secure.transcript import Transcript

ALGORITHMS = ("epsilon-greedy", "epsilon-decreasing", "ucb", "thompson", "softmax", "pursuit")
DATA = ("movielens", "jester")


def means_of(data: str, arms: int) -> list[float]:
    return keep_largest(packaged_means(data), arms).tolist()


class Noted(NamedTuple):
    """What a plain selection was given and has picked."""

    round: int
    iteration: int
    scores: np.ndarray | None
    picked: np.ndarray


class NotingSelector(PlainSelector):
    """Keeps what it sees."""

    def __init__(self, *args):
        super().__init__(*args)
        self.noted: list[Noted] = []

    def select(self, scores, round_, iteration):
        picked = super().select(scores, round_, iteration)
        self.noted.append(Noted(round_, iteration, scores.copy(), picked.copy()))
        return picked

    def explore(self, round_):
        picked = super().explore(round_)
        self.noted.append(Noted(round_, 0, None, picked.copy()))
        return picked


def plain(
    algorithm: Algorithm, means: list[float], budget: int, seed: int
) -> tuple[VerticalResult, list[Noted]]:
    """Runs in the open."""
    arms = len(means)
    bank = algorithm.bank(owner_keys(seed, arms), arms, budget)
    selector = NotingSelector(bank.choice, Streams(seed, arms), bank.iterations)
    return run_vertical(means, bank, selector, budget, seed), selector.noted


def cast_all(
    algorithm: Algorithm,
    means: list[float],
    budget: int,
    seed: int,
    houses: list[int] | None = None,
    transcripts: bool = False,
) -> dict[str, Role]:
    """Casts all roles of a run; one house for all owners unless told otherwise."""
    left = list(means)
    roles = {}
    for name, ring in deal(seed, houses or [len(means)]).items():
        own = [left.pop(0) for _ in ring.owners]
        transcript = Transcript() if transcripts else None
        roles[name] = cast(ring, algorithm=algorithm, budget=budget, means=own, transcript=transcript)
    return roles


def play(roles: dict[str, Role], observer: list[Observed] | None = None) -> VerticalResult:
    """Lets roles talk, and reads from customer and owners what has come out."""
    run_roles(roles, observer=observer)
    owners = [role.bank for name, role in roles.items() if name.startswith("owner-")]
    pulls = np.concatenate([bank.pulls for bank in owners])
    return VerticalResult(roles["customer"].reward, pulls, np.concatenate([bank.sums for bank in owners]))


def assert_same(secure: VerticalResult, other: VerticalResult) -> None:
    assert secure.reward == other.reward
    np.testing.assert_array_equal(secure.pulls, other.pulls)
    np.testing.assert_array_equal(secure.sums, other.sums)


def ends(longest: int = 1000) -> tuple[Link, Link]:
    """Both ends of a link."""
    keys = LinkKeys(bytes(range(32)), bytes(range(32, 64)))
    here = Link("there", keys, longest, Counts(), None)
    return here, Link("here", LinkKeys(*keys[::-1]), longest, Counts(), None)
