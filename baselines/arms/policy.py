"""A bandit agent: a rule's scores of what is known, own and heard, and the arms that are pulled for them."""

import numpy as np

from fedbandit_envs.arms.oracle import Oracle
from fedbandit_envs.arrays import Array, Arrays
from fedbandit_envs.baselines.arms.posteriors import arm_keys, open_unit
from fedbandit_envs.baselines.arms.rules import Rule, Setting
from fedbandit_envs.baselines.policy import UnfitError
from fedbandit_envs.baselines.pool import PoolSpec, make_pool
from fedbandit_envs.compiled import kernel
from fedbandit_envs.draws import Draws
from fedbandit_envs.spaces import Spaces
from fedbandit_envs.threefry import threefry, u32


@kernel
def _know(own_pulls, own_successes, heard_pulls, heard_successes, pulls, sums):
    """Writes what is known of arms: own counts and what is heard, as far as that can be counts of anything."""
    for r in range(pulls.shape[0]):
        for k in range(pulls.shape[1]):
            # Noise can make them negative, or successes more than pulls.
            heard = max(heard_pulls[r, k], 0.0)
            pulls[r, k] = own_pulls[r, k] + heard
            sums[r, k] = own_successes[r, k] + min(max(heard_successes[r, k], 0.0), heard)


@kernel
def _best(free, pulls, scores, r):
    """Returns row r's first free arm that was never pulled, else the first of the largest score; -1 if none is free."""
    best, most = -1, -1.0
    for k in range(free.shape[1]):
        if free[r, k]:
            if not pulls[r, k] > 0.0:
                return k
            if scores[r, k] > most:
                best, most = k, scores[r, k]
    return best


@kernel
def _draw(free, scores, same, r, uniform):
    """Returns the free arm of row r where scores, or the ``same`` for all, exceed a part of their sum; there is one."""
    total = 0.0
    for k in range(free.shape[1]):
        if free[r, k]:
            total += 1.0 if same else scores[r, k]
    last, reach, threshold = 0, 0.0, uniform * total
    for k in range(free.shape[1]):
        if free[r, k]:
            last = k
            reach += 1.0 if same else scores[r, k]
            if reach > threshold:
                break
    return last


@kernel
def _pick(active, awake, pulls, scores, chance, proportional, key, round_, free, arms):
    """Picks arms for all rows that act; the others keep theirs.

    An arm that was never pulled comes first; then one at random where the row explores, else by scores.

    Args:
        active: Which act, bool ``(rows,)``.
        awake: Which arms are available, bool ``(rows, all arms)``.
        pulls: What is known, ``(rows, all arms)``.
        scores: Likewise.
        chance: Probability of exploration, ``(rows,)``.
        proportional: Whether arms are picked in proportion to scores.
        key: Of draws, uint32 ``(rows, 2)``. Slot s has pair s of the round: its second word draws the arm, and slot 0's
            first one says whether the row explores.
        round_: t >= 1, ``(rows,)``.
        free: Scratch, bool ``(rows, all arms)``.
        arms: Receives arms, int64 ``(rows, slots)``; where there are fewer than slots, the first for what is left.
    """
    slots = arms.shape[1]
    for r in range(arms.shape[0]):
        if not active[r]:
            continue
        draws, explores = proportional or chance[r] > 0.0, False
        if slots > 1:
            free[r] = awake[r]
        for s in range(slots):
            if draws:
                coin, word = threefry(key[r, 0], key[r, 1], u32(round_[r]), u32(s))
                if s == 0:
                    explores = open_unit(coin) <= chance[r]
            left = free if slots > 1 else awake
            arm = _best(left, pulls, scores, r)
            if (explores or proportional) and arm >= 0 and pulls[r, arm] > 0.0:
                arm = _draw(left, scores, explores, r, open_unit(word))
            arms[r, s] = max(arm, 0)
            if slots > 1 and arm >= 0:
                free[r, arm] = False


class ArmPolicy:
    """Pulls the arms that a rule scores best, each arm once first (SAMBA, Figure 3).

    What agents hear of each other is put together by a ``pool`` and added to the own counts; what noise makes
    impossible is brought to what could be: counts at least 0, successes no more than pulls. With several slots the arms
    with the largest scores are pulled, or drawn in proportion one after the other.
    Arms that sleep are not. An ``oracle`` takes the place of the largest scores.
    """

    def __init__(self, rule: Rule, pool: PoolSpec = "sum", oracle: Oracle | None = None) -> None:
        """Sets the policy up.

        Args:
            rule: Scores arms.
            pool: How what is heard is put together, see :mod:`fedbandit_envs.baselines.pool`.
            oracle: Picks arms for scores, see :mod:`fedbandit_envs.arms.oracle`; None for the largest.

        Raises:
            TypeError: ``pool`` has the wrong type.
            ValueError: ``pool`` is unknown.
        """
        self._rule = rule
        self._pool = make_pool(pool)
        self._oracle = oracle

    def reset(self, spaces: Spaces, seeds: Array) -> None:
        """Forgets all observations; see :meth:`Policy.reset`.

        Raises:
            UnfitError: Agents hear their own messages, whose content they know already.
        """
        seen = spaces.observation.spaces
        if "sent" in seen:
            raise UnfitError(
                "what agents hear of themselves would count twice; a transport with echo=False is required"
            )
        number = (seen["total_pulls"].shape or (0,))[0]
        action = spaces.own_action
        self._shape = (*seeds.shape, *(action.shape or ()))
        rows, slots = seeds.size, int(np.prod(action.shape or ()))
        self._keys = Draws.of_policy(seeds, 0).key.reshape(rows, 2)
        arms = arm_keys(seeds, number).reshape(rows, number, 2)
        self._rule.begin(Setting(rows, number, number, spaces.horizon, arms))
        self._pulls, self._sums, self._scores = np.zeros((3, rows, number))
        self._arms = np.zeros((rows, slots), np.int64)
        self._marked = np.zeros((rows, 1), np.int64)
        self._marks = np.zeros((rows, number), np.bool_)
        self._chance, self._never = np.zeros((2, rows))
        self._everyone, self._all_awake = np.ones(rows, np.bool_), np.ones((rows, number), np.bool_)
        self._free = np.ones((rows, number), np.bool_)
        self._heard = (
            self._pool.counts(seeds.shape, spaces, ("pulls", "successes")) if "inbox_mask" in seen else None
        )

    def act(self, observation: Arrays) -> Array:
        """Returns arms, int64 ``(replicas, agents)`` or ``(replicas, agents, slots)``; see :meth:`Policy.act`."""
        self._learn(observation)
        round_ = observation.get("own_round", observation["round"]).reshape(-1) + 1
        active = observation["active"].reshape(-1) if "active" in observation else self._everyone
        awake = observation["awake"].reshape(self._pulls.shape) if "awake" in observation else self._all_awake
        self._chance[...] = self._rule.exploration(round_)
        for iteration in range(self._rule.iterations):
            self._rule.scores(round_, self._pulls, self._sums, iteration, self._scores)
            if iteration < self._rule.iterations - 1:
                self._mark(iteration, round_, active, awake)
        if self._oracle is None:
            _pick(
                active, awake, self._pulls, self._scores, self._chance, self._rule.choice == "proportional",
                self._keys, round_, self._free, self._arms,
            )  # fmt: skip
        else:
            self._ask_oracle(active, awake)
        return self._arms.reshape(self._shape)

    def _learn(self, observation: Arrays) -> None:
        """Puts together what is known."""
        own = observation["total_pulls"], observation["total_successes"]
        if self._heard is None:
            for known, counts in zip((self._pulls, self._sums), own, strict=True):
                known[...] = counts.reshape(known.shape)
            return
        mask = observation["inbox_mask"]
        if mask.any():
            self._heard.add(observation, own, mask[..., np.newaxis])
        arrays = (*own, self._heard.total, self._heard.good)
        _know(*(array.reshape(self._pulls.shape) for array in arrays), self._pulls, self._sums)

    def _mark(self, iteration: int, round_: Array, active: Array, awake: Array) -> None:
        _pick(
            active,
            awake,
            self._pulls,
            self._scores,
            self._never,
            False,
            self._keys,
            round_,
            self._free,
            self._marked,
        )
        self._marks.fill(False)
        np.put_along_axis(self._marks, self._marked, True, axis=1)
        self._rule.mark(iteration, self._marks, active)

    def _ask_oracle(self, active: Array, awake: Array) -> None:
        assert self._oracle is not None
        known = np.where(self._pulls > 0, self._scores, np.inf)
        chosen = self._oracle(np.where(awake, known, -np.inf), self._arms.shape[1])
        self._arms[active] = chosen[active]
