"""The one decorator for kernels, and what happens while they are compiled."""

import os
import subprocess
import sys

import numpy as np

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


def test_kernels_call_what_python_cannot():
    assert _ends(np.arange(5.0)) == 4.0


def test_kernels_that_allocate_return_arrays_that_stay():
    kept = [_reversed(np.arange(number, number + 3.0)) for number in range(1000)]
    for number, array in enumerate(kept):
        assert array.tolist() == [number + 2.0, number + 1.0, number]


FIRST_STEPS = """
import sys
import gymnasium
import fedbandit_envs

for env_id in sys.argv[1:]:
    env = gymnasium.make(env_id)
    env.reset(seed=0)
    reward = env.step(env.action_space.sample())[1]
    assert env_id != "FedArms-v0" or reward in (0.0, 1.0)
print(*sys.modules)
"""


def test_first_steps_import_no_library_that_they_do_not_need():
    """Kernels are not compiled, so that a debugger could step through them: that works, too."""
    ids = ("FedArms-v0", "FedExposure-v0", "FedGaussian-v0", "FedLinear-v0")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIRST_STEPS, *ids],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(ran.stdout.split())
    assert "fedbandit_envs.linear.env" in loaded
    unneeded = {"scipy.stats", "scipy.optimize", "scipy.special", "networkx", "fedbandit_envs.wrappers"}
    assert not loaded & unneeded
