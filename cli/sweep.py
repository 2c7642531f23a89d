"""The commands ``sweep``, ``plot`` and ``tune`` (constants of baselines)."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedbandit_envs.cli import terminal

if TYPE_CHECKING:
    from fedbandit_envs.experiments import RunSpec


def sweep(
    spec: Annotated[Path | None, typer.Argument(help="A TOML file with env_id, policies, grid ...")] = None,
    env_id: Annotated[str | None, typer.Option("--env", help="An environment, as in `run`.")] = None,
    policies: Annotated[list[str] | None, typer.Option("--policy", help="As in `run`. Repeatable.")] = None,
    grid: Annotated[list[str] | None, typer.Option(help="key=value,value,... Repeatable.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Horizon T; by default 10000.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; by default 10.")] = None,
    first_seed: Annotated[int | None, typer.Option(help="The first seed; the others follow.")] = None,
    settings: terminal.SetOption = None,
    stack: Annotated[str | None, typer.Option(help="Wrappers inside of the baselines', as in `run`.")] = None,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("fedbandit-sweep"),
) -> None:
    """Runs policies for all combinations of a grid's values and writes one table. Can be stopped and started again.

    A key of the grid is `rounds` or an argument, as in `--set`: `epsilon`, or `env.num_agents`, `policy.scale`,
    `privatizer.epsilon` and so on where several have it. Options replace what the file says. Needs the extra
    `[report]`.

    Example: `fedbandit sweep --env FedArms-v0 --policy Priv-UCB1 --grid epsilon=0.1,1,10 --grid agents=2,10`
    """
    from fedbandit_envs.experiments.spec import read_assignments, read_value
    from fedbandit_envs.experiments.store import Store
    from fedbandit_envs.experiments.sweep import sweep_frame, sweep_runs, write_tables

    terminal.require_report()
    with terminal.explained(ValueError, TypeError, OSError):
        options = {
            "env_id": env_id,
            "policies": policies or None,
            "grid": {key: _values(given) for key, given in read_assignments(grid or []).items()} or None,
            "rounds": rounds,
            "seeds": seeds,
            "first_seed": first_seed,
            "settings": read_assignments(settings or []) or None,
            "stack": stack and read_value(stack),
        }
        given = tomllib.loads(spec.read_text("utf-8")) if spec else {}
        given |= {name: value for name, value in options.items() if value is not None}
        runs = sweep_runs(**given)
    terminal.make_folder(out)
    folder = out / "shards"
    with terminal.explained_play():
        terminal.play_missing("sweep", workers, scheduler, runs, folder)
        for path in write_tables(sweep_frame(runs, Store(folder).load), out):
            typer.echo(path)


def _values(given: Any) -> list[Any]:
    """Returns the values of a key in ``--grid``: words such as ``0.1,1,10`` have been read as a tuple or as a text."""
    from fedbandit_envs.experiments.spec import read_value

    if isinstance(given, str):
        return [read_value(one) for one in given.split(",")]
    return list(given) if isinstance(given, tuple) else [given]


def plot(
    table: Annotated[Path, typer.Argument(help="A CSV or Parquet file of `sweep` or `to_frame()`.")],
    x: Annotated[str, typer.Option(help="Column of the horizontal axis.")],
    y: Annotated[str, typer.Option(help="Column of the vertical axis.")] = "regret",
    by: Annotated[list[str] | None, typer.Option(help="Column that tells curves apart. Repeatable.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="column=value of drawn rows. Repeatable.")] = None,
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic horizontal axis.")] = False,
    log_y: Annotated[bool, typer.Option("--log-y", help="Logarithmic vertical axis.")] = False,
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("plot.png"),
) -> None:
    """Draws a column of a table against another: means and 95 % intervals over seeds. Needs the extra `[report]`.

    Example: `fedbandit plot fedbandit-sweep/sweep.csv --x epsilon --by baseline --where agents=10 --log-x`
    """
    from fedbandit_envs.experiments.plots import plot as draw
    from fedbandit_envs.experiments.spec import read_assignments

    terminal.require_report()
    import pandas

    with terminal.explained(ValueError, OSError):
        if table.suffix == ".parquet":
            frame = pandas.read_parquet(table)
        else:
            frame = pandas.read_csv(table, keep_default_na=False, na_values=[""])
            # `frame.to_csv(path)` writes the index as a first column without a head.
            frame = frame.drop(columns=[name for name in frame.columns[:1] if name == "Unnamed: 0"])
        chosen = read_assignments(where or [])
        figure = draw(frame, x, y, by or [], chosen, log_x, log_y)
    with terminal.explained(ValueError, OSError, option="--out"):
        figure.savefig(out)
    typer.echo(out)


def tune(
    problem: Annotated[str, typer.Argument(help="arms, linear, ... (errors list all), or all.")],
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the problem's.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.")] = None,
    workers: terminal.WorkersOption = 2,
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
        require_choice("PROBLEM", problem, (*TUNINGS, "all"))
        runs: dict[str, list[list[RunSpec]]] = {}
        for name in TUNINGS if problem == "all" else [problem]:
            runs |= tuning_runs(name, rounds, seeds)
    terminal.make_folder(out)
    folder = out / "shards"
    with terminal.explained_play():
        cells = [run for grid in runs.values() for tried in grid for run in tried]
        terminal.play_missing("tune", workers, scheduler, cells, folder)
    found = best_constants(runs, Store(folder).load)
    rows = []
    for name, one in found.items():
        regrets = [regret for _, regret in one["tried"]]
        ends = f"{min(regrets):.1f}", f"{regrets[-1]:.1f}"
        rows.append((name, one["of"], json.dumps(one["chosen"]), *ends))
    heads = ("tuned form", "of", "constants", "regret", "at the papers' radius")
    terminal.print_table("Tuned", heads, rows)
    changed = "".join(f" --{name} {value}" for name, value in (("rounds", rounds), ("seeds", seeds)) if value)
    command = f"fedbandit tune {problem}{changed}"
    path = out / "tuned.json"
    head = {"command": command, "version": version("fedbandit-envs"), "first_seed": FIRST_SEED}
    path.write_text(json.dumps({**head, "baselines": found}, indent=1) + "\n")
    typer.echo(path)
