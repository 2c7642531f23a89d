"""Messages that a policy or a reporter writes, for tests of wrappers around them."""

from functools import partial

import numpy as np
from arms_env import ArmsEnv

from fedbandit_envs.testing import check_wrapper
from fedbandit_envs.wrappers import Messages

ARRAYS = {
    "age": {"shape": [], "dtype": "int16"},
    "model": {"shape": [2, 3], "dtype": "float32"},
    "votes": {"shape": [5], "dtype": "bool"},
}
ONE = {"gradient": {"shape": [2]}}


class Sums:
    """Reports the agent's own statistics so far, plus a number of its seed's, plus what a server asks."""

    def reset(self, spec, seeds):
        self.names = sorted(name for name in spec.observation if name.startswith("total_"))
        self.shape = spec.release["sums"].shape
        self.luck = (seeds % np.uint64(7)).astype(np.float64)
        self.rounds = -1

    def observe(self, observation):
        self.rounds += 1
        self.sums = sum(
            observation[name].sum(axis=tuple(range(2, observation[name].ndim))) for name in self.names
        )

    def report(self, question):
        told = self.sums + self.luck + self.rounds
        if question is not None:
            told = told + question["of"][..., 0]
        return {"sums": np.broadcast_to(told[..., np.newaxis], (*told.shape, *self.shape)).astype(np.float64)}


SUMS = {"sums": {"shape": [2]}}


def with_sums(env):
    return Messages(env, SUMS, Sums())


class Author:
    """Pulls arm 0 and writes how often it has; with ``send`` where the federation asks for it."""

    def reset(self, spec, seeds):
        self.asks = spec.chooses_sending

    def act(self, observation):
        pulls = observation["total_pulls"]
        action = {
            "action": np.zeros(pulls.shape[:2], np.int64),
            "message": {"gradient": pulls[..., :2] + 0.5},
        }
        return action | ({"send": np.ones(pulls.shape[:2], bool)} if self.asks else {})


INNER = {"policy": partial(Messages, arrays=ARRAYS), "reporter": with_sums}
"""Wrappers of messages by who writes them."""


def check_stack(stack, author, checked):
    """Checks a stack around messages: with them, as wrappers of the problem, or without them."""
    if checked == "with messages":
        check_wrapper(lambda env: stack(INNER[author](env)), ArmsEnv)
    else:
        check_wrapper(stack, lambda: INNER[author](ArmsEnv()))
