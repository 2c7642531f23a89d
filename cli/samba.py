"""The commands of SAMBA (encrypted bandits): ``fedbandit samba``, ``samba-keys`` and ``samba-role``."""

import json
import os
from contextlib import AbstractContextManager
from dataclasses import asdict
from math import inf
from pathlib import Path
from secrets import randbits
from typing import Annotated, cast

import typer

from fedbandit_envs.cli.terminal import JsonOption, SetOption, explained, out_console, print_table

_KEY_FILE = "keys.json"
_NAMES = "ucb, thompson, ... (errors list all)"
_CAUSED_BY_WORDS = (ValueError, TypeError, OSError, AttributeError, ModuleNotFoundError)

AlgorithmOption = Annotated[str, typer.Option(help=f"{_NAMES}, or 'module:attribute' of a rule.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of the run; by default one that nobody knows.")]
TimeoutOption = Annotated[float, typer.Option(help="Seconds until a role that is awaited counts as hung.")]


def _explained(*errors: type[Exception]) -> AbstractContextManager[None]:
    """Shows errors as a message: those of the user's words, of runs without a result and of missing extras."""
    from fedbandit_envs.samba.messages import SecureError

    return explained(*errors, ending=[SecureError, ImportError])


def samba(
    algorithm: AlgorithmOption = "ucb",
    ratings: Annotated[
        str, typer.Option(help="movielens, jester, or a table of ratings as JSON.")
    ] = "movielens",
    arms: Annotated[int, typer.Option(help="Number of owners K: the arms with the largest means.")] = 10,
    budget: Annotated[int, typer.Option(help="Number of rounds N.")] = 1000,
    seed: SeedOption = None,
    transport: Annotated[str, typer.Option(help="local: one process; tcp: one for each role.")] = "local",
    set_: SetOption = None,
    owners_per_role: Annotated[
        int | None, typer.Option(help="Number of owners in a role; by default all, or 1 under tcp.")
    ] = None,
    tls: Annotated[bool, typer.Option("--tls", help="Put sockets under mutual TLS as well.")] = False,
    timeout: TimeoutOption = 30.0,
    plain: Annotated[bool, typer.Option("--plain", help="Run without encryption: same reward.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Runs a bandit algorithm on encrypted scores (SAMBA).

    The federation is vertical: each arm has its own data owner. Exit code 2 if the settings are wrong; 1 if the run has
    ended without a result. Needs the extra `[secure]`.

    Example: `fedbandit samba --algorithm ucb --arms 5 --budget 100`
    """
    from fedbandit_envs.experiments.execute import progress
    from fedbandit_envs.experiments.spec import read_assignments, read_value
    from fedbandit_envs.samba.runs import SambaSettings, Transport, run_samba

    name = f"{algorithm}{' without encryption' if plain else ''}"
    with _explained(*_CAUSED_BY_WORDS), progress(name, budget) as update:
        parameters = read_assignments(set_ or [])
        read = read_value(ratings) if ratings.startswith("{") else ratings
        settings = SambaSettings(
            algorithm, read, arms, budget, seed, cast(Transport, transport),
            parameters, owners_per_role, tls, timeout, plain,
        )  # fmt: skip
        result = run_samba(settings, lambda round_: update(completed=round_))
        update(completed=budget)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    counts = {name: result[name] for name in ("cumulative_reward", "bytes")} | result["operations"]
    rows = [(name.replace("_", " "), f"{number:,}") for name, number in counts.items()]
    rows += [(f"CPU seconds, {role}", f"{spent:.2f}") for role, spent in result["cpu_seconds"].items()]
    rows.append(("seconds", f"{result['wall_seconds']:.2f}"))
    print_table(f"{algorithm}, {arms} arms of {ratings}, {budget} rounds", ("what", "how much"), rows)
    if result["claim"]:
        out_console.print(f"trust: {result['claim']['trust']}; {result['claim']['reason']}", highlight=False)


def samba_keys(
    out: Annotated[Path, typer.Argument(help="A new folder, in which each role gets one with its keys.")],
    owners: Annotated[list[int], typer.Option(help="Number of owners in a group. Repeatable.")] = [1, 1],  # noqa: B006
    seed: SeedOption = None,
    tls: Annotated[bool, typer.Option(help="Issue certificates, which links between machines need.")] = True,
) -> None:
    """Creates the keys of one run of SAMBA.

    Each role has a folder. Give each machine the folder of its role and no other.

    Example: `fedbandit samba-keys keys --owners 1 --owners 1`
    """
    from fedbandit_envs.samba.keys import deal_keys, issue_certificates
    from fedbandit_envs.samba.messages import require_extra

    with _explained(ValueError, TypeError), explained(OSError, option="OUT"):
        require_extra()
        keyrings = deal_keys(randbits(128) if seed is None else seed, owners)
        if tls:
            keyrings = issue_certificates(keyrings)
        out.mkdir(mode=0o700, parents=True)
        for name, keyring in keyrings.items():
            (out / name).mkdir(mode=0o700)
            keyring.save(out / name / _KEY_FILE)
    for name in keyrings:
        typer.echo(out / name / _KEY_FILE)


def samba_role(
    role: Annotated[str, typer.Argument(help="customer, controller, comp, owner-0, owner-1, ...")],
    keys: Annotated[Path, typer.Option(help="The role's key file, for one run, which then is removed.")],
    listen: Annotated[str | None, typer.Option(help="HOST:PORT; for controller.")] = None,
    connect: Annotated[str | None, typer.Option(help="HOST:PORT of controller; for all others.")] = None,
    algorithm: Annotated[str | None, typer.Option(help=f"{_NAMES}; for all but comp.")] = None,
    set_: SetOption = None,
    budget: Annotated[int | None, typer.Option(help="Number of rounds N; for customer.")] = None,
    mean: Annotated[list[float] | None, typer.Option(help="Mean of an arm; one for each owner.")] = None,
    timeout: TimeoutOption = 30.0,
    as_json: JsonOption = False,
) -> None:
    """Plays one role of SAMBA; others may run on other machines.

    Exit code 2 if the settings are wrong; 1 if the run has ended without a result.

    Example: `fedbandit samba-role comp --keys keys/comp/keys.json --connect host:7000`
    """
    from fedbandit_envs.basics.checks import require_number
    from fedbandit_envs.experiments.execute import progress
    from fedbandit_envs.experiments.spec import read_assignments
    from fedbandit_envs.samba.keys import Keyring
    from fedbandit_envs.samba.messages import require_extra
    from fedbandit_envs.samba.network import Calls, parse_address, play_over_network
    from fedbandit_envs.samba.owners import Algorithm
    from fedbandit_envs.samba.roles import HUB, RoleSetup, make_role

    with _explained(*_CAUSED_BY_WORDS), progress(role, None) as update:
        require_extra()
        address = listen if role == HUB else connect
        if address is None or (listen and connect):
            option = "--listen" if role == HUB else "--connect"
            raise ValueError(f"{role} requires {option}, and not both of --listen and --connect")
        played = None if algorithm is None else Algorithm(algorithm, read_assignments(set_ or []))
        setup = RoleSetup(Keyring.load(keys, role), played, budget, mean or ())
        # All that can be wrong must be found now: once the run has begun, there are no keys for a second try.
        parse_address(address, tls=setup.keyring.certificate is not None)
        require_number("--timeout", timeout, 0, inf, open_below=True, open_above=True)
        played_by = make_role(setup)
        if not os.access(keys.parent, os.W_OK):
            raise ValueError(f"{keys} cannot be removed, since its folder cannot be written to")
        calls = Calls(
            lambda port: typer.echo(f"{role} listens at port {port}", err=True),
            lambda round_, rounds: update(completed=round_, total=rounds),
            lambda: keys.unlink(missing_ok=True),
        )
        report = play_over_network(played_by, address, timeout, calls)
    if as_json:
        typer.echo(json.dumps(asdict(report), indent=2))
    else:
        counts = [f"{name.replace('_', ' ')} {number:,}" for name, number in asdict(report.counts).items()]
        typer.echo(f"{role} is done after {report.cpu_seconds:.2f} CPU seconds: {', '.join(counts)}")
        if report.reward is not None:
            typer.echo(f"cumulative reward: {report.reward}")
