"""A silo that is killed at random moments loses nothing: no observation, no booked epsilon, and no message twice."""

import os
import random
import signal
import sqlite3

import numpy as np
import pytest
from silo_runs import forked, noisy, plan_of, play, relayed, simulated

from fedbandit_envs.silos import Message, Silo


def killed(plan, folder, rows, kills, noise, rng):
    """Plays silo 0 in processes that are killed, one after the other, and returns what calls have returned.

    A process dies within a millisecond of some statement of SQL, or in it; the last one plays to the end.
    """

    def work(log, statement, delay):
        connect, left = sqlite3.connect, [statement]

        def count(sql):
            left[0] -= 1
            if left[0] == 0:
                signal.setitimer(signal.ITIMER_REAL, delay)

        def deadly(*args, **kwargs):
            file = connect(*args, **kwargs)
            file.set_trace_callback(count)
            return file

        def done(silo, message):
            if message is not None:
                file.write(message.encode().hex().encode() + b"\n")

        # By default the process dies of the alarm, without a chance to tidy up.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        sqlite3.connect = deadly
        with open(log, "ab", buffering=0) as file:
            play(plan, 0, folder / "silo.db", rows, relayed(plan, rows), done, noise).close()

    logs = [folder / f"log{kill}" for kill in range(kills + 1)]
    for kill, log in enumerate(logs):
        at = (log, rng.randint(1, 40), rng.uniform(1e-6, 1e-3)) if kill < kills else (log, 0, 0.0)
        status = os.waitpid(forked(lambda at=at: work(*at)), 0)[1]
        assert status == (signal.SIGALRM if kill < kills else 0)
    # A torn last line belongs to a call that has not returned.
    return [
        Message.decode(bytes.fromhex(line.decode()), plan.layout)
        for log in logs
        for line in log.read_bytes().split(b"\n")[:-1]
    ]


@pytest.mark.parametrize("noise", ["repeatable", "secret", "correlated"])
@pytest.mark.parametrize(
    ("problem", "rounds", "kills"),
    [
        ("arms", 60, 10),
        *(pytest.param(p, 500, 32, marks=pytest.mark.slow) for p in ("arms", "linear", "procurement")),
    ],
)
def test_nothing_is_lost(tmp_path, problem, rounds, kills, noise):
    changes = {"stack": noisy()} if noise == "secret" else {}
    if noise == "secret":
        policies = {"arms": "arms:UCB1", "linear": "linear:FedUCB", "procurement": "procurement:PFCB"}
        changes |= {"baseline": f"fedbandit_envs.baselines.{policies[problem]}", "wrapper_kwargs": {}}
    plan = plan_of(problem, rounds, **changes)
    rng, noise = random.Random(rounds + len(noise)), noise.replace("correlated", "secret")
    rows, totals, _ = simulated(plan)
    returned = {}
    for message in killed(plan, tmp_path, rows, kills, noise, rng):
        assert returned.setdefault(message.parts[0][1], message.encode()) == message.encode(), (
            "one release, two messages"
        )
    seed = 7 if noise == "repeatable" else None
    with Silo(plan, 0, tmp_path / "silo.db", seed) as silo:
        assert silo.round == rounds
        assert {round_: message for round_, _, message in silo._store.releases}.items() >= returned.items()
        for name, total in totals.items():
            assert np.array_equal(silo.totals[name], total[0])
        # Every release that was due is booked, once; whether it was returned or not.
        due = [t for t, row in enumerate(rows, 1) if row.messages is not None]
        assert [round_ for round_, *_ in silo._store.releases] == due
        for name, shown in silo._past.items():
            # One row for each release, whichever calls were killed: none is lost, and none is drawn again.
            assert len(shown) == len(due), name
        assert silo.privacy().epsilon == pytest.approx(rows[-1].spent[0], rel=1e-4)
        assert silo.received == dict.fromkeys(range(1, plan.layout.agents), due[-1])
