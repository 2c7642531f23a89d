"""Submitted policies in processes of their own, which see observations and send back actions, and nothing else."""

from fedbandit_envs.leaderboard.board.child.errors import EntryError
from fedbandit_envs.leaderboard.board.child.policy import ChildPolicy

__all__ = ["ChildPolicy", "EntryError"]
