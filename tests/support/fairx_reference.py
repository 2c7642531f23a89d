"""FairX-LinUCB in plain numpy, agent by agent, from its definition: silent, and with what it hears."""

import numpy as np

EXPONENT, FAILURE = 10.0, 0.05


def shares_of(theta, contexts):
    merits = np.exp(EXPONENT * (contexts @ theta))
    return merits / merits.sum()


def gradient_of(theta, contexts):
    """By the product rule: shares move as well as means."""
    means, shares = contexts @ theta, shares_of(theta, contexts)
    jacobian = EXPONENT * shares[:, np.newaxis] * (contexts - shares @ contexts)
    return shares @ contexts + means @ jacobian


def frank_wolfe(gram, estimate, radius, contexts, steps=3):
    theta = estimate
    for _ in range(steps):
        direction = np.linalg.solve(gram, gradient_of(theta, contexts))
        theta = estimate + radius * direction / np.sqrt(direction @ gram @ direction)
    return theta


class Agent:
    """One agent.

    Attributes:
        hear: Makes of all that was heard (its sum and its noise's variance) a Gram matrix and a moment.
        echo: Whether what is heard holds the agent's own releases.
    """

    def __init__(self, dim, hear=None, echo=False, beta_scale=1.0, sd=0.1, prior_variance=None):
        self.dim, self.hear, self.echo, self.beta_scale, self.sd = dim, hear, echo, beta_scale, sd
        self.ridge = 1.0 if prior_variance is None else sd**2 / prior_variance
        self.own = np.zeros((dim + 1, dim + 1))
        self.heard, self.variance = np.zeros((dim + 1, dim + 1)), 0.0

    def act(self, seen):
        """Takes in one row of observations and returns shares."""
        if seen["round"][0] > 0:
            z = np.append(seen["pulled_context"], seen["last_reward"])
            self.own += np.outer(z, z)
        if "inbox_mask" in seen and seen["inbox_mask"].any():
            self.heard = self.heard + seen["inbox_statistic"][seen["inbox_mask"]].sum(axis=0)
            if "inbox_statistic_noise_variance" in seen:
                self.variance += seen["inbox_statistic_noise_variance"][seen["inbox_mask"], 0, 0].sum()
        if self.echo and seen["sent"][0]:
            self.own = np.zeros_like(self.own)
        d = self.dim
        gram, moment = np.eye(d), np.zeros(d)
        if self.hear is not None:
            gram, moment = self.hear(self.heard, self.variance, self.sd)
        gram = gram + self.own[:d, :d] + (self.ridge - 1.0) * np.eye(d)
        estimate = np.linalg.solve(gram, moment + self.own[:d, d])
        growth = np.linalg.slogdet(gram)[1]
        radius = self.beta_scale * (self.sd * np.sqrt(2 * np.log(1 / FAILURE) + growth) + 1.0)
        contexts = seen["contexts"]
        theta = frank_wolfe(gram, estimate, radius, contexts) if radius else estimate
        return shares_of(theta, contexts)


def added(heard, variance, sd):
    """True data."""
    d = len(heard) - 1
    return np.eye(d) + heard[:d, :d], heard[:d, d]


def lifted(heard, variance, sd):
    """Eigenvalues of at least 2 s sqrt(d), s^2 being half of the announced variance."""
    d = len(heard) - 1
    symmetric = (heard + heard.T) / 2
    values, vectors = np.linalg.eigh(np.eye(d) + symmetric[:d, :d])
    values = np.maximum(values, 2 * np.sqrt(variance / 2) * np.sqrt(d))
    return vectors @ np.diag(values) @ vectors.T, symmetric[:d, d]


def weighed(heard, variance, sd):
    """As many observations as it is worth."""
    d = len(heard) - 1
    symmetric = (heard + heard.T) / 2
    values, vectors = np.linalg.eigh(symmetric[:d, :d])
    gram, moment = np.eye(d), np.zeros(d)
    for g, v in zip(values, vectors.T, strict=True):
        if g > 0 and (square := g**2 - 2 * (d + 1) * variance) > 0:
            worth = square / (np.sqrt(square) + variance / sd**2)
            gram = gram + worth * np.outer(v, v)
            moment = moment + worth * v * (v @ symmetric[:d, d]) / g
    return gram, moment
