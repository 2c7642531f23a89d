"""CPU milliseconds and memory of a round with a server, for 100, 300 and 1,000 agents, with fitted exponents.

OMP_NUM_THREADS=1 python -m benchmarks.bench_server

Linear bandits with ten dimensions and ten arms, where all agents upload and download in every round. "sums": the server
answers the sum of uploads, and each agent solves its own regression (OFUL-shared). "ridge": the server solves one
regression and answers the estimate (`ServedLinUCB`). "questions": the server asks all agents twenty questions a round.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from benchmarks.growth.page import exponent
from benchmarks.growth.series import Series, measure

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.linear import ServedLinUCB
from fedbandit_envs.linear_v0 import parallel_env
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import Messages, Server
from fedbandit_envs.wrappers.transport.server_policy import Ask

ROUNDS, DIM, QUESTIONS = 20, 10, 20
AGENTS = (100, 300, 1000)


class Asking:
    """A server that asks a fixed number of questions in a round, and then answers the mean of the last reports."""

    downloads = {"model": {"shape": [DIM], "dtype": "float64"}}  # noqa: RUF012 - JSON

    def reset(self, spec, seeds):
        self._left = QUESTIONS

    def answer(self, uploads, mask):
        model = uploads["gradient"].mean(axis=1)
        if self._left:
            self._left -= 1
            return Ask({"model": model[:, np.newaxis]})
        self._left = QUESTIONS
        return {"model": model}


class Echoing:
    """A reporter whose reports are what it is asked."""

    def reset(self, spec, seeds):
        self._zeros = np.zeros((*seeds.shape, DIM))

    def observe(self, observation):
        pass

    def report(self, question):
        return {"gradient": self._zeros if question is None else question["model"]}


def played(name: str, rounds: int, *, num_agents: int) -> Callable[[], None]:
    """Makes an episode of so many rounds, from building the environment on."""

    def play() -> None:
        env = parallel_env(num_agents=num_agents, num_arms=10, dim=DIM, max_cycles=ROUNDS)
        if name == "questions":
            env = Messages(env, {"gradient": {"shape": [DIM]}}, reporter=Echoing())
            env, policy = Server(env, "every_round", policy=Asking()), None
        else:
            if name == "ridge":
                env, policy = Server(env, "every_round", policy="ridge"), ServedLinUCB()
            else:
                env, policy = BASELINES["OFUL-shared"].wrap(env), BASELINES["OFUL-shared"].make_policy()
            policy.reset(env.policy_spec, row_seeds([0], num_agents))
        observation, idle = env.reset_batch([0]).observation, np.zeros((1, num_agents), np.int64)
        for _ in range(rounds):
            observation = env.step_batch(policy.act(observation) if policy else idle).observation

    return play


def main() -> None:
    print("| server | agents | ms a round | kB | exponents of time and memory |")
    print("|---|---:|---:|---:|---|")
    for name in ("sums", "ridge", "questions"):
        # What an episode of one round takes is subtracted: it is the start.
        start, whole = (
            list(
                measure(
                    name, Series(partial(played, name, rounds), {}, "num_agents", AGENTS, "1", "1"), AGENTS, 3
                )
            )
            for rounds in (1, ROUNDS)
        )
        times = [1000 * (b.seconds - a.seconds) / (ROUNDS - 1) for a, b in zip(start, whole, strict=True)]
        memory = [point.kilobytes for point in whole]
        exponents = f"{exponent(AGENTS, times).slope:.2f}, {exponent(AGENTS, memory).slope:.2f}"
        for agents, taken, held in zip(AGENTS, times, memory, strict=True):
            print(f"| {name} | {agents:,} | {taken:.2f} | {held:,.0f} | {exponents} |")


if __name__ == "__main__":
    main()
