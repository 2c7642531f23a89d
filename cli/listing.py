"""The command ``list``: environments, baselines, and everything that plug-ins add."""

import json
import sys
from itertools import groupby
from typing import Annotated, Any

import typer

from fedbandit_envs.cli.terminal import JsonOption, explained, print_table

Row = dict[str, Any]
"""What is listed: its ``kind``, ``name`` and ``package`` (None if it is this project's), and what else is known."""


def list_(
    problem: Annotated[
        str | None,
        typer.Option(help="Only what belongs to this problem: arms, linear, ... (errors list all)."),
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(help="Only baselines on this leaderboard track: silent, private-1 (errors list all)."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Only what has this text in its name or description, in any case.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Lists environment ids, baselines, and everything that plug-ins add, with the plug-ins' packages and versions.

    A terminal gets tables; a file or another program gets names, one a line.

    Example: `fedbandit list --problem arms --track silent --text thompson`
    """
    from fedbandit_envs.basics.checks import require_choice

    rows = _listed()
    with explained(ValueError):
        if problem is not None:
            known = dict.fromkeys(row["problem"] for row in rows if "problem" in row)
            require_choice("--problem", problem, known)
            rows = [row for row in rows if row.get("problem") == problem]
        if track is not None:
            allowed = _on_track(track)
            rows = [row for row in rows if row["kind"] == "baseline" and row["name"] in allowed]
    if text is not None:
        rows = [row for row in rows if text.lower() in " ".join(map(str, row.values())).lower()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif sys.stdout.isatty():
        _print_tables(rows)
    else:
        for row in rows:
            typer.echo(row["name"])
    if not rows:
        typer.echo("nothing matches", err=True)


def _listed() -> list[Row]:
    """Returns a row for each environment and each baseline, and for everything else that plug-ins add."""
    from fedbandit_envs.baselines.registry import BASELINES
    from fedbandit_envs.basics.entry_points import resolve
    from fedbandit_envs.leaderboard.suites import SUITES
    from fedbandit_envs.papers.catalogue import experiments
    from fedbandit_envs.registry.registration import REGISTRY, Registry
    from fedbandit_envs.wrappers import WRAPPERS
    from fedbandit_envs.wrappers.privacy.mechanisms import MECHANISMS

    registries: dict[str, Registry[Any]] = {
        "environment": REGISTRY,
        "baseline": BASELINES,
        "wrapper": WRAPPERS,
        "mechanism": MECHANISMS,
        "suite": SUITES,
        "experiment": experiments(),
    }
    rows = []
    for kind, registry in registries.items():
        for name, one in registry.items():
            package = registry.package(name)
            known: Row = {}
            if kind == "environment":
                known = {"pettingzoo": one.pettingzoo, "preset": one.kwargs}
            elif kind == "baseline":
                known = {"summary": one.summary, "reference": one.reference}
            elif not package:
                continue
            if known:
                made = resolve(one.federation) if kind == "environment" else one.federation
                # The name of the folder of the environment's class.
                known = {"problem": made.__module__.split(".")[-2:][0], **known}
            rows.append({"kind": kind, "name": name, **known, "package": package})
    return rows


def _on_track(track: str) -> set[str]:
    """Returns the names of the baselines that belong on a track of the leaderboard."""
    from fedbandit_envs.baselines.registry import BASELINES
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.leaderboard.plays import baselines_of
    from fedbandit_envs.leaderboard.suites import SUITES
    from fedbandit_envs.leaderboard.tracks import tracks_of

    # A problem's two suites have the same tasks, and differ in their rounds and seeds.
    suites = [suite for name, suite in SUITES.items() if name.endswith("-quick")]
    for suite in suites:
        require_choice("--track", track, tracks_of(suite))
    return {
        name
        for suite in suites
        for name in baselines_of(suite)
        if name in BASELINES and tracks_of(suite)[track].takes(BASELINES[name], suite)
    }


def _print_tables(rows: list[Row]) -> None:
    """Prints a table for each kind of thing."""
    for kind, found in groupby(rows, lambda row: str(row["kind"])):
        table = [
            (row["name"], ", ".join(str(value) for value in [*row.values()][2:] if value)) for row in found
        ]
        print_table(f"{kind}s", ("name", "about"), table, whole="name")
