"""Runs of SAMBA as data: settings that can be written as JSON, and the results of encrypted and plain runs."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from secrets import randbits
from time import perf_counter, process_time
from typing import Any, get_args

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.samba.crypto.keystreams import owner_keys
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.plan import SambaPlan
from fedbandit_envs.samba.record import Counts, Transcript
from fedbandit_envs.samba.runs.secure import TIMEOUT, Transport, run_secure
from fedbandit_envs.samba.vertical import PlainSelector, VerticalResult, run_vertical

_SECRET_BITS = 128


@dataclass(frozen=True)
class SambaSettings:
    """Everything that a run follows from.

    Attributes:
        algorithm: A name of :data:`fedbandit_envs.samba.owners.algorithm.RULES`, or ``"module:attribute"`` of a rule.
        ratings: The source of the arms' means, see :func:`~fedbandit_envs.arms.ratings.arm_means`.
        arms: Number of owners, K.
        budget: Number of rounds, N.
        seed: The seed of the run; None draws one that is not disclosed.
        transport: ``"local"``: all roles in this process; ``"tcp"``: each in a process of its own.
        parameters: Keyword arguments of the algorithm.
        owners_per_role: Number of owners in a group; None for all of them under ``"local"``, and one under ``"tcp"``.
        tls: Puts links between processes under mutual TLS.
        timeout: Seconds after which a role that is awaited counts as hung.
        plain: Runs without encryption; the reward is the same.

    Example:
        >>> run_samba(SambaSettings("ucb", arms=3, budget=40, seed=0, plain=True))["cumulative_reward"]
        20
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


def seed_or_random(seed: int | None) -> int:
    """Returns the seed, or a random one of 128 bits where it is None."""
    return randbits(_SECRET_BITS) if seed is None else seed


def run_samba(
    settings: SambaSettings,
    advance: Callable[[int], None] = lambda rounds: None,
    transcripts: dict[str, Transcript] | None = None,
) -> dict[str, Any]:
    """Returns the result of one run, encrypted or plain, as JSON.

    Its fields are ``settings``, ``cumulative_reward``, ``operations`` (counts of all roles together), ``bytes``,
    ``cpu_seconds`` (by role), ``wall_seconds`` and ``claim`` (null for a plain run).

    Args:
        settings: The settings of the run.
        advance: Called with a number of rounds that have been played since the last call.
        transcripts: Receives what each role sees, by its name; only of encrypted runs in this process.

    Raises:
        MissingExtraError: The ``[secure]`` extra is not installed.
        OSError: The ratings cannot be read.
        TypeError: A setting has the wrong type.
        ValueError: A setting is out of its range, or the algorithm cannot be played on encrypted scores.
        SecureError: The run has ended without a result.
    """
    require_choice("transport", settings.transport, get_args(Transport))
    means = arm_means(settings.ratings, settings.arms).tolist()
    seed = seed_or_random(settings.seed)
    algorithm = Algorithm(settings.algorithm, settings.parameters)
    start = perf_counter()
    if settings.plain:
        result, spent = run_plain(means, algorithm, settings.budget, seed)
        reward, counts, claim, seconds = result.reward, Counts(), None, {"plain": spent}
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
    """Returns the rewards of a run without encryption, and its CPU seconds.

    Arguments and errors are those of :func:`~fedbandit_envs.samba.vertical.run_vertical`, with an algorithm in place of
    owners and selector.
    """
    plan = SambaPlan.make(algorithm, len(means), budget)
    bank = algorithm.bank(owner_keys(seed, plan.arms), plan.arms, budget)
    selector = PlainSelector(plan, seed)
    before = process_time()
    result = run_vertical(means, bank, selector, budget, seed, note=note)
    return result, process_time() - before
