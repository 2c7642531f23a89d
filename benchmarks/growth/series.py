"""What grows with what: for each series one size is changed and all others stay."""

import gc
import multiprocessing
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.registry.registration import make_federation
from fedbandit_envs.wrappers import ContinualPrivatizer

SIZES = ("rounds", "replicas", "num_agents", "num_producers", "num_arms", "dim", "releases")


class Series(NamedTuple):
    """One size, changed.

    Attributes:
        run: Makes what is measured, given all sizes by name; it is called without arguments.
        base: Sizes that stay, and what ``size`` is elsewhere.
        size: The one that is changed.
        values: What it is changed to, rising.
        time: How the theory says CPU seconds grow.
        memory: How the theory says memory grows.
    """

    run: Callable[..., Callable[[], None]]
    base: Mapping[str, int]
    size: str
    values: tuple[int, ...]
    time: str
    memory: str


class Measurement(NamedTuple):
    """One point of a series.

    Attributes:
        run: Whose.
        size: Which size was changed.
        value: To what.
        seconds: CPU seconds, the median.
        fastest: The least.
        slowest: The most.
        kilobytes: The most memory held at once that was not held before, by Python's objects and NumPy's arrays.
    """

    run: str
    size: str
    value: int
    seconds: float
    fastest: float
    slowest: float
    kilobytes: float


def episode(env_id: str, name: str, *, rounds: int, replicas: int, **problem: int) -> Callable[[], None]:
    """Makes one episode a replica of a baseline, of so many rounds, from building the environment on."""

    def play() -> None:
        with warnings.catch_warnings():
            # That the classic calibration is used beyond its proof does not concern us here.
            warnings.simplefilter("ignore", UserWarning)
            env = BASELINES[name].wrap(make_federation(env_id, max_cycles=rounds, **problem))
        policy = BASELINES[name].make_policy()
        observation = env.reset_batch(range(replicas)).observation
        policy.reset(env.policy_spec, row_seeds(range(replicas), env.max_num_agents))
        for _ in range(rounds):
            observation = env.step_batch(policy.act(observation)).observation

    return play


def released(mechanism: Any, *, releases: int) -> Callable[[], None]:
    """Makes continual release of ten agents' 11 x 11 statistics, planning and fitting included."""

    def release() -> None:
        env = parallel_env(num_agents=10, num_arms=2, dim=10, max_cycles=releases)
        private = ContinualPrivatizer(env, 1.0, 0.1, mechanism)
        private.reset_batch([0])
        everyone = np.ones((1, 10), np.bool_)
        for _ in range(releases):
            private.release(everyone)

    return release


def _powers(start: int, number: int) -> tuple[int, ...]:
    return tuple(start * 2**power for power in range(number))


_MARKET = {"rounds": 2000, "replicas": 10, "num_agents": 10, "num_producers": 30}
_SHARED = {"rounds": 600, "replicas": 8, "num_agents": 10, "num_producers": 30}
_LINEAR = {"rounds": 200, "replicas": 4, "num_agents": 10, "num_arms": 100, "dim": 10}
_ARMS = {"rounds": 2000, "replicas": 25, "num_agents": 10, "num_arms": 10}
_SUMMED = {"rounds": 200, "replicas": 1, "num_agents": 125, "num_arms": 10}
_SERVED = {"rounds": 200, "replicas": 1, "num_agents": 125, "num_arms": 20, "dim": 5}
_RELEASES = {"releases": 1000}

_SSUCB = partial(episode, "FedProcurement-v0", "SS-UCB")
_PFCB = partial(episode, "FedProcurement-v0", "P-FCB")
_LINUCB = partial(episode, "FedLinear-v0", "LinUCB")
_UCB1 = partial(episode, "FedArms-v0", "UCB1")
_FED_UCB1_SERVER = partial(episode, "FedArms-v0", "Fed-UCB1-server")
_FEDLINUCB = partial(episode, "FedLinearAsync-v0", "FedLinUCB")

SERIES: dict[str, list[Series]] = {
    "SS-UCB": [
        Series(_SSUCB, _MARKET, "rounds", _powers(500, 6), "1", "0"),
        Series(_SSUCB, _MARKET, "replicas", _powers(4, 6), "1", "1"),
        Series(_SSUCB, _MARKET, "num_agents", _powers(2, 6), "1", "1"),
        Series(_SSUCB, _MARKET, "num_producers", _powers(8, 6), "1 (n log n where it sorts)", "1"),
    ],
    "P-FCB": [
        Series(_PFCB, _SHARED, "rounds", _powers(600, 5), "1", "0"),
        Series(_PFCB, _SHARED, "num_agents", _powers(2, 6), "1 to 2 (n^2 messages, rarely)", "2 (n^2 messages)"),
    ],
    "LinUCB": [
        Series(_LINUCB, _LINEAR, "rounds", _powers(50, 6), "1", "0"),
        Series(_LINUCB, _LINEAR, "replicas", _powers(1, 6), "1", "1"),
        Series(_LINUCB, _LINEAR, "num_agents", _powers(2, 6), "1", "1"),
        Series(_LINUCB, _LINEAR, "num_arms", _powers(10, 6), "1", "1"),
        Series(_LINUCB, _LINEAR, "dim", _powers(2, 6), "1 to 2 (draws K d, bounds K d^2)", "1 to 2 (K d + d^2)"),
    ],
    "UCB1": [
        Series(_UCB1, _ARMS, "rounds", _powers(500, 5), "1", "0"),
        Series(_UCB1, _ARMS, "num_arms", _powers(5, 6), "1", "1"),
    ],
    "Fed-UCB1-server": [Series(_FED_UCB1_SERVER, _SUMMED, "num_agents", _powers(125, 5), "1", "1 (one sum)")],
    "FedLinUCB": [Series(_FEDLINUCB, _SERVED, "num_agents", _powers(125, 5), "1", "1 (a server's totals)")],
    "tree": [Series(partial(released, "tree"), _RELEASES, "releases", _powers(125, 7), "1 (two draws)", "0 (log n)")],
    "honaker": [
        Series(partial(released, "honaker"), _RELEASES, "releases", _powers(125, 7), "1 (log n draws)", "0 (log n)")
    ],
    "sqrt_toeplitz": [
        Series(partial(released, "sqrt_toeplitz"), _RELEASES, "releases", _powers(125, 5), "2", "1")
    ],
    "blt": [Series(partial(released, "blt"), _RELEASES, "releases", _powers(125, 7), "1, after the fit", "0")],
}  # fmt: skip
"""All series by whose they are."""


def _in_a_child(task: Callable[[], float]) -> float:
    """Runs a task in a process of its own, a copy of this one, so that nothing it finds was kept by an earlier one."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def answer() -> None:
        sender.send(task())

    child = context.Process(target=answer)
    child.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        raise RuntimeError("what was measured failed; its process says why") from None
    finally:
        child.join()


def _cpu_seconds(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _peak_kilobytes(run: Callable[[], None]) -> float:
    gc.collect()
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    run()
    return (tracemalloc.get_traced_memory()[1] - held) / 1000


def measure(name: str, series: Series, values: tuple[int, ...], repeats: int) -> Iterator[Measurement]:
    """Measures a series, value by value.

    Args:
        name: Whose it is.
        series: What is measured.
        values: To what the size is changed.
        repeats: How often seconds are; memory is the same every time.
    """
    # Compiles kernels and imports what is imported late, here, so that children find all that.
    series.run(**{**series.base, series.size: values[0]})()
    for value in values:
        run = series.run(**{**series.base, series.size: value})
        seconds = sorted(_in_a_child(partial(_cpu_seconds, run)) for _ in range(repeats))
        yield Measurement(
            name, series.size, value, float(np.median(seconds)), seconds[0], seconds[-1],
            _in_a_child(partial(_peak_kilobytes, run)),
        )  # fmt: skip
