"""Measures how CPU time and memory of a federation grow with its agents, if every agent sends in every round.

OMP_NUM_THREADS=1 python -m benchmarks.bench_growth [PICTURE]

Agents play FedUCB in linear bandits with ten dimensions and 100 arms, or UCB1 with ten arms. Releases carry Gaussian
noise. `silent` agents send nothing. In `complete` agents send to all, in `ring` to two neighbours. In `server` they
send to a server, which sends each agent what the others have sent. In `sum` they use a secure sum. In `ridge` a server
solves one regression for all agents, and no release carries noise. In `questions` a server asks every agent twenty
questions in a round. Milliseconds are the median over 20 rounds and include the policy. Before it measures memory, the
process plays a small episode. Megabytes are the memory that it gains after that.
"""

import subprocess
import sys
from resource import RUSAGE_SELF, getrusage
from time import process_time

import numpy as np
from matplotlib.figure import Figure

from fedbandit_envs import make_federation
from fedbandit_envs.baselines.arms import UCB1
from fedbandit_envs.baselines.linear import FedUCB, ServedLinUCB
from fedbandit_envs.baselines.linear.linucb import UniformArm
from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer, Messages, Server
from fedbandit_envs.wrappers.transport.server_policy import Ask

ROUNDS, DIM, QUESTIONS = 20, 10, 20
PLAIN, SERVED = (10, 30, 100, 300, 1000), (100, 1000, 10_000)
PROBLEMS = {
    "linear": ("FedLinear-v0", {"num_arms": 100, "dim": DIM}, FedUCB),
    "arms": ("FedArms-v0", {"num_arms": 10}, UCB1),
    "ridge": ("FedLinear-v0", {"num_arms": 10, "dim": DIM}, ServedLinUCB),
    "questions": ("FedLinear-v0", {"num_arms": 10, "dim": DIM}, UniformArm),
}


class Asking:
    """A server that asks a fixed number of questions in a round, and then answers the mean of the last reports."""

    downloads = {"model": {"shape": [DIM], "dtype": "float64"}}  # noqa: RUF012 - never written to

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


def noisy(env):
    return GaussianPrivatizer(env, epsilon_per_release=1.0)


def secure_sum(env):
    return Channel(noisy(env), stage={"name": "aggregator", "honest": env.max_num_agents // 2})


def asked(env):
    messages = Messages(env, {"gradient": {"shape": [DIM]}}, reporter=Echoing())
    return Server(messages, "every_round", policy=Asking())


FORMS = {
    "silent": (lambda env: env, (*PLAIN, 10_000)),
    "complete": (lambda env: Channel(noisy(env)), PLAIN),
    "ring": (lambda env: Channel(noisy(env), "ring", time_to_live=1), PLAIN[2:]),
    "server": (lambda env: Server(noisy(env), "every_round", "every_round", echo=False), SERVED),
    "sum": (secure_sum, SERVED),
    "ridge": (lambda env: Server(env, "every_round", policy="ridge"), SERVED[:2]),
    "questions": (asked, SERVED[:2]),
}


def milliseconds(problem: str, form: str, agents: int) -> list[float]:
    """Returns the CPU time of each round of an episode."""
    entry, sizes, make_policy = PROBLEMS[problem]
    env = FORMS[form][0](make_federation(entry, num_agents=agents, max_cycles=ROUNDS, **sizes))
    observation, policy, taken = env.reset_batch([0]).observation, make_policy(), []
    policy.reset(env.policy_spec, row_seeds([0], agents))
    for _ in range(ROUNDS):
        start = process_time()
        observation = env.step_batch(policy.act(observation)).observation
        taken.append(1000 * (process_time() - start))
    return taken


def one(problem: str, form: str, agents: str) -> None:
    """Prints a line of the table, in a process of its own, which first plays a small episode."""
    milliseconds(problem, form, 4)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    taken = float(np.median(milliseconds(problem, form, int(agents))))
    held = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    print(problem, form, agents, taken, held)


def main(picture: str = "") -> None:
    figure = Figure(figsize=(11, 4.2), dpi=110, layout="constrained")
    panels = dict(zip(("linear", "arms"), figure.subplots(1, 2), strict=True))
    print("| problem | form | agents | ms a round | MB |\n|---|---|---:|---:|---:|")
    for form, (_, sizes) in FORMS.items():
        for problem in [form] if form in PROBLEMS else list(panels):
            found = []
            for agents in sizes:
                again = [sys.executable, "-m", "benchmarks.bench_growth", problem, form, str(agents)]
                line = subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
                found.append(float(line[3]))
                print(
                    f"| {problem} | {form} | {agents:,} | {found[-1]:.2f} | {float(line[4]):.0f} |",
                    flush=True,
                )
            if problem in panels:
                panels[problem].loglog(sizes, found, "o-", label=form)
    for problem, axes in panels.items():
        axes.set(title=f"{problem}: a message in every round", xlabel="agents", ylabel="CPU ms a round")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    if picture:
        figure.savefig(picture)


if __name__ == "__main__":
    one(*sys.argv[1:]) if len(sys.argv) > 2 else main(*sys.argv[1:])
