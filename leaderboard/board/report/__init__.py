"""Reports: one HTML page that needs no network, Markdown tables, and the first figure as a PNG."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from fedbandit_envs.leaderboard.board.report.first_figure import privacy_png
from fedbandit_envs.leaderboard.board.report.page import markdown, page, renewed, summary
from fedbandit_envs.leaderboard.board.report.rows import rows_of
from fedbandit_envs.leaderboard.board.result import ResultError, ResultFile


def report(
    results: Sequence[ResultFile],
    out: Path,
    withdrawn: Sequence[Mapping[str, str]] = (),
    readme: Path | None = None,
) -> str:
    """Writes ``leaderboard.html``, ``leaderboard.md`` and, where there are private baselines, ``leaderboard.png``.

    Args:
        results: The results to rank; the same results in any order make the same files.
        out: The folder; it is made if it does not exist.
        withdrawn: Withdrawn rows, as records have them; they are listed and not ranked.
        readme: A Markdown file in which the table between :data:`.page.BEGIN` and :data:`.page.END` is renewed.

    Returns:
        Which of the files is not written, and why; empty if all are.

    Raises:
        ResultError: There are no results, or some of one edition cannot be compared, or ``readme`` has no such marks.
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    if not results:
        raise ResultError("results is empty; at least one is required")
    groups = rows_of(results)
    if readme is not None:
        text = renewed(readme.read_text(encoding="utf-8"), summary(groups))
        readme.write_text(text, encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    (out / "leaderboard.md").write_text(markdown(groups, withdrawn), encoding="utf-8")
    (out / "leaderboard.html").write_text(page(groups, withdrawn), encoding="utf-8")
    if find_spec("matplotlib") is None:
        return (
            "leaderboard.png is not drawn: it needs the [report] extra (pip install 'fedbandit-envs[report]')"
        )
    drawn = privacy_png(groups, out / "leaderboard.png")
    return "" if drawn else "leaderboard.png is not drawn: there is no private baseline"
