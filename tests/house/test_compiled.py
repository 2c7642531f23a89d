"""The one decorator for kernels, and what happens while they are compiled."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit
from numba.core.caching import IndexDataCacheFile
from numba.core.errors import TypingError
from numba.extending import overload

from fedbandit_envs.basics.compiled import allocating_kernel, inlined_kernel, inner_kernel, kernel


@kernel
def _total(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total


@kernel
def _fused(a, b, c):
    return a * b + c


@inner_kernel
def _first(numbers):
    return numbers[0]


@inlined_kernel
def _last(numbers):
    return numbers[-1]


@kernel
def _ends(numbers):
    return _first(numbers[1:]) + _last(numbers[:-1])


@allocating_kernel
def _reversed(numbers):
    return numbers[::-1].copy()


def test_sums_keep_their_order():
    # Whatever else the order is, lanes of a vector or pairs, one of the ones would be added to another first.
    numbers = np.array([1.0] + [2.0**-53] * 64)
    assert _total(numbers) == 1.0
    assert _total(numbers[::-1].copy()) == 1.0 + 2.0**-47


def test_products_are_rounded_before_they_are_added():
    # The product is 1 - 2^-60, which a fused multiplication and addition would not round to 1.
    assert _fused(1 - 2.0**-30, 1 + 2.0**-30, -1.0) == 0.0


@pytest.mark.parametrize("inner", [_first, _last])
def test_python_cannot_call_what_kernels_call(inner):
    numbers = np.arange(5.0)
    for _ in range(2):  # before it is compiled for these numbers, and afterwards
        with pytest.raises(TypeError, match=f"{inner.py_func.__name__} can be called by kernels only"):
            inner(numbers)
        assert _ends(numbers) == 4.0


def test_kernels_that_allocate_return_arrays_that_stay():
    kept = [_reversed(np.arange(number, number + 3.0)) for number in range(1000)]
    for number, array in enumerate(kept):
        assert array.tolist() == [number + 2.0, number + 1.0, number]


def test_a_kernel_that_makes_an_array_is_refused():
    with pytest.raises(TypingError, match="Only accept returning of array"):
        kernel(cache=False)(lambda size: np.empty(size)[0])(3)


STEP = """
import gymnasium

env = gymnasium.make("fedbandit_envs:FedArms-v0")
env.reset(seed=0)
assert env.step(0)[1] in (0.0, 1.0)
"""


def test_a_debugger_can_step_through_kernels_that_are_not_compiled():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", STEP], env=environment, check=True)


COMPILE_IN_WORKER_THEN_HERE = """
import sys
from multiprocessing import get_context

import numpy as np
from numba import njit

from fedbandit_envs.linear.ridge import largest

njit(lambda: 1)()
worker = get_context("fork").Process(target=largest, args=(np.zeros(3, np.float32),))
worker.start()
worker.join()
assert worker.exitcode == 0
print("worker", file=sys.stderr, flush=True)
largest(np.zeros(3))
largest(np.zeros(3, np.int64))
"""


@pytest.mark.ci
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


def test_the_collector_stays_on_while_functions_are_compiled():
    def generated(number):
        seen.append(gc.isenabled())
        return lambda number: number + 1

    def called(number):
        raise NotImplementedError

    seen = []
    overload(called)(generated)
    assert njit(lambda number: called(number))(1) == 2
    assert seen
    assert all(seen)


FIRST_STEPS = """
import sys
import gymnasium
import fedbandit_envs

for env_id in sys.argv[1:]:
    env = gymnasium.make(env_id)
    env.reset(seed=0)
    env.step(env.action_space.sample())
print(*sys.modules)
"""


def test_first_steps_import_no_library_that_they_do_not_need():
    ids = ("FedArms-v0", "FedExposure-v0", "FedGaussian-v0", "FedLinear-v0")
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_STEPS, *ids], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "fedbandit_envs.linear.env" in loaded
    assert not loaded & {
        "scipy.stats",
        "scipy.optimize",
        "scipy.special",
        "networkx",
        "fedbandit_envs.wrappers",
    }
