"""The commands ``run`` and ``quickstart``."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fedbandit_envs.cli.terminal import (
    explained,
    make_folder,
    out_console,
    print_table,
    progress,
    require_report,
)
from fedbandit_envs.core.privacy import Claim
from fedbandit_envs.experiments.plots import regret_figure
from fedbandit_envs.experiments.result import RunResult
from fedbandit_envs.experiments.row_check import MixedRowsError
from fedbandit_envs.experiments.spec import RunSpec, SettingsError, read_value
from fedbandit_envs.wrappers.privacy.privatizer import BudgetExhaustedError

_CLAIM = ("adjacency", "trust", "observer", "epsilon", "reason")
_QUICK = ("uniform-random", "one-of-each", "SS-UCB")


def run(
    baseline: Annotated[
        str,
        typer.Argument(
            help="A baseline's name, see `fedbandit list`; or a policy, `file.py:Class` or `module:Class`."
        ),
    ],
    env_id: Annotated[str, typer.Argument(help="Environment's id, see `fedbandit list`; or `module:Class`.")],
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    first_seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value: an argument of environment, policy or wrapper. Repeatable."),
    ] = None,
    check_rows: Annotated[
        bool,
        typer.Option("--check-rows", help="Play three rows (seed, agent) alone as well: actions must agree."),
    ] = False,
    stack: Annotated[
        str,
        typer.Option(
            help="Wrappers inside of the baseline's own, as a JSON list of pairs: a name and arguments."
        ),
    ] = "[]",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Runs a baseline on all agents of a federation and reports cumulative regret per agent.

    Exit code 2 if the settings are wrong or a privacy budget is used up before the end; 1 if --check-rows finds rows
    whose actions differ when they are played alone.

    Example: `fedbandit run SS-UCB FedProcurement-v0 --rounds 1000 --seeds 3`
    """
    # A user's own policy may be a module in the current folder. The folder is appended to the path, so that it cannot
    # replace installed modules.
    sys.path.append(str(Path.cwd()))
    with explained(SettingsError, BudgetExhaustedError, ending=[MixedRowsError]):
        spec = RunSpec(baseline, env_id, rounds, seeds, first_seed, stack=read_value(stack))
        spec = spec.assigned(set_ or [])
        result = _played(spec, 3 if check_rows else 0)
    written = {**result.as_json(), "settings": spec.recorded()}
    if as_json:
        typer.echo(json.dumps(written, indent=2))
    else:
        rows = ((str(row["round"]), *_cells(row, ".1f")) for row in written["checkpoints"])
        heads = ("round", "regret per agent", "95 % interval")
        print_table(f"{baseline} on {env_id}, {seeds} seeds", heads, rows)
        # Of the ways to compose releases, the table shows the one that gives the smallest epsilon. Claims of shuffled
        # batches are there several times.
        of_all = [((claim.adjacency, claim.observer), claim) for claim in result.claims]
        claims = dict(of_all) | {
            key: claim for key, claim in of_all if claim.composition == "exact" and claim.delta == spec.delta
        }
        if claims:
            title = f"Privacy of the agent with the largest loss, delta {spec.delta:g}"
            print_table(title, _CLAIM, map(_claim_cells, claims.values()))
        for name, mean in written["info_mean"].items():
            out_console.print(f"{name}, mean over rounds and agents: {mean:g}")
        if check_rows:
            out_console.print(
                f"rows that agree with a policy that sees them alone: {written['checked_rows']}"
            )


def quickstart(
    rounds: Annotated[int, typer.Option(help="Horizon T.")] = 10_000,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 10,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("fedbandit-quickstart"),
) -> None:
    """Runs three baselines without communication on FedProcurement-v0 and draws their regret.

    Needs the extra `[report]`.

    Example: `fedbandit quickstart --rounds 1000 --seeds 3 --out pictures`
    """
    require_report()
    with explained(SettingsError):
        runs = [RunSpec(name, "FedProcurement-v0", rounds, seeds) for name in _QUICK]
    make_folder(out)
    curves: dict[str, RunResult] = {}
    rows = []
    for spec in runs:
        result = curves[spec.baseline] = _played(spec)
        checkpoints = result.as_json()["checkpoints"]
        means = [row["regret_mean"] for row in checkpoints]
        share = 100 * (1 - np.interp(rounds // 2, result.rounds, means) / means[-1])
        rows.append((spec.baseline, *_cells(checkpoints[-1], ",.0f"), f"{share:.0f} %"))
    print_table(
        f"FedProcurement-v0: 10 agents, 30 producers, {rounds} rounds, {seeds} seeds",
        ("baseline", "regret per agent", "95 % interval", "in the last half"),
        rows,
        whole="95 % interval",
    )
    out_console.print(
        "A policy that learns incurs ever less of its regret in the last half; one that does not, 50 %."
    )
    title = "FedProcurement-v0, no communication"
    with explained(OSError, option="--out"):
        regret_figure(curves, title).savefig(out / "regret.png")
    typer.echo(f"regret plot: {(out / 'regret.png').resolve()}")


def _played(spec: RunSpec, check_rows: int = 0) -> RunResult:
    """Plays a run with a progress bar and returns its result.

    Args:
        spec: The run.
        check_rows: Number of rows (pairs of seed and agent) that are also played alone, to check that actions agree.
    """
    with progress(spec.baseline, spec.size) as update:
        return spec.run(lambda played: update(advance=played), check_rows)


def _claim_cells(claim: Claim) -> tuple[str, ...]:
    """Returns a table's row: what a claim protects, whom it needs trusted, against whom, its epsilon, and a reason."""
    epsilon = "unknown" if claim.epsilon is None else f"{claim.epsilon:.4g}"
    return claim.adjacency, claim.trust, claim.observer, epsilon, claim.reason


def _cells(checkpoint: dict[str, Any], decimals: str) -> tuple[str, str]:
    """Returns two cells of a table: mean regret at a checkpoint and its interval, ``-`` if there is none.

    Args:
        checkpoint: One of ``checkpoints`` of :meth:`RunResult.as_json`.
        decimals: Format of the numbers.
    """
    ends = (format(end, decimals) for end in checkpoint["regret_ci"] or ())
    return format(checkpoint["regret_mean"], decimals), " .. ".join(ends) or "-"
