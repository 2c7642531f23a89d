"""The gallery: what lies in `reproductions/`, each with its picture, the command that makes it and its verdicts."""

import re
from pathlib import Path
from typing import NamedTuple

from generator.folder import Folder
from generator.markup import table, toctree

_COMMAND = re.compile(r"^Made by `([^`]+)`", flags=re.MULTILINE)
_VERDICT = re.compile(r"does \*\*not\*\* hold|undecided|holds(?!\?)")


class Page(NamedTuple):
    """A reproduction's page.

    Attributes:
        stem: Name of its files.
        title: Its title.
        setting: What was played.
        sentences: What it says of the paper's sentences.
        verdicts: All of them, those in tables included.
        command: What made it; empty where the page does not say.
    """

    stem: str
    title: str
    setting: str
    sentences: list[str]
    verdicts: list[str]
    command: str


def write(folder: Folder, docs: Path) -> None:
    """Writes the gallery from the pages that are there."""
    pages = [read(path) for path in sorted((docs / "reproductions").glob("*.md"))]
    parts = [
        "# Gallery of reproductions",
        "Each page says what the paper says beside what we measured, with intervals, what epsilon is really spent,\n"
        "and what a placebo and silence get. All numbers of a page are in its CSV file. What is below is taken from\n"
        "the pages: the picture, the command, and every sentence that was tested, with its verdict.",
        table(
            ["page", "of", "holds", "undecided", "does not hold"],
            [
                [
                    f"[{page.stem}](#{page.stem})",
                    page.title,
                    *(
                        str(page.verdicts.count(verdict))
                        for verdict in ("holds", "undecided", "does **not** hold")
                    ),
                ]
                for page in pages
            ],
        ),
        *(_entry(page) for page in pages),
        toctree([f"../reproductions/{page.stem}" for page in pages]),
    ]
    folder.write("gallery.md", "\n\n".join(parts) + "\n")


def read(path: Path) -> Page:
    """Reads a page.

    Args:
        path: Its Markdown.
    """
    text = path.read_text()
    lines = text.splitlines()
    title = lines[0].removeprefix("# ")
    setting = next(line for line in lines[1:] if line)
    sentences = [
        line.lstrip("* ") for line in lines if _VERDICT.search(line) and not line.startswith(("|", "#"))
    ]
    made_by = _COMMAND.search(text)
    cells = [cell for line in lines if line.startswith("|") for cell in line[2:-2].split(" | ")]
    verdicts = [verdict for said in (*sentences, *cells) for verdict in _VERDICT.findall(said)]
    return Page(path.stem, title, setting, sentences, verdicts, made_by[1] if made_by else "")


def _entry(page: Page) -> str:
    parts = [
        f"({page.stem})=\n## {page.title} (`{page.stem}`)",
        f"[![{page.title}](../reproductions/{page.stem}.png)](../reproductions/{page.stem}.md)",
        page.setting,
        "\n".join(f"* {sentence}" for sentence in page.sentences),
        f"```text\n{page.command}\n```" if page.command else "",
        f"[The whole page](../reproductions/{page.stem}.md), [its numbers](../reproductions/{page.stem}.csv).",
    ]
    return "\n\n".join(part for part in parts if part)
