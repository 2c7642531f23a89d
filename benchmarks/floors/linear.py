"""Linear contextual bandits of the paper's band with Beta rewards, alone and fused with LinUCB, arms in vector lanes.

For ten dimensions there is a way to draw without a logarithm. Across theta* a context is uniform in a ball of nine
dimensions: a direction times the largest of nine uniforms. The direction is that of the first nine numbers of a point
on the sphere of ten, five points in the plane at independent angles, whose squared lengths are the gaps between four
sorted uniforms. That much is done in float32, from draws of 30 and 31 bits, and of the nine uniforms 16 bits are
compared; contexts, estimates and bounds are float64.
"""

from math import log

import numpy as np

from benchmarks.floors.draws import fresh_lanes, refill
from fedbandit_envs.basics.compiled import allocating_kernel as kernel
from fedbandit_envs.linear.contexts import HIGH, LOW, WIDTH
from fedbandit_envs.linear_v0 import parallel_env

ARMS, DIM, GAP = 100, 10, 0.1
LANES = 104  # Of the draws: arms, and four lanes more, for rewards among others.
NOISE_SD, LOG_FAILURE = 0.5, log(100.0)
UNIT = np.float32(2.0**-31)
HALF_ROOT, ONE, TWO = np.float32(0.5**0.5), np.float32(1.0), np.float32(2.0)
THIRTY_BITS, MIDDLE, STEP = np.uint32((1 << 30) - 1), np.int32(1 << 29), np.float32(np.pi * 2.0**-31)
# Taylor's, good to float32 on an eighth of a turn.
C2, C4, C6, C8 = (np.float32(term) for term in (-1 / 2, 1 / 24, -1 / 720, 1 / 40320))
S3, S5, S7, S9 = (np.float32(term) for term in (-1 / 6, 1 / 120, -1 / 5040, 1 / 362880))

FUSED = {"nsz", "contract"}  # A product and a sum may be rounded once.


@kernel(inline="always")
def order(low, high):
    """Sorts two arrays lane by lane."""
    for k in range(ARMS):
        a, b = low[k], high[k]
        low[k], high[k] = min(a, b), max(a, b)


@kernel(fastmath=FUSED)
def draw_direction(lanes, words, cuts, across, length):
    """Draws points on the sphere of ten dimensions.

    Args:
        lanes: See :func:`fresh_lanes`.
        words: Scratch, uint32 ``(LANES,)``.
        cuts: Scratch, int32 ``(5, ARMS)``.
        across: Receives them, number by number, float32 ``(DIM * LANES,)``.
        length: Receives the squared length of the first nine numbers, float32 ``(ARMS,)``.
    """
    for part in range(4):
        refill(lanes, words)
        cut = cuts[part]
        for k in range(ARMS):
            cut[k] = words[k] >> np.uint32(1)
    order(cuts[0], cuts[1])
    order(cuts[2], cuts[3])
    order(cuts[0], cuts[2])
    order(cuts[1], cuts[3])
    order(cuts[1], cuts[2])
    first, second, third, fourth, last = cuts[0], cuts[1], cuts[2], cuts[3], cuts[4]
    for k in range(ARMS):
        last[k] = np.int32(2147483647) - fourth[k]
        fourth[k] -= third[k]
        third[k] -= second[k]
        second[k] -= first[k]
    for pair in range(5):
        refill(lanes, words)
        # The compiler asks whether outputs overlap once for all pairs: so ends of an angle are five rows apart.
        gap, x, y = cuts[pair], across[pair * LANES :], across[(pair + 5) * LANES :]
        for k in range(ARMS):
            radius = np.sqrt(np.float32(gap[k]) * UNIT) * HALF_ROOT
            # Thirty bits are an angle from -pi/4 to pi/4, an eighth of a turn on; two are signs.
            word = words[k]
            angle = np.float32(np.int32(np.int32(word & THIRTY_BITS) - MIDDLE)) * STEP
            square = angle * angle
            cosine = (((C8 * square + C6) * square + C4) * square + C2) * square + ONE
            sine = ((((S9 * square + S7) * square + S5) * square + S3) * square + ONE) * angle
            x[k] = radius * (cosine - sine) * (ONE - TWO * np.float32(np.int32(word >> np.uint32(31))))
            y[k] = (
                radius
                * (cosine + sine)
                * (ONE - TWO * np.float32(np.int32((word >> np.uint32(30)) & np.uint32(1))))
            )
    tenth = across[9 * LANES :]
    for k in range(ARMS):
        length[k] = ONE - tenth[k] * tenth[k]


@kernel(fastmath=FUSED)
def offer(lanes, words, cuts, across, length, mirror, means, contexts):
    """Draws what one agent is offered in a round.

    Args:
        lanes: See :func:`fresh_lanes`.
        words: Scratch, as the next three; see :func:`draw_direction`.
        cuts: Likewise.
        across: Likewise.
        length: Likewise.
        mirror: What reflects e_1 into theta*, ``(DIM,)``.
        means: Receives expected rewards, ``(ARMS,)``.
        contexts: Receives contexts, number by number, ``(DIM * LANES,)``.

    Returns:
        The best arm.
    """
    draw_direction(lanes, words, cuts, across, length)
    largest = cuts[0]
    for k in range(ARMS):
        largest[k] = 0
    for _ in range(4):
        refill(lanes, words)
        for k in range(ARMS):
            one, other = np.int32(words[k] >> np.uint32(16)), np.int32(words[k] & np.uint32(0xFFFF))
            largest[k] = max(largest[k], max(one, other))
    refill(lanes, words)
    for k in range(ARMS):
        # The ninth, and which of the numbers that begin with these 16 bits the largest is.
        one, below = np.int32(words[k] >> np.uint32(16)), np.int32(words[k] & np.uint32(0x7FFF))
        largest[k] = np.int32(max(largest[k], one) << np.int32(15)) + below
    refill(lanes, words)
    for k in range(ARMS):
        means[k] = LOW + WIDTH * 2.0**-31 * np.float64(np.int32(words[k] >> np.uint32(1)))
    best = np.uint64(words[ARMS]) * np.uint64(ARMS) >> np.uint64(32)
    means[best] += HIGH + GAP - LOW
    v = mirror
    v0, v1, v2, v3, v4 = v[0], v[1], v[2], v[3], v[4]
    v5, v6, v7, v8, v9 = v[5], v[6], v[7], v[8], v[9]
    for k in range(ARMS):
        mean = means[k]
        room = np.float32(1.0 - mean * mean)
        shrink = np.float64(np.sqrt(room / length[k]) * (np.float32(largest[k]) * UNIT))
        x1 = shrink * np.float64(across[k])
        x2 = shrink * np.float64(across[LANES + k])
        x3 = shrink * np.float64(across[2 * LANES + k])
        x4 = shrink * np.float64(across[3 * LANES + k])
        x5 = shrink * np.float64(across[4 * LANES + k])
        x6 = shrink * np.float64(across[5 * LANES + k])
        x7 = shrink * np.float64(across[6 * LANES + k])
        x8 = shrink * np.float64(across[7 * LANES + k])
        x9 = shrink * np.float64(across[8 * LANES + k])
        turn = (
            mean * v0
            + x1 * v1
            + x2 * v2
            + x3 * v3
            + x4 * v4
            + x5 * v5
            + x6 * v6
            + x7 * v7
            + x8 * v8
            + x9 * v9
        )
        turn *= 2.0
        contexts[k] = mean - turn * v0
        contexts[LANES + k] = x1 - turn * v1
        contexts[2 * LANES + k] = x2 - turn * v2
        contexts[3 * LANES + k] = x3 - turn * v3
        contexts[4 * LANES + k] = x4 - turn * v4
        contexts[5 * LANES + k] = x5 - turn * v5
        contexts[6 * LANES + k] = x6 - turn * v6
        contexts[7 * LANES + k] = x7 - turn * v7
        contexts[8 * LANES + k] = x8 - turn * v8
        contexts[9 * LANES + k] = x9 - turn * v9
    return best


@kernel(fastmath=FUSED)
def reward(mean, lanes, words):
    """Draws from Beta(mean, 1 - mean) (Jöhnk 1964); ``words`` holds some that were not used yet, behind the arms."""
    used = ARMS + 1
    while True:
        if used + 1 >= words.shape[0]:
            refill(lanes, words)
            used = 0
        first = ((words[used] + 0.5) * 2.0**-32) ** (1.0 / mean)
        second = ((words[used + 1] + 0.5) * 2.0**-32) ** (1.0 / (1.0 - mean))
        used += 2
        if first + second <= 1.0:
            return first / (first + second)


@kernel(inline="always")
def judge(contexts, inverse, parameter, radius, bounds):
    """Writes upper confidence bounds; the form x^T V^-1 x is written out, so that arms are what lanes hold."""
    a, x = inverse, contexts
    for k in range(ARMS):
        x0, x1, x2 = x[k], x[LANES + k], x[2 * LANES + k]
        x3, x4, x5 = x[3 * LANES + k], x[4 * LANES + k], x[5 * LANES + k]
        x6, x7, x8, x9 = x[6 * LANES + k], x[7 * LANES + k], x[8 * LANES + k], x[9 * LANES + k]
        form = x0 * (0.5 * a[0, 0] * x0)
        form += x1 * (a[1, 0] * x0 + 0.5 * a[1, 1] * x1)
        form += x2 * (a[2, 0] * x0 + a[2, 1] * x1 + 0.5 * a[2, 2] * x2)
        form += x3 * (a[3, 0] * x0 + a[3, 1] * x1 + a[3, 2] * x2 + 0.5 * a[3, 3] * x3)
        form += x4 * (a[4, 0] * x0 + a[4, 1] * x1 + a[4, 2] * x2 + a[4, 3] * x3 + 0.5 * a[4, 4] * x4)
        form += x5 * (
            a[5, 0] * x0 + a[5, 1] * x1 + a[5, 2] * x2 + a[5, 3] * x3 + a[5, 4] * x4 + 0.5 * a[5, 5] * x5
        )
        form += x6 * (
            a[6, 0] * x0 + a[6, 1] * x1 + a[6, 2] * x2 + a[6, 3] * x3 + a[6, 4] * x4 + a[6, 5] * x5
            + 0.5 * a[6, 6] * x6
        )  # fmt: skip
        form += x7 * (
            a[7, 0] * x0 + a[7, 1] * x1 + a[7, 2] * x2 + a[7, 3] * x3 + a[7, 4] * x4 + a[7, 5] * x5
            + a[7, 6] * x6 + 0.5 * a[7, 7] * x7
        )  # fmt: skip
        form += x8 * (
            a[8, 0] * x0 + a[8, 1] * x1 + a[8, 2] * x2 + a[8, 3] * x3 + a[8, 4] * x4 + a[8, 5] * x5
            + a[8, 6] * x6 + a[8, 7] * x7 + 0.5 * a[8, 8] * x8
        )  # fmt: skip
        form += x9 * (
            a[9, 0] * x0 + a[9, 1] * x1 + a[9, 2] * x2 + a[9, 3] * x3 + a[9, 4] * x4 + a[9, 5] * x5
            + a[9, 6] * x6 + a[9, 7] * x7 + a[9, 8] * x8 + 0.5 * a[9, 9] * x9
        )  # fmt: skip
        value = parameter[0] * x0 + parameter[1] * x1 + parameter[2] * x2 + parameter[3] * x3
        value += parameter[4] * x4 + parameter[5] * x5 + parameter[6] * x6 + parameter[7] * x7
        value += parameter[8] * x8 + parameter[9] * x9
        bounds[k] = value + radius * np.sqrt(max(2.0 * form, 0.0))


@kernel(inline="always")
def learn(inverse, parameter, x, y, product):
    """Takes one observation in (recursive least squares); returns by how much log det V grows."""
    form, surprise = 0.0, y
    for i in range(DIM):
        value = 0.0
        for h in range(DIM):
            value += inverse[i, h] * x[h]
        product[i] = value
        form += value * x[i]
        surprise -= parameter[i] * x[i]
    weight = 1.0 / (1.0 + form)
    for i in range(DIM):
        scaled = weight * product[i]
        parameter[i] += scaled * surprise
        for h in range(DIM):
            inverse[i, h] -= scaled * product[h]
    return np.log1p(form)


@kernel(fastmath=FUSED)
def play(mirror, lanes, inverse, parameter, log_det, learns, rounds, regret, earned):
    """Plays some rounds of one federation, agent by agent.

    Args:
        mirror: See :func:`offer`.
        lanes: Likewise.
        inverse: V^-1, ``(agents, DIM, DIM)``.
        parameter: V^-1 b, ``(agents, DIM)``.
        log_det: log det V, ``(agents,)``.
        learns: Whether LinUCB chooses; else the first arm is pulled and nothing is learned.
        rounds: How many to play.
        regret: Added to, ``(agents,)``.
        earned: Receives the sum of rewards, added to, likewise.
    """
    words, cuts = np.empty(LANES, np.uint32), np.empty((5, ARMS), np.int32)
    across, length = np.empty(DIM * LANES, np.float32), np.empty(ARMS, np.float32)
    means, contexts, bounds = np.empty(ARMS), np.empty(DIM * LANES), np.empty(ARMS)
    pulled, product = np.empty(DIM), np.empty(DIM)
    for j in range(regret.shape[0]):
        for _ in range(rounds):
            best = offer(lanes, words, cuts, across, length, mirror, means, contexts)
            arm = 0
            if learns:
                radius = NOISE_SD * np.sqrt(2.0 * LOG_FAILURE + log_det[j]) + 1.0
                judge(contexts, inverse[j], parameter[j], radius, bounds)
                for k in range(1, ARMS):
                    if bounds[k] > bounds[arm]:
                        arm = k
            y = reward(means[arm], lanes, words)
            regret[j] += means[best] - means[arm]
            earned[j] += y
            if learns:
                for i in range(DIM):
                    pulled[i] = contexts[i * LANES + arm]
                log_det[j] += learn(inverse[j], parameter[j], pulled, y, product)


@kernel(fastmath=FUSED)
def by_rounds(mirror, lanes, inverse, parameter, log_det, learns, rounds, regret, earned):
    """Plays as :func:`play` does, each round of all replicas before the next; arrays lead with replicas."""
    for _ in range(rounds):
        for r in range(regret.shape[0]):
            play(mirror[r], lanes[r], inverse[r], parameter[r], log_det[r], learns, 1, regret[r], earned[r])


class FirstArm:
    """The environment alone: ten agents, who are offered all arms and pull the first; an episode a seed."""

    learns = False

    def __init__(self, seeds, by_rounds: bool = False) -> None:
        self._by_rounds = by_rounds
        env = parallel_env(num_agents=10, num_arms=ARMS, dim=DIM, gap=GAP)
        env.reset_batch(seeds)
        self._mirror = env.hidden()["parameter"][:, 0].copy()
        self._mirror[:, 0] -= 1.0
        self._mirror /= np.linalg.norm(self._mirror, axis=1, keepdims=True)
        shape = (len(seeds), 10)
        self._lanes = np.stack([fresh_lanes(int(seed), LANES) for seed in seeds])
        self._inverse = np.zeros((*shape, DIM, DIM)) + np.eye(DIM)
        self._parameter = np.zeros((*shape, DIM))
        self._log_det, self.regret, self.earned = np.zeros((3, *shape))
        self.played = 0

    def play(self, rounds: int) -> None:
        arrays = self._mirror, self._lanes, self._inverse, self._parameter, self._log_det
        if self._by_rounds:
            by_rounds(*arrays, self.learns, rounds, self.regret, self.earned)
        else:
            for *of_replica, regret, earned in zip(*arrays, self.regret, self.earned, strict=True):
                play(*of_replica, self.learns, rounds, regret, earned)
        self.played += rounds


class LinUCB(FirstArm):
    """LinUCB (Abbasi-Yadkori et al. 2011) with ridge 1, noise of sd 0.5 and failure 0.01."""

    learns = True
