"""Submitted policies for tests: files with one class, and a short episode of arms."""

import json
import socket
from contextlib import suppress
from threading import Thread
from unittest.mock import patch

import numpy as np

from fedbandit_envs import arms_v0
from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy, channel, inside

ROWS = (2, 3)


def file_with(folder, source):
    """Writes a policy file, and returns its path."""
    path = folder / "policy.py"
    path.write_text(source)
    return path


def start_and_play(path, *, rounds=3, close=True, env=None, **arguments):
    """Plays a few rounds of the policy in a file; returns the policy."""
    env = env or arms_v0.parallel_env(max_cycles=rounds, num_agents=ROWS[1])
    policy = SandboxedPolicy(str(path), **arguments)
    try:
        observation = env.reset_batch(range(ROWS[0])).observation
        policy.reset(env.policy_spec, np.arange(6, dtype=np.uint64).reshape(ROWS))
        for _ in range(rounds):
            observation = env.step_batch(policy.act(observation)).observation
    finally:
        if close:
            policy.close()
    return policy


class Threaded:
    """A thread in place of the child process: it answers as that does, is not confined, and starts at once.

    Args:
        source: Place of the policy's file.
        *rest: Arguments of :class:`.SandboxProcess`, of which a thread needs none.
    """

    def __init__(self, source, *rest):
        self.end, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        names = {"__name__": "entry"}
        with open(source.module) as file:
            exec(file.read(), names)
        (make,) = [one for one in names.values() if isinstance(one, type) and hasattr(one, "act")]
        self._thread = Thread(target=self._serve, args=(make,), daemon=True)
        self._thread.start()

    def _serve(self, make):
        with self._theirs, suppress(OSError):
            try:
                self._theirs.send(channel.READY + b"[]")
                self._theirs.send(channel.READY)
                inside._play(self._theirs, make())
            except Exception as error:
                self._theirs.send(channel.FAILED + json.dumps(inside._failure(error)).encode())

    def close(self):
        self.end.close()
        self._thread.join(20.0)


def play_in_a_thread(path, **arguments):
    """Does what :func:`start_and_play` does, without a process: for whatever a process has no part in."""
    with patch("fedbandit_envs.leaderboard.sandbox.policy.SandboxProcess", Threaded):
        return start_and_play(path, **arguments)
