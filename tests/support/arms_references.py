"""Bandit algorithms written once more, arm by arm in plain Python, from SAMBA's Figure 4 and the thesis."""

import math
from typing import ClassVar

import numpy as np


def luck(seed: int, place: int) -> np.random.Generator:
    """Numpy's SFC64 from the words that a row's seed gives for one place: 0 is the row's, then one for each arm."""
    words = np.random.SeedSequence(seed).generate_state(3 * (place + 1), np.uint64)[-3:]
    bits = np.random.SFC64()
    bits.state = {
        **bits.state,
        "state": {"state": np.array([*words, 1], np.uint64)},
        "has_uint32": 0,
        "uinteger": 0,
    }
    return np.random.Generator(bits)


def polar_normal(generator):
    while True:
        u, v = 2 * generator.random() - 1, 2 * generator.random() - 1
        if 0 < (square := u * u + v * v) < 1:
            return u * math.sqrt(-2 * math.log(square) / square)


def marsaglia_tsang(shape, generator):
    """Gamma by rejection, without the squeeze, which decides nothing."""
    d = shape - 1 / 3
    while True:
        x = polar_normal(generator)
        v = (1 + x / math.sqrt(9 * d)) ** 3
        if v > 0 and math.log(generator.random() or 1e-300) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v


def beta(a, b, generator):
    first = marsaglia_tsang(a, generator)
    return first / (first + marsaglia_tsang(b, generator))


def first_largest(scores):
    return max(range(len(scores)), key=lambda k: (scores[k], -k))


def in_proportion(scores, uniform):
    reach = 0.0
    for k, score in enumerate(scores):
        reach += score
        if reach > uniform * sum(scores):
            return k
    raise AssertionError("rounding")


class Twin:
    """One agent: each arm once, then what the algorithm says."""

    def __init__(self, seed, arms, horizon):
        self.own, self.of_arms = luck(seed, 0), [luck(seed, 1 + k) for k in range(arms)]
        self.n, self.s, self.t, self.horizon = [0] * arms, [0] * arms, 0, horizon
        self.begin()

    def begin(self):
        pass

    def act(self):
        self.t += 1
        explores = self.explores()
        chosen = self.choose() if 0 not in self.n else self.n.index(0)
        return self.at_random() if explores and 0 not in self.n else chosen

    def explores(self):
        return False

    def at_random(self):
        return int(self.own.random() * len(self.n))

    def learn(self, arm, reward):
        self.n[arm] += 1
        self.s[arm] += reward

    def means(self):
        return [s / n for n, s in zip(self.n, self.s, strict=True)]


class Greedy(Twin):
    def explores(self):
        return self.own.random() <= 0.1

    def choose(self):
        return first_largest(self.means())


class Decreasing(Greedy):
    def explores(self):
        return self.own.random() <= (1 / math.log2(self.t) if self.t > 2 else 1)


class UCB(Twin):
    def factor(self):
        return 2 * math.log(self.t)

    def choose(self):
        return first_largest(
            [m + math.sqrt(self.factor() / n) for m, n in zip(self.means(), self.n, strict=True)]
        )


class UCBHorizon(UCB):
    def factor(self):
        return 2 * math.log(self.horizon)


class Thompson(Twin):
    def act(self):
        # Draws are taken in every round, so also in the first ones.
        self.t += 1
        drawn = [beta(s + 1, n - s + 1, own) for n, s, own in zip(self.n, self.s, self.of_arms, strict=True)]
        return self.n.index(0) if 0 in self.n else first_largest(drawn)


class Softmax(Twin):
    def choose(self):
        return in_proportion([math.exp(mean / 0.1) for mean in self.means()], self.own.random())


class Pursuit(Twin):
    def begin(self):
        self.p = [1 / len(self.n)] * len(self.n)

    def act(self):
        best = self.n.index(0) if 0 in self.n else first_largest(self.means())
        self.p = [p + 0.1 * ((k == best) - p) for k, p in enumerate(self.p)]
        return super().act()

    def choose(self):
        return in_proportion(self.p, self.own.random())


TWINS = {
    "epsilon-greedy": Greedy,
    "epsilon-decreasing": Decreasing,
    "UCB1": UCB,
    "UCB1-horizon": UCBHorizon,
    "Thompson": Thompson,
    "Softmax": Softmax,
    "Pursuit": Pursuit,
}


def adjacent(values, slots):
    """An oracle: of arms that stand side by side in a ring, those whose values add up to most."""
    ring = np.stack([np.roll(values, -shift, axis=-1) for shift in range(slots)], axis=-1).sum(axis=-1)
    start = ring.argmax(axis=-1)[..., np.newaxis]
    return (start + np.arange(slots)) % values.shape[-1]


def all_arms(values, slots):
    """An oracle that does not know when to stop."""
    return np.argsort(values, axis=-1)


def no_arm(values, slots):
    """An oracle that names what is not there."""
    return np.full((*values.shape[:-1], slots), values.shape[-1])


class LeastPulled:
    """A user's own rule: whoever was picked least has the largest score."""

    choice: ClassVar = "argmax"
    iterations: ClassVar = 1

    def begin(self, setting):
        pass

    def exploration(self, round_):
        return 0.0

    def scores(self, round_, pulls, sums, iteration, out):
        out[...] = 1 / pulls

    def mark(self, iteration, picked, acting):
        pass
