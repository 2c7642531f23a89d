"""What an attack shows of the privatizers that rows ran behind."""

from typing import Any

from fedbandit_envs.leaderboard.board.result import Entry
from fedbandit_envs.leaderboard.board.suites import Suite
from fedbandit_envs.leaderboard.board.tracks import Track


def audits_of(track: Track, entry: Entry, suite: Suite) -> dict[str, dict[str, Any]]:
    """Returns audits by task."""
    return {}
