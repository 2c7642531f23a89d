"""Whole runs of SAMBA: with encryption, without encryption, or either of them from settings in JSON."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field
from math import inf
from secrets import randbits
from time import perf_counter, process_time
from typing import Any, Literal, NamedTuple, get_args

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.basics.arrays import plain
from fedbandit_envs.basics.checks import require_choice, require_integer, require_number
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.randomness.streams import is_secret
from fedbandit_envs.samba.keys import deal_keys, issue_certificates
from fedbandit_envs.samba.messages import Counts, Record, require_extra
from fedbandit_envs.samba.network import play_in_processes, run_roles
from fedbandit_envs.samba.owners import Algorithm, SambaPlan, run_vertical
from fedbandit_envs.samba.roles import RoleReport, RoleSetup, make_role

Transport = Literal["local", "tcp"]
"""Where roles run: ``"local"``: all in this process; ``"tcp"``: each in its own process, connected by sockets."""

TIMEOUT = 30.0
"""Default number of seconds without a message after which the role that must send next counts as hung."""


class SecureRun(NamedTuple):
    """The result of a run on encrypted scores.

    Attributes:
        reward: The cumulative reward, which the customer has decrypted.
        reports: The report of each role (counts and CPU time), by the role's name.
        claim: The privacy claim of the run: who learns what.

    Example:
        >>> claim = Claim(inf, 0.0, "one-observation", "exact", "no differential privacy", trust="cryptography")
        >>> SecureRun(reward=14, reports={}, claim=claim).counts.frames
        0
    """

    reward: int
    reports: dict[str, RoleReport]
    claim: Claim

    @property
    def counts(self) -> Counts:
        """Numbers of operations, frames and bytes of all roles together."""
        counts = (astuple(report.counts) for report in self.reports.values())
        return Counts(*map(sum, zip(*counts, strict=True)))


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
    advance: Callable[[int], None] = lambda round_: None,
    transcripts: dict[str, Record] | None = None,
) -> SecureRun:
    """Runs a bandit algorithm on encrypted scores and returns the result (SAMBA, Figure 6).

    Args:
        means: Means of the owners' Bernoulli arms, ``(K,)``.
        algorithm: The algorithm that owners play.
        budget: Number of rounds, N.
        seed: The seed of masks, permutations and random numbers; see
            :func:`~fedbandit_envs.samba.keys.deal_keys`.
        transport: ``"local"``: all roles in this process; ``"tcp"``: each in its own process, connected by sockets.
        owners_per_role: Number of owners in a group, which share a role and its link; None for one group of all owners
            with ``"local"``, and for one owner in each group with ``"tcp"``. The result does not depend on it.
        tls: Whether links between processes are put under mutual TLS as well; with ``"tcp"`` only.
        timeout: Number of seconds without a message after which the role that must send next counts as hung; used with
            ``"tcp"`` only.
        advance: Function that is called from time to time with the round.
        transcripts: Receives each role's record, with all messages that the role has received and decrypted, by the
            role's name; with ``"local"`` only.

    Raises:
        ImportError: The ``[secure]`` extra is not installed.
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or the algorithm cannot be played on encrypted scores.
        SecureError: The run has ended without a result.
    """
    require_extra()
    require_choice("transport", transport, get_args(Transport))
    require_number("timeout", timeout, 0, inf, open_below=True)
    arms = len(means)
    SambaPlan.make(algorithm, arms, budget)
    size = owners_per_role if owners_per_role is not None else (arms if transport == "local" else 1)
    require_integer("owners_per_role", size, 1)
    if transport == "local" and tls:
        raise ValueError("tls is True; links of transport 'tcp' alone can be put under TLS")
    keyrings = deal_keys(seed, [min(size, arms - first) for first in range(0, arms, size)])
    if tls:
        keyrings = issue_certificates(keyrings)
    group_arms = keyrings["controller"].group_arms
    setups = {
        name: RoleSetup(keyring, algorithm, budget, tuple(means[group_arms.get(name, slice(0))]))
        for name, keyring in keyrings.items()
    }
    if transport == "local":
        roles = {name: make_role(setup, transcripts is not None) for name, setup in setups.items()}
        if transcripts is not None:
            transcripts.update({name: role.record for name, role in roles.items()})
        run_roles(roles, advance)
        reports = {name: role.report() for name, role in roles.items()}
    else:
        reports = play_in_processes(setups, timeout, advance)
    reward = reports["customer"].reward
    assert reward is not None, "the customer is done only with a total"
    # The reason states what each role learns, as SAMBA, Figure 7, does.
    claim = Claim(
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
    return SecureRun(reward, reports, claim)


@dataclass(frozen=True)
class SambaSettings:
    """The settings that determine a run, encrypted or not.

    Attributes:
        algorithm: A name of :data:`fedbandit_envs.samba.owners.RULES`, or ``"module:attribute"`` of a rule.
        ratings: The data set of ratings from which the arms' means are computed, see
            :func:`~fedbandit_envs.arms.ratings.arm_means`.
        arms: Number of owners, K.
        budget: Number of rounds, N.
        seed: The seed of the run; with None a random seed is drawn and not disclosed.
        transport: ``"local"``: all roles in this process; ``"tcp"``: each in its own process, connected by sockets.
        parameters: Keyword arguments of the algorithm.
        owners_per_role: Number of owners in a group; None for all owners with ``"local"``, and one with ``"tcp"``.
        tls: Whether links between processes are put under mutual TLS.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        plain: Whether the run is made without encryption; the reward is the same.

    Example:
        >>> run_samba(SambaSettings("ucb", arms=3, budget=40, seed=0, plain=True))["cumulative_reward"]
        20
    """

    algorithm: str = "ucb"
    ratings: str | dict[str, Any] = "movielens"
    arms: int = 10
    budget: int = 1000
    seed: int | None = None
    transport: Transport = "local"
    parameters: dict[str, Any] = field(default_factory=dict)
    owners_per_role: int | None = None
    tls: bool = False
    timeout: float = TIMEOUT
    plain: bool = False


def run_samba(
    settings: SambaSettings,
    advance: Callable[[int], None] = lambda round_: None,
    transcripts: dict[str, Record] | None = None,
) -> dict[str, Any]:
    """Runs SAMBA with or without encryption, and returns the result as a dict that can be written as JSON.

    Its fields are ``settings``, ``cumulative_reward``, ``operations`` (counts of all roles together), ``bytes``,
    ``cpu_seconds`` (by role), ``wall_seconds`` and ``claim`` (null for a plain run).

    Args:
        settings: The settings of the run.
        advance: Function that is called from time to time with the round.
        transcripts: Receives each role's record, with all messages that the role has received and decrypted, by the
            role's name; only for encrypted runs in this process.

    Raises:
        ImportError: The ``[secure]`` extra is not installed.
        OSError: The ratings cannot be read.
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of its range, or the algorithm cannot be played on encrypted scores.
        SecureError: The run has ended without a result.
    """
    shares = arm_means(settings.ratings, settings.arms)
    if shares.ndim > 1:
        raise ValueError(f"ratings is {settings.ratings!r}; a table without 'agent' is required")
    means = shares.tolist()
    seed = randbits(128) if settings.seed is None else settings.seed
    algorithm = Algorithm(settings.algorithm, settings.parameters)
    start = perf_counter()
    if settings.plain:
        before = process_time()
        reward = run_vertical(means, algorithm, settings.budget, seed).reward
        counts, claim, seconds = Counts(), None, {"plain": process_time() - before}
    else:
        run = run_secure(
            means, algorithm, settings.budget, seed,
            transport=settings.transport, owners_per_role=settings.owners_per_role, tls=settings.tls,
            timeout=settings.timeout, advance=advance, transcripts=transcripts,
        )  # fmt: skip
        reward, counts, claim = run.reward, run.counts, run.claim.as_json()
        seconds = {name: report.cpu_seconds for name, report in run.reports.items()}
    operations = asdict(counts)
    return {
        "settings": plain(asdict(settings)),
        "cumulative_reward": reward,
        "bytes": operations.pop("bytes"),
        "operations": operations,
        "cpu_seconds": seconds,
        "wall_seconds": perf_counter() - start,
        "claim": claim,
    }
