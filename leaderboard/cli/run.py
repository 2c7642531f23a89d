"""The command ``run``."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fedbandit_envs.leaderboard.cli.terminal import explained, out_console, progress_bar
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.run import Settings, SettingsError
from fedbandit_envs.leaderboard.run import run as run_settings
from fedbandit_envs.leaderboard.simulation import Simulation
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


def run(
    baseline: Annotated[
        str,
        typer.Argument(
            help="A baseline's name, see `fedbandit list`; or a policy's entry point, `module:Class`."
        ),
    ],
    env_id: Annotated[str, typer.Argument(help="An environment's id, see `fedbandit list`.")],
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: an argument of the environment or of the policy. Repeatable."),
    ] = None,
    check_rows: Annotated[
        bool,
        typer.Option("--check-rows", help="Play three rows (seed, agent) alone as well: actions must agree."),
    ] = False,
    stack: Annotated[
        str,
        typer.Option(help="Wrappers inside of the baseline's, as JSON: [[entry point, arguments], ...]."),
    ] = "[]",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Runs a baseline on all agents of a federation and reports cumulative regret per agent.

    Exit code 2 if it cannot run as asked, or a privacy budget does not last; 1 if rows do not agree.
    """
    # A policy of one's own lies where one is; what is installed comes first.
    sys.path.append(str(Path.cwd()))
    with explained(SettingsError, BudgetExhaustedError):
        settings = Settings.from_assignments(
            baseline, env_id, rounds, seeds, first_seed, set_ or [], _read_stack(stack)
        )
        try:
            _, result = run_with_progress(settings, check_rows)
        except MixedRowsError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(1) from error
    if as_json:
        typer.echo(json.dumps(result, indent=2))
    else:
        table = Table(
            "round", "regret per agent", "95 % interval", title=f"{baseline} on {env_id}, {seeds} seeds"
        )
        for row in result["checkpoints"]:
            interval = row["regret_ci"]
            between = "-" if interval is None else f"{interval[0]:.1f} .. {interval[1]:.1f}"
            table.add_row(str(row["round"]), f"{row['regret_mean']:.1f}", between)
        out_console.print(table)
        for name, mean in result["info_mean"].items():
            out_console.print(f"{name} a round and agent: {mean:g}")
        if check_rows:
            out_console.print(f"rows that agree with a policy that sees them alone: {result['checked_rows']}")


def _read_stack(text: str) -> Any:
    """Reads a stack of wrappers; of what form it must be the settings say."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f"stack is {text!r}, which is no JSON: {error}") from None


def run_with_progress(settings: Settings, check_rows: bool = False) -> tuple[Simulation, dict[str, Any]]:
    """Plays a run, see :func:`fedbandit_envs.leaderboard.run.run`, with a bar that fills."""
    with progress_bar() as progress:
        task = progress.add_task(settings.baseline, total=settings.rounds)
        return run_settings(settings, lambda played: progress.advance(task, played), check_rows=check_rows)
