"""All roles on this machine, each in a process of its own, connected by sockets on the loopback address."""

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any

from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.roles.parties import RoleSetup
from fedbandit_envs.samba.roles.role import RoleReport
from fedbandit_envs.samba.transports.network import HUB, play_over_network

_PATIENCE = 5
_LAST_WORDS_SECONDS = 1.0
_SECONDS_BETWEEN_REPORTS = 0.2


def play_in_processes(
    setups: Mapping[str, RoleSetup], timeout: float, advance: Callable[[int], None]
) -> dict[str, RoleReport]:
    """Returns the reports of all roles after a run in processes; whatever happens, all of them are ended.

    Args:
        setups: What each role needs, by its name.
        timeout: Seconds after which a role that is awaited counts as hung.
        advance: Called with a number of rounds that have been played since the last call.

    Raises:
        SecureError: The run has ended without a result; the error names the role that caused it.
    """
    # A fresh interpreter: a fork of this process would hold the keys of all roles.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        # Children import the main module again; what that needs is imported once, in the server they are forked from.
        context.set_forkserver_preload([name for name in sys.modules if name.startswith("fedbandit_envs.")])
    processes: list[BaseProcess] = []
    pipes: dict[Pipe, str] = {}

    def start(name: str, address: str) -> None:
        ours, theirs = context.Pipe(duplex=False)
        arguments = (setups[name], address, timeout, theirs)
        process = context.Process(target=_play_in_child, args=arguments, name=name, daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
        pipes[ours] = name

    reports: dict[str, RoleReport] = {}
    played, patience = 0, _PATIENCE * timeout
    try:
        start(HUB, "127.0.0.1:0")
        while len(reports) < len(setups):
            ready = wait([pipe for pipe, role in pipes.items() if role not in reports], patience)
            if not ready:
                late = sorted(set(pipes.values()) - set(reports))
                raise SecureError(f"{', '.join(late)} sent nothing for {patience:g} s", late[0])
            for pipe in ready:
                assert isinstance(pipe, Pipe)
                role = pipes[pipe]
                try:
                    event, value = pipe.recv()
                except (EOFError, OSError) as error:
                    raise SecureError(
                        f"the process of {role} has died before its part was done", role
                    ) from error
                if event == "failed":
                    raise SecureError(*value)
                if event == "done":
                    reports[role] = value
                elif event == "round" and role == HUB:
                    advance(value - played)
                    played = value
                elif event == "listening":
                    for name in setups:
                        if name != HUB:
                            start(name, f"127.0.0.1:{value}")
        return {name: reports[name] for name in setups}
    finally:
        for process in processes:
            process.terminate()
            process.join(_LAST_WORDS_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def _play_in_child(setup: RoleSetup, address: str, timeout: float, pipe: Pipe) -> None:
    """Plays a role in this process, and sends through a pipe what happens, as ``(event, value)``."""
    last = 0.0

    def progress(round_: int, rounds: int) -> None:
        nonlocal last
        if monotonic() - last > _SECONDS_BETWEEN_REPORTS:
            last = monotonic()
            pipe.send(("round", round_))

    def listening(port: int) -> None:
        pipe.send(("listening", port))

    try:
        pipe.send(("done", play_over_network(setup, address, timeout, listening, progress)))
    except Exception as error:
        culprit = getattr(error, "culprit", "") or setup.keyring.role
        known = isinstance(error, SecureError | ValueError | TypeError | OSError)
        pipe.send(("failed", (str(error) if known else repr(error), culprit)))
        sys.exit(1)
