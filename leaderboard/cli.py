"""The command line: ``list``, ``run``, ``quickstart``, ``audit``, ``reproduce``, ``tune``; SAMBA's has its own file."""

import json
import sys
from dataclasses import asdict
from functools import partial
from itertools import groupby
from math import isnan
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Column, Table

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.audits import MECHANISMS, Audited, AuditSettings, run_audits
from fedbandit_envs.leaderboard.figures import regret_html, regret_png
from fedbandit_envs.leaderboard.reproduction import store
from fedbandit_envs.leaderboard.reproduction.experiments import EXPERIMENTS
from fedbandit_envs.leaderboard.reproduction.reproduce import Reproduction
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.run import Settings, SettingsError
from fedbandit_envs.leaderboard.run import run as run_settings
from fedbandit_envs.leaderboard.samba_cli import register
from fedbandit_envs.leaderboard.simulation import Simulation
from fedbandit_envs.leaderboard.terminal import ended, explained, out_console, progress_bar
from fedbandit_envs.leaderboard.tuning import TUNINGS, cells, findings, written
from fedbandit_envs.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Federated bandits: environments and baselines."
)
register(app)

_QUICKSTART_BASELINES = ("uniform-random", "one-of-each", "SS-UCB")


@app.command(name="list")
def list_() -> None:
    """Lists environment ids and baselines."""
    ids = Table("id", "PettingZoo", "preset", title="Environments")
    for env_id, entry in REGISTRY.items():
        ids.add_row(env_id, entry.pettingzoo, json.dumps(entry.kwargs) if entry.kwargs else "-")
    out_console.print(ids)
    baselines = Table("name", "plays", "what it does", "reference", title="Baselines")
    for name, baseline in BASELINES.items():
        baselines.add_row(name, baseline.federation.__name__, baseline.summary, baseline.reference)
    out_console.print(baselines)


@app.command()
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
            _, result = _run_with_progress(settings, check_rows)
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


@app.command()
def audit(
    mechanism: Annotated[str, typer.Argument(help=f"One of {', '.join(MECHANISMS)}, or all.")],
    epsilon: Annotated[float, typer.Option(help="Shared out over the releases, for one value.")] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Of each Gaussian release (continual: of all), and at which claims are attacked. "
            "[default: 0.01; pure: 0; continual: 0.1]"
        ),
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(help="So many. [default: 2, with P-FCB's decreasing shares; continual: 6]"),
    ] = None,
    samples: Annotated[
        int, typer.Option(help="Samples of each of the two histories.")
    ] = AuditSettings.samples,
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Attacks what a mechanism claims; exit code 1 if some claim is refuted (by chance 1 in 10,000 attacks)."""
    with explained(ValueError, ArithmeticError, MemoryError), progress_bar() as progress:
        settings = AuditSettings(mechanism, epsilon, delta, releases, samples, seed)
        task = progress.add_task(mechanism, total=len(settings.attacks))
        audited = run_audits(settings, lambda attacks: progress.advance(task, attacks))
    if as_json:
        result = {"settings": asdict(settings), "audits": [row.as_json() for row in audited]}
        typer.echo(json.dumps(result, indent=2))
    else:
        _print_audits(audited)
    raise typer.Exit(0 if all(row.audit.holds for row in audited) else 1)


def _print_audits(audited: list[Audited]) -> None:
    """Prints a table a mechanism, of what an attack shows and what is claimed."""
    for name, group in groupby(audited, lambda row: row.mechanism):
        # Adjacencies that begin alike must not be cut short alike.
        adjacency = Column("adjacency", overflow="fold")
        table = Table(
            adjacency, "composition", "delta", "lower bound", "claim", "tightness", "holds", title=name
        )
        for _, result in group:
            claim = result.claim
            table.add_row(
                claim.adjacency, claim.composition, f"{claim.delta:.3g}", f"{result.lower_bound:.3f}",
                f"none: {claim.reason}" if claim.epsilon is None else f"{claim.epsilon:.3f}",
                "-" if isnan(result.tightness) else f"{result.tightness:.0%}",
                "yes" if result.holds else "REFUTED",
            )  # fmt: skip
        out_console.print(table)


def _read_stack(text: str) -> Any:
    """Reads a stack of wrappers; of what form it must be the settings say."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f"stack is {text!r}, which is no JSON: {error}") from None


@app.command()
def quickstart(
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("fedbandit-quickstart"),
) -> None:
    """Lets three silent baselines procure, and draws their regret. Needs the [report] extra."""
    with explained(SettingsError):
        runs = [Settings(name, "FedProcurement-v0", rounds, seeds, 0) for name in _QUICKSTART_BASELINES]
    _make_folder(out)
    curves: dict[str, Simulation] = {}
    table = Table(
        "baseline", "regret per agent", "95 % interval", "in the last half",
        title=f"FedProcurement-v0: 10 agents, 30 producers, {rounds} rounds, {seeds} seeds",
    )  # fmt: skip
    for settings in runs:
        curves[settings.baseline], result = _run_with_progress(settings)
        last, half = result["checkpoints"][-1], _regret_at(result, rounds // 2)
        interval = last["regret_ci"]
        between = "-" if interval is None else f"{interval[0]:,.0f} .. {interval[1]:,.0f}"
        share = 100 * (1 - half / last["regret_mean"])
        table.add_row(settings.baseline, f"{last['regret_mean']:,.0f}", between, f"{share:.0f} %")
    out_console.print(table)
    out_console.print(
        "A policy that learns incurs ever less of its regret in the last half; the placebos incur 50 %."
    )
    for suffix, draw in (("png", regret_png), ("html", regret_html)):
        path = out / f"regret.{suffix}"
        with explained(OSError, option="--out"):
            draw(curves, "FedProcurement-v0, no communication", path)
        typer.echo(f"regret plot: {path.resolve()}")


@app.command()
def reproduce(
    experiment: Annotated[str, typer.Argument(help=f"One of {', '.join(EXPERIMENTS)}, or all.")],
    scale: Annotated[
        str, typer.Option(help="small (minutes) or paper; some have tiny, some medium.")
    ] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (mended) or printed algorithms.")] = "default",
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the scale's.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Runs of each problem instance, if not the scale's.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that play.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment and sets its numbers beside ours. Can be stopped and started again.

    With `all`, experiments that do not have the panel or the mode asked for are left out.
    """
    with explained(ValueError), ended():
        require_choice("EXPERIMENT", experiment, (*EXPERIMENTS, "all"))
        names = [
            name for name, one in EXPERIMENTS.items() if mode in one.modes and panel in (*one.panels, "all")
        ]
        reproductions = {
            name: Reproduction(
                name, EXPERIMENTS[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials,
            )
            for name in (names or EXPERIMENTS if experiment == "all" else [experiment])
        }  # fmt: skip
    _make_folder(out)
    with explained(SettingsError, BudgetExhaustedError), explained(OSError, option="--out"), ended():
        for name, reproduction in reproductions.items():
            work = reproduction.work()
            with progress_bar() as progress:
                task = progress.add_task(name, total=work.size)
                reproduction.play(work, workers, partial(progress.advance, task))
            for path in reproduction.report():
                typer.echo(path)


@app.command()
def tune(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(TUNINGS)}, or all.")],
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the problem's.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that play.", min=1)] = 2,
    out: Annotated[Path, typer.Option(help="Folder for the constants found.")] = Path("fedbandit-tuning"),
) -> None:
    """Tunes a problem's baselines, silent ones first: one grid, one budget, seeds that no experiment plays.

    Writes tuned.json, of which the package has a copy that `SS-UCB-tuned` and its like read. Can be stopped and started
    again.
    """
    with explained(ValueError):
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        plans = {name: cells(name, rounds, seeds) for name in (TUNINGS if problem == "all" else [problem])}
    _make_folder(out)
    folder = out / "shards"
    runs = [run for plan in plans.values() for grid in plan.values() for tried in grid for run in tried]
    left = store.missing_shards([shard for run in runs for shard in run.split()], folder)
    wrong = explained(SettingsError, BudgetExhaustedError)
    with wrong, explained(OSError, option="--out"), progress_bar() as progress:
        task = progress.add_task("tune", total=sum(shard.size for shard in left))
        if left:
            store.play(left, folder, workers, partial(progress.advance, task))
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    found = findings(plans, lambda run: store.load(run.split(), folder), f"fedbandit tune {problem}{changed}")
    table = Table("tuned form", "of", "constants", "regret", "at the papers' radius", title="Tuned")
    for name, entry in found["baselines"].items():
        regrets = {json.dumps(constants): regret for constants, regret in entry["tried"]}
        printed = entry["tried"][-1]
        table.add_row(
            name, entry["of"], json.dumps(entry["chosen"]), f"{regrets[json.dumps(entry['chosen'])]:.1f}",
            f"{printed[1]:.1f}",
        )  # fmt: skip
    out_console.print(table)
    path = out / "tuned.json"
    path.write_text(written(found))
    typer.echo(path)


def _regret_at(result: dict[str, Any], round_: int) -> float:
    """Returns the mean regret at a round, interpolated between checkpoints."""
    rows = result["checkpoints"]
    return float(np.interp(round_, [row["round"] for row in rows], [row["regret_mean"] for row in rows]))


def _run_with_progress(settings: Settings, check_rows: bool = False) -> tuple[Simulation, dict[str, Any]]:
    with progress_bar() as progress:
        task = progress.add_task(settings.baseline, total=settings.rounds)
        return run_settings(settings, lambda played: progress.advance(task, played), check_rows=check_rows)


def _make_folder(out: Path) -> None:
    """Makes the folder of the results, and tries whether it takes files before anything is played."""
    with explained(OSError, option="--out"):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
