"""The leaderboard: suites, tracks, entries and their results."""

import os
from collections.abc import Mapping
from io import BytesIO
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from fedbandit_envs.basics.entry_points import resolve

ALONE = "array alone"
"""Name under which a process sends an action that is an array and has no names."""


def _serve(descriptor: int) -> None:
    """Is the process of a file's policy: makes it from the first message, and answers the others by its actions.

    It stands here since importing what plays entries takes longer than most of them play.

    Args:
        descriptor: File descriptor of the pipe.
    """
    pipe = Connection(descriptor)
    action: dict = {}
    try:
        (code, name, settings), spec, seeds = pipe.recv()
        Path("entry.py").write_bytes(code)
        policy = resolve(f"entry.py:{name}")(**settings)
        policy.reset(spec, seeds)
        while True:
            answer = BytesIO()
            np.savez(answer, **action)
            pipe.send_bytes(answer.getvalue())
            acted = policy.act(*pipe.recv())
            action = dict(acted) if isinstance(acted, Mapping) else {ALONE: acted}
    except EOFError:
        pass
    except BaseException as error:
        pipe.send_bytes(f"{type(error).__name__}: {error}".encode())
    # Threads and exit handlers of the policy would keep the process alive.
    os._exit(0)
