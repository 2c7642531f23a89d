"""Sandboxed processes in which submitted policies run.

Such a process gets observations and sends back actions; it has no other connection to the environment.
"""

from fedbandit_envs.leaderboard.sandbox.errors import EntryError
from fedbandit_envs.leaderboard.sandbox.policy import SandboxedPolicy

__all__ = ["EntryError", "SandboxedPolicy"]
