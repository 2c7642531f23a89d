"""All roles in processes of their own on this machine, connected by sockets on the loopback address."""

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from fedbandit_envs.wrappers.secure.errors import PeerLostError, PeerTimeoutError, RunStoppedError
from fedbandit_envs.wrappers.secure.process import Part, Report, play_in_child
from fedbandit_envs.wrappers.secure.session import HUB

_PATIENCE = 5
_LAST_WORDS_SECONDS = 1.0


def play_all(
    parts: Mapping[str, Part],
    advance: Callable[[int], None] = lambda rounds: None,
    started: Callable[[dict[str, int]], None] = lambda processes: None,
) -> dict[str, Report]:
    """Plays all parts, each in its process, and ends all processes whatever happens.

    Args:
        parts: By role; ports are chosen here.
        advance: Told of rounds played, for progress bars.
        started: Told of the processes' ids by role, once all run.

    Returns:
        The roles' reports.

    Raises:
        SecureError: The run has ended without a result; the error names the role that it is about.
    """
    # A fresh interpreter: a fork of this process would hold all keys.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        # Children import the main module again; what that needs is imported once, in the server they are forked from.
        context.set_forkserver_preload([name for name in sys.modules if name.startswith("fedbandit_envs.")])
    processes: dict[str, BaseProcess] = {}
    pipes: dict[Pipe, str] = {}

    def start(part: Part) -> Pipe:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=play_in_child, args=(part, theirs), daemon=True)
        process.start()
        theirs.close()
        processes[part.keyring.role], pipes[ours] = process, part.keyring.role
        return ours

    try:
        patience = _PATIENCE * max(part.timeout for part in parts.values())
        event, port = _hear(start(parts[HUB]), HUB, patience)
        assert event == "listening"
        for name, part in parts.items():
            if name != HUB:
                start(replace(part, address=f"127.0.0.1:{port}"))
        started({name: process.pid or 0 for name, process in processes.items()})
        return _gather(pipes, advance, patience)
    finally:
        for process in processes.values():
            process.terminate()
            process.join(_LAST_WORDS_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()


def _gather(pipes: dict[Pipe, str], advance: Callable[[int], None], patience: float) -> dict[str, Report]:
    """Collects the reports of all roles."""
    reports: dict[str, Report] = {}
    played = 0
    while len(reports) < len(pipes):
        ready = wait([pipe for pipe, role in pipes.items() if role not in reports], patience)
        if not ready:
            late = sorted(set(pipes.values()) - set(reports))
            raise PeerTimeoutError(f"{', '.join(late)} told nothing for {patience:g} s", late[0])
        for pipe in ready:
            assert isinstance(pipe, Pipe)
            event, value = _hear(pipe, pipes[pipe], patience)
            if event == "done":
                reports[pipes[pipe]] = value
            elif event == "round" and pipes[pipe] == HUB:
                advance(value - played)
                played = value
    return reports


def _hear(pipe: Pipe, role: str, patience: float) -> tuple[str, Any]:
    """Returns what a process tells next.

    Raises:
        SecureError: That it has failed, or nothing more since it has died.
    """
    try:
        if not pipe.poll(patience):
            raise PeerTimeoutError(f"the process of {role} told nothing for {patience:g} s", role)
        event, value = pipe.recv()
    except (EOFError, OSError) as error:
        raise PeerLostError(f"the process of {role} has died before its part was done", role) from error
    if event == "failed":
        culprit, reason = value
        raise RunStoppedError(reason, culprit)
    return event, value
