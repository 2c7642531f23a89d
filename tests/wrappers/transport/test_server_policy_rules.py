"""Server policies that keep the rules pass the check, and those that break one are caught."""

import numpy as np
import pytest
from refusals import refusals
from server_policies import ARRAYS, Gradients, Pooled, Rounds, small_linear

from fedbandit_envs.testing import check_server_policy
from fedbandit_envs.wrappers import Messages


@pytest.mark.parametrize(
    "policy", ["average", {"name": "ridge"}, Rounds(), lambda uploads, mask: {"n": mask.sum(axis=1)}]
)
def test_good_policies_pass(policy):
    check_server_policy(policy, small_linear)


def talking():
    return Messages(small_linear(), ARRAYS, reporter=Gradients())


def test_a_good_conversation_passes(monkeypatch):
    """In few rounds, each with several questions."""
    monkeypatch.setattr("fedbandit_envs.testing.policy.SERVER_HORIZON", 15)
    check_server_policy(Pooled(rate=0.5, tolerance=0.1), talking)


class Mixing(Rounds):
    """Replicas share a counter."""

    def answer(self, uploads, mask):
        rounds = super().answer(uploads, mask)["rounds"]
        return {"rounds": rounds.max(axis=0, keepdims=True).repeat(len(mask), 0)}


class Restless(Rounds):
    """Counts calls, not rounds with uploads."""

    def answer(self, uploads, mask):
        self._rounds += 1
        return {"rounds": self._rounds.copy()}


class Forgetless(Rounds):
    """Reset forgets nothing."""

    def reset(self, spec, seeds):
        if not hasattr(self, "_rounds") or len(self._rounds) != len(seeds):
            super().reset(spec, seeds)


class Keeping(Rounds):
    """Keeps the array of the last call's marks."""

    _last = None

    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self._last = None

    def answer(self, uploads, mask):
        right = super().answer(uploads, mask)["rounds"]
        if self._last is not None:
            right = right + self._last * mask.any(axis=1, keepdims=True)
        self._last = mask
        return {"rounds": right}


class Writing(Rounds):
    """Writes into its uploads."""

    def answer(self, uploads, mask):
        uploads["statistic"][...] = 0
        return super().answer(uploads, mask)


class Random(Rounds):
    """Draws from no seed of its own."""

    def answer(self, uploads, mask):
        return {"rounds": np.random.default_rng().integers(0, 10**9, mask.shape)}


class OtherType(Rounds):
    """Answers other integers than declared."""

    def answer(self, uploads, mask):
        return {"rounds": super().answer(uploads, mask)["rounds"].astype(np.int32)}


class OneSeed(Rounds):
    """Draws for all replicas from the first one's seed."""

    def reset(self, spec, seeds):
        super().reset(spec, seeds)
        self._draw = int(seeds[0] % 1000)

    def answer(self, uploads, mask):
        return {"rounds": super().answer(uploads, mask)["rounds"] + self._draw}


class Everybody(Pooled):
    """Stops all conversations when the first replica is done."""

    def answer(self, uploads, mask):
        reply = super().answer(uploads, mask)
        if self._talking and not self._busy.all():
            self._talking = False
            return {"model": self._model.copy()}
        return reply


test_policies_that_break_the_rules_are_caught = refusals(
    lambda mutant: check_server_policy(mutant(), small_linear),
    (Mixing, "replica 0, alone|replica 1, alone|replica 2, alone"),
    (Restless, "alone and among the others"),
    (Forgetless, "after reset"),
    (Keeping, "overwritten after each call"),
    (Writing, "read-only"),
    (Random, "of two episodes"),
    (OtherType, "answer 'rounds' is int32"),
    (OneSeed, "alone and among the others"),
    error=AssertionError,
)


def test_a_conversation_that_ends_for_all_at_once_is_caught(monkeypatch):
    monkeypatch.setattr("fedbandit_envs.testing.policy.SERVER_HORIZON", 15)
    with pytest.raises(AssertionError, match="alone and among the others"):
        check_server_policy(Everybody(rate=0.5, tolerance=0.1), talking)
