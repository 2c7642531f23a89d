"""Runs of silos on data that a simulation has left, step by step, and what the simulation itself did."""

import os
from collections import namedtuple

import numpy as np

from fedbandit_envs.randomness.streams import row_seeds
from fedbandit_envs.silos import Message, Silo, SiloPlan

SEED = 7
FROM_ONE = {"name": "doubling", "start": 1, "stop": None}


SUMS = {"schedule": FROM_ONE, "echo": False}


def noisy(privatizer="GaussianPrivatizer", schedule=FROM_ONE, transport=None, **arguments):
    """A stack of a privatizer with epsilon 1 for all releases of a schedule, and a transport that follows it."""
    noise = {"epsilon": 1.0, "delta": 1e-5, "releases": schedule, **arguments}
    return [[privatizer, noise], ["Server", transport] if transport else ["Channel", {"schedule": schedule}]]


def plan_of(problem, rounds=40, agents=3, **changes):
    """A small plan of arms, linear or procurement."""
    sizes = {"num_agents": agents}
    baseline, env_id, kwargs = {
        "arms": ("Priv-UCB1", "FedArms-v0", {"num_arms": 4}),
        "linear": ("FedUCB", "FedLinear-v0", {"num_arms": 6, "dim": 3}),
        "procurement": ("P-FCB", "FedProcurement-v0", {"num_producers": 4}),
    }[problem]
    wrappers = {"channel": {"schedule": FROM_ONE}} if problem == "procurement" else {}
    return SiloPlan(
        **{"baseline": baseline, "env_id": env_id, "rounds": rounds, "wrapper_kwargs": wrappers}
        | changes
        | {"env_kwargs": sizes | kwargs}
    )


Row = namedtuple("Row", "given action outcome messages spent")  # one round of all agents


def simulated(plan):
    """The rounds of a simulation of a plan, the totals at its end, and its claim."""
    parts = plan.make()
    env, problem, policy = parts.env, parts.problem, parts.policy
    seen = env.reset_batch([SEED]).observation
    policy.reset(env.policy_spec, row_seeds([SEED], env.max_num_agents))
    own = ("round", *problem.learned, *(f"total_{name}" for name in problem.statistics))
    given = [name for name in problem.single_observation_space if name not in own]
    before, rows = {name: seen[f"total_{name}"][0].copy() for name in problem.statistics}, []
    for t in range(1, plan.rounds + 1):
        shown = {name: seen[name][0].copy() for name in given}
        action = np.array(policy.act(seen))
        seen, reward, _, info = env.step_batch(action)
        grown = {name: seen[f"total_{name}"][0] - total for name, total in before.items()}
        before = {name: seen[f"total_{name}"][0].copy() for name in before}
        outcome = grown["good"] if "good" in grown else reward[0].copy()
        if "successes" in grown:
            arms = action[0].reshape(len(reward[0]), -1)
            outcome = np.take_along_axis(grown["successes"], arms, axis=1)
        # The channel stores each message once, for all.
        sent = {name: parts.transport._inbox[f"inbox_{name}"][0].copy() for name in plan.layout.shapes}
        sends = plan.layout.schedule.sends(t)
        rows.append(Row(shown, action[0], outcome, sent if sends else None, info["epsilon_spent"][0].copy()))
    return rows, before, env.privacy()


def play(plan, agent, store, rows, post, done=lambda silo, message: None, noise="repeatable"):
    """Plays one silo from where its store is until the end, on a simulation's rows; returns the open silo.

    Args:
        plan: The plan.
        agent: The silo's number.
        store: Path of the store.
        rows: The rows of the simulation.
        post: Given the message of a release, or None, and the number of the last one, returns those of all others.
        done: Is given the silo after each call, and the message if one has been released.
        noise: Of the silo. Without repeatable noise actions and messages may be others than the simulation's.
    """
    silo = Silo(plan, agent, store, SEED if noise == "repeatable" else None)
    same = noise == "repeatable"
    while True:
        if silo.due:
            done(silo, silo.release())
        last = silo.messages[-1] if silo.messages else None
        if last is not None and silo.pending is None and last.parts[0][1] == silo.round:
            if same:
                for name, array in last.arrays.items():
                    assert np.array_equal(array, rows[silo.round - 1].messages[name][agent]), (
                        silo.round,
                        name,
                    )
            missing = [m for m in post(last) if m.parts[-1][1] > silo.received.get(m.parts[-1][0], 0)]
            if missing:
                done(silo, silo.receive([message.encode() for message in missing]))
        if same and silo.round and silo.pending is None:
            assert silo.privacy().epsilon == rows[silo.round - 1].spent[agent]
        if silo.round == plan.rounds:
            return silo
        row = rows[silo.round]
        if silo.pending is None:
            silo.act({name: value[agent] for name, value in row.given.items()})
            done(silo, None)
        if same:
            assert np.array_equal(silo.pending, row.action[agent]), silo.round
        # A silo with other noise takes the simulation's actions, whose outcomes are known.
        done(silo, silo.observe(row.action[agent], row.outcome[agent]))


def relayed(plan, rows):
    """A ``post`` for silo 0: the messages of all others in a simulation."""

    def post(message):
        ((_, round_),) = message.parts
        sent = rows[round_ - 1].messages
        return [
            Message(plan.identity, ((j, round_),), {name: a[j] for name, a in sent.items()})
            for j in range(1, plan.layout.agents)
        ]

    return post


def forked(work):
    """Runs a function in a child of this process, and returns the child's id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child
