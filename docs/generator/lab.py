"""The lab's page, which is no page of Sphinx': made of the numbers that are kept, beside what Sphinx has written."""

from pathlib import Path
from typing import Any

from fedbandit_envs.leaderboard.lab.page.numbers import read
from fedbandit_envs.leaderboard.lab.page.page import page


def write_page(app: Any, error: Exception | None) -> None:
    """Writes the page where ``lab.md`` embeds it, once the site stands."""
    if error is None:
        numbers = read(Path(app.srcdir) / "lab.json")
        (Path(app.outdir) / "lab-page.html").write_text(page(numbers), encoding="utf-8")
