"""Linear bandit algorithms as their papers list them, in plain numpy with explicit inverses."""

from math import ceil, log, sqrt

import numpy as np


class OFUL:
    """Abbasi-Yadkori et al. 2011, with Theorem 2's radius, all matrices anew in every round."""

    def __init__(self, dim, ridge, noise_sd, parameter_bound, failure, scale):
        self.V, self.b, self.ridge = ridge * np.eye(dim), np.zeros(dim), ridge
        self.noise_sd, self.bound, self.failure, self.scale = noise_sd, parameter_bound, failure, scale

    def learn(self, arm, x, y):
        self.V, self.b = self.V + np.outer(x, x), self.b + y * x

    def choose(self, X):
        ratio = np.linalg.det(self.V) / self.ridge**self.b.size
        beta = self.noise_sd * sqrt(2 * log(sqrt(ratio) / self.failure)) + sqrt(self.ridge) * self.bound
        inverse = np.linalg.inv(self.V)
        return (X @ inverse @ self.b + self.scale * beta * np.sqrt(np.diag(X @ inverse @ X.T))).argmax()


class Disjoint:
    """Algorithm 1 of Li et al. 2010, as listed, with explicit inverses."""

    def __init__(self, arms, dim, alpha, ridge):
        self.A, self.b = [ridge * np.eye(dim) for _ in range(arms)], [np.zeros(dim) for _ in range(arms)]
        self.alpha = alpha

    def learn(self, arm, x, y):
        self.A[arm] = self.A[arm] + np.outer(x, x)
        self.b[arm] = self.b[arm] + y * x

    def predict(self, X):
        inverses = [np.linalg.inv(A) for A in self.A]
        mean = [x @ inverse @ b for x, inverse, b in zip(X, inverses, self.b, strict=True)]
        return np.array(mean), np.array([x @ inverse @ x for x, inverse in zip(X, inverses, strict=True)])

    def choose(self, X):
        mean, variance = self.predict(X)
        return (mean + self.alpha * np.sqrt(variance)).argmax()


class Hybrid(Disjoint):
    """Algorithm 2 of Li et al. 2010, as listed, with explicit inverses; line numbers are the paper's."""

    def __init__(self, arms, dim, shared, alpha, ridge):
        super().__init__(arms, dim, alpha, ridge)
        self.A0, self.b0, self.shared = ridge * np.eye(shared), np.zeros(shared), shared
        self.B = [np.zeros((dim, shared)) for _ in range(arms)]

    def predict(self, X):
        A0 = np.linalg.inv(self.A0)
        beta = A0 @ self.b0  # line 5
        means, variances = [], []
        for a, x in enumerate(X):
            z, A, B = x[: self.shared], np.linalg.inv(self.A[a]), self.B[a]
            theta = A @ (self.b[a] - B @ beta)  # line 12
            means.append(z @ beta + x @ theta)
            variances.append(  # line 13
                z @ A0 @ z - 2 * z @ A0 @ B.T @ A @ x + x @ A @ x + x @ A @ B @ A0 @ B.T @ A @ x
            )
        return np.array(means), np.array(variances)

    def learn(self, arm, x, y):
        z = x[: self.shared]
        A, B = np.linalg.inv(self.A[arm]), self.B[arm]
        self.A0 = self.A0 + B.T @ A @ B  # line 17
        self.b0 = self.b0 + B.T @ A @ self.b[arm]  # line 18
        super().learn(arm, x, y)  # lines 19 and 21
        self.B[arm] = B = B + np.outer(x, z)  # line 20
        A = np.linalg.inv(self.A[arm])
        self.A0 = self.A0 + np.outer(z, z) - B.T @ A @ B  # line 22
        self.b0 = self.b0 + y * z - B.T @ A @ self.b[arm]  # line 23


class Stacked:
    """Dense ridge regression on [z; x at the arm's own place, 0 elsewhere]."""

    def __init__(self, arms, dim, shared, alpha, ridge):
        size = shared + arms * dim
        self.V, self.b, self.shared, self.alpha = ridge * np.eye(size), np.zeros(size), shared, alpha

    def feature(self, arm, x):
        phi = np.zeros(self.b.size)
        phi[: self.shared] = x[: self.shared]
        phi[self.shared + arm * x.size : self.shared + (arm + 1) * x.size] = x
        return phi

    def learn(self, arm, x, y):
        phi = self.feature(arm, x)
        self.V, self.b = self.V + np.outer(phi, phi), self.b + y * phi

    def predict(self, X):
        features = np.stack([self.feature(arm, x) for arm, x in enumerate(X)])
        solved = np.linalg.solve(self.V, features.T)
        return solved.T @ self.b, np.einsum("ki,ik->k", features, solved)

    choose = Disjoint.choose


class Sup:
    """SupLinUCB with BaseLinUCB (thesis, Algorithms 2.6 and 2.7), index sets as lists, line numbers of 2.7."""

    def __init__(self, dim, horizon, alpha):
        self.S, self.T, self.alpha = max(ceil(log(horizon)), 1), horizon, alpha
        self.psi = {s: [] for s in range(1, self.S + 1)}
        self.identity, self.steps = np.eye(dim), []

    def base(self, s, X):
        V = self.identity + sum(np.outer(x, x) for x, _ in self.psi[s])
        b = sum((y * x for x, y in self.psi[s]), np.zeros(len(self.identity)))
        inverse = np.linalg.inv(V)
        return X @ inverse @ b, self.alpha * np.sqrt(np.diag(X @ inverse @ X.T))

    def choose(self, X):
        s, alive = 1, list(range(len(X)))
        while True:
            mean, width = self.base(s, X)
            upper = mean + width
            if all(width[i] <= 1 / sqrt(self.T) for i in alive):  # line 7
                self.level = None
                self.steps.append(("exploit", s, len(alive)))
                return max(alive, key=lambda i: upper[i])
            if all(width[i] <= 2.0**-s for i in alive):  # line 11
                best = max(upper[i] for i in alive)
                alive = [i for i in alive if upper[i] >= best - 2.0 ** (1 - s)]
                s += 1
            else:  # line 14; of the wide arms the widest
                self.level = s
                self.steps.append(("explore", s, len(alive)))
                return max(alive, key=lambda i: width[i])

    def learn(self, arm, x, y):
        if self.level is not None:
            self.psi[self.level].append((x.copy(), y))
