"""A run of SAMBA from a list of arms: keys dealt, roles cast, one total for the customer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf
from time import process_time
from typing import Literal, get_args

from fedbandit_envs.checks import require_choice, require_flag, require_integer, require_number
from fedbandit_envs.claim import Claim
from fedbandit_envs.streams import is_secret
from fedbandit_envs.wrappers.secure.casting import cast
from fedbandit_envs.wrappers.secure.certificates import certify
from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import PeerLostError
from fedbandit_envs.wrappers.secure.keys import Keyring, deal
from fedbandit_envs.wrappers.secure.libraries import require_extra
from fedbandit_envs.wrappers.secure.local import run_roles
from fedbandit_envs.wrappers.secure.plan import Algorithm, Plan
from fedbandit_envs.wrappers.secure.process import Part, Report
from fedbandit_envs.wrappers.secure.processes import play_all
from fedbandit_envs.wrappers.secure.roles.customer import Customer
from fedbandit_envs.wrappers.secure.transcript import Transcript

Transport = Literal["local", "tcp"]
"""All roles in this process, or each in one of its own."""

TIMEOUT = 30.0
"""Seconds after which a role that is waited for counts as hung."""


@dataclass(frozen=True)
class SecureRun:
    """What a run has led to.

    Attributes:
        reward: The cumulative reward, as the customer has decrypted it.
        reports: What each role has done, by name.
        claim: What is kept from whom.
    """

    reward: int
    reports: dict[str, Report]
    claim: Claim

    @property
    def counts(self) -> Counts:
        """All operations together."""
        return Counts.total(report.counts for report in self.reports.values())


def run_secure(
    means: Sequence[float],
    algorithm: Algorithm,
    budget: int,
    seed: int,
    *,
    transport: Transport = "local",
    owners_per_role: int | None = None,
    tls: bool = False,
    timeout: float = TIMEOUT,
    advance: Callable[[int], None] = lambda rounds: None,
    transcripts: dict[str, Transcript] | None = None,
) -> SecureRun:
    """Runs a bandit algorithm over encrypted scores (SAMBA, Figure 6).

    Args:
        means: Of the owners' arms, ``(K,)``.
        algorithm: What is played.
        budget: N, the rounds in all.
        seed: What decides on rewards follows from it; see :func:`~fedbandit_envs.wrappers.secure.keys.deal`.
        transport: ``"local"`` or ``"tcp"``.
        owners_per_role: How many owners share a house; None for all of them in one process, and for one in each under
            ``"tcp"``. The result does not depend on it.
        tls: Puts links between processes under mutual TLS as well.
        timeout: Seconds after which a role that is waited for counts as hung.
        advance: Told of rounds played, for progress bars.
        transcripts: Receives what each role sees, by name, if all are in this process.

    Raises:
        MissingExtraError: The ``[secure]`` extra is not installed.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or the algorithm cannot be played in secret.
        SecureError: The run has ended without a result.
    """
    require_extra()
    require_choice("transport", transport, get_args(Transport))
    require_flag("tls", tls)
    require_number("timeout", timeout, 0, inf, open_below=True)
    arms = len(means)
    plan = Plan.make(algorithm, arms, budget)
    size = owners_per_role if owners_per_role is not None else (arms if transport == "local" else 1)
    require_integer("owners_per_role", size, 1)
    rings = deal(seed, [min(size, arms - first) for first in range(0, arms, size)])
    own_means = {name: means[slice(*bound)] for name, bound in _bounds(rings["controller"]).items()}
    if transport == "local":
        if tls:
            raise ValueError("tls is True; links of transport 'tcp' alone can be put under TLS")
        reports = _run_here(rings, plan, own_means, advance, transcripts)
    else:
        if transcripts is not None:
            raise ValueError("transcripts is given; those of transport 'local' alone can be read")
        if tls:
            shown = certify(rings)
            rings = {name: replace(ring, certificate=shown[name]) for name, ring in rings.items()}
        parts = {
            name: Part(ring, "127.0.0.1:0", timeout, algorithm, budget, tuple(own_means.get(name, ())))
            for name, ring in rings.items()
        }
        reports = play_all(parts, advance)
    reward = reports["customer"].reward
    if reward is None:
        raise PeerLostError("the customer has ended without a total", "customer")
    return SecureRun(reward, reports, claim(seed))


def claim(seed: int) -> Claim:
    """Returns what a run of a seed keeps from whom (SAMBA, Figure 7)."""
    return Claim(
        epsilon=inf,
        delta=0.0,
        adjacency="one-observation",
        composition="exact",
        reason="no differential privacy: the customer decrypts the exact cumulative reward, and nothing else. Owners "
        "see their own pulls and rewards; Comp scores under a mask and a permutation new in every round; Controller "
        "and observers ciphertexts of constant length, and when owners explore. For semi-honest roles of which no two "
        "collude (SAMBA, Theorem 3)",
        trust="cryptography",
        noise="secret" if is_secret(seed) else "repeatable",
    )


def _bounds(controller: Keyring) -> dict[str, tuple[int, int]]:
    """Returns which arms each owners' role has: the first, and the one after the last."""
    bounds = pairwise(accumulate(controller.houses.values(), initial=0))
    return dict(zip(controller.houses, bounds, strict=True))


def _run_here(
    rings: dict[str, Keyring],
    plan: Plan,
    means: dict[str, Sequence[float]],
    advance: Callable[[int], None],
    transcripts: dict[str, Transcript] | None,
) -> dict[str, Report]:
    if transcripts is not None:
        transcripts.update({name: Transcript() for name in rings})
    roles, before = {}, process_time()
    set_up = {}
    for name, ring in rings.items():
        transcript = None if transcripts is None else transcripts[name]
        roles[name] = cast(
            ring,
            algorithm=plan.algorithm,
            budget=plan.budget,
            means=means.get(name, ()),
            transcript=transcript,
        )
        before, set_up[name] = (now := process_time()), now - before
    spent = run_roles(roles, advance)
    return {
        name: Report(
            name, role.counts, set_up[name] + spent[name], role.reward if isinstance(role, Customer) else None
        )
        for name, role in roles.items()
    }
