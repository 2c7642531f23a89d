"""The command ``fedbandit privacy``, which reports what a baseline's messages cost in privacy."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fedbandit_envs.cli.run import BaselineArgument, EnvArgument, RoundsOption
from fedbandit_envs.cli.terminal import SetOption, explained

_FORMATS = ("markdown", "html", "json")


def privacy(
    baseline: BaselineArgument,
    env_id: EnvArgument,
    rounds: RoundsOption = 1000,
    set_: SetOption = None,
    format_: Annotated[str, typer.Option("--format", help=f"{', '.join(_FORMATS)}.")] = _FORMATS[0],
    out: Annotated[Path | None, typer.Option(help="File for the report.", dir_okay=False)] = None,
) -> None:
    """Plays a baseline and reports on the privacy of its messages.

    The report says what is protected, from whom, and how well, after one episode with seed 0. The page
    `docs/privacy-report.md` says what each field of the report means.

    Example: `fedbandit privacy MOSS-weighted FedArms-v0 --set epsilon=2 --rounds 500`
    """
    from fedbandit_envs.basics.checks import require_choice
    from fedbandit_envs.experiments.result import play_started
    from fedbandit_envs.experiments.spec import REFUSALS, RunSpec, read_assignments, refusing

    with explained(*REFUSALS):
        spec = RunSpec(baseline, env_id, rounds, seeds=1).changed(read_assignments(set_ or []))
        env, policy = spec.build()
        with refusing():
            require_choice("--format", format_, _FORMATS)
            start = env.reset_batch(spec.all_seeds)
        result = play_started(env, policy, spec.all_seeds, start, lambda played: None)
        report = env.privacy_report(mean_regret_of_an_agent=float(result.regret[-1].mean()))
    report.fields["subject"].update(baseline=baseline, env_id=env_id, settings=set_ or [])
    text = json.dumps(report.fields, indent=2) if format_ == "json" else getattr(report, format_)()
    if out is None:
        typer.echo(text)
        return
    with explained(OSError, option="--out"):
        out.write_text(text, "utf-8")
    typer.echo(out)
