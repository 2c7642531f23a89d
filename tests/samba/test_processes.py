"""SAMBA with every role in a process of its own."""

import multiprocessing
import os
import signal
import threading
from dataclasses import replace

import pytest
from samba_runs import means_of, plain

from fedbandit_envs.samba.keys import deal_keys
from fedbandit_envs.samba.messages import SecureError
from fedbandit_envs.samba.network import play_in_processes
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.roles import RoleSetup, make_role
from fedbandit_envs.samba.runs import run_secure

MEANS = means_of("movielens", 3)


@pytest.mark.parametrize(
    ("name", "options"),
    [("epsilon-greedy", {}), ("pursuit", {"owners_per_role": 2, "tls": True})],
    ids=["a process an owner", "two owners a process, TLS"],
)
def test_processes_earn_what_one_process_does(name, options):
    here = run_secure(MEANS, Algorithm(name), 40, 5, owners_per_role=options.get("owners_per_role", 1))
    there = run_secure(MEANS, Algorithm(name), 40, 5, transport="tcp", **options)
    assert there.reward == here.reward == plain(Algorithm(name), MEANS, 40, 5)[0].reward
    assert there.reports.keys() == here.reports.keys()
    for role, report in there.reports.items():
        ours, theirs = here.reports[role].counts, report.counts
        # Between processes every link begins with a hello each way, and Paillier's keys have 2048 bits.
        assert replace(theirs, frames=0, bytes=0) == replace(ours, frames=0, bytes=0)
        assert theirs.frames == ours.frames + (len(there.reports) - 1 if role == "controller" else 1)


@pytest.mark.parametrize(
    ("role", "way", "match"),
    [
        ("owner-1", signal.SIGKILL, "owner-1"),
        ("controller", signal.SIGKILL, "controller"),
        ("comp", signal.SIGSTOP, "comp sent nothing for 10 s"),
    ],
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


def test_parts_that_lack_something_are_refused():
    rings = deal_keys(0, [1, 1])
    with pytest.raises(ValueError, match="algorithm is None"):
        make_role(RoleSetup(rings["controller"]))
    with pytest.raises(ValueError, match="budget is None"):
        make_role(RoleSetup(rings["customer"], Algorithm("ucb")))
    with pytest.raises(ValueError, match="owner-0 has 0 means; 1, one for each owner"):
        make_role(RoleSetup(rings["owner-0"], Algorithm("ucb")))
