"""The command ``list``: environments, baselines, and everything that plug-ins add."""

import json
import sys
from typing import Annotated, Any

import typer

from fedbandit_envs.cli.terminal import JsonOption, explained, print_table

Row = dict[str, Any]
"""What is listed: its ``kind``, ``name`` and ``package`` (None if it is this project's), and what else is known."""


def list_(
    env_id: Annotated[
        str | None, typer.Option("--env", help="Only this environment and what plays it.")
    ] = None,
    text: Annotated[str | None, typer.Option(help="Only what is described with this text.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Lists environments, baselines, and what plug-ins add.

    A terminal gets a table. A file or another program gets a line for each name, with tabs between the columns.

    Example: `fedbandit list --env FedArms-v0 --text thompson`
    """
    from fedbandit_envs.baselines import BASELINES
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.registry.registration import REGISTRY

    rows = _listed()
    if env_id is not None:
        with explained(ValueError):
            require_choice("--env", env_id, REGISTRY)
        names = {env_id, *(name for name, one in BASELINES.items() if one.fits(env_id))}
        rows = [row for row in rows if row["name"] in names]
    if text is not None:
        rows = [row for row in rows if text.lower() in " ".join(map(str, row.values())).lower()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif rows:
        heads = ("kind", "name", "about")
        cells = [[str(value) for value in row.values() if value] for row in rows]
        table = [(kind, name, ", ".join(about)) for kind, name, *about in cells]
        if sys.stdout.isatty():
            print_table("", heads, table, whole="name")
        else:
            typer.echo("\n".join(map("\t".join, [heads, *table])))
    if not rows:
        typer.echo("nothing matches", err=True)


def _listed() -> list[Row]:
    """Returns a row for each environment and each baseline, and for everything else that plug-ins add."""
    from fedbandit_envs.baselines import BASELINES
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
            about: Row = {}
            if kind in ("environment", "baseline"):
                federation = resolve(one.federation) if kind == "environment" else one.federation
                about["problem"] = federation.__module__.split(".")[-2:][0]
            if kind == "environment":
                about |= {"pettingzoo": one.pettingzoo, "preset": one.kwargs}
            elif kind == "baseline":
                about |= {"summary": one.summary, "reference": one.reference}
            package = registry.package(name)
            if about or package:
                rows.append({"kind": kind, "name": name, **about, "package": package})
    return rows
