"""Measures how often intervals hold the true mean, and the true ratio of means, of skewed distributions of regret.

OMP_NUM_THREADS=1 nice python -m benchmarks.bench_intervals [SAMPLES]    # writes its table into docs/measures.md

Three bootstraps are compared, percentile, BCa and bootstrap-t, and Student's interval. The first two take their levels
from Student's distribution, times sqrt(n / (n - 1)), since resamples spread too little. In a ratio the runs of a
control with N(85, 10) are paired with the others by a Gaussian copula with correlation 0.5.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from fedbandit_envs.experiments import measures
from fedbandit_envs.papers.page import filled

PAGE = Path(__file__).parents[1] / "docs" / "measures.md"
RUNS = (20, 100, 200)
ROUTINES = ("percentile", "BCa", "bootstrap-t")
LAWS = {
    "lognormal, sigma 1": (np.exp, np.exp(0.5)),
    "Pareto, index 2.5": (lambda z: ndtr(-z) ** (-1 / 2.5), 2.5 / 1.5),
    "95 % N(80, 20), 5 % at 10,000": (
        lambda z: np.where(ndtr(z) > 0.95, 1e4, 80 + 20 * ndtri(np.minimum(ndtr(z) / 0.95, 1 - 1e-12))),
        0.95 * 80 + 0.05 * 1e4,
    ),
}
HEADS = ("regret", "runs", "of the", *(f"{name}: covers; widths" for name in (*ROUTINES, "Student")))


def ends_of(above, below=None):
    """Returns the lower and upper ends of all routines' intervals by name, each ``(samples,)``.

    Args:
        above: Regret, ``(runs, samples)``.
        below: The control's, same shape; None for the mean of ``above`` instead of a ratio.
    """
    runs, counts = len(above), measures._counts(len(above), 0)
    mean, resampled, second = above.mean(0), counts @ above / runs, counts @ above**2 / runs
    if below is None:
        value, drawn, influence, back = mean, resampled, above - mean, np.asarray
        variance = second - resampled**2
    else:
        other, rest = below.mean(0), counts @ below / runs
        value, drawn, back = np.log(mean / other), np.log(resampled / rest), np.exp
        influence = above / mean - below / other
        mixed = counts @ (above * below) / runs / (resampled * rest)
        variance = second / resampled**2 - 2 * mixed + counts @ below**2 / runs / rest**2
    error = np.sqrt((influence**2).sum(0) / (runs - 1) / runs)
    errors = np.sqrt(np.maximum(variance, 0) / (runs - 1))
    t = np.divide(drawn - value, errors, out=1e9 * np.sign(drawn - value), where=errors > 0)
    low, high = np.quantile(t, [0.025, 0.975], axis=0)
    student = stdtrit(runs - 1, 0.975)
    found = {
        "bootstrap-t": (value - high * error, value - low * error),
        "Student": (value - student * error, value + student * error),
    }
    drawn = np.sort(drawn, axis=0)
    tied = ((drawn < value).mean(0) + (drawn <= value).mean(0)) / 2
    bias = ndtri(np.clip(tied, 1 / len(counts), 1 - 1 / len(counts)))
    bend = (influence**3).sum(0) / 6 / (influence**2).sum(0) ** 1.5
    for name, z0, a in (("percentile", 0 * bias, 0 * bend), ("BCa", bias, bend)):
        ends = []
        for side in (-1, 1):
            z = z0 + side * student * np.sqrt(runs / (runs - 1))
            place = ndtr(z0 + z / (1 - a * z)) * (len(drawn) - 1)
            left, right = (np.diag(drawn[at(place).astype(int)]) for at in (np.floor, np.ceil))
            ends.append(left + (place % 1) * (right - left))
        found[name] = tuple(ends)
    return {name: (back(low), back(high)) for name, (low, high) in found.items()}


def measured(law, runs, samples, of_ratio):
    """Returns by routine how often it covers, and the median and the 90th percentile of widths over the true value."""
    (quantile, mean), rng, ends = LAWS[law], np.random.default_rng(runs), {}
    truth = mean / 85 if of_ratio else mean
    for _ in range(max(1, samples // 1000)):
        own, shared = rng.standard_normal((2, runs, min(samples, 1000)))
        below = 85 + 10 * shared if of_ratio else None
        for name, pair in ends_of(quantile(0.5 * shared + np.sqrt(0.75) * own), below).items():
            ends.setdefault(name, []).append(pair)
    found = {name: np.concatenate(pairs, axis=1) for name, pairs in ends.items()}
    return {
        name: (((low <= truth) & (truth <= high)).mean(), *np.quantile((high - low) / truth, [0.5, 0.9]))
        for name, (low, high) in found.items()
    }


def table(samples):
    """Yields the lines of the table, and says at the end which routine is chosen."""
    yield from (f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|")
    found = {}
    for law in LAWS:
        for runs in RUNS:
            for of_ratio in (False, True):
                cells = found[law, runs, of_ratio] = measured(law, runs, samples, of_ratio)
                texts = (
                    "{:.3f}; {:g}, {:g}".format(
                        cells[name][0], *(float(f"{one:.2g}") for one in cells[name][1:])
                    )
                    for name in (*ROUTINES, "Student")
                )
                yield f"| {law} | {runs} | {'ratio' if of_ratio else 'mean'} | {' | '.join(texts)} |"
    covering = "all methods that cover at least 0.90 with 100 and 200 runs"
    yield f"\nWe chose the method with the narrowest intervals, of {covering}: {chosen(found)}."


def chosen(found):
    """Returns the routine with the least widths of those that cover at least .90 with 100 and 200 runs."""
    large = [cells for (_, runs, _), cells in found.items() if runs > 20]
    covering = [name for name in ROUTINES if all(cells[name][0] >= 0.9 for cells in large)]
    return min(covering, key=lambda name: np.log([cells[name][1:] for cells in large]).sum(), default="none")


if __name__ == "__main__":
    text = "\n".join(table(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
    PAGE.write_text(filled(PAGE.read_text(), {"intervals": text}))
