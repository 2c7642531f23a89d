"""FedLinUCB and Async-LinUCB in plain numpy, one active agent a round, from their papers' listings."""

import numpy as np


def chosen(contexts, sigma, moment, beta):
    """The arm with the largest upper confidence bound."""
    inverse = np.linalg.inv(sigma)
    width = np.sqrt(np.einsum("kd,de,ke->k", contexts, inverse, contexts))
    return int(np.argmax(contexts @ (inverse @ moment) + beta * width))


class FedLinUCBReference:
    """He, Wang, Min, Gu (NeurIPS 2022), Algorithm 1, with lambda I counted once, in the server."""

    def __init__(self, agents, dim, alpha, beta, ridge):
        self.alpha, self.beta = alpha, beta
        self.server = [ridge * np.eye(dim), np.zeros(dim)]
        self.held = [[ridge * np.eye(dim), np.zeros(dim)] for _ in range(agents)]
        self.local = [[np.zeros((dim, dim)), np.zeros(dim)] for _ in range(agents)]
        self.messages = np.zeros(agents, int)

    def pull(self, agent, contexts):
        arm = chosen(contexts, *self.held[agent], self.beta)
        # A copy: the environment offers the next contexts in the same place.
        self.x = contexts[arm].copy()
        return arm

    def learn(self, agent, reward):
        gram, moment = self.local[agent]
        self.local[agent] = [gram + np.outer(self.x, self.x), moment + reward * self.x]
        sigma = self.held[agent][0]
        if np.linalg.det(sigma + self.local[agent][0]) > (1 + self.alpha) * np.linalg.det(sigma):
            self.server = [a + b for a, b in zip(self.server, self.local[agent], strict=True)]
            self.held[agent] = [a.copy() for a in self.server]
            self.local[agent] = [np.zeros_like(a) for a in self.server]
            self.messages[agent] += 2


class AsyncLinUCBReference:
    """Li and Wang (AISTATS 2022): own data at once; uploads and downloads by determinants."""

    def __init__(self, agents, dim, gamma_u, gamma_d, beta, ridge):
        self.gamma_u, self.gamma_d, self.beta = gamma_u, gamma_d, beta
        self.server = np.diag([ridge] * dim + [0.0])
        self.held = [self.server.copy() for _ in range(agents)]
        self.fresh = [np.zeros((dim + 1, dim + 1)) for _ in range(agents)]
        self.unsent = [np.zeros((dim + 1, dim + 1)) for _ in range(agents)]
        self.messages = np.zeros(agents, int)

    def pull(self, agent, contexts):
        arm = chosen(contexts, self.held[agent][:-1, :-1], self.held[agent][:-1, -1], self.beta)
        self.x = contexts[arm].copy()
        return arm

    def learn(self, agent, reward):
        v = np.append(self.x, reward)
        self.held[agent] = self.held[agent] + np.outer(v, v)
        self.fresh[agent] = self.fresh[agent] + np.outer(v, v)

        def det(matrix):
            return np.linalg.det(matrix[:-1, :-1])

        if det(self.held[agent]) / det(self.held[agent] - self.fresh[agent]) <= self.gamma_u:
            return
        self.messages[agent] += 1
        self.server = self.server + self.fresh[agent]
        for j in range(len(self.held)):
            if j != agent:
                self.unsent[j] = self.unsent[j] + self.fresh[agent]
        self.fresh[agent] = np.zeros_like(self.server)
        for j in range(len(self.held)):
            if det(self.server) / det(self.server - self.unsent[j]) > self.gamma_d:
                self.held[j] = self.held[j] + self.unsent[j]
                self.unsent[j] = np.zeros_like(self.server)
                self.messages[j] += 1
