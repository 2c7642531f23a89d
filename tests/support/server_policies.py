"""Server policies, and agents that answer them, for tests of servers that compute."""

from functools import partial

import numpy as np

from fedbandit_envs.arms_v0 import parallel_env as arms
from fedbandit_envs.basics.arrays import zeros
from fedbandit_envs.linear_v0 import parallel_env as linear
from fedbandit_envs.wrappers.transport.server_policy import Ask

small_linear = partial(linear, num_agents=4, num_arms=3, dim=2, max_cycles=200)
small_arms = partial(arms, num_agents=4, num_arms=10, max_cycles=200)


def pulls(env, t, replicas=1):
    """Everybody pulls another arm, and another one in each round."""
    rows = replicas, env.max_num_agents
    return (np.arange(rows[0] * rows[1]).reshape(rows) * 7 + t * t) % 3


class Function:
    """A policy without memory, which answers all agents what a function of uploads and mask returns."""

    def __init__(self, function):
        self.answer = function

    def downloads(self, spec):
        answer = self.answer(zeros(spec.release, (1, spec.agents), float), np.ones((1, spec.agents), bool))
        arrays = {name: np.asarray(array) for name, array in answer.items()}
        return {name: {"shape": array.shape[1:], "dtype": array.dtype} for name, array in arrays.items()}

    def reset(self, spec, seeds):
        return None


class Rounds:
    """Answers how many rounds had uploads, to each agent plus its own index."""

    downloads = {"rounds": {"shape": [], "dtype": "int64"}}  # noqa: RUF012 - JSON

    def reset(self, spec, seeds):
        self._rounds, self._agents = np.zeros(len(seeds), np.int64), np.arange(spec.agents)

    def answer(self, uploads, mask):
        self._rounds += mask.any(axis=1)
        return {"rounds": self._rounds[:, np.newaxis] * 10 + self._agents}


class Pooled:
    """Asks for gradients of the squared error until the model of all data is found; each replica stops by itself."""

    def __init__(self, rate=0.1, tolerance=1e-10, most=np.inf):
        self._rate, self._tolerance, self._most = rate, tolerance, most

    def downloads(self, spec):
        return {"model": {"shape": spec.release["gradient"].shape, "dtype": "float64"}}

    def reset(self, spec, seeds):
        self._model = np.zeros((len(seeds), *spec.release["gradient"].shape))
        self._number = np.zeros(len(seeds), np.int64)
        self._busy = np.zeros(len(seeds), bool)
        self._talking = False

    def answer(self, uploads, mask):
        if not self._talking:
            # The first reports are replies to no question, and say only who takes part.
            self._busy = mask.any(axis=1)
            self._who, self._steps = mask.copy(), np.zeros(len(mask))
        else:
            gradient = uploads["gradient"].sum(axis=1)
            norm = np.linalg.norm(gradient, axis=1)
            # Without any report the question is asked again.
            heard = mask.any(axis=1) & self._busy
            self._model[heard] -= (
                self._rate * gradient[heard] / np.maximum(1, uploads["n"].sum(axis=1))[heard, None]
            )
            self._steps += heard
            self._busy &= ~(heard & ((norm <= self._tolerance) | (self._steps >= self._most)))
        self._talking = bool(self._busy.any())
        if self._talking:
            return Ask({"model": self._model[:, np.newaxis].copy()}, self._who & self._busy[:, np.newaxis])
        return {"model": self._model.copy()}


class Gradients:
    """The agents' side: the gradient of the ridge-regularised squared error over an agent's own rows, and its rows."""

    def reset(self, spec, seeds):
        (dim,) = spec.release["gradient"].shape
        self._gram, self._moment = np.zeros((*seeds.shape, dim, dim)), np.zeros((*seeds.shape, dim))
        self._rows = np.zeros(seeds.shape)

    def observe(self, observation):
        if observation["round"].any():
            x, y = observation["pulled_context"], observation["last_reward"]
            self._gram += x[..., :, np.newaxis] * x[..., np.newaxis, :]
            self._moment += x * y.reshape(*x.shape[:2], 1)
            self._rows += 1

    def report(self, question):
        if question is None:
            return {"gradient": np.zeros_like(self._moment), "n": self._rows}
        product = (self._gram @ question["model"][..., np.newaxis])[..., 0]
        return {"gradient": product + question["model"] - self._moment, "n": self._rows}


ARRAYS = {"gradient": {"shape": [2], "dtype": "float64"}, "n": {"shape": [], "dtype": "float32"}}
