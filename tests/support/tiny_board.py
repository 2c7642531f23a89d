"""A suite that is played in no time, and a folder in which it has been."""

from pathlib import Path

from fedbandit_envs.leaderboard import engine
from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.suites import Suite, Task
from fedbandit_envs.leaderboard.tracks import tracks_of

SIZE = {"num_agents": 2, "num_arms": 4, "dim": 2}
TINY = Suite("tiny", (Task("tiny/band", "FedLinear-v0", 16, 8, SIZE),), "random-arm", "one-observation")

# A silent one, and one that sends noise.
PLAYED = {"LinUCB": "silent", "FedUCB-min": "private-1"}


def played(folder: Path) -> dict[str, Path]:
    """Plays :data:`PLAYED` in a new edition; returns the files by baseline."""
    tracks = tracks_of(TINY)
    rows = [engine.rows_of(TINY, [name], [tracks[track]])[0][0] for name, track in PLAYED.items()]
    return dict(zip(PLAYED, engine.run(rows, Records(folder).edition(TINY), folder), strict=True))
