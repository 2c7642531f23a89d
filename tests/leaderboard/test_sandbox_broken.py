"""Whatever goes wrong in a child is an error that says what, and leaves nothing running."""

import json
import os
import re

import numpy as np
import pytest
from entries import ROWS, file_with, play_in_a_thread, start_and_play

from fedbandit_envs import arms_v0
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy, channel
from fedbandit_envs.leaderboard.sandbox.memory import SharedMemory
from fedbandit_envs.leaderboard.sandbox.parts import SYSTEM_CALLS
from fedbandit_envs.leaderboard.sandbox.process import SandboxProcess
from fedbandit_envs.leaderboard.sandbox.source import Source
from fedbandit_envs.wrappers import Channel

POLICY = """
import ctypes, os, subprocess, sys, threading, time
import numpy as np

class Broken:
    def reset(self, spaces, seeds):
        self.action = np.zeros(seeds.shape, np.int64)
        self.rounds = 0
        {reset}

    def act(self, observation):
        self.rounds += 1
        if self.rounds == 2:
            {act}
        return self.action
"""

IN_A_PROCESS = {
    "raises": ("raise KeyError('what')", "round 2: KeyError: 'what'"),
    "ends the interpreter": ("sys.exit(3)", "round 2: SystemExit: 3"),
    "leaves at once": ("os._exit(3)", "round 2: its process has exited with code 3"),
    "is interrupted": ("raise KeyboardInterrupt", "round 2: KeyboardInterrupt"),
    "crashes": ("ctypes.string_at(0)", "round 2: its process was ended by SIGSEGV"),
    "aborts": ("os.abort()", "round 2: its process was ended by SIGABRT"),
    "hangs": ("time.sleep(60)", "round 2: it has not answered within 0.5 s"),
    "computes without end": ("\n            while True: pass", "round 2: it has not answered within 0.5 s"),
    "allocates without end": ("[np.empty(10**7) for _ in range(10**4)]", "round 2: .*MemoryError"),
    "closes its channel": ("os.closerange(0, 100); time.sleep(9)", "round 2: it has closed its channel"),
}
ANSWERS = {
    "imports what is not there": (
        "import nowhere",
        "round 2: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "returns None": ("return None", "round 2: action is a NoneType; a numpy array is required"),
    "returns a list": ("return [[0]]", "round 2: action is a list; a numpy array is required"),
    "returns too few rows": (
        "return self.action[:1]",
        r"round 2: action has shape \(1, 3\); \(replicas, agents, ...\) = \(2, 3\) is required",
    ),
    "returns too many rows": (
        "return np.zeros((200, 300), int)",
        r"round 2: action of shape \(200, 300\): that is more than an action has",
    ),
    "returns floats": (
        "return self.action * 1.0",
        "round 2: action has dtype <f8; an integer dtype is required",
    ),
    "returns objects": (
        "return self.action.astype(object)",
        "round 2: action has dtype object; numbers are required",
    ),
    "returns text": ("return self.action.astype('S1')", r"round 2: action has dtype \|S1; an integer"),
    "returns complex numbers": (
        "return self.action * 1j",
        "round 2: action of shape|round 2: action has dtype",
    ),
    "returns a mapping": (
        "return {'action': self.action}",
        "round 2: action has 'action'; an array, no mapping is required",
    ),
    "says control characters": (r"raise ValueError('a\x1b[2Jb')", r"round 2: ValueError: a\\x1b\[2Jb"),
    "raises what cannot be said": (
        "\n            class Mute(Exception):\n                def __str__(self): raise ValueError\n"
        "            raise Mute",
        "round 2: .*Mute",
    ),
}


@pytest.mark.parametrize(
    ("name", "children"),
    [
        ("crashes", "started"),
        *((name, "forked") for name in IN_A_PROCESS),
        *(pytest.param(name, "started", marks=pytest.mark.ci) for name in IN_A_PROCESS if name != "crashes"),
    ],
    indirect=["children"],
)
@pytest.mark.usefixtures("children")
def test_in_a_round(tmp_path, name):
    code, message = IN_A_PROCESS[name]
    path = file_with(tmp_path, POLICY.format(reset="", act=code))
    # Long enough, on a busy machine, for whatever does not hang.
    seconds = 0.5 if "0.5 s" in message else 20.0
    with pytest.raises(EntryError, match=message):
        start_and_play(path, seconds_a_round=seconds, memory_bytes=2 * 2**30)


@pytest.mark.parametrize(
    ("name", "play"),
    [
        *((name, play_in_a_thread) for name in ANSWERS),
        *(pytest.param(name, start_and_play, marks=pytest.mark.ci) for name in ANSWERS),
    ],
)
def test_answers(tmp_path, name, play):
    """What a process has no part in is tried in a thread; in continuous integration in a process, too."""
    code, message = ANSWERS[name]
    path = file_with(tmp_path, POLICY.format(reset="", act=code))
    with pytest.raises(EntryError, match=message):
        play(path, seconds_a_round=20.0)


BEFORE = {
    "raises in reset": (
        POLICY.format(reset="raise ValueError('no')", act="pass"),
        "reset: ValueError: no",
    ),
    "hangs in reset": (
        POLICY.format(reset="time.sleep(60)", act="pass"),
        "reset: it has not answered within 3 s",
    ),
    "is no Python": ("class", "loading: SyntaxError"),
    "imports what is not there": ("import nowhere", "loading: ModuleNotFoundError"),
    "hangs when loaded": ("import time; time.sleep(60)", "loading: it has not answered within 3 s"),
    "has no policy": ("x = 1", "loading: TypeError: one class with reset and act .* it has none"),
    "has two": (
        "class A:\n    def reset(self, *a): pass\n    act = reset\nclass B(A): pass",
        "loading: TypeError: one class with reset and act .* it has A, B",
    ),
    "has a policy that wants more": (
        "class A:\n    def __init__(self, x): pass\n    def reset(self, *a): pass\n    act = reset",
        "loading: TypeError: .*missing 1 required positional argument: 'x'",
    ),
}


@pytest.mark.parametrize("name", BEFORE)
@pytest.mark.usefixtures("children")
def test_before_the_first_round(tmp_path, name):
    source, message = BEFORE[name]
    seconds = 3.0 if "3 s" in message else 60.0
    with pytest.raises(EntryError, match=message):
        start_and_play(file_with(tmp_path, source), seconds_to_start=seconds)


def test_prints_disturb_nobody(tmp_path, capfd):
    code = "print('x' * 10**6); sys.stderr.write('y' * 10**6); os.write(1, b'z'); sys.stdin.read()"
    start_and_play(file_with(tmp_path, POLICY.format(reset=code, act=code)))
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("children")
def test_it_may_have_threads_but_no_children(tmp_path):
    code = """
        ran = []
        thread = threading.Thread(target=ran.append, args=(1,))
        thread.start(); thread.join()
        assert ran == [1]
        libc, started = ctypes.CDLL(None), ctypes.c_ulong()
        assert not libc.pthread_create(ctypes.byref(started), None, libc.usleep, ctypes.c_void_p(50000))
        assert not libc.pthread_join(started, None)
        for attempt in (os.fork, os.forkpty, lambda: subprocess.run(['true']), lambda: os.execv('/bin/true', ['true'])):
            try:
                attempt()
            except OSError:
                continue
            raise AssertionError(attempt)"""
    quiet = start_and_play(file_with(tmp_path, POLICY.format(reset="", act="pass")))
    if SYSTEM_CALLS not in quiet.confined:
        pytest.skip("this kernel does not confine system calls")
    start_and_play(file_with(tmp_path, POLICY.format(reset=code, act="pass")))


def test_cpu_time_ends(tmp_path, children):
    """The kernel counts it, whatever threads do between rounds."""
    path = file_with(tmp_path, "while True: pass")
    # Less than what starting an interpreter takes would end it before.
    child = SandboxProcess(Source.parse(str(path)), {}, 2**32, 1 if children == "forked" else 2)
    try:
        while child.end.recv(channel.LARGEST):
            pass
        assert re.search("ended by SIGKILL .*CPU time", child.ending())
    finally:
        child.close()


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("self.action", "action has an array, no mapping; 'action', 'send' is required"),
        ("{'action': self.action}", "action has 'action'; 'action', 'send' is required"),
        (
            "{'action': self.action, 'send': self.action[0]}",
            r"action\['send'\] has shape \(3,\); .* = \(2, 3\) is required",
        ),
        ("{'action': self.action, 'send': self.action * 0.5}", r"action\['send'\] has dtype <f8; an integer"),
        ("{'action': self.action, 'send': [1]}", r"action\['send'\] is a list; a numpy array is required"),
    ],
)
@pytest.mark.parametrize("play", [play_in_a_thread, pytest.param(start_and_play, marks=pytest.mark.ci)])
def test_of_agents_that_choose_when_to_send(tmp_path, action, message, play):
    env = Channel(arms_v0.parallel_env(max_cycles=3, num_agents=ROWS[1]), schedule="on_request")
    good = "return {'send': self.action, 'action': self.action}"
    path = file_with(
        tmp_path,
        POLICY.format(reset="", act=f"return ({action})").replace("return self.action\n", good + "\n"),
    )
    with pytest.raises(EntryError, match="round 2: " + message):
        play(path, env=env)


@pytest.mark.usefixtures("children")
def test_an_error_is_followed_by_a_fresh_start(tmp_path):
    path = file_with(tmp_path, POLICY.format(reset="", act="raise ValueError"))
    env = arms_v0.parallel_env()
    with SandboxedPolicy(str(path)) as policy:
        for _ in range(2):
            policy.reset(env.policy_spec, np.zeros(ROWS, np.uint64))
            policy.act({})
            with pytest.raises(EntryError, match=re.escape("round 2: ValueError")):
                policy.act({})
            with pytest.raises(EntryError, match="round 3"):
                policy.act({})


LIES = [
    b"anull", b"a" + b"[" * 9999, b"x", b"f" + b"[" * 9999,
    b'a[["", "<i8", [-2, -3]]]', b'a[["", "O", [2, 3]]]',
]  # fmt: skip


@pytest.mark.parametrize(
    ("lie", "play", "children"),
    [
        (LIES[0], start_and_play, "forked"),
        *((lie, play_in_a_thread, "started") for lie in LIES),
        *(pytest.param(lie, start_and_play, "started", marks=pytest.mark.ci) for lie in LIES),
    ],
    indirect=["children"],
)
@pytest.mark.usefixtures("children")
def test_lies_of_the_child_are_refused(tmp_path, lie, play):
    """It sends by itself what it likes: no description of an action gets past what the parent expects."""
    code = f"sys._getframe(1).f_locals['end'].send({lie})"
    with pytest.raises(EntryError, match="round 2: "):
        play(file_with(tmp_path, POLICY.format(reset="", act=code)), seconds_a_round=20.0)


SHAPES = ["[2.0, 3.0]", "[2, 3.0]", "[true, 3]", "[-2, -3]", "[1000000000, 3]", "[NaN, 3]", "[1e999, 3]", "[[2], [3]]",
          "[2, 3, 1]", "[]", "23", "null", '"23"', '{"2": 1, "3": 1}', "[" + "2," * 20000 + "3]",
          "[" + "9" * 5000 + "]"]  # fmt: skip
DTYPES = ['"<f8"', '"<i9"', '"O"', '"V8"', '"i8,i8"', "8", "null", '"(2,3)<i8"', '"' + "<i8" * 9999 + '"']


def test_no_layout_but_that_of_an_action_is_taken():
    """The shape and dtype of an array are the parent's, whatever equals them in a comparison."""
    policy = SandboxedPolicy("fedbandit_envs.baselines.arms:UCB1")
    policy._expected = {"": ((2, 3), "iu")}
    policy._actions = SharedMemory.create(5000, read_only_for_others=False)
    os.close(policy._actions.descriptor)
    wrong = [f'[["", "<i8", {shape}]]' for shape in SHAPES] + [f'[["", {dtype}, [2, 3]]]' for dtype in DTYPES]
    wrong += ["[" + ",".join(['["", "<i8", [2, 3]]'] * count) + "]" for count in (0, 2, 20_000)]
    wrong += [
        "3",
        "null",
        "{}",
        "[[]]",
        '[["", "<i8"]]',
        '[["", "<i8", [2, 3], 4]]',
        "[" * 99999,
        '"',
        "\udc80",
        "[[1, 2, [2, 3]]]",
    ]
    for layout in wrong:
        with pytest.raises(EntryError, match="before reset: "):
            policy._check_layout(layout.encode(errors="surrogateescape"))
    one = [[True, "<i8", [1, 3]]]
    policy._expected = {"True": ((1, 3), "iu")}
    policy._check_layout(json.dumps(one).encode())
    with pytest.raises(EntryError, match=r"has shape \(True, 3\)"):
        policy._check_layout(json.dumps(one).replace("[1,", "[true,").encode())
