"""Reports: one HTML page that needs no network, a Markdown table, and the first figure as a PNG."""

from collections.abc import Sequence
from pathlib import Path

from fedbandit_envs.leaderboard.board.report.first_figure import privacy_png
from fedbandit_envs.leaderboard.board.report.markdown import markdown
from fedbandit_envs.leaderboard.board.report.page import page
from fedbandit_envs.leaderboard.board.report.rows import rows_of
from fedbandit_envs.leaderboard.board.result import Result, ResultError


def report(results: Sequence[Result], out: Path) -> None:
    """Writes ``leaderboard.html``, ``leaderboard.md`` and, where there are private baselines, ``leaderboard.png``.

    Args:
        results: What is to be ranked; the same results in any order make the same files.
        out: The folder; it is made if it is not there.

    Raises:
        ResultError: There are no results, or some of one edition cannot be compared.
    """
    if not results:
        raise ResultError("results is empty; at least one is required")
    groups = rows_of(results)
    out.mkdir(parents=True, exist_ok=True)
    (out / "leaderboard.md").write_text(markdown(groups), encoding="utf-8")
    (out / "leaderboard.html").write_text(page(groups), encoding="utf-8")
    privacy_png(groups, out / "leaderboard.png")
