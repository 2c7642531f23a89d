"""The commands ``run`` and ``quickstart``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedbandit_envs.cli import terminal

if TYPE_CHECKING:
    from fedbandit_envs.core.privacy import Claim
    from fedbandit_envs.experiments import RunResult, RunSpec

_CLAIM = ("adjacency", "trust", "observer", "epsilon", "reason")
_QUICK = ("uniform-random", "one-of-each", "SS-UCB")
# Rounds that `check_policy` plays, and the number of rows that it plays alone.
_CHECKED_ROUNDS, _CHECKED_ROWS = 120, 3
_CHECK = f"First play {_CHECKED_ROUNDS} rounds, also three rows (seed, agent) alone: actions must agree."

RoundsOption = Annotated[int, typer.Option(help="Horizon T.")]
SeedsOption = Annotated[int, typer.Option(help="Number of seeds.")]


def run(
    baseline: Annotated[
        str, typer.Argument(help="A baseline, or a policy: `file.py:Class`, `module:Class`.")
    ],
    env_id: Annotated[str, typer.Argument(help="An environment's id, or `module:Class`.")],
    rounds: RoundsOption = 10_000,
    seeds: SeedsOption = 10,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 0,
    set_: terminal.SetOption = None,
    check_rows: Annotated[bool, typer.Option("--check-rows", help=_CHECK)] = False,
    stack: Annotated[str, typer.Option(help="Wrappers inside of the baseline's, as a JSON list.")] = "[]",
    as_json: terminal.JsonOption = False,
) -> None:
    """Runs a baseline on all agents of a federation and reports cumulative regret per agent.

    Names are those of `fedbandit list`; a wrapper is a pair of its name and its arguments. Exit code 2 if the settings
    are wrong or a privacy budget is used up before the end; 1 if --check-rows finds rows whose actions differ when they
    are played alone.

    Example: `fedbandit run SS-UCB FedProcurement-v0 --rounds 1000 --seeds 3`
    """
    from fedbandit_envs.experiments.spec import REFUSALS, RunSpec, read_assignments, read_value

    with terminal.explained(*REFUSALS):
        spec = RunSpec(baseline, env_id, rounds, seeds, first_seed, stack=read_value(stack))
        spec = spec.changed(read_assignments(set_ or []))
        if check_rows:
            _check_rows(spec)
        result = _played(spec)
    checked = {"checked_rows": _CHECKED_ROWS if check_rows else 0}
    written = {**result.as_json(), **checked, "settings": spec.recorded()}
    if as_json:
        typer.echo(json.dumps(written, indent=2))
        return
    rows = ((str(row["round"]), *_cells(row, ".1f")) for row in written["checkpoints"])
    heads = ("round", "regret per agent", "95 % interval")
    terminal.print_table(f"{baseline} on {env_id}, {seeds} seeds", heads, rows)
    # Of the ways to compose releases, the table shows the one that gives the smallest epsilon.
    claims = [one for one in result.claims if one.composition == "exact"]
    if claims:
        title = f"Privacy of the agent with the largest loss, delta {spec.delta:g}"
        terminal.print_table(title, _CLAIM, map(_claim_cells, claims))
    for name, mean in written["info_mean"].items():
        terminal.out_console.print(f"{name}, mean over rounds and agents: {mean:g}")
    if check_rows:
        terminal.out_console.print("rows that were played alone act the same")


def _check_rows(spec: "RunSpec") -> None:
    """Ends the command if an action of one agent in one replica depends on data of others."""
    from dataclasses import replace

    from fedbandit_envs.testing import check_policy

    short = replace(spec, rounds=_CHECKED_ROUNDS)
    with terminal.explained(ending=[AssertionError]):
        check_policy(lambda: short.build()[1], lambda: short.build()[0])


def quickstart(
    rounds: RoundsOption = 10_000,
    seeds: SeedsOption = 10,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("fedbandit-quickstart"),
) -> None:
    """Runs three baselines without communication on FedProcurement-v0 and draws their regret.

    Needs the extra `[report]`.

    Example: `fedbandit quickstart --rounds 1000 --seeds 3 --out pictures`
    """
    terminal.require_report()
    import numpy as np
    import pandas

    from fedbandit_envs.experiments.plots import plot
    from fedbandit_envs.experiments.spec import RunSpec, SettingsError

    with terminal.explained(SettingsError):
        runs = [RunSpec(name, "FedProcurement-v0", rounds, seeds) for name in _QUICK]
    terminal.make_folder(out)
    results = [_played(spec) for spec in runs]
    rows = []
    for spec, result in zip(runs, results, strict=True):
        checkpoints = result.as_json()["checkpoints"]
        means = [row["regret_mean"] for row in checkpoints]
        share = 100 * (1 - np.interp(rounds // 2, result.rounds, means) / means[-1])
        rows.append((spec.baseline, *_cells(checkpoints[-1], ",.0f"), f"{share:.0f} %"))
    terminal.print_table(
        f"FedProcurement-v0: 10 agents, 30 producers, {rounds} rounds, {seeds} seeds",
        ("baseline", "regret per agent", "95 % interval", "in the last half"),
        rows,
        whole="95 % interval",
    )
    terminal.out_console.print(
        "A policy that learns incurs ever less of its regret in the last half; one that does not, 50 %."
    )
    with terminal.explained(OSError, option="--out"):
        frame = pandas.concat([result.to_frame() for result in results])
        plot(frame, "round", "regret", "baseline", log_x=True, log_y=True).savefig(out / "regret.png")
    typer.echo(f"regret plot: {(out / 'regret.png').resolve()}")


def _played(spec: "RunSpec") -> "RunResult":
    """Plays a run with a progress bar and returns its result."""
    with terminal.progress(spec.baseline, spec.size) as update:
        return spec.run(lambda played: update(advance=played))


def _claim_cells(claim: "Claim") -> tuple[str, ...]:
    """Returns a table's row: what a claim protects, whom it needs trusted, against whom, its epsilon, and a reason."""
    epsilon = "unknown" if claim.epsilon is None else f"{claim.epsilon:.4g}"
    return claim.adjacency, claim.trust, claim.observer, epsilon, claim.reason


def _cells(checkpoint: dict[str, Any], decimals: str) -> tuple[str, str]:
    """Returns two cells of a table: mean regret at a checkpoint and its interval, ``-`` if there is none."""
    ends = (format(end, decimals) for end in checkpoint["regret_ci"] or ())
    return format(checkpoint["regret_mean"], decimals), " .. ".join(ends) or "-"
