"""Submitted policies in sandboxed processes, which see observations, send back actions, and nothing else."""

from fedbandit_envs.leaderboard.sandbox.errors import EntryError
from fedbandit_envs.leaderboard.sandbox.policy import SandboxedPolicy

__all__ = ["EntryError", "SandboxedPolicy"]
