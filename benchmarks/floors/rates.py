"""What one core of the machine can do at best: multiply and add, draw words, move memory."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.floors.draws import WIDTH, fresh_lanes, xoshiro_words
from fedbandit_envs.basics.compiled import allocating_kernel as kernel

_LANES = 64
_MEGABYTES = 256


@kernel(fastmath={"nsz", "contract"})
def _multiply_add(values, times):
    """Multiplies and adds in as many independent chains as there are values, ``(_LANES,)``."""
    sums = np.zeros(_LANES)
    for _ in range(times):
        for i in range(_LANES):
            sums[i] = sums[i] * 0.999 + values[i]
    return sums[0]


def _best(work: Callable[[], object], turns: int = 5) -> float:
    """Returns the fewest CPU seconds that a piece of work took, after a first time that compiles it."""
    work()
    spent = []
    for _ in range(turns):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def machine_rates() -> dict[str, float]:
    """Returns rates of one core, by their unit: the best of five turns."""
    values, words, lanes = np.ones(_LANES), np.empty(WIDTH, np.uint32), fresh_lanes(0)
    source = np.ones(_MEGABYTES * 2**17)
    target = np.empty_like(source)
    times = 10**6
    return {
        "billion multiply-adds of float64 a second": _LANES
        * times
        / _best(lambda: _multiply_add(values, times))
        / 1e9,
        "billion words of 32 bits a second": WIDTH
        * times
        / _best(lambda: xoshiro_words(lanes, words, times))
        / 1e9,
        "GB/s copied outside of the caches": 2
        * source.nbytes
        / _best(lambda: np.copyto(target, source))
        / 1e9,
    }
