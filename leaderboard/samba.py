"""Runs of SAMBA as data: what was asked for, what came out, encrypted or in the open."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from secrets import randbits
from time import perf_counter, process_time
from typing import Any, get_args

from fedbandit_envs.arms.masks import Streams, owner_keys
from fedbandit_envs.arms.vertical import PlainSelector, VerticalResult, run_vertical
from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.ratings_source import arm_means
from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.plan import Algorithm, Plan
from fedbandit_envs.wrappers.secure.run import TIMEOUT, Transport, run_secure
from fedbandit_envs.wrappers.secure.transcript import Transcript

_SECRET_BITS = 128


@dataclass(frozen=True)
class SambaSettings:
    """All that determines a run.

    Attributes:
        algorithm: A name of :data:`fedbandit_envs.baselines.arms.owners.OWNERS`, or an entry point.
        ratings: Where the arms come from, see :func:`.ratings_source.arm_means`.
        arms: K.
        budget: N.
        seed: None for one that nobody knows.
        transport: All roles in this process, or each in its own.
        parameters: Of the algorithm.
        owners_per_role: How many owners share a process; None for all of them locally, and one each under ``"tcp"``.
        tls: Puts links between processes under mutual TLS.
        timeout: Seconds after which a role that is waited for counts as hung.
        plain: Selects in the open instead, by the same arithmetic.
    """

    algorithm: str = "ucb"
    ratings: str = "movielens"
    arms: int = 10
    budget: int = 1000
    seed: int | None = None
    transport: Transport = "local"
    parameters: dict[str, Any] = field(default_factory=dict)
    owners_per_role: int | None = None
    tls: bool = False
    timeout: float = TIMEOUT
    plain: bool = False


def seed_of(seed: int | None) -> int:
    """Returns a seed, or one of 128 bits that nobody knows where it is None."""
    return randbits(_SECRET_BITS) if seed is None else seed


def run_samba(
    settings: SambaSettings,
    advance: Callable[[int], None] = lambda rounds: None,
    transcripts: dict[str, Transcript] | None = None,
) -> dict[str, Any]:
    """Runs SAMBA, or the vertical federation without encryption.

    Args:
        settings: What to run.
        advance: Told of rounds played, for progress bars.
        transcripts: Receives what each role sees, by name, if all are in this process and encrypt.

    Returns:
        As JSON: ``settings``, ``cumulative_reward``, ``operations`` (of all roles together, frames among them),
        ``bytes``, ``cpu_seconds`` (by role), ``wall_seconds`` and ``claim``.

    Raises:
        MissingExtraError: The ``[secure]`` extra is not installed.
        OSError: The ratings cannot be read.
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of its range, or the algorithm cannot be played in secret.
        SecureError: The run has ended without a result.
    """
    require_choice("transport", settings.transport, get_args(Transport))
    means = arm_means(settings.ratings, settings.arms)
    seed = seed_of(settings.seed)
    algorithm = Algorithm(settings.algorithm, settings.parameters)
    start = perf_counter()
    if settings.plain:
        result, spent = run_plain(means.tolist(), algorithm, settings.budget, seed)
        reward, counts, claim, seconds = result.reward, Counts(), None, {"plain": spent}
    else:
        run = run_secure(
            means.tolist(), algorithm, settings.budget, seed,
            transport=settings.transport, owners_per_role=settings.owners_per_role, tls=settings.tls,
            timeout=settings.timeout, advance=advance, transcripts=transcripts,
        )  # fmt: skip
        reward, counts, claim = run.reward, run.counts, run.claim.as_json()
        seconds = {name: report.cpu_seconds for name, report in run.reports.items()}
    operations = asdict(counts)
    return {
        "settings": asdict(settings),
        "cumulative_reward": reward,
        "bytes": operations.pop("bytes"),
        "operations": operations,
        "cpu_seconds": seconds,
        "wall_seconds": perf_counter() - start,
        "claim": claim,
    }


def run_plain(
    means: list[float], algorithm: Algorithm, budget: int, seed: int, note: Collection[int] = ()
) -> tuple[VerticalResult, float]:
    """Runs in the open; see :func:`~fedbandit_envs.arms.vertical.run_vertical` for arguments and errors.

    Returns:
        What the run has earned, and its CPU seconds.
    """
    arms = len(means)
    plan = Plan.make(algorithm, arms, budget)
    bank = algorithm.bank(owner_keys(seed, arms), arms, budget)
    selector = PlainSelector(plan.choice, Streams(seed, arms), plan.iterations)
    before = process_time()
    result = run_vertical(means, bank, selector, budget, seed, note=note)
    return result, process_time() - before
