"""Runs with all roles on this machine: in this process, or each in its own, connected by sockets."""

import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from time import monotonic, process_time
from typing import Any

from fedbandit_envs.samba.errors import SecureError
from fedbandit_envs.samba.messages import Frame
from fedbandit_envs.samba.network import HUB, play_over_network
from fedbandit_envs.samba.roles import Role, RoleReport, RoleSetup

_ROUNDS_PER_CALL = 64


def run_roles(
    roles: Mapping[str, Role],
    advance: Callable[[int], None] = lambda rounds: None,
    observer: list[Frame] | None = None,
) -> dict[str, float]:
    """Plays a run by passing frames between roles until all are done; returns the CPU seconds of each role by name.

    Args:
        roles: Roles by name.
        advance: Function that is called from time to time with the number of rounds played since its last call.
        observer: A list to which every frame is appended; None for no list.

    Raises:
        SecureError: A role has refused a frame; or a role waits for a frame and no more frames are sent.
    """
    spent = dict.fromkeys(roles, 0.0)
    on_their_way: deque[Frame] = deque()
    controller, reported = roles["controller"], 0
    before = process_time()
    for name, role in roles.items():
        on_their_way.extend(role.start())
        before, spent[name] = (now := process_time()), now - before
    while on_their_way:
        frame = on_their_way.popleft()
        if observer is not None:
            observer.append(frame)
        sender, name, data = frame
        before = process_time()
        on_their_way.extend(roles[name].handle(sender, data))
        spent[name] += process_time() - before
        if controller.round >= reported + _ROUNDS_PER_CALL:
            advance(controller.round - reported)
            reported = controller.round
    for name, role in roles.items():
        if not role.done:
            peers = role.waits_for()
            raise SecureError(f"{name} waits for {', '.join(peers)}, and nothing is on its way", peers[0])
    return spent


_PATIENCE = 5
_LAST_WORDS_SECONDS = 1.0
_SECONDS_BETWEEN_REPORTS = 0.2


def play_in_processes(
    setups: Mapping[str, RoleSetup], timeout: float, advance: Callable[[int], None]
) -> dict[str, RoleReport]:
    """Plays a run with one process for each role and returns the roles' reports by name.

    All processes are ended when the function returns or raises.

    Args:
        setups: The keys, settings and data of each role, by the role's name.
        timeout: Number of seconds without a message after which the role that must send next counts as hung.
        advance: Function that is called from time to time with the number of rounds played since its last call.

    Raises:
        SecureError: The run has ended without a result; the error names the role that caused it.
    """
    # Every role gets a fresh interpreter: a fork of this process would have the keys of all roles in its memory.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        # Every child process imports the modules of this package. They are imported once, in the server process from
        # which the children are forked, so that the children start faster.
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
    """Plays a role in this child process, and reports to the parent through a pipe, as pairs ``(event, value)``.

    The events are ``"listening"`` with the port, ``"round"`` with the round, and at the end ``"done"`` with the role's
    report or ``"failed"`` with the error's message and the name of the role that caused it.
    """
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
