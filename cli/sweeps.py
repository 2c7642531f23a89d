"""The commands ``reproduce`` (a paper's experiments), ``sweep``, ``plot`` and ``tune`` (constants of baselines)."""

import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from fedbandit_envs.basics.checks import require_choice
from fedbandit_envs.cli import terminal
from fedbandit_envs.experiments.execute import BackendError
from fedbandit_envs.experiments.plots import plot as draw
from fedbandit_envs.experiments.result import report_library
from fedbandit_envs.experiments.spec import RunSpec, SettingsError, read_assignments, read_value
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.experiments.sweep import read_sweep, sweep_frame, sweep_runs, write_tables
from fedbandit_envs.experiments.tuning import FIRST_SEED, TUNINGS, best_constants, tuning_runs
from fedbandit_envs.papers.catalogue import experiments
from fedbandit_envs.papers.page import Reproduction
from fedbandit_envs.wrappers.privacy.budget import BudgetExhaustedError


def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help="Name of an experiment, or all; without it, they are listed.")
    ] = None,
    scale: Annotated[
        str, typer.Option(help="small (minutes, some hours) or paper; some have tiny or medium.")
    ] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (corrected) or printed algorithms.")] = "default",
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the scale's.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Runs of each problem instance, if not the scale's.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Your ratings, for panels that need them: a CSV or Parquet file with the columns user, item and "
            """rating (1 to 5), or JSON: '{"name": "ratings", "table": "my.csv", "scale": [0.5, 5], "user": "who"}'."""
        ),
    ] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment and sets the paper's numbers beside ours. Can be stopped and started again.

    With `all`, experiments without the given panel or mode are left out. With `--data`, so are experiments that need no
    data; without it, panels that need data. Needs the extra `[report]`.

    Example: `fedbandit reproduce fed-pe --scale tiny --out reproduction`
    """
    known = experiments()
    if experiment is None:
        for name, one in known.items():
            typer.echo(f"{name}: {one.title}. {one.shows}.")
        return
    with terminal.explained(ValueError, TypeError, OSError, ending=[ImportError]):
        table = None if data is None else read_value(data)
        if data is not None and not isinstance(table, dict):
            table = {"name": "ratings", "table": data, "scale": [1, 5]}
        played_by = terminal.backend_of(backend, scheduler, workers)
        require_choice("EXPERIMENT", experiment, (*known, "all"))
        names = [
            name
            for name, one in known.items()
            if mode in one.modes and panel in (*one.panels, "all") and (table is None or one.needs_data)
        ]
        reproductions = {
            name: Reproduction(
                name, known[name], out,
                scale=scale, panel=panel, mode=mode, rounds=rounds, trials=trials, data=table,
            )
            for name in (names or known if experiment == "all" else [experiment])
        }  # fmt: skip
    terminal.require_report()
    terminal.make_folder(out)
    wrong = terminal.explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, terminal.explained(OSError, option="--out"):
        for name, made in reproductions.items():
            terminal.play_missing(name, played_by, made.cells, made.folder)
            for path in made.report():
                typer.echo(path)


def sweep(
    spec: Annotated[
        Path | None, typer.Argument(help="A TOML file with env_id, policies, grid, rounds, seeds ...")
    ] = None,
    env_id: Annotated[
        str | None, typer.Option("--env", help="An environment's id, see `fedbandit list`.")
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="A baseline's name, `file.py:Class` or `module:Class`. Repeatable."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", help="key=value,value...: an argument, as in --set, or rounds. Repeatable."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Horizon T; by default 10000.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; by default 10.")] = None,
    first_seed: Annotated[int | None, typer.Option(help="The first seed; the others follow.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: an argument that is the same in all runs. Repeatable."),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(help="Wrappers inside of the baselines' own, as a JSON list of pairs, as in `run`."),
    ] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-sweep"),
) -> None:
    """Runs policies for all combinations of a grid's values and writes one table. Can be stopped and started again.

    An argument is named `epsilon`, or `env.num_agents`, `policy.scale`, `privatizer.epsilon` and so on where several
    have it. Options replace what the file says. Needs the extra `[report]`.

    Example: `fedbandit sweep --env FedArms-v0 --policy Priv-UCB1 --grid epsilon=0.1,1,10 --grid agents=2,10`
    """
    # A user's own policy may be a module in the current folder.
    sys.path.append(str(Path.cwd()))
    with terminal.explained(ValueError, TypeError, OSError, ending=[ImportError]):
        report_library("pandas")
        played_by = terminal.backend_of(backend, scheduler, workers)
        options = {
            "env_id": env_id,
            "policies": policies or None,
            "grid": _grid(grid) if grid else None,
            "rounds": rounds,
            "seeds": seeds,
            "first_seed": first_seed,
            "settings": read_assignments(settings or []) or None,
            "stack": stack and read_value(stack),
        }
        given = read_sweep(spec) if spec else {}
        given |= {name: value for name, value in options.items() if value is not None}
        for name, option in (("env_id", "--env"), ("policies", "--policy"), ("grid", "--grid")):
            if name not in given:
                raise ValueError(f"{option} is missing; it, or {name} in a file, is required")
        runs = sweep_runs(**given)
    terminal.make_folder(out)
    folder = out / "shards"
    wrong = terminal.explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, terminal.explained(OSError, option="--out"):
        terminal.play_missing("sweep", played_by, runs, folder)
        for path in write_tables(sweep_frame(runs, Store(folder).load), out):
            typer.echo(path)


def _grid(words: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the lists of values that words such as ``epsilon=0.1,1,10`` have, by key.

    Raises:
        ValueError: A word has another form, an empty value, or a key that another word has.
    """
    grid: dict[str, list[Any]] = {}
    for word in words:
        key, equals, text = word.partition("=")
        # Values of JSON may have commas inside.
        read = read_value(f"[{text}]")
        values = read if isinstance(read, list) else [read_value(one) for one in text.split(",")]
        if not (equals and key and values) or "" in values:
            raise ValueError(f"--grid is {word!r}; key=value or key=value,value,... is required")
        if key in grid:
            raise ValueError(f"--grid has {key} twice; key=value,value,... is required")
        grid[key] = values
    return grid


def plot(
    table: Annotated[
        Path, typer.Argument(help="A CSV or Parquet file, of `fedbandit sweep` or of `to_frame()`.")
    ],
    x: Annotated[str, typer.Option(help="Column of the horizontal axis.")],
    y: Annotated[str, typer.Option(help="Column of the vertical axis.")] = "regret",
    by: Annotated[
        list[str] | None, typer.Option(help="Column whose values are curves of their own. Repeatable.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="column=value of the rows that are drawn. Repeatable.")
    ] = None,
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic horizontal axis.")] = False,
    log_y: Annotated[bool, typer.Option("--log-y", help="Logarithmic vertical axis.")] = False,
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("plot.png"),
) -> None:
    """Draws a column of a table against another: means and 95 % intervals over seeds. Needs the extra `[report]`.

    Example: `fedbandit plot fedbandit-sweep/sweep.csv --x epsilon --by baseline --where agents=10 --log-x`
    """
    with terminal.explained(ValueError, OSError, ending=[ImportError]):
        pandas = report_library("pandas")
        if table.suffix == ".parquet":
            frame = pandas.read_parquet(table)
        else:
            frame = pandas.read_csv(table, keep_default_na=False, na_values=[""])
            # `frame.to_csv(path)` writes the index as a first column without a head.
            frame = frame.drop(columns=[name for name in frame.columns[:1] if name == "Unnamed: 0"])
        chosen = {key: read_value(text) for key, _, text in (word.partition("=") for word in where or [])}
        figure = draw(frame, x, y, by or [], chosen, log_x, log_y)
    with terminal.explained(ValueError, OSError, option="--out"):
        figure.savefig(out)
    typer.echo(out)


def tune(
    problem: Annotated[str, typer.Argument(help=f"One of {', '.join(TUNINGS)}, or all.")],
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the problem's.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.")] = None,
    workers: terminal.WorkersOption = 2,
    backend: terminal.BackendOption = "joblib",
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for the constants found.")] = Path("fedbandit-tuning"),
) -> None:
    """Tunes the constants of a problem's baselines, with and without communication, all on one grid and the same seeds.

    No experiment plays these seeds. Writes tuned.json; the package has a copy of it, from which `SS-UCB-tuned` and
    other tuned baselines read their constants. Can be stopped and started again.

    Example: `fedbandit tune arms --rounds 100 --seeds 1 --out tuning`
    """
    with terminal.explained(ValueError):
        played_by = terminal.backend_of(backend, scheduler, workers)
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        runs: dict[str, list[list[RunSpec]]] = {}
        for name in TUNINGS if problem == "all" else [problem]:
            runs |= tuning_runs(name, rounds, seeds)
    terminal.make_folder(out)
    folder = out / "shards"
    cells = [run for grid in runs.values() for tried in grid for run in tried]
    wrong = terminal.explained(SettingsError, BudgetExhaustedError, BackendError)
    with wrong, terminal.explained(OSError, option="--out"):
        terminal.play_missing("tune", played_by, cells, folder)
    found = best_constants(runs, Store(folder).load)
    rows = []
    for name, entry in found.items():
        regrets = [regret for _, regret in entry["tried"]]
        rows.append(
            (name, entry["of"], json.dumps(entry["chosen"]), f"{min(regrets):.1f}", f"{regrets[-1]:.1f}")
        )
    terminal.print_table("Tuned", ("tuned form", "of", "constants", "regret", "at the papers' radius"), rows)
    path = out / "tuned.json"
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    command = f"fedbandit tune {problem}{changed}"
    head = json.dumps(
        {"command": command, "version": version("fedbandit-envs"), "first_seed": FIRST_SEED}, indent=1
    )
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
    path.write_text(f'{head[:-2]},\n "baselines": {{\n{lines}\n }}\n}}\n')
    typer.echo(path)
