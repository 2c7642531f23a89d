"""Bandit algorithms written once more, arm by arm in plain Python, from SAMBA's Figure 4 and the thesis."""

import itertools
import math

import numpy as np
from threefry_reference import threefry

from fedbandit_envs.baselines.arms import Rule


def seed_words(seed):
    """Returns a row's seed as a key."""
    return seed & 0xFFFFFFFF, seed >> 32


def unit(word):
    return ((word >> 1) + 0.5) / 2**31


def normal_pair(x, y):
    """Box and Muller's: a direction within 45 degrees of the first axis, turned about and mirrored by two bits."""
    radius = math.sqrt(-2 * math.log(unit(x)))
    part = (y << 2) & 0xFFFFFFFF
    angle = math.pi / 2 * (part - (part >> 31 << 32)) / 2**32
    radius = -radius if y >> 31 else radius
    pair = radius * math.cos(angle), radius * math.sin(angle)
    return pair[::-1] if y >> 30 & 1 else pair


class PosteriorLuck:
    """One arm's words: round 0 of a row makes keys, and each round two pairs an attempt."""

    def __init__(self, seed: int, arm: int) -> None:
        self.key = threefry(seed_words(seed), (0, arm))

    def attempt(self, round_, number, half):
        """Returns a normal number and a uniform one."""
        normals = normal_pair(*threefry(self.key, (round_, 2 * number)))
        return normals[half], unit(threefry(self.key, (round_, 2 * number + 1))[half])


def marsaglia_tsang(shape, own, round_, half):
    """Gamma by rejection, without the squeeze, which decides nothing."""
    d = shape - 1 / 3
    for number in itertools.count():
        x, uniform = own.attempt(round_, number, half)
        v = (1 + x / math.sqrt(9 * d)) ** 3 if x > -math.sqrt(9 * d) else 0
        if v > 0 and math.log(uniform) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v
    raise AssertionError("endless")


def beta(a, b, own, round_):
    first = marsaglia_tsang(a, own, round_, 0)
    return first / (first + marsaglia_tsang(b, own, round_, 1))


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
        self.key, self.of_arms = seed_words(seed), [PosteriorLuck(seed, k) for k in range(arms)]
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
        return int(self.own(1) * len(self.n))

    def own(self, word):
        """Returns a uniform number: of the coin, 0, or of the arm, 1."""
        return unit(threefry(self.key, (self.t, 0))[word])

    def learn(self, arm, reward):
        self.n[arm] += 1
        self.s[arm] += reward

    def means(self):
        return [s / n for n, s in zip(self.n, self.s, strict=True)]


class Greedy(Twin):
    def explores(self):
        return self.own(0) <= 0.1

    def choose(self):
        return first_largest(self.means())


class Decreasing(Greedy):
    def explores(self):
        return self.own(0) <= (1 / math.log2(self.t) if self.t > 2 else 1)


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
        self.t += 1
        drawn = [
            beta(s + 1, n - s + 1, own, self.t)
            for n, s, own in zip(self.n, self.s, self.of_arms, strict=True)
        ]
        return self.n.index(0) if 0 in self.n else first_largest(drawn)


class Softmax(Twin):
    def choose(self):
        return in_proportion([math.exp(mean / 0.1) for mean in self.means()], self.own(1))


class Pursuit(Twin):
    def begin(self):
        self.p = [1 / len(self.n)] * len(self.n)

    def act(self):
        best = self.n.index(0) if 0 in self.n else first_largest(self.means())
        self.p = [p + 0.1 * ((k == best) - p) for k, p in enumerate(self.p)]
        return super().act()

    def choose(self):
        return in_proportion(self.p, self.own(1))


TWINS = {
    "epsilon-greedy": Greedy,
    "epsilon-decreasing": Decreasing,
    "UCB1": UCB,
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


class LeastPulled(Rule):
    """A user's own rule: whoever was picked least has the largest score."""

    def scores(self, round_, pulls, sums, iteration, out):
        out[...] = 1 / pulls
