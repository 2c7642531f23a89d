"""The HTML page: its text and tables are written here; ``page.js`` draws, sorts and filters."""

from collections.abc import Mapping, Sequence
from html import escape
from shlex import join
from string import Template

from fedbandit_envs.leaderboard.board.records import Withdrawn
from fedbandit_envs.leaderboard.board.report import assets
from fedbandit_envs.leaderboard.board.report.details import details
from fedbandit_envs.leaderboard.board.report.figures import of_group, what_privacy_buys
from fedbandit_envs.leaderboard.board.report.markdown import WITHDRAWN_HEADS, withdrawn_cells
from fedbandit_envs.leaderboard.board.report.pictures import Picture
from fedbandit_envs.leaderboard.board.report.ranking import ranking, suite_label
from fedbandit_envs.leaderboard.board.report.rows import Group, Row


def page(groups: Mapping[Group, Sequence[Row]], withdrawn: Sequence[Withdrawn] = ()) -> str:
    """Returns the page, with all that it needs inside."""
    privacy: list[tuple[str, Picture]] = []
    suites: list[tuple[str, list[Picture]]] = []
    for rows in groups.values():
        label = suite_label(rows[0], groups)
        bought = (what_privacy_buys(rows, number) for number in range(len(rows[0].result.tasks)))
        privacy += [(label, picture) for picture in bought if picture is not None]
        suites.append((label, of_group(rows)))
    pictures = [picture for _, picture in privacy] + [picture for _, own in suites for picture in own]
    every = [row for rows in groups.values() for row in rows]
    return Template(assets.text("page.html")).substitute(
        head=assets.head("fedbandit-envs: leaderboard"),
        plotly=assets.plotly(),
        script=assets.text("page.js"),
        data=assets.embedded([picture.as_json() for picture in pictures]),
        counts=escape(_counts(every, groups)),
        privacy="\n".join(_figure(picture, label) for label, picture in privacy)
        or "<p>No private baseline is among these results.</p>",
        suites="\n".join(_suite(label, own) for label, own in suites),
        ranking=ranking(groups),
        withdrawn=_withdrawn(withdrawn),
        details="\n".join(details(rows, suite_label(rows[0], groups)) for rows in groups.values()),
        command=escape(join(["fedbandit", "leaderboard", "report", "--results", "DIR", "--out", "DIR"])),
    )


def _counts(rows: Sequence[Row], groups: Mapping[Group, Sequence[Row]]) -> str:
    versions = ", ".join(sorted({str(row.result.package["version"]) for row in rows}))
    newest = max(row.result.made for row in rows)
    return f"{len(rows)} rows in {len(groups)} editions of suites, version {versions}, the newest of {newest[:10]}"


def _withdrawn(rows: Sequence[Withdrawn]) -> str:
    if not rows:
        return "<p>No row was withdrawn.</p>"
    heads = "".join(f'<th scope="col">{head.capitalize()}' for head in WITHDRAWN_HEADS)
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}' + "".join(f"<td>{escape(cell)}" for cell in others)
        for name, *others in map(withdrawn_cells, rows)
    )
    return (
        '<div class="scroll" role="region" aria-label="Withdrawn rows" tabindex="0"><table id="withdrawn">'
        f"<thead><tr>{heads}<tbody>{lines}</table></div>"
    )


def _figure(picture: Picture, suite: str) -> str:
    own = escape(picture.id)
    return (
        f'<figure id="figure-{own}" data-suite="{escape(suite)}" aria-labelledby="title-{own}">'
        f'<figcaption><strong id="title-{own}">{escape(picture.title)}</strong> {escape(picture.caption)}</figcaption>'
        f'<div class="plot" data-picture="{own}" role="img" aria-labelledby="title-{own}" '
        f'aria-describedby="words-{own}"></div>'
        f'<details class="words"><summary>In words, and all numbers</summary>'
        f'<p id="words-{own}">{escape(picture.words)}</p><div class="numbers" data-of="{own}"></div></details>'
        "</figure>"
    )


def _suite(label: str, pictures: Sequence[Picture]) -> str:
    figures = "\n".join(_figure(picture, label) for picture in pictures)
    head = f'<section data-suite="{escape(label)}"><h3>{escape(label)}</h3>'
    return f'{head}<div class="figures">{figures}</div></section>'
