"""The list of reproduced papers: for each a picture that is drawn small enough to be read, and what was found."""

import csv
import io
from collections import Counter
from pathlib import Path

from fedbandit_envs.experiments.plots import curve_of, figure_of
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.page import read_numbers
from generator.folder import Folder

_LEFT_OUT = {"random", "alone, a regression for each arm", "FedUCB-min, epsilon = 1"}
_SHOWN = {
    "Papers": {
        "pfcb": ("pfcb-exp2-paper", "uniform-20"),
        "fairx": ("fairx-exp4-paper", "all"),
        "feducb": ("feducb-horizon-small-rounds1000000", "all"),
        "feducb_critique": ("feducb-critique-small", "noise"),
        "local_trust": ("local-trust-small-agents", "agents"),
        "samba": ("samba-fig8c-paper-movielens", "movielens"),
        "fedlinucb": ("fedlinucb-paper-regret-15", "regret-15"),
        "servers": ("fed-pe-small", "all"),
        "unlike": ("fed-ucb-paper-approximate", "approximate"),
    },
    "Questions that papers leave open": {
        "private_federation": ("private-federation-small", "procurement"),
        "private_budget": ("private-budget-small", "arms"),
        "trust": ("trust-small-linear-event", "linear-event"),
        "byzantine": ("byzantine-paper", "garbage"),
        "classification": ("classification-small", "unlike"),
    },
}
"""The picture's name and the panel that stand for a page, in the order of the list."""

_PLURAL = {"holds": "hold", "does **not** hold": "do **not** hold"}


def write(folder: Folder, docs: Path) -> None:
    """Writes the list, which another page includes, and its pictures."""
    verdicts = _verdicts(docs)
    parts = []
    for heading, pages in _SHOWN.items():
        parts += [f"## {heading}", "````{container} figures"]
        for page, (stem, panel) in pages.items():
            path = docs / "reproductions" / f"{page}.md"
            newest = max(one.stat().st_mtime for one in (path, Path(__file__)))
            if not folder.keep(f"gallery/{page}.png", newest):
                folder.write(f"gallery/{page}.png", _picture(docs, page, stem, panel))
            parts.append(_card(page, path.read_text(), _caption(stem, panel), verdicts.get(page, Counter())))
        parts.append("````")
    folder.write("gallery/list.inc", "\n\n".join(parts) + "\n")


def _card(page: str, text: str, caption: str, verdicts: Counter[str]) -> str:
    """Returns a page's title, picture, and what became of the sentences that it decides."""
    title = text.partition("\n")[0].lstrip("# ")
    says = ", ".join(f"{count} {_PLURAL.get(verdict, verdict)}" for verdict, count in verdicts.most_common())
    return "\n\n".join(
        [
            f"```{{container}}\n**[{title}]({page}.md)**",
            f"[![{caption}](../generated/gallery/{page}.png)]({page}.md)",
            f"{caption}." + (f" Sentences: {says}." if says else ""),
            "```",
        ]
    )


def _caption(stem: str, panel: str) -> str:
    experiment = next(one for name, one in experiments().items() if stem.startswith(f"{name}-"))
    part = experiment.panels[panel]
    return experiment.title if part in ("All runs", experiment.title) else f"{experiment.title}; {part}"


def _verdicts(docs: Path) -> dict[str, Counter[str]]:
    """Returns how many of the papers' sentences have each verdict, by the page that decides them."""
    with (docs / "reproductions" / "claims.csv").open(newline="") as file:
        judged = {(row["claim"], row["page"]): row["verdict"] for row in csv.DictReader(file)}
    found: dict[str, Counter[str]] = {}
    for (_, page), verdict in judged.items():
        found.setdefault(page, Counter())[verdict] += 1
    return found


def _picture(docs: Path, page: str, stem: str, panel: str) -> bytes:
    """Returns one panel of a picture, drawn from the page's numbers with large letters, as PNG."""
    lines: dict[str, dict[float, tuple[float, float, float]]] = {}
    for row in read_numbers(docs / "reproductions" / f"{page}.csv.gz"):
        name = "-".join(part for part in (row["experiment"], row["scale"], row["settings"]) if part)
        drawn = row["quantity"] in ("drawn", "ratio") and " / " not in row["name"]
        if name == stem and row["panel"] == panel and drawn and row["x"]:
            value = float(row["value"])
            low, high = (float(row[end] or value) for end in ("low", "high"))
            lines.setdefault(row["name"], {})[float(row["x"])] = (value, low, high)
            experiment = experiments()[row["experiment"]]
    curves = {name: curve_of(points) for name, points in lines.items() if name not in _LEFT_OUT}
    axes = {**experiment.axes, **experiment.panel_axes.get(panel, {})}
    made = io.BytesIO()
    figure_of({"": curves}, axes, "", text_scale=1.4).savefig(made, format="png")
    return made.getvalue()
