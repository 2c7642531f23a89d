"""The least regret that procurement of producers one by one can have over 500 rounds, in markets drawn at random.

    python examples/learned/floor.py

Where the quality constraint does not bind, each producer is a bandit with one arm: buy all it has, or stop for ever,
since nothing is learned by not buying. With qualities uniform, the best stopping rule follows by going backwards
through posteriors. Decisions are taken in the first rounds only, and the last of them is kept: so what is printed can
be had, and is a little above the least.
"""

import argparse

import numpy as np
from numba import njit

HORIZON, PRODUCERS, MOST_UNITS = 500, 30, 50


@njit(cache=True)
def value_of_producer(cost: float, units: int, horizon: int, decisions: int) -> float:
    """Returns what the best stopping rule earns in expectation, by the prior.

    Args:
        cost: Of a unit.
        units: Bought in a round, all or none.
        horizon: Rounds.
        decisions: After how many rounds the last decision is taken.
    """
    # After n rounds g of n * units were good: the next batch has x good ones with a beta-binomial probability.
    most = decisions * units
    value = np.empty(most + 1)
    for good in range(most + 1):
        gain = units * ((good + 1.0) / (most + 2.0) - cost)
        value[good] = max(0.0, gain) * (horizon - decisions)
    for n in range(decisions - 1, -1, -1):
        bought = n * units
        for good in range(bought + 1):
            a, b = good + 1.0, bought - good + 1.0
            # P(x = 0), then each from the one before.
            probability = 1.0
            for k in range(units):
                probability *= (b + k) / (a + b + k)
            expected = 0.0
            for x in range(units + 1):
                expected += probability * value[good + x]
                if x < units:
                    probability *= (units - x) / (x + 1.0) * (a + x) / (b + units - x - 1.0)
            value[good] = max(0.0, units * (a / (a + b) - cost) + expected)
    return value[0]


def floor(decisions: int, costs: int) -> float:
    """Returns an agent's regret in a market of uniform qualities, costs and capacities.

    Args:
        decisions: See :func:`value_of_producer`.
        costs: Number of costs that stand for all of them.
    """
    regret = 0.0
    for units in range(1, MOST_UNITS + 1):
        for cost in (np.arange(costs) + 0.5) / costs:
            # E max(q - cost, 0) over uniform q is (1 - cost)^2 / 2.
            known = HORIZON * units * (1.0 - cost) ** 2 / 2.0
            regret += known - value_of_producer(cost, units, HORIZON, decisions)
    return PRODUCERS * regret / (MOST_UNITS * costs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=40)
    parser.add_argument("--costs", type=int, default=25)
    arguments = parser.parse_args()
    print(f"{floor(arguments.decisions, arguments.costs):.1f}")
