"""The gallery: what lies in `reproductions/`, each with its picture, its command, and what it says of the paper."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from generator import claims
from generator.claims_page import short_form
from generator.folder import Folder
from generator.markup import table, toctree
from generator.reproduction_page import EXPLORATORY, FAILS, HOLDS, UNDECIDED, Page, Said, read

_NO_PANELS = ["All runs"]
_COUNTED = (HOLDS, UNDECIDED, FAILS, EXPLORATORY)
_SEVERAL = {HOLDS: "hold", FAILS: "do not hold"}


def write(folder: Folder, docs: Path) -> None:
    """Writes the gallery from the pages that are there."""
    pages = [read(path) for path in sorted((docs / "reproductions").glob("*.md"))]
    names = named(pages)
    parts = [
        "# Gallery of reproductions",
        "Figures of the papers, made again, and questions that the papers leave open. An entry has the picture, the\n"
        "command that makes it, the paper's sentences with what is found here and a verdict on each, and what is\n"
        "found that the paper does not say: what a placebo and silence get, constants, what noise really costs.\n"
        "Entries are taken from the pages, which have all numbers, and what was changed of the papers' settings.",
        "What became of the papers' sentences, by intervals, rules of ours, and from at least 20 instances\n"
        "([all of them, with figures and rules](claims.md)):",
        short_form(*claims.read(docs), "claims.md"),
        "Under a figure stands how many of its paper's sentences hold, are undecided, do not hold, and have no\n"
        "verdict, since instances are fewer than 20 (exploratory). Where the scale is not the paper's, that is on\n"
        "this scale alone.",
        "\n\n".join(["````{container} figures", *(_figure(page, names[page.stem]) for page in pages), "````"]),
        "All commands in one table, with those of the other pictures: [what makes every picture](pictures.md).",
        *(_entry(page, names[page.stem]) for page in pages),
        "## All pages",
        "Numbers of instances are the least and the largest that an interval of the page is over; verdicts those on\n"
        "sentences of its paper. Pages of P-FCB have the paper's protocol of five markets, and twenty markets;\n"
        "those of FedUCB at the scale `medium` have 10 (Figures 1 C and 2) or 6 (1 B, about four hours of two cores\n"
        "for 10), and the one over 1e7 rounds has 3.",
        table(
            ["page", "instances", "CPU-seconds", *_COUNTED, "command"],
            [_row(page) for page in pages],
        ),
        toctree([f"{page.stem} <../reproductions/{page.stem}>" for page in pages]),
    ]  # fmt: skip
    folder.write("gallery.md", "\n\n".join(parts) + "\n")


def _row(page: Page) -> list[str]:
    counts = Counter(page.verdicts)
    return [
        f"[{page.stem}](../reproductions/{page.stem}.md)",
        " to ".join(map(str, page.instances)),
        f"{page.seconds:,}",
        *(str(counts[verdict] or "") for verdict in _COUNTED),
        f"`{page.command}`",
    ]


def named(pages: Sequence[Page]) -> dict[str, str]:
    """Returns a name for each page, by stem: its title, and where several have it, its panel or else its stem."""
    titles = Counter(page.title for page in pages)
    names = {page.stem: page.title if titles[page.title] == 1 else _with_panel(page) for page in pages}
    taken = Counter(names.values())
    return {stem: name if taken[name] == 1 else f"{name} (`{stem}`)" for stem, name in names.items()}


def _with_panel(page: Page) -> str:
    if len(page.panels) > 1 or page.panels == _NO_PANELS:
        return page.title
    return f"{page.title}: {page.panels[0][0].lower()}{page.panels[0][1:]}"


def _figure(page: Page, name: str) -> str:
    """Returns a picture that leads to its entry, with its name and the verdicts that there are."""
    counts = Counter(page.verdicts)
    found = [
        f"{counts[verdict]} {verdict if counts[verdict] == 1 else _SEVERAL.get(verdict, verdict)}"
        for verdict in _COUNTED
        if counts[verdict]
    ]
    verdicts = f"<br>{', '.join(found)}" if found else ""
    picture = f"[![{name}](../reproductions/{page.stem}.png)](#{page.stem})"
    return f"```{{container}}\n{picture}\n\n[{name}](#{page.stem}){verdicts}\n```"


def _entry(page: Page, name: str) -> str:
    parts = [
        f"({page.stem})=\n## {name}",
        f"[![{page.title}](../reproductions/{page.stem}.png)](../reproductions/{page.stem}.md)",
        page.setting,
        f"```text\n{page.command}\n```",
        *_part("The paper's sentences", page.of_the_paper, len(page.panels)),
        *_part("Beyond the paper", page.beyond, len(page.panels)),
        f"[The whole page](../reproductions/{page.stem}.md), [its numbers](../reproductions/{page.stem}.csv).",
    ]
    return "\n\n".join(part for part in parts if part)


def _part(title: str, said: Sequence[Said], panels: int) -> list[str]:
    parts = [f"**{title}**"] if said else []
    for panel, group in groupby(said, lambda one: one.panel):
        parts += [f"*{panel}:*"] if panels > 1 else []
        parts += [one.text for one in group]
    return parts
