"""UCB1 (Auer et al. 2002) on Bernoulli arms, fused with them.

``one_row`` goes row by row (a row is an agent of a replica), ``in_lanes`` has a row in each vector lane. Only the arm
that was pulled has another mean and another width after a round, so that bounds cost a product each.
"""

import numpy as np

from benchmarks.floors.draws import WIDTH, fresh_lanes, refill
from fedbandit_envs.arms_v0 import parallel_env
from fedbandit_envs.basics.compiled import allocating_kernel as kernel

BLOCK = 256  # Rounds that rows play before the next ones do.
PULLS, SUCCESSES, MEAN, WIDTHS, TRUE, GAP = range(6)


@kernel
def roots(start, out):
    """Writes sqrt(2 ln t) for t = start, start + 1, ..."""
    for t in range(out.shape[0]):
        out[t] = np.sqrt(2.0 * np.log(np.float64(start + t)))


@kernel(inline="always")
def take_in(state, arm, row, word):
    """Pulls an arm in one row; returns what is regretted."""
    pulls = state[PULLS, arm, row] + 1.0
    successes = state[SUCCESSES, arm, row] + (word * 2.0**-32 < state[TRUE, arm, row])
    inverse = 1.0 / pulls
    state[PULLS, arm, row], state[SUCCESSES, arm, row] = pulls, successes
    state[MEAN, arm, row], state[WIDTHS, arm, row] = successes * inverse, np.sqrt(inverse)
    return state[GAP, arm, row]


@kernel
def one_row(state, lanes, played, rounds, regret):
    """Plays some rounds of some rows, one row after the other.

    Args:
        state: Rows as named above, ``(6, arms, rows)``.
        lanes: See :func:`fresh_lanes`.
        played: Rounds before, at least as many as arms.
        rounds: How many to play.
        regret: Added to, ``(rows,)``.
    """
    words, used = np.empty(WIDTH, np.uint32), WIDTH
    root = np.empty(rounds)
    roots(played + 1, root)
    for row in range(state.shape[2]):
        lost = 0.0
        for t in range(rounds):
            arm, most = 0, -1.0
            for k in range(state.shape[1]):
                bound = state[MEAN, k, row] + root[t] * state[WIDTHS, k, row]
                if bound > most:
                    arm, most = k, bound
            if used == WIDTH:
                refill(lanes, words)
                used = 0
            lost += take_in(state, arm, row, words[used])
            used += 1
        regret[row] += lost


@kernel
def in_lanes(state, lanes, played, rounds, regret):
    """Plays as :func:`one_row` does, ``WIDTH`` rows side by side."""
    words, root = np.empty(WIDTH, np.uint32), np.empty(rounds)
    most, arm = np.empty(WIDTH), np.empty(WIDTH)
    roots(played + 1, root)
    for t in range(rounds):
        for i in range(WIDTH):
            most[i], arm[i] = -1.0, 0.0
        for k in range(state.shape[1]):
            mean, width = state[MEAN, k], state[WIDTHS, k]
            for i in range(WIDTH):
                bound = mean[i] + root[t] * width[i]
                better = bound > most[i]
                most[i] = bound if better else most[i]
                arm[i] = np.float64(k) if better else arm[i]
        refill(lanes, words)
        for i in range(WIDTH):
            regret[i] += take_in(state, np.uint64(arm[i]), i, words[i])


@kernel
def first_arm(state, lanes, played, rounds, regret):
    """Pulls the first arm of rows that lie side by side; nothing is kept but numbers of pulls and successes."""
    words = np.empty(WIDTH, np.uint32)
    pulls, successes, true, gap = state[PULLS, 0], state[SUCCESSES, 0], state[TRUE, 0], state[GAP, 0]
    for _ in range(rounds):
        refill(lanes, words)
        for i in range(WIDTH):
            pulls[i] += 1.0
            successes[i] += words[i] * 2.0**-32 < true[i]
            regret[i] += gap[i]


@kernel
def by_rounds(states, lanes, played, rounds, regret):
    """Plays as :func:`in_lanes` does, each round of all rows before the next; arrays lead with groups of rows."""
    for t in range(played, played + rounds):
        for group in range(states.shape[0]):
            in_lanes(states[group], lanes[group], t, 1, regret[group])


class UCB1:
    """Ten agents, ten arms, an episode a seed; rows are filled up to whole vectors with copies of the last."""

    def __init__(self, seeds, kernel=in_lanes) -> None:
        env = parallel_env()
        env.reset_batch(seeds)
        mean = env.hidden()["mean"]
        self._shape = mean.shape[:2]
        rows = mean.reshape(-1, mean.shape[2])
        groups = -(-len(rows) // WIDTH)
        rows = rows[np.minimum(np.arange(groups * WIDTH), len(rows) - 1)].reshape(groups, WIDTH, -1)
        self._state = np.zeros((groups, 6, rows.shape[2], WIDTH))
        self._state[:, TRUE] = rows.transpose(0, 2, 1)
        self._state[:, GAP] = self._state[:, TRUE].max(axis=1, keepdims=True) - self._state[:, TRUE]
        self._lanes = np.stack([fresh_lanes((len(seeds), int(seeds[0]), group)) for group in range(groups)])
        self._kernel = kernel
        self._regret = self._state[:, GAP].sum(axis=1)
        # Each arm once.
        rng = np.random.default_rng(list(seeds))
        success = rng.random(self._state[:, TRUE].shape) < self._state[:, TRUE]
        self._state[:, PULLS] = self._state[:, WIDTHS] = 1.0
        self._state[:, SUCCESSES] = self._state[:, MEAN] = success
        self.played = rows.shape[2]

    @property
    def regret(self) -> np.ndarray:
        """Cumulative regret, ``(replicas, agents)``."""
        return self._regret.reshape(-1)[: np.prod(self._shape)].reshape(self._shape)

    def play(self, rounds: int) -> None:
        until = self.played + rounds
        while self.played < until:
            length = min(BLOCK, until - self.played)
            if self._kernel is by_rounds:
                by_rounds(self._state, self._lanes, self.played, length, self._regret)
            else:
                for state, lanes, regret in zip(self._state, self._lanes, self._regret, strict=True):
                    self._kernel(state, lanes, self.played, length, regret)
            self.played += length


class FirstArm(UCB1):
    """The environment alone: the first arm is pulled from the first round on."""

    def __init__(self, seeds) -> None:
        super().__init__(seeds, first_arm)
        self._regret[...] = self.played = 0
