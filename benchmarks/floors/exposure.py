"""FairX-LinUCB (Wang et al. 2021) by Frank and Wolfe's steps, fused with exposure fairness: exponential merits."""

from math import log

import numpy as np

from benchmarks.floors.draws import fresh_lanes, refill
from fedbandit_envs.basics.compiled import allocating_kernel as kernel
from fedbandit_envs.exposure_v0 import parallel_env

ARMS, DIM, STEPS = 10, 5, 3
SCALE, REWARD_SD = 10.0, 0.1  # Of merits exp(SCALE mu), and of rewards, which are clipped to [-1, 1].
NOISE_SD, LOG_FAILURE = 0.1, log(20.0)
LANES = 56  # Words of a round: contexts, the arm drawn, two for its reward.
SIDE = 2.0**-32 * DIM**-0.5


@kernel(inline="always")
def expect(contexts, parameter, means):
    """Writes <x, parameter> of all arms; contexts are ``(DIM, ARMS)``."""
    for k in range(ARMS):
        means[k] = contexts[0, k] * parameter[0]
    for i in range(1, DIM):
        for k in range(ARMS):
            means[k] += contexts[i, k] * parameter[i]


@kernel(inline="always")
def share_out(means, shares):
    """Writes the shares that arms deserve; merits are at most exp(SCALE) and need no care."""
    total = 0.0
    for k in range(ARMS):
        shares[k] = np.exp(SCALE * means[k])
        total += shares[k]
    for k in range(ARMS):
        shares[k] /= total


@kernel(inline="always")
def times(inverse, vector, product):
    """Writes V^-1 vector; returns its product with the vector."""
    form = 0.0
    for i in range(DIM):
        value = 0.0
        for h in range(DIM):
            value += inverse[i, h] * vector[h]
        product[i] = value
        form += value * vector[i]
    return form


@kernel(inline="always")
def draw_arm(shares, luck):
    """Returns the arm at which cumulative shares exceed a uniform number."""
    for k in range(ARMS - 1):
        luck -= shares[k]
        if luck < 0.0:
            return k
    return ARMS - 1


@kernel
def play(theta, lanes, inverse, middle, log_det, learns, rounds, regret):
    """Plays some rounds of one federation, agent by agent.

    Args:
        theta: theta*, ``(DIM,)``.
        lanes: See :func:`fresh_lanes`.
        inverse: V^-1, ``(agents, DIM, DIM)``.
        middle: V^-1 b, ``(agents, DIM)``.
        log_det: log det V, ``(agents,)``.
        learns: Whether FairX-LinUCB chooses shares; else they are equal and nothing is learned.
        rounds: How many to play.
        regret: Fairness regret, added to, ``(agents,)``.
    """
    words, contexts = np.empty(LANES, np.uint32), np.empty((DIM, ARMS))
    true, means, deserved, shares = np.empty(ARMS), np.empty(ARMS), np.empty(ARMS), np.empty(ARMS)
    parameter, gradient, product, pulled = np.empty(DIM), np.empty(DIM), np.empty(DIM), np.empty(DIM)
    for j in range(regret.shape[0]):
        for _ in range(rounds):
            refill(lanes, words)
            for i in range(DIM):
                for k in range(ARMS):
                    contexts[i, k] = words[i * ARMS + k] * SIDE
            radius = NOISE_SD * np.sqrt(2.0 * LOG_FAILURE + log_det[j]) + 1.0
            for k in range(ARMS):
                shares[k] = 1.0 / ARMS
            if learns:
                expect(contexts, middle[j], means)
                share_out(means, shares)
            for _ in range(STEPS if learns else 0):
                value = 0.0
                for k in range(ARMS):
                    value += shares[k] * means[k]
                for k in range(ARMS):
                    shares[k] *= 1.0 + SCALE * (means[k] - value)
                for i in range(DIM):
                    gradient[i] = 0.0
                    for k in range(ARMS):
                        gradient[i] += shares[k] * contexts[i, k]
                factor = radius / np.sqrt(times(inverse[j], gradient, product))
                for i in range(DIM):
                    parameter[i] = middle[j, i] + factor * product[i]
                expect(contexts, parameter, means)
                largest = means.max()
                for k in range(ARMS):
                    means[k] -= largest
                share_out(means, shares)
                for k in range(ARMS):
                    means[k] += largest
            expect(contexts, theta, true)
            share_out(true, deserved)
            for k in range(ARMS):
                regret[j] += abs(deserved[k] - shares[k])
            arm = draw_arm(shares, words[50] * 2.0**-32)
            length = np.sqrt(-2.0 * np.log((words[51] + 0.5) * 2.0**-32))
            y = true[arm] + REWARD_SD * length * np.cos(2.0 * np.pi * 2.0**-32 * words[52])
            y = min(max(y, -1.0), 1.0)
            if not learns:
                continue
            for i in range(DIM):
                pulled[i] = contexts[i, arm]
            form = times(inverse[j], pulled, product)
            surprise = y
            for i in range(DIM):
                surprise -= middle[j, i] * pulled[i]
            weight = 1.0 / (1.0 + form)
            for i in range(DIM):
                scaled = weight * product[i]
                middle[j, i] += scaled * surprise
                for h in range(DIM):
                    inverse[j, i, h] -= scaled * product[h]
            log_det[j] += np.log1p(form)


@kernel
def by_rounds(theta, lanes, inverse, middle, log_det, learns, rounds, regret):
    """Plays as :func:`play` does, each round of all replicas before the next; arrays lead with replicas."""
    for _ in range(rounds):
        for r in range(regret.shape[0]):
            play(theta[r], lanes[r], inverse[r], middle[r], log_det[r], learns, 1, regret[r])


class EqualShares:
    """The environment alone: ten agents, who give all arms equal shares; an episode a seed."""

    learns = False

    def __init__(self, seeds, by_rounds: bool = False) -> None:
        self._by_rounds = by_rounds
        env = parallel_env()
        env.reset_batch(seeds)
        self._theta = env.hidden()["parameter"][:, 0].copy()
        shape = (len(seeds), 10)
        self._lanes = np.stack([fresh_lanes(int(seed), LANES) for seed in seeds])
        self._inverse = np.zeros((*shape, DIM, DIM)) + np.eye(DIM)
        self._middle = np.zeros((*shape, DIM))
        self._log_det, self.regret = np.zeros((2, *shape))

    def play(self, rounds: int) -> None:
        arrays = self._theta, self._lanes, self._inverse, self._middle, self._log_det
        if self._by_rounds:
            by_rounds(*arrays, self.learns, rounds, self.regret)
        else:
            for *of_replica, regret in zip(*arrays, self.regret, strict=True):
                play(*of_replica, self.learns, rounds, regret)


class FairX(EqualShares):
    """FairX-LinUCB."""

    learns = True
