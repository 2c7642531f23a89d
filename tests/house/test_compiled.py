"""The one decorator for kernels, and what a terminal says while they are compiled."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from fedbandit_envs.basics.compiled import kernel


@kernel
def _total(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total


@kernel
def _fused(a, b, c):
    return a * b + c


def test_sums_keep_their_order():
    # Whatever else the order is, lanes of a vector or pairs, one of the ones would be added to another first.
    numbers = np.array([1.0] + [2.0**-53] * 64)
    assert _total(numbers) == 1.0
    assert _total(numbers[::-1].copy()) == 1.0 + 2.0**-47


def test_products_are_rounded_before_they_are_added():
    # The product is 1 - 2^-60, which a fused multiplication and addition would not round to 1.
    assert _fused(1 - 2.0**-30, 1 + 2.0**-30, -1.0) == 0.0


COMPILE_IN_WORKER_THEN_HERE = """
import sys
from multiprocessing import get_context

from numba import njit

from fedbandit_envs.randomness.threefry import padded, threefry

njit(lambda: 1)()
worker = get_context("fork").Process(target=threefry, args=(1, 2, 3, 4))
worker.start()
worker.join()
assert worker.exitcode == 0
print("worker", file=sys.stderr, flush=True)
padded(3)
padded(3.5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no pseudo-terminals")
def test_a_terminal_says_once_that_kernels_are_compiled_and_nothing_of_cached_ones(tmp_path):
    import pty

    def said(*, terminal):
        """What a process with an own cache writes on its error stream: a terminal or a pipe."""
        ours, theirs = pty.openpty() if terminal else os.pipe()
        command = [sys.executable, "-c", COMPILE_IN_WORKER_THEN_HERE]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / str(terminal))}
        subprocess.run(command, stderr=theirs, env=environment, check=True)
        # A terminal keeps what was written to it until it is read, and this is little.
        written = os.read(ours, 4096).decode().splitlines()
        os.close(theirs)
        os.close(ours)
        return written

    assert said(terminal=False) == ["worker"]
    assert said(terminal=True) == [
        "worker",
        "fedbandit-envs: compiling kernels (once; later runs start at once)",
    ]
    assert said(terminal=True) == ["worker"]


def test_two_processes_may_compile_into_one_cache(tmp_path, monkeypatch):
    """While one process of the tests writes its kernel, another does, which has seen the same index, of one kernel."""
    made = (str(tmp_path), "kernel", "stamp")
    IndexDataCacheFile(*made).save("first", "first kernel")
    mine, theirs = IndexDataCacheFile(*made), IndexDataCacheFile(*made)
    seen, save_index = theirs._load_index(), mine._save_index
    monkeypatch.setattr(theirs, "_load_index", lambda: dict(seen))

    def save_after_them(overloads):
        save_index(overloads)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            theirs.save("theirs", "their kernel")

    monkeypatch.setattr(mine, "_save_index", save_after_them)
    mine.save("mine", "my kernel")
    later = IndexDataCacheFile(*made)
    assert later.load("first") == "first kernel"
    assert later.load("theirs") == "their kernel"
    assert later.load("mine") in (None, "my kernel")
