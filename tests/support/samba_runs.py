"""SAMBA on small federations, with roles that can be looked into, beside the same run in the open."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.samba import owners
from fedbandit_envs.samba.keys import Certificate, deal_keys, issue_certificates
from fedbandit_envs.samba.messages import Frame, Link, Record
from fedbandit_envs.samba.network import run_roles
from fedbandit_envs.samba.owners import Algorithm, PlainSelector, SambaPlan, VerticalResult, run_vertical
from fedbandit_envs.samba.roles import Role, RoleSetup, make_role

ALGORITHMS = ("epsilon-greedy", "epsilon-decreasing", "ucb", "thompson", "softmax", "pursuit")
DATA = ("movielens", "jester")


def means_of(data: str, arms: int) -> list[float]:
    return arm_means(data, arms).tolist()


class Noted(NamedTuple):
    """What a plain selection was given and has picked."""

    round: int
    iteration: int
    scores: np.ndarray | None
    picked: np.ndarray


class NotingSelector(PlainSelector):
    """Keeps what it sees."""

    noted: list[Noted]
    """Those of the latest run."""

    def __init__(self, *args):
        super().__init__(*args)
        NotingSelector.noted = []

    def select(self, scores, round_, iteration):
        picked = super().select(scores, round_, iteration)
        self.noted.append(Noted(round_, iteration, None if scores is None else scores.copy(), picked.copy()))
        return picked


def plain(
    algorithm: Algorithm, means: list[float], budget: int, seed: int
) -> tuple[VerticalResult, list[Noted]]:
    """Runs in the open."""
    with patch.object(owners, "PlainSelector", NotingSelector):
        result = run_vertical(means, algorithm, budget, seed)
    return result, NotingSelector.noted


def streams_of(seed: int, arms: int) -> PlainSelector:
    """The masks, permutations and draws of a run, which its roles have between them."""
    return PlainSelector(SambaPlan.make(Algorithm("ucb"), arms, arms), seed)


def certificates_of(roles: Iterable[str]) -> dict[str, Certificate]:
    """Certificates in the names of these roles, from an authority of their own."""
    rings = deal_keys(0, [1] * sum(name.startswith("owner-") for name in roles))
    return {name: ring.certificate for name, ring in issue_certificates(rings).items()}


def make_roles(
    algorithm: Algorithm,
    means: list[float],
    budget: int,
    seed: int,
    groups: list[int] | None = None,
    transcripts: bool = False,
) -> dict[str, Role]:
    """Makes all roles of a run; one group of all owners unless told otherwise."""
    left = list(means)
    roles = {}
    for name, ring in deal_keys(seed, groups or [len(means)]).items():
        own = [left.pop(0) for _ in ring.owners]
        roles[name] = make_role(RoleSetup(ring, algorithm, budget, own), transcripts)
    return roles


def _observed(observer, name, handle, peer, data):
    observer.append(Frame(peer, name, data))
    return handle(peer, data)


def play(roles: dict[str, Role], observer: list[Frame] | None = None) -> VerticalResult:
    """Lets roles talk, and reads from customer and owners what has come out."""
    for name, role in roles.items() if observer is not None else ():
        role.handle = partial(_observed, observer, name, role.handle)
    run_roles(roles)
    banks = [role.bank for name, role in roles.items() if name.startswith("owner-")]
    pulls = np.concatenate([bank.pulls for bank in banks])
    return VerticalResult(roles["customer"].reward, pulls, np.concatenate([bank.sums for bank in banks]))


def assert_same(secure: VerticalResult, other: VerticalResult) -> None:
    assert secure.reward == other.reward
    np.testing.assert_array_equal(secure.pulls, other.pulls)
    np.testing.assert_array_equal(secure.sums, other.sums)


def ends() -> tuple[Link, Link]:
    """Both ends of a link."""
    keys = (bytes(range(32)), bytes(range(32, 64)))
    return Link("there", keys, Record()), Link("here", keys[::-1], Record())
