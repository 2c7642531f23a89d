"""The command ``list``: environments, baselines, and everything that plug-ins add."""

import json
import sys
from collections.abc import Collection
from typing import Annotated, Any

import typer

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.cli.terminal import explained, print_table
from fedbandit_envs.leaderboard.engine import belongs
from fedbandit_envs.leaderboard.entries import baselines_of
from fedbandit_envs.leaderboard.suites import SUITES
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.registry.plugins import Registry
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.mechanisms.registry import MECHANISMS
from fedbandit_envs.wrappers.registry import WRAPPERS

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
    as_json: Annotated[bool, typer.Option("--json", help="Print everything that is known as JSON.")] = False,
) -> None:
    """Lists environment ids, baselines, and everything that plug-ins add, with the plug-ins' packages and versions.

    A terminal gets tables; a file or another program gets names, one a line.

    Example: `fedbandit list --problem arms --track silent --text thompson`
    """
    rows = _listed()
    with explained(ValueError):
        if problem is not None:
            require_choice(
                "--problem", problem, dict.fromkeys(row["problem"] for row in rows if "problem" in row)
            )
            rows = [row for row in rows if row.get("problem") == problem]
        if track is not None:
            allowed = _on_track(track, {row["name"] for row in rows})
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
    rows: list[Row] = [
        {
            "kind": "environment",
            "name": env_id,
            "problem": _problem(resolve(entry.federation)),
            "pettingzoo": entry.pettingzoo,
            "preset": entry.kwargs,
        }
        for env_id, entry in REGISTRY.items()
    ]
    rows += [
        {
            "kind": "baseline",
            "name": name,
            "problem": _problem(one.federation),
            "summary": one.summary,
            "reference": one.reference,
        }
        for name, one in BASELINES.items()
    ]
    others: dict[str, Registry[Any]] = {
        "wrapper": WRAPPERS,
        "mechanism": MECHANISMS,
        "suite": SUITES,
        "experiment": experiments(),
    }
    rows += [
        {"kind": kind, "name": name}
        for kind, registry in others.items()
        for name in registry
        if registry.package(name)
    ]
    every: dict[str, Registry[Any]] = {"environment": REGISTRY, "baseline": BASELINES, **others}
    for row in rows:
        package = every[row["kind"]].package(row["name"])
        row["package"] = package and str(package)
    return rows


def _problem(federation: type[Any]) -> str:
    """Returns the name of a problem, which is that of the folder of its class."""
    return federation.__module__.split(".")[-2:][0]


def _on_track(track: str, names: Collection[str]) -> set[str]:
    """Returns those of the named baselines that belong on a track of the leaderboard.

    Raises:
        ValueError: There is no track of that name.
    """
    # A problem's two suites have the same tasks, and differ in their rounds and seeds.
    suites = [suite for name, suite in SUITES.items() if name.endswith("-quick")]
    for suite in suites:
        require_choice("--track", track, tracks_of(suite))
    return {
        name
        for suite in suites
        for name in baselines_of(suite)
        if name in names and belongs(name, suite, tracks_of(suite)[track])
    }


def _print_tables(rows: list[Row]) -> None:
    """Prints a table of environments, a table of baselines for each problem, and one of what plug-ins add."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if row["kind"] == "environment":
            preset = json.dumps(row["preset"]) if row["preset"] else ""
            cells = (row["name"], f"{row['pettingzoo']} {preset}".rstrip())
            tables.setdefault("Environments", []).append(cells)
        if row["kind"] == "baseline":
            cells = (row["name"], f"{row['summary']} ({row['reference']})")
            tables.setdefault(f"Baselines of {row['problem']}", []).append(cells)
    for title, found in tables.items():
        about = "in PettingZoo, and preset" if title == "Environments" else "what it does (reference)"
        print_table(title, ("name", about), found, whole="name")
    if added := [(row["name"], row["kind"], row["package"]) for row in rows if row["package"]]:
        print_table("Plug-ins", ("name", "kind", "package"), added, whole="name")
