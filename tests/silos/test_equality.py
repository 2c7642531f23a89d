"""Silos in processes of their own do what the agents of the simulation with the same seeds do, bit for bit."""

import os
import time

import numpy as np
import pytest
from silo_runs import SEED, SUMS, forked, noisy, plan_of, play, relayed, simulated

from fedbandit_envs.silos import Message, Silo
from fedbandit_envs.silos.messages import added

CLIPPED = {"baseline": "fedbandit_envs.baselines.arms:UCB1", "stack": noisy("LaplacePrivatizer", clip=2.0)}
CLIPPED["stack"][0][1].pop("delta")


def posted(folder, plan, message):
    """Writes a message where all silos look, waits for those of all others of its round, and returns them."""
    ((agent, round_),) = message.parts
    file = folder / f"{agent}-{round_}"
    file.with_suffix(".part").write_bytes(message.encode())
    file.with_suffix(".part").rename(file)
    others = [folder / f"{other}-{round_}" for other in range(plan.layout.agents) if other != agent]
    until = time.monotonic() + 60
    while not all(map(os.path.exists, others)):
        assert time.monotonic() < until
        time.sleep(0.001)
    return [Message.decode(other.read_bytes(), plan.layout) for other in others]


@pytest.mark.parametrize(
    ("problem", "rounds", "agents", "changes"),
    [
        ("arms", 40, 3, {}),
        ("linear", 40, 3, {}),
        ("procurement", 40, 3, {}),
        ("arms", 20, 2, CLIPPED),
        *(
            pytest.param(problem, 500, 10, {}, marks=pytest.mark.slow)
            for problem in ("arms", "linear", "procurement")
        ),
    ],
)
def test_processes_do_what_the_simulation_does(tmp_path, problem, rounds, agents, changes):
    plan = plan_of(problem, rounds, agents, **changes)
    rows, totals, claim = simulated(plan)
    assert sum(row.messages is not None for row in rows) == rounds.bit_length()

    def work(agent):
        silo = play(
            plan, agent, tmp_path / f"{agent}.db", rows, lambda message: posted(tmp_path, plan, message)
        )
        silo.close()

    children = [forked(lambda agent=agent: work(agent)) for agent in range(agents)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * agents
    claims = []
    for agent in range(agents):
        with play(plan, agent, tmp_path / f"{agent}.db", rows, None) as silo:
            claims.append(silo.privacy())
            for name, total in totals.items():
                assert np.array_equal(silo.totals[name], total[agent])
    assert max(claims, key=lambda one: one.epsilon) == claim


@pytest.mark.parametrize(("problem", "name"), [("arms", "arms:UCB1"), ("linear", "linear:FedUCB")])
def test_sums_are_those_of_the_simulations_server(tmp_path, problem, name):
    plan = plan_of(problem, 20, baseline=f"fedbandit_envs.baselines.{name}", stack=noisy(transport=SUMS))
    rows, _, claim = simulated(plan)
    silos = [Silo(plan, agent, tmp_path / f"{agent}.db", SEED) for agent in range(3)]
    for row in rows:
        for agent, silo in enumerate(silos):
            action = silo.act({name: value[agent] for name, value in row.given.items()})
            assert np.array_equal(action, row.action[agent]), silo.round
            silo.observe(action, row.outcome[agent])
        if row.messages is not None:
            total = added([silo.release() for silo in silos]).encode()
            for agent, silo in enumerate(silos):
                silo.receive([total])
                for array, whole in row.messages.items():
                    assert np.array_equal(silo._inbox.arrays[f"inbox_{array}"][0], whole[agent])
    assert [silo.privacy() for silo in silos] == [claim] * 3
    for silo in silos:
        silo.close()


class RestartError(Exception):
    """Raised after every call of a silo."""


ARMS = "fedbandit_envs.baselines.arms:"
RESTARTED = [
    ("arms", "Priv-UCB1", {}),
    *(("arms", name, {}) for name in ("Priv-Thompson", "MOSS-weighted")),
    *(
        ("arms", ARMS + name, {"stack": noisy()})
        for name in ("Pursuit", "Softmax", "EpsilonDecreasing", "FairLearn")
    ),
    *(("linear", name, {}) for name in ("FedUCB", "FedUCB-weighted", "LDP-FedLinUCB")),
    ("procurement", "P-FCB-weighted", {}),
    # It keeps nothing.
    ("procurement", "one-of-each", {"stack": noisy()}),
]


@pytest.mark.parametrize(
    ("problem", "name", "changes"),
    [pytest.param(*one, marks=pytest.mark.ci if place else ()) for place, one in enumerate(RESTARTED)],
)
def test_policies_and_noise_go_on_after_a_restart(tmp_path, problem, name, changes):
    plan = plan_of(problem, 9, baseline=name, **changes)
    rows, _, _ = simulated(plan)

    def done(silo, message):
        silo.close()
        raise RestartError

    for _ in range(100):
        try:
            play(plan, 0, tmp_path / "0.db", rows, relayed(plan, rows), done).close()
            break
        except RestartError:
            continue
    else:
        pytest.fail("it does not come to an end")
