"""The commands that play runs: ``run``, ``quickstart``, ``sweep`` (and ``plot``), ``tune`` and ``reproduce``."""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedbandit_envs.cli import terminal

if TYPE_CHECKING:
    from fedbandit_envs.core.privacy import Claim
    from fedbandit_envs.experiments import RunResult, RunSpec

_CLAIM = ("adjacency", "trust", "observer", "epsilon", "reason")
_RESULT = ("regret [95 %]", "ratio to silence", "epsilon")
# Rounds that `check_policy` plays, and the number of rows that it plays alone.
_CHECKED_ROUNDS, _CHECKED_ROWS = 120, 3
_CHECK = f"First play {_CHECKED_ROUNDS} rounds, also three rows (seed, agent) alone: actions must agree."

BaselineArgument = Annotated[
    str, typer.Argument(help="A baseline, or a policy: `file.py:Class`, `module:Class`.")
]
EnvArgument = Annotated[str, typer.Argument(help="An environment's id, or `module:Class`.")]
RoundsOption = Annotated[int, typer.Option(help="Horizon T.")]
SeedsOption = Annotated[int, typer.Option(help="Number of seeds.")]


def run(
    baseline: BaselineArgument,
    env_id: EnvArgument,
    rounds: RoundsOption = 10_000,
    seeds: SeedsOption = 10,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 0,
    set_: terminal.SetOption = None,
    check_rows: Annotated[bool, typer.Option("--check-rows", help=_CHECK)] = False,
    stack: Annotated[str, typer.Option(help="Wrappers inside of the baseline's, as a JSON list.")] = "[]",
    as_json: terminal.JsonOption = False,
) -> None:
    """Runs a baseline and reports its regret and claimed epsilon.

    The problem's best silence, a baseline without communication, is played beside it, but not with `--json`.

    `fedbandit list` has the names. A wrapper is a pair of its name and its arguments. Exit code 2 if the settings are
    wrong or a privacy budget is used up before the end; 1 if --check-rows finds rows whose actions differ when they
    are played alone.

    Example: `fedbandit run SS-UCB FedProcurement-v0 --rounds 1000 --seeds 3`
    """
    from fedbandit_envs.experiments.spec import REFUSALS, RunSpec, read_assignments, read_value

    with terminal.explained(*REFUSALS):
        spec = RunSpec(baseline, env_id, rounds, seeds, first_seed, stack=read_value(stack))
        spec = spec.changed(read_assignments(set_ or []))
        if check_rows:
            from fedbandit_envs.testing import check_policy

            short = replace(spec, rounds=_CHECKED_ROUNDS)
            with terminal.explained(ending=[AssertionError]):
                check_policy(lambda: short.build()[1], lambda: short.build()[0])
        result = _played(spec)
    checked = _CHECKED_ROWS if check_rows else 0
    written = {**result.as_json(), "checked_rows": checked, "settings": spec.recorded()}
    if as_json:
        typer.echo(json.dumps(written, indent=2))
        return
    silent = _silence_beside(spec, result)
    results = [result] if silent is None or silent is result else [result, silent]
    title = f"{env_id}, {spec.agents} agents, {rounds:,} rounds, {seeds} seeds"
    _print_results(title, "baseline", results, silent)
    # Of the ways to compose releases, the table shows the one that gives the smallest epsilon.
    claims = [one for one in result.claims if one.composition == "exact"]
    if claims:
        title = f"Privacy of the agent with the largest loss, delta {spec.delta:g}"
        cells = ((one.adjacency, one.trust, one.observer, _epsilon(one), one.reason) for one in claims)
        terminal.print_table(title, _CLAIM, cells)
        if (own := result.privacy).delta != spec.delta:
            at = f"at the mechanism's own delta {own.delta:g}, {own.composition} composition"
            terminal.out_console.print(f"epsilon {_epsilon(own)} for {own.adjacency} {at}")
    if means := [f"{name} {mean:.3g}" for name, mean in written["info_mean"].items()]:
        terminal.out_console.print(f"means over rounds and agents: {', '.join(means)}")
    if check_rows:
        terminal.out_console.print("rows that were played alone act the same")


def quickstart(
    rounds: RoundsOption = 10_000,
    seeds: SeedsOption = 20,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("fedbandit-quickstart"),
) -> None:
    """Plays a private federation beside agents that send nothing and agents that send true data; draws their regret.

    The agents pull arms of FedArms-v0. Those that send nothing play the problem's best silence. Needs the extra
    `[report]`.

    Example: `fedbandit quickstart --rounds 1000 --seeds 3 --out pictures`
    """
    terminal.require_extra("report", "matplotlib", "pandas")
    import pandas

    from fedbandit_envs.baselines.comparison_lines import BASELINE_OF, OURS_TUNED, PLACEBO, TRUE_TUNED, TUNED
    from fedbandit_envs.experiments.plots import plot
    from fedbandit_envs.experiments.spec import RunSpec, SettingsError

    env_id, lines = "FedArms-v0", BASELINE_OF["arms"]
    shown = {"nothing": lines[TUNED], "noisy counts": lines[OURS_TUNED], "true counts": lines[TRUE_TUNED]}
    with terminal.explained(SettingsError):
        runs = [
            RunSpec(name, env_id, rounds, seeds, labels={"agents send": sent}) for sent, name in shown.items()
        ]
    with terminal.explained_play(out):
        silent, private, true = (_played(spec) for spec in runs)
        frame = pandas.concat([result.to_frame() for result in (silent, private, true)])
        plot(frame, "round", "regret", "agents send", log_x=True).savefig(out / "regret.png")
    title = f"{env_id}, {runs[0].agents} agents, {rounds:,} rounds, {seeds} seeds"
    _print_results(title, "agents send", [silent, private, true], silent)
    typer.echo(
        f"""nothing: {lines[TUNED]} is this problem's best silence, tuned and without communication.
noisy counts: {lines[OURS_TUNED]} claims epsilon {_epsilon(private.privacy)} at delta {private.privacy.delta:g},
    for each pull of each agent and over all rounds together.
true counts: {lines[TRUE_TUNED]} adds no noise and has no privacy.
regret plot: {(out / "regret.png").resolve()}

Try next:
  fedbandit run {lines[PLACEBO]} {env_id}  # messages of noise and no data
  fedbandit sweep --env {env_id} --policy {lines[OURS_TUNED]} --policy {lines[TUNED]} --grid epsilon=0.1,1,10
  fedbandit list  # all environments and baselines"""
    )


def _silence_beside(spec: "RunSpec", result: "RunResult") -> "RunResult | None":
    """Plays the best silence under the settings of a run; returns None where there is none, or none that fits."""
    from fedbandit_envs.baselines.tuned import best_silence
    from fedbandit_envs.experiments.spec import REFUSALS
    from fedbandit_envs.registry.registration import find_registered

    name = best_silence(find_registered(spec.env_id).federation.split(".")[-2:][0])
    if name in (None, spec.baseline):
        return result if name else None
    try:
        silent = _played(replace(spec, baseline=name, policy_kwargs={}, wrapper_kwargs={}))
    except REFUSALS:
        return None
    # An environment may come with a channel, by which it sends.
    return silent if silent.privacy.epsilon == 0 else None


def _print_results(title: str, head: str, results: "Sequence[RunResult]", silent: "RunResult | None") -> None:
    """Prints results by a label of theirs: regret, its ratio to that of a silent run, and the claimed epsilon."""
    from fedbandit_envs.experiments.measures import ratio_with_interval, rounded

    rows = []
    for one in results:
        ratio = rounded(ratio_with_interval(one.per_seed, silent.per_seed)) if silent else "-"
        rows.append((str(one.labels[head]), rounded(one.mean), ratio, _epsilon(one.privacy)))
    terminal.print_table(title, (head, *_RESULT), rows)


def _played(spec: "RunSpec") -> "RunResult":
    """Plays a run with a progress bar and returns its result."""
    from fedbandit_envs.experiments.execute import progress

    with progress(str(spec.baseline), spec.size) as update:
        return spec.run(lambda played: update(advance=played))


def _epsilon(claim: "Claim") -> str:
    return "unknown" if claim.epsilon is None else f"{claim.epsilon:.4g}"


def _cell(value: Any) -> str:
    return "-" if value != value else f"{value:.4g}" if isinstance(value, float) else str(value)


def sweep(
    spec: Annotated[Path | None, typer.Argument(help="A TOML file.", dir_okay=False)] = None,
    env_id: Annotated[str | None, typer.Option("--env", help="An environment, as in `run`.")] = None,
    policies: Annotated[list[str] | None, typer.Option("--policy", help="As in `run`. Repeatable.")] = None,
    grid: Annotated[list[str] | None, typer.Option(help="key=value,value,... Repeatable.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Horizon T; by default 10000.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; by default 20.")] = None,
    first_seed: Annotated[int | None, typer.Option(help="The first seed; the others follow.")] = None,
    settings: terminal.SetOption = None,
    stack: Annotated[str | None, typer.Option(help="Wrappers inside of the baselines', as in `run`.")] = None,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    out: terminal.OutOption = Path("fedbandit-sweep"),
) -> None:
    """Runs policies for all combinations of a grid's values.

    It writes one table. The same command goes on after a stop. A key of the grid is `rounds` or an argument, as in
    `--set`: `epsilon`, or `env.num_agents`, `policy.scale`, `privatizer.epsilon` where several have it. A TOML file may
    have `env_id`, `policies`, `grid` and other options; those on the command line come first. Ratios are to
    the policy with the least regret among those that send nothing. Needs the extra `[report]`.

    Example: `fedbandit sweep --env FedArms-v0 --policy Priv-UCB1 --grid epsilon=0.1,1,10 --grid agents=2,10`
    """
    from fedbandit_envs.experiments.spec import read_assignments, read_value
    from fedbandit_envs.experiments.store import Store
    from fedbandit_envs.experiments.sweep import summary, sweep_frame, sweep_runs, write_tables

    terminal.require_extra("report", "matplotlib", "pandas")
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
        if not {"env_id", "policies", "grid"} <= given.keys():
            raise ValueError("--env, --policy and --grid are required, or a file with env_id, policies, grid")
        runs = sweep_runs(**given)
    folder = out / "shards"
    with terminal.explained_play(out):
        terminal.play_missing("sweep", runs, folder, workers=workers, scheduler=scheduler)
        frame = sweep_frame(runs, Store(folder).load)
        paths = write_tables(frame, out)
    # Columns with one value for all runs are left out, and others that would not fit into a terminal.
    table = summary(frame).rename(columns={"claim_epsilon": "claimed"})
    claims = table.loc[table.claimed > 0, ["claim_delta", "claim_adjacency"]].drop_duplicates()
    table = table.drop(columns=["num_agents", *claims])
    varied = table.nunique(dropna=False) > 1
    heads = [name for name in table if name in ("baseline", "regret", "ratio") or varied[name]]
    terminal.print_table(f"{table.seeds[0]} seeds", heads, table[heads].astype(object).map(_cell).to_numpy())
    for delta, adjacency in claims.itertuples(index=False):
        terminal.out_console.print(f"claimed: epsilon at delta {delta:g} for {adjacency}")
    typer.echo("\n".join(map(str, paths)))


def _values(given: Any) -> list[Any]:
    """Returns the values of a key in ``--grid``: words such as ``0.1,1,10`` have been read as a tuple or as a text."""
    from fedbandit_envs.experiments.spec import read_value

    if isinstance(given, str):
        return [read_value(one) for one in given.split(",")]
    return list(given) if isinstance(given, tuple) else [given]


def plot(
    table: Annotated[Path, typer.Argument(help="A table of `sweep`.", dir_okay=False)],
    x: Annotated[str, typer.Option(help="Column of the horizontal axis.")],
    y: Annotated[str, typer.Option(help="Column of the vertical axis.")] = "regret",
    by: Annotated[list[str] | None, typer.Option(help="Column that tells curves apart. Repeatable.")] = None,
    where: Annotated[list[str] | None, typer.Option(help="column=value of drawn rows. Repeatable.")] = None,
    log_x: Annotated[bool, typer.Option("--log-x", help="Logarithmic horizontal axis.")] = False,
    log_y: Annotated[bool, typer.Option("--log-y", help="Logarithmic vertical axis.")] = False,
    out: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path("plot.png"),
) -> None:
    """Draws a table: means and 95 % intervals over seeds.

    It draws a column against another. The table is a CSV or Parquet file of `sweep` or of Python's `to_frame()`. Needs
    the extra `[report]`.

    Example: `fedbandit plot fedbandit-sweep/sweep.csv --x epsilon --by baseline --where agents=10 --log-x`
    """
    from fedbandit_envs.experiments.plots import plot as draw
    from fedbandit_envs.experiments.spec import read_assignments

    terminal.require_extra("report", "matplotlib", "pandas")
    import pandas

    with terminal.explained(ValueError, OSError, option=str(table)):
        if table.suffix == ".parquet":
            frame = pandas.read_parquet(table)
        else:
            if table.suffix == ".csv" and table.read_bytes()[-1:] not in b"\r\n":
                typer.echo(f"warning: {table} ends within a line: it may have been cut", err=True)
            frame = pandas.read_csv(table, keep_default_na=False, na_values=[""])
            # `frame.to_csv(path)` writes the index as a first column without a head.
            frame = frame.drop(columns=[name for name in frame.columns[:1] if name == "Unnamed: 0"])
        figure = draw(frame, x, y, by or [], read_assignments(where or []), log_x, log_y)
    with terminal.explained(ValueError, OSError, option="--out"):
        figure.savefig(out)
    typer.echo(out)


def tune(
    problems: Annotated[list[str], typer.Argument(help="arms, linear, ... (errors list all), or all.")],
    baseline: Annotated[str | None, typer.Option(help="Only this one, or silence.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the suite's.", min=1)] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, if not the problem's.", min=1)] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say how much there is to play at most.")] = False,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    out: terminal.OutOption = Path("fedbandit-tuning"),
) -> None:
    """Tunes constants of baselines by expected regret.

    Regret is that on the tasks of their suites. The best baseline without communication is chosen. No experiment plays
    these seeds. Private forms are tuned at each epsilon of the tracks. Each choice is added to tuned.json; the package
    has a copy of it, from which `SS-UCB-tuned` and other tuned baselines read their constants. Can be stopped and
    started again, as long as the package's own files stay the same.

    Example: `fedbandit tune arms --rounds 100 --seeds 4 --out tuning`
    """
    from fedbandit_envs.baselines.tuned import DATA
    from fedbandit_envs.experiments.store import write_whole
    from fedbandit_envs.leaderboard import tuning

    path, rows, total = out / "tuned.json", [], 0.0
    with terminal.explained(ValueError):
        data = json.loads(json.dumps(DATA))
        named = list(tuning.TUNINGS) if "all" in problems else problems
        races = chain.from_iterable([tuning.races(one, data, baseline, rounds, seeds) for one in named])
    heads = ("points", "agent-rounds", "CPU seconds") if plan else ("chosen", "regret by task")
    play = partial(terminal.play_missing, workers=workers, scheduler=scheduler)
    with terminal.explained_play(out):
        data |= json.loads(path.read_text()) if path.exists() else {}
        data |= {"version": version("fedbandit-envs"), "first_seed": tuning.FIRST_SEED}
        for race in races:
            rows.append([f"{race.suite.name}: {race.form}", race.track.name])
            if plan:
                size, seconds = race.cost()
                rows[-1] += [str(len(race.points)), f"{size:.3g}", f"{seconds:,.0f}"]
                total += seconds
                continue
            found = tuning.run(race, play, out / "shards")
            tuning.keep(data, found)
            write_whole(path, re.sub(r"\n {3,}", " ", json.dumps(data, indent=1) + "\n").encode())
            constants, means, errors, _ = found.tried[found.best]
            regrets = (f"{mean:.4g} ± {error:.2g}" for mean, error in zip(means, errors, strict=True))
            end = "; the grid must be extended" if found.ended else ""
            name = race.points[found.best][0] if race.form == tuning.SILENCE else ""
            rows[-1] += [f"{name} {json.dumps(constants)}{end}".strip(), ", ".join(regrets)]
    title = "At most, if no grid is extended" if plan else "Tuned"
    terminal.print_table(title, ("of", "track", *heads), rows)
    typer.echo(f"{total:,.0f} CPU seconds, estimated by short runs" if plan else path)


def reproduce(
    experiment: Annotated[str | None, typer.Argument(help="Its name, or all; without it, a list.")] = None,
    scale: Annotated[str, typer.Option(help="small or paper; some have tiny or medium.")] = "small",
    panel: Annotated[str, typer.Option(help="One part of the experiment, or all.")] = "all",
    mode: Annotated[str, typer.Option(help="default (corrected) or printed algorithms.")] = "default",
    rounds: Annotated[int | None, typer.Option(help="Horizon T, if not the scale's.")] = None,
    trials: Annotated[int | None, typer.Option(help="Runs of an instance, if not the scale's.")] = None,
    data: Annotated[str | None, typer.Option(help="Your ratings, for panels that need them.")] = None,
    workers: terminal.WorkersOption = 2,
    scheduler: terminal.SchedulerOption = None,
    out: terminal.OutOption = Path("fedbandit-reproduction"),
) -> None:
    """Repeats a paper's experiment beside the paper's numbers.

    The same command goes on after a stop. With `all`, experiments without the given panel or mode are left out. With
    `--data`, so are experiments that need no data; without it, panels that need data. Ratings are a CSV or Parquet file
    with the columns user, item and rating (1 to 5), or JSON: '{"name": "ratings", "table": "my.csv", "scale": [0.5, 5],
    "user": "who"}'. The scale `small` takes minutes, or some hours. Needs the extra `[report]`.

    Example: `fedbandit reproduce fed-pe --scale tiny --out reproduction`
    """
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.experiments.spec import read_value
    from fedbandit_envs.papers.catalogue import experiments
    from fedbandit_envs.papers.page import Reproduction

    known = experiments()
    if experiment is None:
        rows = ((name, one.title, one.shows) for name, one in known.items())
        terminal.print_table("", ("experiment", "of", "shows"), rows, whole="experiment")
        return
    with terminal.explained(ValueError, TypeError, OSError, ending=[ImportError]):
        table = None if data is None else read_value(data)
        if data is not None and not isinstance(table, dict):
            table = {"name": "ratings", "table": data, "scale": [1, 5]}
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
    terminal.require_extra("report", "matplotlib", "pandas")
    with terminal.explained_play(out):
        for name, page in reproductions.items():
            terminal.play_missing(name, page.cells, page.folder, workers=workers, scheduler=scheduler)
            for path in page.report():
                typer.echo(path)
