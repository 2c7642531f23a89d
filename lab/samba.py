"""Runs of SAMBA in the lab: reward, CPU time by role, and the messages that each role received."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fedbandit_envs.experiments.spec import refusing
from fedbandit_envs.samba.errors import MissingExtraError, SecureError
from fedbandit_envs.samba.messages import Record
from fedbandit_envs.samba.runs import SambaSettings, run_samba, seed_or_random


class SambaOutcome(NamedTuple):
    """The result of a run of SAMBA in the lab.

    Attributes:
        result: Reward, counts and times of the run, as :func:`~fedbandit_envs.samba.runs.run_samba` returns them.
        open_reward: The cumulative reward of the same run without encryption.
        transcripts: For each role, by its name, the record of the messages that it received.
    """

    result: Mapping[str, Any]
    open_reward: int
    transcripts: Mapping[str, Record]

    @property
    def seconds(self) -> dict[str, float]:
        """CPU seconds by role; ``owners`` is the sum over all owners."""
        spent = Counter[str]()
        for name, seconds in self.result["cpu_seconds"].items():
            spent["owners" if name.startswith("owner-") else name] += seconds
        return dict(spent)


def samba_outcome(settings: SambaSettings, advance: Callable[[int], None]) -> SambaOutcome:
    """Runs SAMBA once with encryption and once without, on the same seed, to compare the rewards.

    Each data owner is a role of its own, and all roles run in this process.

    Args:
        settings: Algorithm, data, arms K, rounds N and seed; with the seed None both runs have the same secret one.
        advance: Called with the number of rounds played since its last call, for progress bars.

    Raises:
        SettingsError: A setting is out of its range, the algorithm cannot be played under encryption, the
            ``[secure]`` extra is not installed, or a role has ended the run.
    """
    settings = replace(settings, seed=seed_or_random(settings.seed), owners_per_role=1)
    transcripts: dict[str, Record] = {}
    with refusing(ValueError, TypeError, OSError, SecureError, MissingExtraError):
        result = run_samba(settings, advance, transcripts)
        plain = run_samba(replace(settings, plain=True))
    return SambaOutcome(result, plain["cumulative_reward"], transcripts)
