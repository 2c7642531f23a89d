"""What a reproduction's page says of its paper's sentences, and what beyond them, told apart by the page's own form.

A page has panels, and a panel has paragraphs, lists and tables. Whatever stands in quotation marks is the paper's: a
paragraph that quotes speaks for the lists and tables behind it, a list's item or a table for itself. Tables without a
verdict are measurements, which are for the page alone; what was spent of privacy is shown.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_COMMAND = re.compile(r"^Made by `([^`]+)`, whose runs took (\d+) CPU-seconds", flags=re.MULTILINE)
_VERDICT = re.compile(
    r"does \*\*not\*\* (?:hold|lie)|\*\*differs\*\*|\*\*refuted\*\*|\*\*no\*\*|undecided|exploratory|agrees(?!\?)"
    r"|lies within|(?<=: )holds|holds(?= \()|(?<=\| )holds(?= \|)|(?<=\| )yes(?= \|)"
)
_SENTENCE = re.compile(r"(?<=[a-z0-9)\]])\. (?=[A-Z])")

HOLDS, UNDECIDED, FAILS, EXPLORATORY = "holds", "undecided", "does not hold", "exploratory"
_MEANS = {
    "holds": HOLDS,
    "agrees": HOLDS,
    "lies within": HOLDS,
    "yes": HOLDS,
    "undecided": UNDECIDED,
    "exploratory": EXPLORATORY,
}
_PAPER = re.compile(r"\| (?:paper|theirs|promise|is it kept\?) \|")
_SPENT = "| adjacency |"
"""How a table begins that has what was spent."""
_WIDE = 5
"""Columns of the widest table that is shown where it is not about the paper."""


class Said(NamedTuple):
    """Something that a page says.

    Attributes:
        panel: The panel it stands in.
        text: Its Markdown: a paragraph, a list or a table.
    """

    panel: str
    text: str


class Page(NamedTuple):
    """A reproduction's page.

    Attributes:
        stem: Name of its files.
        title: Its title.
        setting: What was played, in a sentence.
        panels: Names of its panels.
        of_the_paper: The paper's sentences, with what is found here.
        beyond: What the paper does not say.
        verdicts: On the paper's sentences.
        command: What made it.
        seconds: CPU-seconds that its runs took.
        instances: The least and the largest number of instances that an interval on it is over; empty without one.
    """

    stem: str
    title: str
    setting: str
    panels: list[str]
    of_the_paper: list[Said]
    beyond: list[Said]
    verdicts: list[str]
    command: str
    seconds: int
    instances: tuple[int, ...]


def read(path: Path) -> Page:
    """Reads a page.

    Args:
        path: Its Markdown.

    Raises:
        ValueError: It does not say what it was made by.
    """
    text = path.read_text()
    head, *bodies = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, rest = head.removeprefix("# ").partition("\n")
    of_the_paper: list[Said] = []
    beyond: list[Said] = []
    panels = []
    seen: set[str] = set()
    for body in bodies:
        panel, _, body = body.partition("\n")
        panels.append(panel)
        for lead, blocks in _groups(body):
            for is_quoted, piece in _pieces(lead, blocks):
                # Panels share what they say of all; a verdict is each one's own.
                if piece not in seen or _VERDICT.search(piece):
                    (of_the_paper if is_quoted else beyond).append(Said(panel, piece))
                seen.add(piece)
    found = [verdict for said in of_the_paper for verdict in _VERDICT.findall(said.text)]
    with path.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        counts = {int(row["instances"]) for row in csv.DictReader(file) if row["instances"]}
    made_by = _COMMAND.search(text)
    if made_by is None:
        raise ValueError(f"{path.name} does not say what it was made by")
    return Page(
        path.stem,
        title,
        f"{_SENTENCE.split(rest.strip())[0].rstrip('.')}.",
        panels,
        _joined(of_the_paper),
        _joined(beyond),
        [_MEANS.get(verdict, FAILS) for verdict in found],
        made_by[1],
        int(made_by[2]),
        tuple(sorted({min(counts), max(counts)})) if counts else (),
    )


def _groups(body: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each paragraph (empty: none) with the lists and tables that follow it."""
    lead, blocks = "", []
    for block in body.strip().split("\n\n"):
        if block.startswith(("![", "Made by")):
            continue
        if block.startswith(("|", "* ")):
            blocks.append(block)
            continue
        yield lead, blocks
        lead, blocks = block, []
    yield lead, blocks


def _pieces(lead: str, blocks: list[str]) -> list[tuple[bool, str]]:
    """Returns the parts of a group that are no measurements, and whether each is about a sentence of the paper."""
    quoted = '"' in lead
    kept = [block for block in blocks if not block.startswith("|") or _is_shown(block, quoted)]
    pieces = [piece for block in kept for piece in re.split(r"\n(?=\* )", block)]
    found = [(quoted or _quotes(piece), piece) for piece in pieces]
    introduces = lead.endswith(":") and bool(blocks)
    if not lead or (introduces and blocks[0] not in kept):
        return found
    return [(quoted or (introduces and found[0][0]), lead), *found]


def _quotes(piece: str) -> bool:
    """Whether something stands in quotation marks, or a column has the paper's numbers."""
    return '"' in piece or _PAPER.search(piece.partition("\n")[0]) is not None


def _is_shown(rows: str, quoted: bool) -> bool:
    narrow = rows.partition("\n")[0].count("|") - 1 <= _WIDE
    if rows.startswith(_SPENT):
        return True
    return _VERDICT.search(rows) is not None and (quoted or _quotes(rows) or narrow)


def _joined(said: list[Said]) -> list[Said]:
    """Returns the same with neighbouring items of a list in one."""
    joined: list[Said] = []
    for one in said:
        last = joined[-1] if joined else Said("", "")
        if one.text.startswith("* ") and last.text.startswith("* ") and last.panel == one.panel:
            joined[-1] = Said(one.panel, f"{last.text}\n{one.text}")
        else:
            joined.append(one)
    return joined
