"""The leaderboard's page, which is no page of Sphinx': made of committed results, beside what Sphinx has written."""

from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.board.records import Records
from fedbandit_envs.leaderboard.board.report.page import page
from fedbandit_envs.leaderboard.board.report.rows import rows_of


def write_page(app: Any, error: Exception | None) -> None:
    """Writes the page to which ``leaderboard.md`` leads, once the site stands."""
    if error is None:
        records = Records(Path(app.srcdir) / "leaderboard" / "results")
        text = page(rows_of(records.standing()), records.withdrawn())
        (Path(app.outdir) / "leaderboard-page.html").write_text(text, encoding="utf-8")
