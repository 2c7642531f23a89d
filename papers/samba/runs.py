"""Runs of a vertical federation as cells of an experiment, encrypted or in the open; their shards have fewer seeds."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np

from fedbandit_envs.arms.ratings import arm_means
from fedbandit_envs.basics.arrays import Array, Arrays
from fedbandit_envs.samba.crypto.libraries import require_extra
from fedbandit_envs.samba.owners.algorithm import Algorithm
from fedbandit_envs.samba.runs.simulation import SambaSettings, run_plain, run_samba

_SEEDS_A_SHARD = 5
_ENCRYPTION = 50
"""About how many rounds in the open take as long as one that is encrypted."""


@dataclass(frozen=True)
class Selection:
    """One algorithm on a vertical federation, or a shard of it: the same with fewer seeds.

    Attributes:
        settings: What to run; its seed is the first one.
        seeds: Number of seeds.
        note: Rounds after which the cumulative reward is kept as well; in the open alone.
        labels: What tells the runs from others of an experiment.
    """

    settings: SambaSettings
    seeds: int
    note: tuple[int, ...] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses what cannot be run here, before anything is played.

        Raises:
            MissingExtraError: The run is encrypted, and the ``[secure]`` extra is not installed.
            ValueError: There is no first seed, or rounds are to be noted of an encrypted run.
        """
        if self.settings.seed is None:
            raise ValueError("seed is None; an integer is required, from which the others follow")
        if not self.settings.plain:
            require_extra()
            if self.note:
                raise ValueError(f"note is {self.note}; of encrypted runs nothing but the total can be kept")

    @property
    def size(self) -> float:
        """Rounds times owners, as many as take about as long in the open."""
        return float(self.seeds * self._a_round * self.settings.budget)

    @property
    def _a_round(self) -> int:
        return self.settings.arms * (1 if self.settings.plain else _ENCRYPTION)

    @property
    def key(self) -> list[Any]:
        """All that the results follow from; see :attr:`.store.Cell.key`."""
        return ["samba", asdict(self.settings), self.seeds, self.note]

    def split(self) -> list["Selection"]:
        """Splits the seeds: runs in the open by a handful, encrypted ones each by itself."""
        size = _SEEDS_A_SHARD if self.settings.plain else 1
        seeds = self._seeds
        return [
            replace(self, settings=replace(self.settings, seed=first), seeds=min(size, seeds.stop - first))
            for first in range(seeds.start, seeds.stop, size)
        ]

    @property
    def _seeds(self) -> range:
        first = self.settings.seed
        assert first is not None
        return range(first, first + self.seeds)

    def play(self, advance: Callable[[float], None]) -> Arrays:
        """Plays one seed after the other; see :meth:`.store.Cell.play`."""
        start = process_time()
        settings, means = self.settings, arm_means(self.settings.ratings, self.settings.arms)
        algorithm = Algorithm(settings.algorithm, settings.parameters)
        # Kernels are loaded here, so that no run is charged with it.
        run_plain(means.tolist(), algorithm, settings.arms + 2, 0)
        rows = []
        for seed in self._seeds:
            if settings.plain:
                rows.append(self._open(means, algorithm, seed))
                advance(float(self._a_round * settings.budget))
            else:
                rows.append(self._encrypted(seed, advance))
        claims = [row.pop("claim") for row in rows]
        return {
            **{name: np.array([row[name] for row in rows]) for name in rows[0] if name != "roles"},
            "roles": np.array(json.dumps(rows[0]["roles"])),
            "claim": np.array(json.dumps(claims[0])),
            "means": means,
            "cpu_seconds": np.array(process_time() - start),
        }

    def _open(self, means: Array, algorithm: Algorithm, seed: int) -> dict[str, Any]:
        result, spent = run_plain(means.tolist(), algorithm, self.settings.budget, seed, self.note)
        return {
            "reward": result.reward, "noted": result.noted, "pulls": result.pulls, "bytes": 0,
            "roles": ["plain"], "seconds": [spent], "claim": None,
        }  # fmt: skip

    def _encrypted(self, seed: int, advance: Callable[[float], None]) -> dict[str, Any]:
        run = run_samba(
            replace(self.settings, seed=seed), lambda rounds: advance(float(rounds * self._a_round))
        )
        return {
            "reward": run["cumulative_reward"], "noted": (), "pulls": (), "bytes": run["bytes"],
            "roles": list(run["cpu_seconds"]), "seconds": list(run["cpu_seconds"].values()),
            "claim": run["claim"],
        }  # fmt: skip

    def join(self, parts: Sequence[Arrays]) -> "Selected":
        """Puts the run together from its shards; see :meth:`.store.Cell.join`."""
        together = {
            name: np.concatenate([part[name] for part in parts])
            for name in ("reward", "noted", "pulls", "bytes", "seconds")
        }
        roles = json.loads(str(parts[0]["roles"]))
        return Selected(
            algorithm=self.settings.algorithm,
            arms=self.settings.arms,
            budget=self.settings.budget,
            reward=together["reward"],
            noted=dict(zip(self.note, together["noted"].T, strict=True)),
            pulls=together["pulls"],
            bytes=together["bytes"],
            seconds=dict(zip(roles, together["seconds"].T, strict=True)),
            claim=json.loads(str(parts[0]["claim"])),
            means=parts[0]["means"],
            cpu_seconds=float(sum(part["cpu_seconds"] for part in parts)),
        )


@dataclass(frozen=True)
class Selected:
    """A run, put together from its shards.

    Attributes:
        algorithm: Its name.
        arms: K.
        budget: N.
        reward: Cumulative, int64 ``(seeds,)``.
        noted: The same after given rounds, by the round; empty if encrypted.
        pulls: How often each owner was picked, int64 ``(seeds, owners)``; no owners if encrypted, since nobody knows.
        bytes: Of all frames, int64 ``(seeds,)``; 0 in the open.
        seconds: CPU seconds of each role, ``(seeds,)`` each; in the open that of ``plain``.
        claim: What is kept from whom; None in the open.
        means: Of the owners' arms, ``(owners,)``.
        cpu_seconds: What the shards took when they were played.
    """

    algorithm: str
    arms: int
    budget: int
    reward: Array
    noted: Mapping[int, Array]
    pulls: Array
    bytes: Array
    seconds: Mapping[str, Array]
    claim: Mapping[str, Any] | None
    means: Array
    cpu_seconds: float

    @property
    def encrypted(self) -> bool:
        """Whether scores were."""
        return self.claim is not None

    @property
    def spent(self) -> Array:
        """CPU seconds of all roles together, ``(seeds,)``."""
        return np.sum(list(self.seconds.values()), axis=0)

    @property
    def regret(self) -> Array:
        """By the means of what was pulled, ``(seeds,)``; of runs in the open."""
        lost: Array = self.pulls @ (self.means.max() - self.means)
        return lost
