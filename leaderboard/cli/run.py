"""The command ``run``."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.leaderboard.cli.terminal import explained, out_console, print_table, progress
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
    with explained(SettingsError, BudgetExhaustedError, ending=[MixedRowsError]):
        spec = RunSpec(baseline, env_id, rounds, seeds, first_seed, stack=read_value(stack))
        spec = spec.assigned(set_ or [])
        result = run_with_progress(spec, 3 if check_rows else 0)
    written = {**result.as_json(), "settings": spec.recorded()}
    if as_json:
        typer.echo(json.dumps(written, indent=2))
    else:
        rows = (
            (
                str(row["round"]),
                f"{row['regret_mean']:.1f}",
                " .. ".join(f"{end:.1f}" for end in row["regret_ci"] or []) or "-",
            )
            for row in written["checkpoints"]
        )
        heads = ("round", "regret per agent", "95 % interval")
        print_table(f"{baseline} on {env_id}, {seeds} seeds", heads, rows)
        for name, mean in written["info_mean"].items():
            out_console.print(f"{name} a round and agent: {mean:g}")
        if check_rows:
            out_console.print(
                f"rows that agree with a policy that sees them alone: {written['checked_rows']}"
            )


def run_with_progress(spec: RunSpec, check_rows: int = 0) -> RunResult:
    """Plays a run, see :meth:`RunSpec.run`, with a progress bar."""
    with progress(spec.baseline, spec.size) as update:
        return spec.run(lambda played: update(advance=played), check_rows)
