"""CPU milliseconds and memory of a round with a server, for 100, 300 and 1,000 agents, with fitted exponents.

OMP_NUM_THREADS=1 python -m benchmarks.bench_server

Linear bandits with ten dimensions and ten arms, where all agents upload and download in every round. "sums": the server
answers the sum of uploads, and each agent solves its own regression (OFUL-shared). "ridge": the server solves one
regression and answers the estimate (`ServedLinUCB`). "questions": the server asks all agents twenty questions a round.
"""

import tracemalloc
from collections.abc import Callable
from time import process_time

import numpy as np

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


def played(name: str, rounds: int, num_agents: int) -> Callable[[], None]:
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


def seconds(play: Callable[[], None]) -> float:
    """Returns the CPU time of the fastest of three episodes."""
    taken = []
    for _ in range(3):
        start = process_time()
        play()
        taken.append(process_time() - start)
    return min(taken)


def kilobytes(play: Callable[[], None]) -> float:
    """Returns the most memory that Python and NumPy hold during an episode."""
    tracemalloc.start()
    play()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1000


def main() -> None:
    print("| server | agents | ms a round | kB | exponents of time and memory |")
    print("|---|---:|---:|---:|---|")
    for name in ("sums", "ridge", "questions"):
        # What an episode of one round takes is subtracted: it is the start. The first episode compiles kernels.
        played(name, 1, AGENTS[0])()
        times = [
            1000 * (seconds(played(name, ROUNDS, n)) - seconds(played(name, 1, n))) / (ROUNDS - 1)
            for n in AGENTS
        ]
        memory = [kilobytes(played(name, ROUNDS, n)) for n in AGENTS]
        slopes = [np.polyfit(np.log(AGENTS), np.log(values), 1)[0] for values in (times, memory)]
        for agents, taken, held in zip(AGENTS, times, memory, strict=True):
            print(f"| {name} | {agents:,} | {taken:.2f} | {held:,.0f} | {slopes[0]:.2f}, {slopes[1]:.2f} |")


if __name__ == "__main__":
    main()
