"""The command ``run``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from fedbandit_envs.leaderboard.cli.terminal import ended, explained, out_console, progress_bar
from fedbandit_envs.leaderboard.runs.assignments import read_value
from fedbandit_envs.leaderboard.runs.result import RunResult
from fedbandit_envs.leaderboard.runs.row_check import MixedRowsError
from fedbandit_envs.leaderboard.runs.spec import RunSpec, SettingsError
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
        typer.Option(
            help="Wrappers inside of the baseline's, as a JSON list of pairs, entry point and arguments."
        ),
    ] = "[]",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Runs a baseline on all agents of a federation and reports cumulative regret per agent.

    Exit code 2 if it cannot run as asked, or a privacy budget does not last; 1 if rows do not agree.
    """
    # A user's own policy lies in the current folder; installed modules come first.
    sys.path.append(str(Path.cwd()))
    with explained(SettingsError, BudgetExhaustedError), ended(MixedRowsError):
        spec = RunSpec.from_assignments(
            baseline, env_id, rounds, seeds, first_seed, set_ or [], read_value(stack)
        )
        result = run_with_progress(spec, 3 if check_rows else 0)
    written = {**result.as_json(), "settings": spec.recorded()}
    if as_json:
        typer.echo(json.dumps(written, indent=2))
    else:
        table = Table(
            "round", "regret per agent", "95 % interval", title=f"{baseline} on {env_id}, {seeds} seeds"
        )
        for row in written["checkpoints"]:
            interval = row["regret_ci"]
            between = "-" if interval is None else f"{interval[0]:.1f} .. {interval[1]:.1f}"
            table.add_row(str(row["round"]), f"{row['regret_mean']:.1f}", between)
        out_console.print(table)
        for name, mean in written["info_mean"].items():
            out_console.print(f"{name} a round and agent: {mean:g}")
        if check_rows:
            out_console.print(
                f"rows that agree with a policy that sees them alone: {written['checked_rows']}"
            )


def run_with_progress(spec: RunSpec, check_rows: int = 0) -> RunResult:
    """Plays a run, see :meth:`RunSpec.run`, with a progress bar."""
    with progress_bar() as progress:
        task = progress.add_task(spec.baseline, total=spec.size)
        return spec.run(lambda played: progress.advance(task, played), check_rows)
