"""The list of reproduced papers: for each a picture that is drawn small enough to be read, and what was found."""

import csv
import io
from collections import Counter
from pathlib import Path

from fedbandit_envs.experiments.plots import curve_of, figure_of
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.page import read_numbers
from generator.folder import Folder

_SHOWN: dict[str, dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "Papers": {
        "pfcb": ("pfcb-exp2-paper", "uniform-20", ("P-FCB", "P-FCB-placebo", "FCB", "FCB-checked")),
        "fairx": (
            "fairx-exp4-paper",
            "all",
            ("Priv-FairX-LinUCB", "Priv-FairX-weighted", "Fed-FairX-LinUCB", "FairX-LinUCB-greedy"),
        ),
        "feducb": (
            "feducb-horizon-small-rounds1000000",
            "all",
            ("FedUCB-printed", "FedUCB", "LinUCB", "FedUCB-nonprivate"),
        ),
        "feducb_critique": (
            "feducb-critique-small",
            "noise",
            ("FedUCB-printed", "FedUCB", "noise of M agents: M^(-1/4)", "Corollary 1: M^(-1/2)"),
        ),
        "local_trust": (
            "local-trust-small-agents",
            "agents",
            ("local", "aggregator, half honest", "server", "true data"),
        ),
        "samba": ("samba-fig8c-paper-movielens", "movielens", ("Thompson", "UCB", "Softmax", "Pursuit")),
        "fedlinucb": (
            "fedlinucb-paper-regret-15",
            "regret-15",
            ("LinUCB", "Async-LinUCB", "FedLinUCB", "OFUL-shared"),
        ),
        "servers": ("fed-pe-small", "all", ("alone", "Fed-PE", "Fed-PE-enhanced", "all shared")),
        "unlike": (
            "fed-ucb-paper-approximate",
            "approximate",
            ("alone", "10 agents from the start", "Fed2-UCB", "Fed2-UCB-printed"),
        ),
    },
    "Questions that papers leave open": {
        "private_federation": (
            "private-federation-small",
            "procurement",
            ("paper's form", "placebo", "weighted", "true data"),
        ),
        "private_budget": ("private-budget-small", "arms", ("tree", "honaker", "blt", "sqrt_toeplitz")),
        "trust": ("trust-small-linear-event", "linear-event", ("placebo", "local", "server", "true data")),
        "byzantine": (
            "byzantine-paper",
            "garbage",
            ("LinUCB", "FedUCB-nonprivate", "FedUCB-trimmed-mean", "FedUCB-trimmed"),
        ),
        "classification": (
            "classification-small",
            "unlike",
            ("alone", "placebo", "FedUCB-weighted, epsilon = 1", "all shared"),
        ),
    },
}
"""The picture, the panel and the lines that stand for a page. Up to four lines have their legend inside the panel."""

_PLURAL = {"holds": "hold", "does **not** hold": "do **not** hold"}


def write(folder: Folder, docs: Path) -> None:
    """Writes the list, which another page includes, and its pictures."""
    verdicts = _verdicts(docs)
    parts = []
    for heading, pages in _SHOWN.items():
        parts += [f"## {heading}", "````{container} figures"]
        for page, (stem, panel, names) in pages.items():
            path = docs / "reproductions" / f"{page}.md"
            newest = max(one.stat().st_mtime for one in (path, Path(__file__)))
            if not folder.keep(f"gallery/{page}.png", newest):
                folder.write(f"gallery/{page}.png", _picture(docs, page, stem, panel, names))
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


def _picture(docs: Path, page: str, stem: str, panel: str, names: tuple[str, ...]) -> bytes:
    """Returns some lines of one panel of a picture, drawn from the page's numbers with large letters, as PNG."""
    lines: dict[str, dict[float, tuple[float, float, float]]] = {}
    for row in read_numbers(docs / "reproductions" / f"{page}.csv.gz"):
        name = "-".join(part for part in (row["experiment"], row["scale"], row["settings"]) if part)
        drawn = row["quantity"] in ("drawn", "ratio") and " / " not in row["name"]
        if name == stem and row["panel"] == panel and drawn and row["x"]:
            value = float(row["value"])
            low, high = (float(row[end] or value) for end in ("low", "high"))
            lines.setdefault(row["name"], {})[float(row["x"])] = (value, low, high)
            experiment = experiments()[row["experiment"]]
    curves = {name: curve_of(lines[name]) for name in names}
    axes = {**experiment.axes, **experiment.panel_axes.get(panel, {})}
    made = io.BytesIO()
    figure_of({"": curves}, axes, "", text_scale=1.4).savefig(made, format="png")
    return made.getvalue()
