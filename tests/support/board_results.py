"""Results as the leaderboard makes them, of numbers that were drawn rather than played."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedbandit_envs.baselines.comparison_lines import PLACEBO, SILENT, TRUE, TRUE_TUNED, TUNED
from fedbandit_envs.experiments.simulate import log_spaced
from fedbandit_envs.leaderboard.report.rows import RankedRow, lines_of, rows_of
from fedbandit_envs.leaderboard.result import Edition, Entry, ResultFile, TaskResult
from fedbandit_envs.leaderboard.suites import SUITES, Task

SALT = "0123456789abcdef" * 2
EDITION = Edition("0123456789ab", SALT)
EPSILONS = (0.1, 1.0, 10.0)
PRIVATE = {
    "procurement": ("P-FCB", "P-FCB-weighted"),
    "linear": ("FedUCB-min", "FedUCB-weighted"),
    "exposure": ("Priv-FairX-LinUCB", "Priv-FairX-weighted"),
    "arms": ("Priv-UCB1", "UCB1-weighted"),
}
ARMS = 5


def claim(
    epsilon: float | str | None, adjacency: str, delta: float = 1e-5, composition: str = "exact"
) -> dict:
    """A claim as a result holds it."""
    reason = "there is no answer" if epsilon is None else ""
    return {
        "adjacency": adjacency, "composition": composition, "epsilon": epsilon, "delta": delta, "trust": "local",
        "reason": reason, "noise": "secret",
    }  # fmt: skip


def task_result(
    task: Task, level: float, claims: Sequence[dict], sent: float, skew: float = 1.0
) -> TaskResult:
    """A task's result: regret grows with the root of rounds to ``level`` times as much as at random.

    Randomness is the same for all; ``skew`` is how much shares of pulls exaggerate deserved ones.
    """
    generator = np.random.default_rng(len(task.id))
    randomness = generator.normal(1, 0.2, task.seeds).clip(0.3)
    own = np.random.default_rng(round(level * 1000)).normal(1, 0.05, task.seeds)
    rounds = log_spaced(task.rounds)
    regret = 100 * level * np.sqrt(rounds)[:, None] * randomness * own
    extra = {}
    if task.id.startswith("exposure"):
        due = -np.sort(-generator.dirichlet(np.arange(1, ARMS + 1), task.seeds).T, axis=0)
        got = due**skew / (due**skew).sum(axis=0)
        extra = {f"deserved[{arm}]": due[arm] for arm in range(ARMS)}
        extra |= {f"pulls[{arm}]": got[arm] for arm in range(ARMS)}
    audit = None
    if claims and isinstance(claims[0]["epsilon"], float):
        audit = {"mechanism": "gaussian", "lower_bound": claims[0]["epsilon"] * 0.8, "holds": True}
    made = TaskResult(
        task.id, task.digest, rounds.tolist(), regret.tolist(), np.tile(regret[-1][:, None], 2).tolist(),
        {name: values.tolist() for name, values in extra.items()},
        [sent] * task.seeds, [sent * 96] * task.seeds, list(claims), audit,
        [f"{seed:032x}" for seed in range(task.seeds)], SALT if claims else None, [[0, 0]], None, 1.5,
    )  # fmt: skip
    return replace(made, arrays_digest=made.digest_of_arrays())


def result(
    suite: str,
    name: str,
    track: str,
    level: float,
    claims: Sequence[dict] = (),
    sent: float = 0.0,
    *,
    kind: str = "baseline",
    command: Sequence[str] = (),
    edition: Edition = EDITION,
    skew: float = 1.0,
) -> ResultFile:
    """A result of an entry with the same level in all tasks of a suite."""
    said = command or ["fedbandit", "leaderboard", "run", "--suite", suite, "--out", "results", name]
    return ResultFile(
        suite,
        SUITES[suite].version,
        edition,
        Entry(name, kind, name, "a" * 64, {}),
        track,
        [task_result(task, level, claims, sent, skew) for task in SUITES[suite].tasks],
        list(said),
        {"version": "0.1.0", "commit": None, "source_digest": "b" * 64, "lock": {"numpy": "2.0.0"}},
        {"system": "Linux", "processor": "x86-64", "python": "3.11"},
        "2026-01-02T03:04:05Z",
    )


def federation_pays(suite: str) -> list[ResultFile]:
    """All sorts of rows of a suite, where the weighted form pays from epsilon 1 on."""
    problem = suite.removesuffix("-quick")
    lines, adjacency = lines_of(suite), SUITES[suite].adjacency
    paper, ours = PRIVATE[problem]
    rows = [
        result(suite, SUITES[suite].reference, "silent", 1.0, skew=0.0),
        result(suite, lines[SILENT], "silent", 0.55, skew=0.5),
        result(suite, lines[TUNED], "silent", 0.3, skew=0.7),
        result(suite, lines[TRUE], "non-private", 0.1, [claim("infinity", adjacency)], 500.0, skew=0.95),
    ]
    if TRUE_TUNED in lines:
        rows.append(
            result(
                suite,
                lines[TRUE_TUNED],
                "non-private",
                0.08,
                [claim("infinity", adjacency)],
                500.0,
                skew=0.95,
            )
        )
    for place, epsilon in enumerate(EPSILONS):
        track, claims = (
            f"private-{epsilon:g}",
            [claim(epsilon, adjacency), claim(None, adjacency, 0.1, "basic")],
        )
        rows += [
            result(suite, ours, track, (0.31, 0.25, 0.15)[place], claims, 12.0, skew=0.8),
            result(suite, paper, track, (2.0, 0.9, 0.5)[place], claims, 12.0, skew=0.4),
            result(suite, lines[PLACEBO], track, 0.305, claims, 12.0, skew=0.7),
        ]
    return rows


def only(results: Sequence[ResultFile]) -> list[RankedRow]:
    """The rows of results that are all of one group."""
    (rows,) = rows_of(results).values()
    return rows


def named(rows: Sequence[RankedRow], name: str, track: str | None = None) -> RankedRow:
    """The only row of this name, on this track where one is given."""
    (row,) = [row for row in rows if row.name == name and track in (None, row.result.track)]
    return row
