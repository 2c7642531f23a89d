"""A twin of Fed-PE (Huang et al., 2021) in plain numpy and without this package, one replica at a time.

Features, weights and counts are ``(clients, arms, ...)``. Arm a's mean at client i is <x[i, a], theta[a]>, and the
noise is standard normal.
"""

from math import log

import numpy as np
from scipy.optimize import minimize

CUT = 1e-12  # An eigenvalue below this share of the greatest counts as 0; true zeros come out near 1e-16.


def information(directions, weights):
    """The matrices V_a = sum_i weights[i, a] e e', ``(arms, dim, dim)``."""
    return np.einsum("ia,iad,iae->ade", weights, directions, directions)


def inverse(v):
    """Pseudo-inverses with a relative cut."""
    return np.linalg.pinv(v, rcond=CUT, hermitian=True)


def spread(directions, v):
    """The values e' V_a^+ e, ``(clients, arms)``."""
    return np.einsum("iad,ade,iae->ia", directions, inverse(v), directions)


def gap(directions, sets, weights):
    """How far sum_i max_a e' V_a^+ e is above its minimum sum_a rank V_a; it bounds the loss of log det, too."""
    v = information(directions, weights)
    return (
        np.where(sets, spread(directions, v), 0).max(axis=1).sum() - np.linalg.matrix_rank(v, CUT, True).sum()
    )


def best_value(directions, sets):
    """The greatest value of sum_a log det V_a, each client's weights on its simplex, by a general solver.

    V_a is written in a basis of the span of its clients' directions, where it is regular, and the value is concave in
    the weights. Arms that no client holds drop out. What SLSQP leaves is taken away by the multiplicative rule
    weight := weight * g, divided by its client's sum, which cannot lower the value.

    Args:
        directions: Unit vectors e, ``(clients, arms, dim)``.
        sets: Whether the client still holds the arm, ``(clients, arms)``.
    """
    held = np.argwhere(sets)
    turned = []
    for a in range(sets.shape[1]):
        rows = directions[sets[:, a], a]
        _, s, basis = np.linalg.svd(rows, full_matrices=False)
        turned.append(directions[:, a] @ basis[s > 1e-9 * s.max(initial=0)].T)

    def value(z):
        weights = np.zeros(sets.shape)
        weights[sets] = z
        total, slope = 0.0, np.zeros(sets.shape)
        for a, e in enumerate(turned):
            if e.shape[1]:
                v = (e.T * weights[:, a]) @ e + 1e-14 * np.eye(e.shape[1])
                total -= np.linalg.slogdet(v)[1]
                slope[:, a] = -(e @ np.linalg.inv(v) * e).sum(axis=1)
        return total, slope[sets]

    share = (held[:, 0] == np.arange(len(sets))[:, np.newaxis]).astype(float)
    sums = {"type": "eq", "fun": lambda z: share @ z - 1, "jac": lambda z: share}
    z = (sets / sets.sum(axis=1, keepdims=True))[sets]
    options = {"maxiter": 1000, "ftol": 1e-14}
    z = minimize(
        value, z, jac=True, bounds=[(0, 1)] * len(z), constraints=[sums], method="SLSQP", options=options
    ).x
    z = np.maximum(z, 0) / (share.T @ (share @ np.maximum(z, 0)))
    for _ in range(200):
        z = z * -value(z)[1]
        z = z / (share.T @ (share @ z))
    return -value(z)[0]


def design(directions, sets, sweeps=10, tolerance=0.1):
    """The design by block ascent, client after client in order from uniform weights, each client exactly.

    The gap is looked at after every sweep, not before the first.
    """
    weights = sets / sets.sum(axis=1, keepdims=True)
    for _ in range(sweeps):
        for i, mine in enumerate(sets):
            e = directions[i, mine]
            g = np.einsum("ad,ade,ae->a", e, inverse(information(directions, weights)[mine]), e)
            h = np.maximum(1 / g - weights[i, mine], 0)
            levels = (1 + np.cumsum(np.sort(h))) / np.arange(1, len(h) + 1)
            weights[i, mine] = np.maximum(levels[levels > np.sort(h)][-1] - h, 0)
        if gap(directions, sets, weights) < tolerance:
            break
    return weights


class Program:
    """Fed-PE as the text has it, until round 2^(phases + 1); the rewards of rests count as data."""

    def __init__(self, clients, arms, dim, phases, delta=0.1, enhanced=False):
        self.clients, self.arms, self.dim, self.phases, self.delta = clients, arms, dim, phases, delta
        self.enhanced = enhanced

    @property
    def alpha2(self):
        """The factor of the widths, squared."""
        k, horizon, d = self.arms, self.phases, self.dim
        one, k0 = 2 * log(k * horizon / self.delta), 1.0
        while k0 * d < one + d * log(k0) + d:
            k0 += 0.1
        return min(2 * log(2 * self.clients * k * horizon / self.delta), one + d * log(k0) + d)

    def run(self, x, noise):
        """Plays one replica.

        A client's pulls come in the order start (arms in order), then phase by phase the design's pulls (arms in order)
        and the rest with its best arm. An upload is the mean of all pulls of the phase.

        Args:
            x: Features, ``(clients, arms, dim)``; the first entry is the mean reward.
            noise: Standard normal draws, ``(clients, pulls)``, one for each pull of the client in order, starting pulls
                and rests too. Those of the last phase are not looked at.

        Returns:
            All pulls, ``(clients, arms)``, and the arms that are left after each phase's elimination at its begin,
            ``(phases, clients, arms)``. Phases that T leaves no room for are missing.
        """
        m, k = self.clients, self.arms
        mean, norms = x[..., 0], np.linalg.norm(x, axis=2)
        ell, at, rest = norms.min(), np.zeros(m, dtype=int), np.zeros(m, dtype=int)

        def means(counts):
            """Clients' mean rewards over so many pulls of each arm in order and the rest, 0 without any."""
            drawn = np.zeros((m, k))
            for i, a in np.argwhere(counts):
                drawn[i, a] = noise[i, at[i] : at[i] + counts[i, a]].mean()
                at[i] += counts[i, a]
            for i in np.flatnonzero(rest):
                f, more = counts[i, best[i]], noise[i, at[i] : at[i] + rest[i]].sum()
                drawn[i, best[i]] = (f * drawn[i, best[i]] + more) / max(f + rest[i], 1)
            return np.where(counts > 0, mean + drawn, 0)

        counts, left = np.ones((m, k), dtype=int), 2 ** (self.phases + 1) - k
        pulls, sets, kept = counts.copy(), np.ones((m, k), dtype=bool), []
        s1, s2, n = np.zeros((m, k)), np.full((m, k), self.dim * k / m), 0
        for p in range(1, self.phases + 1):
            if left <= 0:
                break
            u = (means(counts) / norms**2)[..., np.newaxis] * x
            at += rest
            if p == 1:
                e = u / np.linalg.norm(u, axis=2, keepdims=True)
            v = inverse(information(e, counts))
            estimate = np.einsum("ade,ia,iae->ad", v, counts, u)
            r = np.einsum("iad,ad->ia", x, estimate)
            square = np.maximum(np.einsum("iad,ade,iae->ia", x, v, x), 0) / ell**2
            if self.enhanced:
                s1, s2, n = s1 + 2 ** (p - 1) * r, s2 + 4 ** (p - 1) * square, n + 2 ** (p - 1)
                r, w = s1 / n, np.sqrt(s2 * np.log(m * (m * k / self.delta) ** 2 / (k * self.dim) * s2)) / n
            else:
                w = np.sqrt(self.alpha2 * square)
            best = np.where(sets, r, -np.inf).argmax(axis=1)
            floor = np.take_along_axis(r - w, best[:, np.newaxis], axis=1)
            sets = sets & (r + w >= floor)
            # Rounding must not turn a weight of 1 into 2^p + 1 pulls, nor one of 1e-17 into one.
            counts = np.ceil(2**p * design(e, sets) - 1e-9).astype(int)
            played, rest = counts, 2**p + k - counts.sum(axis=1)
            if left < 2**p + k:
                played = np.diff(np.minimum(counts.cumsum(axis=1), left), axis=1, prepend=0)
                rest = np.minimum(rest, left - played.sum(axis=1))
            pulls = pulls + played + rest[:, np.newaxis] * (np.arange(k) == best[:, np.newaxis])
            left -= 2**p + k
            kept.append(sets)
        return pulls, np.array(kept)
