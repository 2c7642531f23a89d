"""The command ``fedbandit audit``, which tests the privacy claims of a mechanism by attacks."""

import json
from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, Annotated

import typer

from fedbandit_envs.cli.terminal import JsonOption, explained, print_table

if TYPE_CHECKING:
    from fedbandit_envs.wrappers.privacy.audit import Audit

_HEADS = ("adjacency", "composition", "delta", "lower bound", "claim", "tightness", "holds")


def audit(
    mechanism: Annotated[str, typer.Argument(help="laplace, ..., all, `file.py:Class` or `module:Class`.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of all releases, for one value of each.")] = 1.0,
    delta: Annotated[float | None, typer.Option(help="[default: 0.01; pure: 0; continual: 0.1]")] = None,
    releases: Annotated[int | None, typer.Option(help="Their number. [default: 2; continual: 6]")] = None,
    samples: Annotated[int, typer.Option(help="Samples of each of the two histories.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Tests a mechanism's privacy claims by attacks.

    Exit code 1 if a claim is refuted, which one of 10,000 attacks does by chance. Delta is that of each release
    (continual release: of all together), at which claims are attacked. Two releases have P-FCB's decreasing shares.

    Example: `fedbandit audit laplace --epsilon 0.5 --samples 5000`
    """
    from fedbandit_envs.experiments.execute import progress
    from fedbandit_envs.wrappers.privacy.audits import attacks_of, run_audits

    with (
        explained(ValueError, ArithmeticError, MemoryError, TypeError, ImportError, AttributeError),
        progress(mechanism, len(attacks_of(mechanism))) as update,
    ):
        audited = run_audits(mechanism, epsilon, delta, releases, samples, seed, lambda: update(advance=1))
    if as_json:
        settings = {
            "mechanism": mechanism, "epsilon": epsilon, "delta": delta, "releases": releases, "samples": samples,
            "seed": seed,
        }  # fmt: skip
        rows = [{"mechanism": name, **one.as_json()} for name, one in audited]
        typer.echo(json.dumps({"settings": settings, "audits": rows}, indent=2))
    else:
        for name, group in groupby(audited, lambda row: row[0]):
            print_table(name, _HEADS, (_row(one) for _, one in group))
    raise typer.Exit(0 if all(one.holds for _, one in audited) else 1)


def _row(result: "Audit") -> tuple[str, ...]:
    """Returns a table's row: the lower bound of epsilon that an attack has shown beside the epsilon claimed."""
    claim = result.claim
    return (
        claim.adjacency, claim.composition, f"{claim.delta:.3g}", f"{result.lower_bound:.3f}",
        f"none: {claim.reason}" if claim.epsilon is None else f"{claim.epsilon:.3f}",
        "-" if isnan(result.tightness) else f"{result.tightness:.0%}",
        "yes" if result.holds else "REFUTED",
    )  # fmt: skip
