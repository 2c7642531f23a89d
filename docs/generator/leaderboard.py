"""The leaderboard's pages, which are no pages of Sphinx': made of committed results, beside what Sphinx has written."""

from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.records import Records
from fedbandit_envs.leaderboard.report.page import page
from fedbandit_envs.leaderboard.report.rows import rows_of

RESULTS = {
    "leaderboard-page.html": "leaderboard-full/results",
    "leaderboard-quick-page.html": "leaderboard/results",
}
"""The folder of results in `docs` that each page shows: full suites and quick ones."""


def write_pages(app: Any, error: Exception | None) -> None:
    """Writes the pages to which ``leaderboard.md`` leads, once the site stands."""
    if error is None:
        for name, folder in RESULTS.items():
            records = Records(Path(app.srcdir) / folder)
            text = page(rows_of(records.standing()), records.withdrawn())
            (Path(app.outdir) / name).write_text(text, encoding="utf-8")
