"""The command line of SAMBA: ``fedbandit samba``, ``samba-keys`` and ``samba-role``."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.table import Table

from fedbandit_envs.baselines.arms.owners import OWNERS
from fedbandit_envs.checks import require_choice
from fedbandit_envs.leaderboard.cli.terminal import ended, explained, out_console, progress_bar
from fedbandit_envs.leaderboard.run import read_value
from fedbandit_envs.leaderboard.samba import SambaSettings, run_samba, seed_of
from fedbandit_envs.wrappers.secure.certificates import certify
from fedbandit_envs.wrappers.secure.keys import Keyring, deal
from fedbandit_envs.wrappers.secure.libraries import require_extra
from fedbandit_envs.wrappers.secure.plan import Algorithm
from fedbandit_envs.wrappers.secure.process import Part
from fedbandit_envs.wrappers.secure.run import TIMEOUT, Transport
from fedbandit_envs.wrappers.secure.session import HUB
from fedbandit_envs.wrappers.secure.tcp import guarded

KEY_FILE = "keys.json"

_NAMES = f"One of {', '.join(name for name, rule in OWNERS.items() if not hasattr(rule, 'needs_others'))}"

AlgorithmOption = Annotated[str, typer.Option(help=f"{_NAMES}, or an entry point 'module:attribute'.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="key=value: a parameter of the algorithm. Repeatable.")
]
TimeoutOption = Annotated[
    float, typer.Option(help="Seconds after which a role that is waited for counts as hung.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def samba(
    algorithm: AlgorithmOption = SambaSettings.algorithm,
    ratings: Annotated[
        str, typer.Option(help="movielens, jester, or a file: u.data, or Jester's matrix as text.")
    ] = SambaSettings.ratings,
    arms: Annotated[
        int, typer.Option(help="Number of owners K, with the largest means.")
    ] = SambaSettings.arms,
    budget: Annotated[int, typer.Option(help="Number of rounds N.")] = SambaSettings.budget,
    seed: Annotated[int | None, typer.Option(help="Of the run. [default: one that nobody knows]")] = None,
    transport: Annotated[
        str, typer.Option(help="local: one process; tcp: a process for each role.")
    ] = SambaSettings.transport,
    set_: SetOption = None,
    owners_per_role: Annotated[
        int | None, typer.Option(help="Owners who share a process. [default: all; tcp: 1]")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Put sockets under mutual TLS as well.")] = False,
    timeout: TimeoutOption = SambaSettings.timeout,
    plain: Annotated[
        bool, typer.Option("--plain", help="Select in the open, by the same arithmetic.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Runs a bandit algorithm on a vertical federation whose scores are encrypted (SAMBA).

    Exit code 2 if it cannot run as asked; 1 if the run has ended without a result.
    """
    with explained(ValueError), ended():
        require_choice("--transport", transport, get_args(Transport))
        settings = SambaSettings(
            algorithm=algorithm,
            ratings=ratings,
            arms=arms,
            budget=budget,
            seed=seed,
            transport="tcp" if transport == "tcp" else "local",
            parameters=_parameters(set_),
            owners_per_role=owners_per_role,
            tls=tls,
            timeout=timeout,
            plain=plain,
        )
    with (
        explained(ValueError, TypeError, OSError, AttributeError, ModuleNotFoundError),
        ended(),
        progress_bar() as bar,
    ):
        task = bar.add_task(f"{algorithm}{' in the open' if plain else ''}", total=max(1, budget - arms))
        result = run_samba(settings, lambda rounds: bar.advance(task, rounds))
        bar.update(task, completed=max(1, budget - arms))
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    table = Table("what", "how much", title=f"{algorithm}, {arms} arms of {ratings}, {budget} rounds")
    table.add_row("cumulative reward", f"{result['cumulative_reward']:,}")
    for what, number in (*result["operations"].items(), ("bytes", result["bytes"])):
        table.add_row(what.replace("_", " "), f"{number:,}")
    for name, seconds in result["cpu_seconds"].items():
        table.add_row(f"CPU seconds, {name}", f"{seconds:.2f}")
    table.add_row("seconds", f"{result['wall_seconds']:.2f}")
    out_console.print(table)
    if result["claim"]:
        out_console.print(f"trust: {result['claim']['trust']}; {result['claim']['reason']}", highlight=False)


def samba_keys(
    out: Annotated[Path, typer.Argument(help="A new folder, for a folder with a key file for each role.")],
    owners: Annotated[
        list[int] | None, typer.Option(help="Owners of an owners' role. Repeat for each role.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the run. [default: one that nobody knows]")] = None,
    tls: Annotated[bool, typer.Option(help="With certificates, for links between machines.")] = True,
) -> None:
    """Deals the keys of one run, a folder for each role; give each machine its own and no other."""
    with explained(ValueError, TypeError), explained(OSError, option="OUT"), ended():
        require_extra()
        rings = deal(seed_of(seed), owners or [1, 1])
        if tls:
            shown = certify(rings)
            rings = {name: replace(ring, certificate=shown[name]) for name, ring in rings.items()}
        out.mkdir(mode=0o700, parents=True)
        for name, ring in rings.items():
            folder = out / name
            folder.mkdir(mode=0o700)
            ring.save(folder / KEY_FILE)
            typer.echo(folder / KEY_FILE)


def samba_role(
    role: Annotated[str, typer.Argument(help="customer, controller, comp, owner-0, owner-1, ...")],
    keys: Annotated[
        Path, typer.Option(help="The role's key file; it is removed, since keys are for one run.")
    ],
    listen: Annotated[str | None, typer.Option(help="HOST:PORT; Controller.")] = None,
    connect: Annotated[str | None, typer.Option(help="HOST:PORT of Controller; all others.")] = None,
    algorithm: Annotated[str | None, typer.Option(help=f"{_NAMES}; all but comp.")] = None,
    set_: SetOption = None,
    budget: Annotated[int | None, typer.Option(help="Number of rounds N; the customer.")] = None,
    mean: Annotated[
        list[float] | None, typer.Option(help="Of an owner's arm; repeat for each owner.")
    ] = None,
    timeout: TimeoutOption = TIMEOUT,
    as_json: JsonOption = False,
) -> None:
    """Plays one role of SAMBA; the others may be on other machines. Exit codes as `fedbandit samba`."""
    with explained(ValueError, TypeError, OSError, AttributeError, ModuleNotFoundError), ended():
        require_extra()
        address, other, option = (
            (listen, connect, "--listen") if role == HUB else (connect, listen, "--connect")
        )
        if address is None or other is not None:
            raise ValueError(f"{role} requires {option}, and not the other of --listen and --connect")
        guarded(address, tls=True)
        played = None if algorithm is None else Algorithm(algorithm, _parameters(set_))
        with progress_bar() as bar:
            task = bar.add_task(role, total=None)

            def advance(round_: int, rounds: int) -> None:
                bar.update(task, completed=round_, total=rounds)

            part = Part(Keyring.take(keys, role), address, timeout, played, budget, mean or ())
            report = part.play(lambda port: typer.echo(f"{role} listens at port {port}", err=True), advance)
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
    else:
        typer.echo(f"{role} is done after {report.cpu_seconds:.2f} CPU seconds: {report.counts}")
        if report.reward is not None:
            typer.echo(f"cumulative reward: {report.reward}")


def _parameters(assignments: list[str] | None) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    for assignment in assignments or []:
        key, equals, text = assignment.partition("=")
        if not (equals and key.isidentifier()):
            raise ValueError(f"--set is {assignment!r}; key=value is required")
        parameters[key] = read_value(text)
    return parameters
