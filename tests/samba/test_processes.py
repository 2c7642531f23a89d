"""SAMBA with every role in a process of its own."""

import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import pytest
from refusals import refusals
from samba_runs import means_of, plain

from fedbandit_envs.samba.keys import deal_keys
from fedbandit_envs.samba.messages import SecureError
from fedbandit_envs.samba.network import play_in_processes
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.roles import RoleSetup, make_role
from fedbandit_envs.samba.runs import run_secure

MEANS = means_of("movielens", 3)


def test_processes_earn_what_one_process_does():
    """Groups of owners, and links under TLS."""
    played, how = (MEANS, Algorithm("pursuit"), 40, 5), {"owners_per_role": 2}
    here, there = run_secure(*played, **how), run_secure(*played, **how, transport="tcp", tls=True)
    expected = plain(Algorithm("pursuit"), MEANS, 40, 5)[0].reward
    assert there.reward == here.reward == expected
    assert there.reports.keys() == here.reports.keys()
    for role, report in there.reports.items():
        ours, theirs = here.reports[role].counts, report.counts
        # Between processes every link begins with a hello each way, and Paillier's keys have 2048 bits.
        assert replace(theirs, frames=0, bytes=0) == replace(ours, frames=0, bytes=0)
        assert theirs.frames == ours.frames + (len(there.reports) - 1 if role == "controller" else 1)


@pytest.mark.parametrize(
    ("role", "way", "match"),
    [("controller", signal.SIGKILL, "controller"), ("comp", signal.SIGSTOP, "comp sent nothing for 10 s")],
)
def test_a_process_that_is_killed_or_hangs_ends_the_run(role, way, match):
    rings = deal_keys(0, [1, 1])
    setups = {
        name: RoleSetup(ring, Algorithm("ucb"), 10**6, (0.5,) * len(ring.owners))
        for name, ring in rings.items()
    }
    running: dict[str, int] = {}
    timer = []
    rounds = []

    def advance(played):
        rounds.append(played)
        if not timer:
            running.update({process.name: process.pid for process in multiprocessing.active_children()})
            timer.append(threading.Timer(0.0, os.kill, (running[role], way)))
            timer[0].start()

    with pytest.raises(SecureError, match=match) as caught:
        play_in_processes(setups, 10.0, advance)
    assert caught.value.culprit == role
    assert rounds[0] % 64 == 0
    assert set(running) >= set(setups)
    for pid in (running[name] for name in setups):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


test_parts_that_lack_something_are_refused = refusals(
    lambda role, algorithm: make_role(RoleSetup(deal_keys(0, [1, 1])[role], algorithm)),
    ("controller", None, "algorithm is None"),
    ("customer", Algorithm("ucb"), "budget is None"),
    ("owner-0", Algorithm("ucb"), "owner-0 has 0 means; 1, one an owner"),
    error=ValueError,
)
