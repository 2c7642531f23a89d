"""A twin of FedGLB-UCB (Li and Wang, 2022) in plain numpy and without this package, one replica at a time.

Rewards are 0 or 1 with P(1) = sigmoid(<x, theta*>). All agents' data lie in two arrays, ``(n, dim)`` and ``(n,)``: the
agents' gradients, added up, are the gradient on these.
"""

from math import log, sqrt

import numpy as np


def sigmoid(z):
    """The logistic function."""
    return 1 / (1 + np.exp(-z))


def pool(rng, size, dim):
    """The context pool of Li and Wang, ``(size, dim)``: unit vectors, then a 1; first come all e_j + e_d, and e_d."""
    unit = rng.standard_normal((size, dim - 1))
    vectors = np.hstack([unit / np.linalg.norm(unit, axis=1, keepdims=True), np.ones((size, 1))])
    vectors[:dim, :-1] = np.eye(dim)[:, :-1]
    return vectors


def gradient(features, rewards, ridge, w):
    """The gradient of f(w) = (sum of logistic losses + ridge |w|^2 / 2) / n."""
    return (features.T @ (sigmoid(features @ w) - rewards) + ridge * w) / len(rewards)


def descend(features, rewards, ridge, start, length, released=False):
    """The server's accelerated gradient descent.

    By the order of the text's formulas the factor g is 0 at first, and is computed from l after its use, so that
    two steps have none. The released sequence computes l from the last but one, and begins with a factor 1: no first
    step.

    Args:
        features: All data's features, ``(n, dim)``.
        rewards: Their rewards, ``(n,)``.
        ridge: The penalty lambda.
        start: The first model, ``(dim,)``; the released program begins at 0, whatever is given here.
        length: L, the greatest norm of a feature.
        released: Whether it is the released program's, which has another step and asks for 2n gradients at most. A
            descent that is cut off ends at the model after its last step, where no gradient was asked.

    Returns:
        The models at which gradients were asked, ``(asked, dim)``, and the final model.
    """
    n, asked = len(rewards), []
    step = 0.1 / (0.25 + ridge / n) if released else 1 / (length**2 / 4 + ridge / n)
    longest = 2 * n if released else np.inf
    w = np.zeros(len(start)) if released else np.array(start, dtype=float)
    y, before, now, factor = w, 0.0, 1.0, 1.0 if released else 0.0
    while len(asked) < longest:
        asked.append(w)
        slope = gradient(features, rewards, ridge, w)
        if np.linalg.norm(slope) <= sqrt(2 * ridge / n**3):
            break
        after = (1 + sqrt(1 + 4 * (before if released else now) ** 2)) / 2
        new = w - step * slope
        w, y = (1 - factor) * new + factor * y, new
        factor = (1 - now) / after
        before, now = now, after
    return np.array(asked), w


def into_ball(w, a, radius):
    """The nearest point to w in the norm of the matrix a, among those of norm at most ``radius``."""
    if np.linalg.norm(w) <= radius:
        return w
    values, vectors = np.linalg.eigh(a)
    turned, low, high = vectors.T @ w, 0.0, values[-1] * (np.linalg.norm(w) / radius - 1)
    for _ in range(200):  # The norm falls with the multiplier, and at ``high`` it is at most the radius.
        middle = (low + high) / 2
        if np.linalg.norm(values / (values + middle) * turned) > radius:
            low = middle
        else:
            high = middle
    return vectors @ (values / (values + high) * turned)


def into_simplex(w, a):
    """The nearest point to w in the norm of the matrix a, on the probability simplex (active sets, exact)."""
    d = len(w)
    best = int(np.argmin(np.diag(a) / 2 - a @ w))
    point, free = np.eye(d)[best], np.arange(d) == best
    while True:
        pull = a @ (point - w)
        pull = pull - pull[free].mean()
        if free.all() or pull[~free].min() > -1e-10 * (1 + np.abs(a).max()):
            return point
        free[np.argmin(np.where(free, np.inf, pull))] = True
        while True:
            k = free.sum()
            system = np.block([[a[np.ix_(free, free)], np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
            goal = np.zeros(d)
            goal[free] = np.linalg.solve(system, np.append((a @ w)[free], 1))[:-1]
            if goal[free].min() > 0:
                break
            bad = np.flatnonzero(free & (goal <= 0))
            share = point[bad] / (point[bad] - goal[bad])
            point = point + share.min() * (goal - point)
            free[bad[share.argmin()]] = False
            point[~free] = 0
        point = goal


class Agent:
    """What one agent knows: A, b, its online model w, and the parts of its radius."""

    def __init__(self, program):
        self.p, self.w, self.b = program, np.zeros(program.dim), np.zeros(program.dim)
        self.a = program.ridge / program.slope * np.eye(program.dim)
        self.volume, self.fresh = np.linalg.slogdet(self.a)[1], 0
        self.shared, self.squares, self.bound = 0.0, 0.0, program.slope * program.ridge * program.S**2 / 2
        self.local = 0.0 if program.released else self.formula()  # It decides nothing yet: b is 0.

    def formula(self):
        """The local part of the radius."""
        p, c, r = self.p, self.p.slope, self.p.R
        root = sqrt(4 + 8 * self.bound / c + 64 * r**4 / (4 * c**4 * p.delta**2))
        return 1 + 4 * self.bound / c + 8 * r**2 / c**2 * log(p.agents / p.delta * root)

    def bounds(self, x):
        """What the offered features ``(arms, dim)`` are judged by, ``(arms,)``."""
        inverse = np.linalg.inv(self.a)
        centre = inverse @ self.b
        known = self.p.ridge / self.p.slope * self.p.S**2 + self.local + self.shared
        radius = self.p.radius_scale * sqrt(max(known - self.squares + centre @ self.b, 0))
        return x @ centre + radius * np.sqrt(((x @ inverse) * x).sum(axis=1))

    def observe(self, x):
        """Counts a feature in A."""
        self.a, self.fresh = self.a + np.outer(x, x), self.fresh + 1

    def step(self, x, y):
        """The online Newton step; A counts x already, b and the sum of squares take the model before the step."""
        z, c, direction = x @ self.w, self.p.slope, np.linalg.solve(self.a, x)
        miss = sigmoid(z) - y
        self.b, self.squares = self.b + z * x, self.squares + z**2
        self.bound += miss**2 * (x @ direction) / (2 * c)
        self.local = self.formula()
        moved = self.w - miss / c * direction
        self.w = into_simplex(moved, self.a) if self.p.released else into_ball(moved, self.a, self.p.S)

    def asks(self):
        """Whether the agent requests a synchronisation; its own fresh data count the rounds since the last one."""
        return self.fresh * (np.linalg.slogdet(self.a)[1] - self.volume) >= self.p.threshold


class Program:
    """FedGLB-UCB as the text has it, or as released."""

    def __init__(self, agents, rounds, dim=10, arms=25, size=1000, ridge=2.0, delta=0.01, slope=0.1966,
                 radius_scale=0.1, R=0.5, S=1, threshold=None, released=False):  # fmt: skip
        self.agents, self.rounds, self.dim, self.arms, self.size = agents, rounds, dim, arms, size
        self.ridge, self.delta, self.slope, self.radius_scale = ridge, delta, slope, radius_scale
        self.R, self.S = R, S
        self.threshold = rounds / (agents * dim * log(agents * rounds)) if threshold is None else threshold
        self.released = released

    def run(self, seed, theta=None, features=None, offered=None, uniforms=None):
        """Plays one replica.

        Args:
            seed: Of ties, and of all that is not given: the other arguments are given together, or not at all. If they
                are given, the lowest place wins a tie.
            theta: The true parameter, ``(dim,)``.
            features: The pool, ``(size, dim)``.
            offered: Indices within the pool, ``(rounds, agents, arms)``.
            uniforms: Luck, ``(rounds, agents)``: a reward is 1 where it is at least 1 - mu.

        Returns:
            The regret of all agents, the places pulled, ``(rounds, agents)``, and the number of synchronisations.
        """
        rng, ties = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
        shape, given = (self.rounds, self.agents), theta is not None
        drawn = rng.standard_normal(self.dim)
        theta = drawn / np.linalg.norm(drawn) if theta is None else theta
        x = pool(rng, self.size, self.dim) if features is None else features
        offered = rng.integers(len(x), size=(*shape, self.arms)) if offered is None else offered
        uniforms = rng.random(shape) if uniforms is None else uniforms
        mu, self.length = sigmoid(x @ theta), np.linalg.norm(x, axis=1).max()
        self.x, self.y, self.model = [], [], np.zeros(self.dim)
        places, synchronisations, all_agents = np.zeros(shape, dtype=int), 0, []
        # All act at once; as released, in turn, and agents that have not acted yet take no part.
        groups = [[i] for i in range(self.agents)] if self.released else [range(self.agents)]
        for t, group in ((t, group) for t in range(self.rounds) for group in groups):
            if t == 0:
                all_agents += [Agent(self) for _ in group]
            for i in group:
                bounds = all_agents[i].bounds(x[offered[t, i]])
                equal = np.flatnonzero(bounds >= bounds.max() - 1e-9 * (1 + abs(bounds.max())))
                places[t, i] = equal[0] if given else ties.choice(equal)
            asks = [
                self.learn(all_agents[i], x, offered[t, i, places[t, i]], mu, uniforms[t, i]) for i in group
            ]
            if any(asks):
                self.synchronise(all_agents)
                synchronisations += 1
        pulled = np.take_along_axis(offered, places[..., np.newaxis], axis=2)[..., 0]
        return (mu[offered].max(axis=2) - mu[pulled]).sum(), places, synchronisations

    def learn(self, agent, x, index, mu, uniform):
        """An agent learns from its pull; true if it requests. As released, it then takes no own step."""
        y = float(uniform >= 1 - mu[index])
        self.x.append(x[index])
        self.y.append(y)
        agent.observe(x[index])
        if not (self.released and agent.asks()):
            agent.step(x[index], y)
        return agent.asks()

    def synchronise(self, agents):
        """The server's work: the model, the pooled matrix and the radius for all agents."""
        x, y, c = np.array(self.x), np.array(self.y), self.slope
        n, gram = len(y), x.T @ x
        asked, self.model = descend(x, y, self.ridge, self.model, self.length, self.released)
        w = self.model
        a = self.ridge / c * np.eye(self.dim) + gram
        # The released program takes the last gradient that was asked, and its norm in A rather than A^-1.
        g = n * gradient(x, y, self.ridge, asked[-1] if self.released else w)
        size = sqrt(g @ a @ g if self.released else g @ np.linalg.solve(a, g))
        width = (
            size / c
            + sqrt(self.ridge / c) * self.S
            + self.R / c * sqrt(self.dim * log(1 + n * c / (self.dim * self.ridge)) + 2 * log(1 / self.delta))
        )
        b1 = self.ridge * self.S**2 / 2 + 1 / n
        volume = log(1 / self.delta) + self.dim / 2 * log(1 + (1 + n) / self.dim)
        shared = 8 * self.R**2 * volume / c**2 + b1
        shared += 4 * self.R / c * sqrt(2 * volume) * (np.linalg.norm(w) + self.S + sqrt(b1))
        for agent in agents:
            agent.a, agent.b, agent.w, agent.squares, agent.fresh = a, gram @ w, w, w @ gram @ w, 0
            agent.volume, agent.shared, agent.bound = np.linalg.slogdet(a)[1], shared, width**2 / (2 * c)
            agent.local = agent.bound if self.released else agent.formula()
