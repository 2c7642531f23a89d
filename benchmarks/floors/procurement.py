"""SS-UCB and P-FCB in the uniform market, fused with it: Deva et al. (2021), Solanki et al. (2022).

Three loops of one law. ``one_pass`` goes producer by producer, as one would write it down. ``in_lanes`` keeps producers
in vector lanes, which wants them padded to whole vectors, a loop for each step and sums by halves. Both play many
rounds of an agent before those of the next; ``by_rounds`` plays in lanes, round by round. All of them draw outcomes
from alias tables (Walker 1977) of every producer and quantity, and only for producers that are bought from; nothing is
kept between rounds but the policy's sums, from which realised revenue follows at the end.
"""

import numpy as np
from scipy.stats import binom

from benchmarks.floors.draws import WIDTH, fresh_lanes, refill
from fedbandit_envs.basics.compiled import allocating_kernel as kernel
from fedbandit_envs.procurement.oracle import FEASIBILITY_TOLERANCE, procure
from fedbandit_envs.procurement.rounds import expected_revenue
from fedbandit_envs.procurement_v0 import parallel_env
from fedbandit_envs.wrappers.privacy.accounting.calibration import classic_noise_multiplier
from fedbandit_envs.wrappers.privacy.mechanisms.additive import decreasing

ALPHA = 0.4
MOST = 50
TOLERANCE = FEASIBILITY_TOLERANCE / 2
BLOCK = 256  # Rounds that one agent plays before the next one does; P-FCB shares after whole blocks.
COLUMNS = 64
# Rows of an agent's state.
UNITS, GOOD, COST, CAPACITY, QUALITY, BOUND, QUANTITY = range(7)

OMEGA1, OMEGA2 = 0.1, 10.0


@kernel
def alias_tables(masses, tables):
    """Fills alias tables (Vose 1991): the leading 26 bits of an entry are its cutoff, the others its alias.

    Args:
        masses: Probabilities, ``(rows, COLUMNS)``, used up.
        tables: Receives the entries, uint32 ``(rows, COLUMNS)``.
    """
    poor, rich = np.empty(COLUMNS, np.int64), np.empty(COLUMNS, np.int64)
    for row in range(masses.shape[0]):
        mass = masses[row]
        few, many = 0, 0
        for k in range(COLUMNS):
            mass[k] *= COLUMNS
            tables[row, k] = ((1 << 26) - 1) << 6 | k
            if mass[k] < 1.0:
                poor[few] = k
                few += 1
            else:
                rich[many] = k
                many += 1
        while few > 0 and many > 0:
            few -= 1
            k, other = poor[few], rich[many - 1]
            tables[row, k] = min(int(np.rint(mass[k] * 2.0**26)), (1 << 26) - 1) << 6 | other
            mass[other] -= 1.0 - mass[k]
            if mass[other] < 1.0:
                many -= 1
                poor[few] = other
                few += 1


def outcome_tables(quality: np.ndarray) -> np.ndarray:
    """Returns alias tables of Binomial(l, q) for all producers and l = 0 .. MOST, uint32, flat."""
    outcomes, units = np.arange(COLUMNS), np.arange(MOST + 1)
    masses = binom.pmf(outcomes, units[:, np.newaxis], quality[:, np.newaxis, np.newaxis])
    tables = np.empty((quality.size * (MOST + 1), COLUMNS), np.uint32)
    alias_tables(masses.reshape(-1, COLUMNS), tables)
    return tables.reshape(-1)


@kernel(inline="always")
def good_units(word, producer, units, tables):
    """Looks one outcome up: six bits of the word are a column, the others are compared with its cutoff."""
    column = word >> np.uint32(26)
    row = np.uint32(producer * (MOST + 1)) + np.uint32(units)
    entry = tables[np.uint64(row * np.uint32(COLUMNS) + column)]
    kept = (word & np.uint32((1 << 26) - 1)) < (entry >> np.uint32(6))
    return column if kept else entry & np.uint32(63)


@kernel
def greedy(bound, cost, capacity, quantity, items, efficiency):
    """Greedy SSA where buying all that pays leaves a shortage of quality: S1 and S3 in full, then by efficiency."""
    room, count = 0.0, 0
    for i in range(bound.shape[0]):
        value, slack = bound[i] - cost[i], bound[i] - ALPHA
        quantity[i] = 0.0
        if slack > 0.0 or (slack == 0.0 and value >= 0.0):
            quantity[i] = capacity[i]
            room += capacity[i] * slack
        if value * slack < 0.0 and capacity[i] > 0.0:
            worth, place = abs(value) / abs(slack), count
            while place > 0 and efficiency[place - 1] < worth:
                efficiency[place], items[place] = efficiency[place - 1], items[place - 1]
                place -= 1
            efficiency[place], items[place] = worth, i
            count += 1
    for item in range(count):
        i = items[item]
        slack = bound[i] - ALPHA
        taken = min(capacity[i], np.floor((room + TOLERANCE) / abs(slack)))
        room -= taken * abs(slack)
        quantity[i] += taken if slack < 0.0 else -taken
        if taken < capacity[i]:
            break


@kernel
def one_pass(state, tables, lanes, best, penalty, played, rounds, regret):
    """Plays some rounds of one federation, producer by producer.

    Args:
        state: Rows as named above, ``(agents, 7, producers)``.
        tables: See :func:`outcome_tables`.
        lanes: See :func:`fresh_lanes`.
        best: The oracle's expected revenue, ``(agents,)``.
        penalty: Regret of a round that violates the constraint, likewise.
        played: Rounds before.
        rounds: How many to play.
        regret: Added to, ``(agents,)``.
    """
    producers = state.shape[2]
    words, used = np.empty(WIDTH, np.uint32), WIDTH
    items, efficiency = np.empty(producers, np.int64), np.empty(producers)
    logarithms = np.empty(BLOCK)
    for block in range(played, played + rounds, BLOCK):
        length = min(BLOCK, played + rounds - block)
        for t in range(length):
            logarithms[t] = 1.5 * np.log(block + t + 1.0)
        for j in range(state.shape[0]):
            units, good, cost, capacity = state[j, UNITS], state[j, GOOD], state[j, COST], state[j, CAPACITY]
            quality, bound, quantity = state[j, QUALITY], state[j, BOUND], state[j, QUANTITY]
            lost = 0.0
            for t in range(length):
                factor, surplus = logarithms[t], 0.0
                for i in range(producers):
                    inverse = 1.0 / units[i]
                    bound[i] = min(good[i] * inverse + np.sqrt(factor * inverse), 1.0)
                    quantity[i] = capacity[i] if bound[i] > cost[i] else 0.0
                    surplus += quantity[i] * (bound[i] - ALPHA)
                if surplus < -TOLERANCE:
                    greedy(bound, cost, capacity, quantity, items, efficiency)
                slack, revenue = 0.0, 0.0
                for i in range(producers):
                    bought = quantity[i]
                    if bought == 0.0:
                        continue
                    if used == WIDTH:
                        refill(lanes, words)
                        used = 0
                    good[i] += good_units(words[used], i, bought, tables)
                    used += 1
                    units[i] += bought
                    slack += bought * (quality[i] - ALPHA)
                    revenue += bought * (quality[i] - cost[i])
                lost += penalty[j] if slack < -FEASIBILITY_TOLERANCE else best[j] - revenue
            regret[j] += lost


@kernel(inline="always")
def sum_by_halves(terms):
    """Adds up ``WIDTH`` terms, which are used up."""
    for i in range(16):
        terms[i] += terms[i + 16]
    for i in range(8):
        terms[i] += terms[i + 8]
    for i in range(4):
        terms[i] += terms[i + 4]
    return (terms[0] + terms[1]) + (terms[2] + terms[3])


@kernel
def in_lanes(state, tables, lanes, best, penalty, played, rounds, regret):
    """Plays as :func:`one_pass` does; producers are padded to ``WIDTH`` with some of no capacity."""
    words, used = np.empty(WIDTH, np.uint32), WIDTH
    items, efficiency = np.empty(WIDTH, np.int64), np.empty(WIDTH)
    terms, slacks, revenues = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    logarithms = np.empty(BLOCK)
    for block in range(played, played + rounds, BLOCK):
        length = min(BLOCK, played + rounds - block)
        for t in range(length):
            logarithms[t] = 1.5 * np.log(block + t + 1.0)
        for j in range(state.shape[0]):
            units, good, cost, capacity = state[j, UNITS], state[j, GOOD], state[j, COST], state[j, CAPACITY]
            quality, bound, quantity = state[j, QUALITY], state[j, BOUND], state[j, QUANTITY]
            lost = 0.0
            for t in range(length):
                factor = logarithms[t]
                for i in range(WIDTH):
                    inverse = 1.0 / units[i]
                    bound[i] = min(good[i] * inverse + np.sqrt(factor * inverse), 1.0)
                    quantity[i] = capacity[i] if bound[i] > cost[i] else 0.0
                    terms[i] = quantity[i] * (bound[i] - ALPHA)
                if sum_by_halves(terms) < -TOLERANCE:
                    greedy(bound, cost, capacity, quantity, items, efficiency)
                for i in range(WIDTH):
                    units[i] += quantity[i]
                    slacks[i] = quantity[i] * (quality[i] - ALPHA)
                    revenues[i] = quantity[i] * (quality[i] - cost[i])
                for i in range(WIDTH):
                    if quantity[i] > 0.0:
                        if used == WIDTH:
                            refill(lanes, words)
                            used = 0
                        good[i] += good_units(words[used], i, quantity[i], tables)
                        used += 1
                violated = sum_by_halves(slacks) < -FEASIBILITY_TOLERANCE
                lost += penalty[j] if violated else best[j] - sum_by_halves(revenues)
            regret[j] += lost


@kernel
def by_rounds(states, tables, lanes, best, penalty, played, rounds, regret):
    """Plays as :func:`in_lanes` does, but each round of all agents of all replicas before the next round.

    So a policy outside of the loop could play it. Arrays lead with replicas, ``(replicas, ...)``. Words that a replica
    has drawn for a round, and does not use in it, are lost.
    """
    for t in range(played, played + rounds):
        for r in range(states.shape[0]):
            in_lanes(states[r], tables[r], lanes[r], best[r], penalty[r], t, 1, regret[r])


@kernel
def share(state, noise, before, played):
    """Sends what own sums have grown by, noisy, to all others, who check and weigh it (Procedure 1, guarded).

    Args:
        state: ``(agents, 7, producers)``.
        noise: Of the messages on units and on good ones, ``(agents, 2, producers)``; receives the messages.
        before: Sums after the last sharing, likewise; receives the new ones.
        played: Rounds played.
    """
    agents, _, producers = state.shape
    for s in range(agents):
        for which in range(2):
            for i in range(producers):
                noise[s, which, i] += state[s, which, i] - before[s, which, i]
    factor = OMEGA1 * OMEGA1 * 1.5 * np.log(float(agents * played))
    for j in range(agents):
        for s in range(agents):
            if s == j:
                continue
            for i in range(producers):
                w, y = noise[s, 0, i], noise[s, 1, i]
                if not (w > 0.0 and 0.0 <= y <= w):
                    continue
                weight = state[j, UNITS, i]
                if abs(y / w - state[j, GOOD, i] / weight) <= np.sqrt(factor / weight):
                    state[j, UNITS, i] += OMEGA2 * w
                    state[j, GOOD, i] += OMEGA2 * y
        for which in range(2):
            for i in range(producers):
                before[j, which, i] = state[j, which, i]


@kernel
def unit_of_each(state, tables, lanes, best, penalty, played, rounds, regret):
    """Buys a unit of each producer; the environment alone. Arguments are those of :func:`one_pass`."""
    words, used = np.empty(WIDTH, np.uint32), WIDTH
    producers = state.shape[2]
    for j in range(state.shape[0]):
        units, good, cost, quality = state[j, UNITS], state[j, GOOD], state[j, COST], state[j, QUALITY]
        for _ in range(rounds):
            slack, revenue = 0.0, 0.0
            for i in range(producers):
                if used == WIDTH:
                    refill(lanes, words)
                    used = 0
                good[i] += words[used] * 2.0**-32 < quality[i]
                used += 1
                units[i] += 1.0
                slack += quality[i] - ALPHA
                revenue += quality[i] - cost[i]
            regret[j] += penalty[j] if slack < -FEASIBILITY_TOLERANCE else best[j] - revenue


class Silent:
    """SS-UCB: ten agents, 30 producers, an episode a seed."""

    def __init__(self, seeds, kernel=in_lanes) -> None:
        env = parallel_env()
        seen, quality = env.reset_batch(seeds).observation, env.hidden()["quality"]
        optimum = procure(quality, seen, exact=True)
        cost, capacity = seen["cost"], seen["capacity"]
        self._best = expected_revenue(optimum, quality[:, 0], cost, 1.0)
        self._penalty = self._best - (capacity * np.minimum(quality - cost, 0.0)).sum(axis=-1)
        replicas, agents, producers = cost.shape
        width = producers if kernel in (one_pass, unit_of_each) else WIDTH
        self._state = np.zeros((replicas, agents, 7, width))
        self._state[:, :, UNITS] = self._state[:, :, COST] = 1.0
        given = self._state[..., :producers]
        given[:, :, COST], given[:, :, CAPACITY], given[:, :, QUALITY] = cost, capacity, quality
        self._tables = np.stack([outcome_tables(row[0]) for row in quality])
        self._lanes = np.stack([fresh_lanes(int(seed)) for seed in seeds])
        self._rng = np.random.default_rng(list(seeds))
        self._kernel = kernel
        self.played, self.regret = 0, np.zeros((replicas, agents))
        self._explore(given)

    def _explore(self, given) -> None:
        """Plays the first round: a unit of each producer."""
        quality, cost = given[:, :, QUALITY], given[:, :, COST]
        given[:, :, GOOD] = self._rng.random(quality.shape) < quality
        violated = (quality - ALPHA).sum(axis=-1) < -FEASIBILITY_TOLERANCE
        self.regret += np.where(violated, self._penalty, self._best - (quality - cost).sum(axis=-1))
        self.played = 1

    @property
    def sums(self) -> np.ndarray:
        """Units and good ones that estimates rest on, ``(replicas, agents, 2, producers)``."""
        return self._state[:, :, : GOOD + 1]

    def play(self, rounds: int) -> None:
        arrays = self._state, self._tables, self._lanes, self._best, self._penalty
        if self._kernel is by_rounds:
            by_rounds(*arrays, self.played, rounds, self.regret)
        else:
            for *of_replica, regret in zip(*arrays, self.regret, strict=True):
                self._kernel(*of_replica, self.played, rounds, regret)
        self.played += rounds


class Private(Silent):
    """P-FCB: the same behind noise, shared in rounds 256, 512, ..., 32768."""

    def __init__(self, seeds, kernel=in_lanes, epsilon: float = 1.0, horizon: int = 10**6) -> None:
        super().__init__(seeds, kernel)
        shares = decreasing(epsilon, horizon)
        self._multipliers = [classic_noise_multiplier(float(part), 0.01) for part in shares]
        self._before = np.zeros_like(self.sums)
        # What pads the state is no data.
        self._before[:, :, UNITS] = self._state[:, :, CAPACITY] == 0.0

    def play(self, rounds: int) -> None:
        until = self.played + rounds
        for number, when in enumerate(2**power for power in range(8, 16)):
            if self.played < when <= until:
                super().play(when - self.played)
                self._share(number)
        super().play(until - self.played)

    def _share(self, number: int) -> None:
        capacity = self._state[:, :, np.newaxis, CAPACITY]
        noise = self._multipliers[number] * capacity * self._rng.standard_normal(self.sums.shape)
        for replica, state in enumerate(self._state):
            share(state, noise[replica], self._before[replica], self.played)
