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


STEP = """
import gymnasium

env = gymnasium.make("fedbandit_envs:FedArms-v0")
env.reset(seed=0)
assert env.step(0)[1] in (0.0, 1.0)
"""


def test_a_debugger_can_step_through_kernels_that_are_not_compiled():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", STEP], env=environment, check=True)


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
