"""A secure run from a list of arms: keys are dealt, roles are set up, and the customer learns one total."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

from fedbandit_envs.basics.checks import require_choice, require_flag, require_integer, require_number
from fedbandit_envs.core.claim import Claim
from fedbandit_envs.randomness.streams import is_secret
from fedbandit_envs.samba.crypto.certificates import issue_certificates
from fedbandit_envs.samba.crypto.keys import deal_keys
from fedbandit_envs.samba.crypto.libraries import require_extra
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Counts, Transcript
from fedbandit_envs.samba.roles.make_role import RoleSetup
from fedbandit_envs.samba.roles.role import RoleReport
from fedbandit_envs.samba.transports.in_process import play_in_process
from fedbandit_envs.samba.transports.processes import play_in_processes

Transport = Literal["local", "tcp"]
"""Where roles run: all in this process, or each in a process of its own with sockets between them."""

TIMEOUT = 30.0
"""Seconds after which a role that is awaited counts as hung, unless another timeout is given."""


@dataclass(frozen=True)
class SecureRun:
    """The result of a secure run.

    Attributes:
        reward: The cumulative reward, as the customer has decrypted it.
        reports: The report of each role by its name.
        claim: The privacy claim of the run.

    Example:
        >>> run = SecureRun(reward=14, reports={}, claim=claim(seed=0))
        >>> run.claim.trust, run.claim.epsilon
        ('cryptography', inf)
    """

    reward: int
    reports: dict[str, RoleReport]
    claim: Claim

    @property
    def counts(self) -> Counts:
        """Operations and traffic of all roles together."""
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
    """Returns the result of a bandit algorithm that is run on encrypted scores (SAMBA, Figure 6).

    Args:
        means: Means of the owners' arms, ``(K,)``.
        algorithm: The algorithm that owners play.
        budget: Number of rounds, N.
        seed: The seed of masks, permutations and random numbers; see
            :func:`~fedbandit_envs.samba.crypto.keys.deal_keys`.
        transport: ``"local"`` or ``"tcp"``.
        owners_per_role: Number of owners in a group, which share a role and its link; None for one group of all owners
            under ``"local"``, and for one owner in each group under ``"tcp"``. The result does not depend on it.
        tls: Puts links between processes under mutual TLS as well.
        timeout: Seconds after which a role that is awaited counts as hung; under ``"tcp"``.
        advance: Called with a number of rounds that have been played since the last call.
        transcripts: Receives what each role sees, by its name; under ``"local"``.

    Raises:
        MissingExtraError: The ``[secure]`` extra is not installed.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or the algorithm cannot be played on encrypted scores.
        SecureError: The run has ended without a result.
    """
    require_extra()
    require_choice("transport", transport, get_args(Transport))
    require_flag("tls", tls)
    require_number("timeout", timeout, 0, inf, open_below=True)
    arms = len(means)
    SambaPlan.make(algorithm, arms, budget)
    size = owners_per_role if owners_per_role is not None else (arms if transport == "local" else 1)
    require_integer("owners_per_role", size, 1)
    if transport == "local" and tls:
        raise ValueError("tls is True; links of transport 'tcp' alone can be put under TLS")
    if transport == "tcp" and transcripts is not None:
        raise ValueError("transcripts is given; those of transport 'local' alone can be read")
    keyrings = deal_keys(seed, [min(size, arms - first) for first in range(0, arms, size)])
    if tls:
        keyrings = issue_certificates(keyrings)
    group_arms = keyrings["controller"].group_arms
    setups = {
        name: RoleSetup(keyring, algorithm, budget, tuple(means[group_arms.get(name, slice(0))]))
        for name, keyring in keyrings.items()
    }
    if transport == "local":
        reports = play_in_process(setups, advance, transcripts)
    else:
        reports = play_in_processes(setups, timeout, advance)
    reward = reports["customer"].reward
    assert reward is not None, "the customer is done only with a total"
    return SecureRun(reward, reports, claim(seed))


def claim(seed: int) -> Claim:
    """Returns the privacy claim of a run with this seed: who learns what (SAMBA, Figure 7)."""
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
