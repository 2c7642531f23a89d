"""Reports of the leaderboard: one HTML page that needs no network, Markdown tables, and one figure as a PNG."""

from fedbandit_envs.leaderboard.report.page import report

__all__ = ["report"]
