"""Federations of unlike agents in plain numpy, one replica at a time, for comparison with the package's.

Each object plays one replica: ``arms()`` returns the arm of every agent in this round, None for those that have not
joined, and ``learn(rewards)`` takes the rewards.
"""

from math import ceil, log, sqrt

import numpy as np


class Data:
    """Pulls and sums of rewards, ``(agents, arms)``."""

    def __init__(self, agents, arms):
        self.n, self.s = np.zeros((agents, arms)), np.zeros((agents, arms))
        self.playing = []

    def learn(self, rewards):
        for m, k in enumerate(self.playing):
            if k is not None:
                self.n[m, k] += 1
                self.s[m, k] += rewards[m]

    @property
    def means(self):
        return self.s / np.maximum(self.n, 1)


class Fed2(Data):
    """Fed2-UCB; Fed1-UCB if all agents join in the first phase and the spread is 0."""

    def __init__(self, agents, arms, horizon, f, g, c1, c2, sd, spread):
        super().__init__(agents, arms)
        self.horizon, self.f, self.g = horizon, f, g
        self.c1, self.c2, self.sd, self.spread = c1, c2, sd, spread
        self.most, self.left, self.phase, self.joins = agents, list(range(arms)), 0, []
        self.begin()

    def begin(self):
        self.phase += 1
        self.joins.append(min(self.g(self.phase), self.most - sum(self.joins)))
        self.todo = [k for k in self.left for _ in range(self.f)]

    def arms(self):
        joined = sum(self.joins)
        arm = self.todo[0] if self.todo else self.left[0]
        self.playing = [arm if m < joined else None for m in range(self.most)]
        return self.playing

    def learn(self, rewards):
        super().learn(rewards)
        if not self.todo:
            return
        self.todo.pop(0)
        if self.todo:
            return
        joined, p = sum(self.joins), self.phase
        eta = sum(g / ((p - q) * self.f) for q, g in enumerate(self.joins)) / joined**2
        radius = sqrt(self.c1 * self.sd**2 * eta * log(self.horizon))
        radius += sqrt(self.c2 * self.spread**2 * log(self.horizon) / joined)
        estimate = self.means[:joined].mean(axis=0)
        lower = max(estimate[k] - radius for k in self.left)
        self.left = [k for k in self.left if estimate[k] + radius >= lower]
        if len(self.left) > 1:
            self.begin()


class PF(Data):
    """PF-UCB, and the enhanced form."""

    def __init__(self, agents, arms, horizon, alpha, c, sd, growth=2.0, enhanced=False):
        super().__init__(agents, arms)
        self.m, self.k, self.horizon, self.alpha, self.c, self.sd = agents, arms, horizon, alpha, c, sd
        self.growth, self.enhanced = growth, enhanced
        self.own = [set(range(arms)) for _ in range(agents)]
        self.fixed = [None] * agents
        self.d, self.average = np.ones((agents, arms)), np.zeros(arms)
        self.p, self.total = 0, 0.0
        self.begin()

    def begin(self):
        self.p += 1
        f = self.growth**self.p * log(self.horizon)
        self.total += f
        union = set().union(*self.own)
        self.todo = []
        for m in range(self.m):
            factor = np.ones(self.k)
            if self.enhanced:
                shared = np.sqrt(self.d).mean(axis=0)
                factor = (self.alpha * np.sqrt(self.d[m]) + (1 - self.alpha) * shared) / np.sqrt(self.d[m])
            plan = [k for k in sorted(union) for _ in range(ceil((1 - self.alpha) * f * factor[k]))]
            plan += [k for k in sorted(self.own[m]) for _ in range(ceil(self.m * self.alpha * f * factor[k]))]
            self.todo.append(plan)
        self.left = max(map(len, self.todo)) if union else None

    def arms(self):
        self.playing = []
        for m, plan in enumerate(self.todo):
            if plan:
                self.playing.append(plan.pop(0))
            elif self.fixed[m] is not None:
                self.playing.append(self.fixed[m])
            else:
                worth = self.alpha * self.means[m] + (1 - self.alpha) * self.average
                self.playing.append(max(sorted(self.own[m]), key=lambda k, worth=worth: worth[k]))
        return self.playing

    def learn(self, rewards):
        super().learn(rewards)
        if self.left is None:
            return
        self.left -= 1
        if self.left:
            return
        radius = sqrt(self.c * self.sd**2 * log(self.horizon) / (self.m * self.total))
        self.average = self.means.mean(axis=0)
        for m in range(self.m):
            mixed = self.alpha * self.means[m] + (1 - self.alpha) * self.average
            if self.own[m]:
                best = max(mixed[k] for k in self.own[m])
                self.d[m] = np.clip(best - mixed + 2 * radius, 0, 1)
                self.own[m] = {k for k in self.own[m] if best - mixed[k] <= 2 * radius}
            else:
                self.d[m] = np.clip(2 * radius, 0, 1)
            if len(self.own[m]) == 1:
                (self.fixed[m],) = self.own[m]
                self.own[m] = set()
        self.begin()


class Epochs(Data):
    """One arm for all agents, kept for max(10, half of its pulls) rounds."""

    def __init__(self, agents, arms, horizon, sd):
        super().__init__(agents, arms)
        self.m, self.horizon, self.sd, self.left = agents, horizon, sd, 0

    def arms(self):
        if not self.left:
            n = self.n[0]
            index = [
                self.s[:, k].sum() / (self.m * n[k])
                + sqrt(2 * log(self.horizon) * self.sd**2 / (self.m * n[k]))
                if n[k]
                else np.inf
                for k in range(len(n))
            ]
            self.arm = int(np.argmax(index))
            self.left = max(10, int(n[self.arm]) // 2)
        self.left -= 1
        self.playing = [self.arm] * self.m
        return self.playing


class Leader(Data):
    """Leader against challenger on all agents' data."""

    def __init__(self, agents, arms, horizon, alpha, c, sd):
        super().__init__(agents, arms)
        self.m, self.k, self.horizon, self.alpha, self.c, self.sd = agents, arms, horizon, alpha, c, sd

    def weight(self, m, other):
        return self.alpha * (m == other) + (1 - self.alpha) / self.m

    def arms(self):
        self.playing = [None] * self.m
        if not self.n.any():
            self.playing = [0] * self.m
            return self.playing
        if (self.n == 0).any():
            self.playing = [
                int(np.flatnonzero(self.n[m] == 0)[0]) if (self.n[m] == 0).any() else self.choice(m)[0]
                for m in range(self.m)
            ]
            return self.playing
        asked = {}
        for m in range(self.m):
            _, wanted = self.choice(m)
            if wanted is None:
                continue
            free = [j for j in range(self.m) if j not in asked]
            gain = {j: self.weight(m, j) ** 2 / (self.n[j, wanted] * (self.n[j, wanted] + 1)) for j in free}
            asked[max(free, key=lambda j, gain=gain: gain[j])] = wanted
        self.playing = [asked.get(m, self.choice(m)[0]) for m in range(self.m)]
        return self.playing

    def choice(self, m):
        """The leader of an agent, and the arm that it needs, or None."""
        estimate, radius = np.zeros(self.k), np.zeros(self.k)
        for k in range(self.k):
            variance = sum(self.weight(m, j) ** 2 / max(self.n[j, k], 1) for j in range(self.m))
            estimate[k] = sum(self.weight(m, j) * self.means[j, k] for j in range(self.m))
            radius[k] = sqrt(self.c * log(self.horizon) * self.sd**2 * variance)
        leader = int(np.argmax(estimate))
        others = [k for k in range(self.k) if k != leader]
        challenger = max(others, key=lambda k: estimate[k] + radius[k])
        if estimate[challenger] + radius[challenger] <= estimate[leader] - radius[leader]:
            return leader, None
        return leader, challenger if radius[challenger] > radius[leader] * (1 + 1e-9) else leader


def pf_by_phases(mu, alpha, horizon, rng, c=1.0, growth=2.0):
    """Plays PF-UCB with standard deviation 1 phase by phase, as the sum of n rewards is one normal draw."""
    agents, arms = mu.shape
    worth = alpha * mu + (1 - alpha) * mu.mean(axis=0)
    gap = worth.max(axis=1, keepdims=True) - worth
    n, s, average = np.zeros((agents, arms)), np.zeros((agents, arms)), np.zeros(arms)
    own, fixed = [set(range(arms)) for _ in range(agents)], [None] * agents
    t = phase = messages = 0
    total = regret = 0.0
    while union := set().union(*own):
        phase += 1
        f = growth**phase * log(horizon)
        total += f
        orders = [
            [(k, ceil((1 - alpha) * f)) for k in sorted(union)]
            + [(k, ceil(agents * alpha * f)) for k in sorted(mine)]
            for mine in own
        ]
        length = min(max(sum(pulls for _, pulls in order) for order in orders), horizon - t)
        for m, order in enumerate(orders):
            left = length
            for k, planned in [*order, (fixed[m], length)]:
                if k is None:
                    continue
                pulls = min(planned, left)
                n[m, k] += pulls
                s[m, k] += rng.normal(pulls * mu[m, k], sqrt(pulls))
                regret += pulls * gap[m, k]
                left -= pulls
            for _ in range(left):
                k = max(
                    sorted(own[m]), key=lambda k, m=m: alpha * s[m, k] / n[m, k] + (1 - alpha) * average[k]
                )
                n[m, k] += 1
                s[m, k] += rng.normal(mu[m, k])
                regret += gap[m, k]
        t += length
        messages += 2 * agents
        if t == horizon:
            return regret, messages
        radius = sqrt(c * log(horizon) / (agents * total))
        means = s / n
        average = means.mean(axis=0)
        for m in range(agents):
            if own[m]:
                mixed = alpha * means[m] + (1 - alpha) * average
                best = max(mixed[k] for k in own[m])
                own[m] = {k for k in own[m] if best - mixed[k] <= 2 * radius}
            if len(own[m]) == 1:
                (fixed[m],) = own[m]
                own[m] = set()
    return regret + (horizon - t) * sum(gap[m, k] for m, k in enumerate(fixed)), messages
