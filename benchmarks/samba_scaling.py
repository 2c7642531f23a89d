"""CPU seconds of SAMBA against N and K, with the same runs without encryption, and a straight line through each.

    OMP_NUM_THREADS=1 python benchmarks/samba_scaling.py            # a few minutes
    OMP_NUM_THREADS=1 python benchmarks/samba_scaling.py --full     # N = 1e5, K = 100, and over sockets

Each point is the least of some repetitions, since other processes only ever add time.
"""

import argparse
import platform
import time

import numpy as np

from fedbandit_envs.arms.ratings import keep_largest, packaged_means
from fedbandit_envs.samba import Algorithm, run_secure
from fedbandit_envs.samba.runs import run_plain


def means_of(arms: int) -> list[float]:
    return keep_largest(packaged_means("movielens"), arms).tolist()


def plain(algorithm: str, arms: int, rounds: int) -> tuple[float, int]:
    """CPU seconds and cumulative reward without encryption."""
    result, spent = run_plain(means_of(arms), Algorithm(algorithm), rounds, 0)
    return spent, result.reward


def secure(algorithm: str, arms: int, rounds: int) -> tuple[float, int]:
    """CPU seconds and cumulative reward over encrypted scores, all roles in this process."""
    start = time.process_time()
    run = run_secure(means_of(arms), Algorithm(algorithm), rounds, 0)
    return time.process_time() - start, run.reward


def measure(algorithm: str, sizes: list[tuple[int, int]], repetitions: int) -> list[tuple[float, float]]:
    """Prints and returns CPU seconds, secure and plain, for each (arms, rounds)."""
    points = []
    for arms, rounds in sizes:
        secures, plains = (
            [run(algorithm, arms, rounds) for _ in range(repetitions)] for run in (secure, plain)
        )
        assert len({reward for _, reward in secures + plains}) == 1, "secure and plain earn the same"
        points.append((min(secures)[0], min(plains)[0]))
        print(
            f"  K = {arms:4}, N = {rounds:7,}: secure {points[-1][0]:7.2f} s, plain {points[-1][1]:6.3f} s",
            flush=True,
        )
    return points


def line(what: str, sizes: list[int], seconds: list[float]) -> None:
    """Prints the straight line through the points, and how far they are from it."""
    slope, intercept = np.polyfit(sizes, seconds, 1)
    fitted = np.polyval([slope, intercept], sizes)
    share = 1 - np.sum((seconds - fitted) ** 2) / np.sum((seconds - np.mean(seconds)) ** 2)
    print(f"  {what}: {1e6 * slope:.2f} us each, {intercept:+.3f} s; R^2 = {share:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", default="ucb")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="N = 1e5 and K = 100; then over sockets")
    options = parser.parse_args()
    print(
        f"{options.algorithm}; {platform.processor() or platform.machine()}, Python {platform.python_version()}"
    )
    if options.full:
        measure(options.algorithm, [(100, 100_000)], options.repetitions)
        for owners in (100, 1):
            rounds = 100_000 if owners == 100 else 2_000
            start = time.perf_counter()
            run = run_secure(
                means_of(100), Algorithm(options.algorithm), rounds, 0,
                transport="tcp", owners_per_role=owners,
            )  # fmt: skip
            spent = sum(report.cpu_seconds for report in run.reports.values())
            print(
                f"  sockets, {len(run.reports)} processes, N = {rounds:,}: {time.perf_counter() - start:.1f} s of wall "
                f"time, {spent:.1f} CPU seconds"
            )
        return
    rounds = [2_000, 4_000, 8_000, 12_000, 16_000]
    points = measure(options.algorithm, [(20, number) for number in rounds], options.repetitions)
    line("against N at K = 20", rounds, [point[0] for point in points])
    arms = [10, 25, 50, 75, 100]
    points = measure(options.algorithm, [(number, 4_000) for number in arms], options.repetitions)
    line("against K at N = 4,000", arms, [point[0] for point in points])


if __name__ == "__main__":
    main()
