"""The commands ``sweep``, ``plot`` and ``tune`` (constants of baselines)."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedbandit_envs.cli import terminal

if TYPE_CHECKING:
    from fedbandit_envs.experiments import RunSpec


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
    from fedbandit_envs.experiments.result import report_library
    from fedbandit_envs.experiments.spec import read_assignments, read_value
    from fedbandit_envs.experiments.store import Store
    from fedbandit_envs.experiments.sweep import read_sweep, sweep_frame, sweep_runs, write_tables

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
    with terminal.explained_play():
        terminal.play_missing("sweep", played_by, runs, folder)
        for path in write_tables(sweep_frame(runs, Store(folder).load), out):
            typer.echo(path)


def _grid(words: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the lists of values that words such as ``epsilon=0.1,1,10`` have, by key.

    Raises:
        ValueError: A word has another form, an empty value, or a key that another word has.
    """
    from fedbandit_envs.experiments.spec import read_value

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
    from fedbandit_envs.experiments.plots import plot as draw
    from fedbandit_envs.experiments.result import report_library
    from fedbandit_envs.experiments.spec import read_value

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
    problem: Annotated[str, typer.Argument(help="arms, linear, ... (errors list all), or all.")],
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
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.experiments.store import Store
    from fedbandit_envs.experiments.tuning import FIRST_SEED, TUNINGS, best_constants, tuning_runs

    with terminal.explained(ValueError):
        played_by = terminal.backend_of(backend, scheduler, workers)
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        runs: dict[str, list[list[RunSpec]]] = {}
        for name in TUNINGS if problem == "all" else [problem]:
            runs |= tuning_runs(name, rounds, seeds)
    terminal.make_folder(out)
    folder = out / "shards"
    with terminal.explained_play():
        cells = [run for grid in runs.values() for tried in grid for run in tried]
        terminal.play_missing("tune", played_by, cells, folder)
    found = best_constants(runs, Store(folder).load)
    rows = []
    for name, entry in found.items():
        regrets = [regret for _, regret in entry["tried"]]
        rows.append(
            (name, entry["of"], json.dumps(entry["chosen"]), f"{min(regrets):.1f}", f"{regrets[-1]:.1f}")
        )
    terminal.print_table("Tuned", ("tuned form", "of", "constants", "regret", "at the papers' radius"), rows)
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    command = f"fedbandit tune {problem}{changed}"
    head = json.dumps(
        {"command": command, "version": version("fedbandit-envs"), "first_seed": FIRST_SEED}, indent=1
    )
    # One baseline a line.
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in found.items())
    path = out / "tuned.json"
    path.write_text(f'{head[:-2]},\n "baselines": {{\n{lines}\n }}\n}}\n')
    typer.echo(path)
