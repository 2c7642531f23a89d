"""Reports: one HTML page that needs no network, Markdown tables, and the first figure as a PNG."""

from fedbandit_envs.leaderboard.board.report.page import report

__all__ = ["report"]
