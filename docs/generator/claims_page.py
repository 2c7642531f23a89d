"""The page with the papers' sentences and the verdicts on them, and its short form for the gallery."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isnan
from pathlib import Path
from typing import Any

from fedbandit_envs.papers.reproduction.comparison import ENOUGH, Mean
from generator.claims import (
    EXPLORATORY,
    FAILS,
    HOLDS,
    NOT_COMPARABLE,
    UNDECIDED,
    Check,
    Claim,
    read,
)
from generator.folder import Folder
from generator.markup import table

_MANY = 5
"""Figures of a check from which only their range is shown."""
_HEADS = {
    HOLDS: "hold",
    FAILS: "do not",
    UNDECIDED: "undecided",
    EXPLORATORY: "exploratory",
    NOT_COMPARABLE: "not comparable",
}


def write(folder: Folder, docs: Path) -> None:
    """Writes the page."""
    papers, claims = read(docs)
    parts = [
        "# The papers' claims",
        "What the reproduced papers say of their results, sentence by sentence, beside what was found here: of those\n"
        "whose text was at hand, in abstract, introduction, experiments and conclusion, with theorems that pages try.",
        f"A verdict is computed from intervals of 95 %. A sentence *{HOLDS}* where every whole\n"
        "interval lies within its rule, and *does not hold* where some whole interval lies outside; else it is\n"
        f"*{UNDECIDED}*. From fewer than {ENOUGH} instances no verdict follows: figures are *{EXPLORATORY}*, whatever\n"
        "their intervals, which are for those few. An instance is what is drawn anew from one to the next: a market,\n"
        "a trial, a run (of SAMBA its random numbers, since its arms are the data set's). Where no page has what a\n"
        "sentence is about, where the setting is another, or the sentence names no measure, it is\n"
        f"*{NOT_COMPARABLE}*.",
        short_form(papers, claims, ""),
        "Rules are ours, and were written when the figures were known: the sentences print few bounds, and what\n"
        '"comparable" or "approximately" is to mean, which form of an algorithm and which cells stand for a sentence,\n'
        "what counts as an instance, and what cannot be compared, are readings, which stand in the rows. With other\n"
        "readings some rows would say otherwise: a power of -0.48 is not -0.5 here, and would be to one digit. The\n"
        "attack on FedUCB's times counts plays as instances, not trials.",
        "Left out are definitions, proofs, sentences on others' work, and who was first. A sentence of several parts\n"
        'has a row for each that is decided apart; "[...]" stands for a formula. Quotients that a page does not have,\n'
        "such as of regret at neighbouring numbers of agents, have the widest interval that both figures' allow.\n"
        "The pages themselves have rules of their own for some sentences (whether a point lies in an interval, a\n"
        "mean without an interval), and some of their verdicts are of corrected forms of an algorithm, where this\n"
        "table has the form that is printed: so a page and this table may differ.",
        *(part for paper in papers.values() for part in _of_paper(paper, claims)),
        "## Papers without text",
        "Of these no more was at hand than what the pages say.",
        "\n".join(f"* {paper['name']}: {paper['citation']}." for paper in papers.values() if not paper["text"]),
    ]  # fmt: skip
    folder.write("claims.md", "\n\n".join(parts) + "\n")


def short_form(papers: Mapping[str, Mapping[str, Any]], claims: Sequence[Claim], page: str) -> str:
    """Returns a table of how many sentences of each paper got which verdict.

    Args:
        papers: The papers, by key.
        claims: Their sentences.
        page: The page that the papers' names lead to; empty on that page itself.
    """
    counts = {key: Counter(claim.verdict for claim in claims if claim.paper == key) for key in papers}
    return table(
        ["paper", "sentences and parts", *_HEADS.values()],
        [
            [
                f"[{papers[key]['name']}]({page}#claims-{key})",
                str(count.total()),
                *(str(count[verdict]) for verdict in _HEADS),
            ]
            for key, count in counts.items()
            if count
        ],
    )


def _of_paper(paper: Mapping[str, Any], claims: Sequence[Claim]) -> list[str]:
    """Returns the sentences of a paper; nothing if none is known."""
    own = [claim for claim in claims if claim.paper == paper["key"]]
    if not own:
        return []
    known = "" if paper["text"] else " Only those sentences of its abstract that a page quotes were at hand."
    header = ["place", "the paper says", "rule, and the paper's figure", "here", "verdict"]
    return [
        f"(claims-{paper['key']})=\n## {paper['name']}",
        f"{paper['citation']}.{known}",
        f"````{{container}} dense\n{table(header, [_row(claim) for claim in own])}\n````",
    ]


def _row(claim: Claim) -> list[str]:
    part = f" ({claim.part})" if claim.part else ""
    source = f"[{claim.page}](../reproductions/{claim.page}.md), {claim.instances:,} {claim.unit}"
    few = f" ({claim.instances} {claim.unit})" if claim.verdict == EXPLORATORY else ""
    return [
        claim.place,
        f'"{claim.quote}"{part}',
        "<br>".join(f"{check.says}: {_rule(check)}" for check in claim.checks) or "-",
        "<br>".join([*(_here(check.figures) for check in claim.checks), *([source] if claim.page else [])])
        or "-",
        f"{claim.verdict}{few}{f': {claim.reason}' if claim.reason else ''}",
    ]


def _rule(check: Check) -> str:
    if check.low == check.high:
        rule = f"{check.low:g}"
    elif check.low == -inf:
        rule = f"at most {check.high:g}"
    elif check.high == inf:
        rule = f"at least {check.low:g}"
    else:
        rule = f"from {check.low:g} to {check.high:g}"
    return f"{rule} (paper: {check.printed})" if check.printed else rule


def _here(figures: Sequence[Mean]) -> str:
    if len(figures) < _MANY:
        return "; ".join(_figure(figure) for figure in figures)
    values = [figure.value for figure in figures]
    ends = [(figure.low, figure.high) for figure in figures if not isnan(figure.low)]
    within = f", intervals in {_interval(min(ends)[0], max(high for _, high in ends))}" if ends else ""
    return f"{len(figures)} figures, {_number(min(values))} to {_number(max(values))}{within}"


def _figure(figure: Mean) -> str:
    """Returns a figure with its interval, as far as it has them."""
    if figure.high == inf:
        return f"at least {_number(figure.low)}"
    if isnan(figure.low) or figure.low == figure.value == figure.high:
        return _number(figure.value)
    interval = _interval(figure.low, figure.high)
    return interval if isnan(figure.value) else f"{_number(figure.value)} {interval}"


def _interval(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
