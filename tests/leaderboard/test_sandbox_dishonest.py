"""Entries that cheat: each finds what it looks for in a process with the environment, and does not from a child.

A policy that has found something says so with an error that begins with "found".
"""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from entries import file_with, start_and_play

from fedbandit_envs import procurement_v0
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.leaderboard.engine import Row, run
from fedbandit_envs.leaderboard.entries import submission_of
from fedbandit_envs.leaderboard.pooling import PooledRowsError
from fedbandit_envs.leaderboard.records import EditionSecrets
from fedbandit_envs.leaderboard.row_check import MixedRowsError
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.memory import SharedMemory
from fedbandit_envs.leaderboard.sandbox.parts import FILES, SIGNALS, SYSTEM_CALLS
from fedbandit_envs.leaderboard.suites import Suite, Task
from fedbandit_envs.leaderboard.tracks import tracks_of
from fedbandit_envs.randomness.streams import noise_streams
from fedbandit_envs.wrappers import Channel, GaussianPrivatizer

SUPPORT = Path(__file__).parents[1] / "support"
HEAD = """
import ctypes, gc, os, sys
import numpy as np

class Cheat:
    def __init__(self, **settings):
        self.__dict__.update(settings)

    def reset(self, spaces, seeds):
        self.spaces, self.seeds = spaces, seeds
        self.action = np.zeros((*seeds.shape, *spaces.action.shape), np.int64)
        self.prepare()

    def prepare(self):
        pass

    def act(self, observation):
        self.look(observation)
        return self.action

    def look(self, observation):
        pass
"""
METHOD = "\n    def {name}:\n        {body}\n"


def entry(folder, **methods):
    """Writes an entry that does something in `prepare(self)` or `look(self, observation)`."""
    named = {"prepare": "prepare(self)", "look": "look(self, observation)"}
    return file_with(folder, HEAD + "".join(METHOD.format(name=named[k], body=v) for k, v in methods.items()))


def in_this_process(path, **settings):
    """The entry without a boundary."""
    names = {"__name__": "entry"}
    exec(path.read_text(), names)
    return names["Cheat"](**settings)


def play(env, policy, seeds=range(2)):
    return simulate(env, policy, seeds)


def private(rounds=5):
    """A federation with something to look for: private releases through a channel."""
    env = procurement_v0.parallel_env(max_cycles=rounds, num_agents=3)
    return Channel(GaussianPrivatizer(env, epsilon=1.0, delta=1e-5, releases=5))


LOOKS = {
    "peeks at unwrapped": """
        frame = sys._getframe()
        while frame:
            for one in list(frame.f_locals.values()):
                if hasattr(one, "unwrapped") or hasattr(one, "step_batch"):
                    raise LookupError("found an environment")
            frame = frame.f_back""",
    "walks the garbage collector": """
        for one in gc.get_objects():
            if any(kind.__name__ == "FederatedEnv" for kind in type(one).__mro__):
                raise LookupError("found an environment")""",
    "follows what observations lie in": """
        for array in observation.values():
            while array is not None:
                if isinstance(array, np.ndarray) and (array.flags.writeable or array.flags.owndata):
                    raise LookupError("found an array to write to")
                array = getattr(array, "base", None)""",
    "releases around the wrapper": """
        for one in gc.get_objects():
            if type(one).__name__ == "ProcurementEnv" and one._ledger.shape == self.seeds.shape:
                one.release(np.ones(self.seeds.shape, bool))
                raise LookupError("found data without noise")""",
    "looks for the accountant": """
        for one in gc.get_objects():
            if type(one).__name__ in ("ReleaseLedger", "Accountant", "GaussianPrivatizer"):
                raise LookupError("found the books")""",
}


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize("name", LOOKS)
def test_what_an_entry_looks_for_is_not_there(tmp_path, name):
    path = entry(tmp_path, look=LOOKS[name])
    with pytest.raises(LookupError, match="found"):
        play(private(), in_this_process(path))
    env = private()
    with SandboxedPolicy(str(path)) as policy:
        play(env, policy)
    honest = private()
    play(honest, in_this_process(entry(tmp_path)))
    assert env.privacy() == honest.privacy()
    assert env.privacy().epsilon < np.inf


WRITES = {
    "assigns": ("observation['cost'][...] = 0", "ValueError: .*read-only"),
    "sets the flag": ("observation['cost'].flags.writeable = True", "ValueError: cannot set WRITEABLE"),
    "writes past numpy": (
        "ctypes.memset(observation['cost'].ctypes.data, 0, 8)",
        "its process was ended by SIGSEGV",
    ),
    "asks for the page": (
        "page = observation['cost'].ctypes.data & ~4095\n"
        "        libc = ctypes.CDLL(None, use_errno=True)\n"
        "        if libc.mprotect(ctypes.c_void_p(page), 4096, 3) == 0: raise LookupError('found a way')\n"
        "        raise OSError(ctypes.get_errno(), 'mprotect')",
        "PermissionError: .*mprotect",
    ),
}


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize("name", WRITES)
def test_observations_cannot_be_written_to(tmp_path, name):
    code, message = WRITES[name]
    env = procurement_v0.parallel_env(max_cycles=5, num_agents=3)
    with SandboxedPolicy(str(entry(tmp_path, look=code))) as policy, pytest.raises(EntryError, match=message):
        play(env, policy)


def test_memory_is_sealed_for_whoever_gets_hold_of_it():
    """Also without confinement: the kernel refuses all ways to it but the mapping that the parent has."""

    memory = SharedMemory.create(5000, read_only_for_others=True)
    numbers = memory.arrays([("x", "<i8", (3,))])["x"]
    code = """
import mmap, os, sys
path = f"/proc/{sys.argv[1]}/fd/{sys.argv[2]}"
descriptor = os.open(path, os.O_RDWR)
for attempt in (
    lambda: mmap.mmap(descriptor, 5000),
    lambda: os.pwrite(descriptor, b"1", 0),
    lambda: os.ftruncate(descriptor, 0),
    lambda: os.ftruncate(descriptor, 10**6),
):
    try:
        attempt()
    except PermissionError:
        continue
    sys.exit(1)
mmap.mmap(descriptor, 5000, access=mmap.ACCESS_READ)
"""
    numbers[:] = 7
    told = subprocess.run([sys.executable, "-IS", "-c", code, str(os.getpid()), str(memory.descriptor)])
    os.close(memory.descriptor)
    assert told.returncode == 0
    numbers += 1
    np.testing.assert_array_equal(memory.arrays([("x", "<i8", (3,))])["x"], 8)


SEARCH = f"""
        sys.path.insert(0, {str(SUPPORT)!r})
        from fedbandit_envs.randomness.streams import row_seeds
        for seed in range(30):
            if (row_seeds([seed], self.seeds.shape[1])[0] == self.seeds[0]).all():
                raise LookupError(f"found {{seed}}")"""


@pytest.mark.usefixtures("children")
def test_seeds_cannot_be_searched(tmp_path):
    """Small seeds are found in a moment, in this process or another; those of an edition have 128 bits."""
    search = entry(tmp_path, prepare=SEARCH)
    env = procurement_v0.parallel_env(max_cycles=2, num_agents=3)
    with pytest.raises(LookupError, match="found 17"):
        play(env, in_this_process(search), [17])
    with SandboxedPolicy(str(search)) as policy, pytest.raises(EntryError, match="found 17"):
        play(env, policy, [17])
    with SandboxedPolicy(str(search)) as policy:
        play(env, policy, [secrets.randbits(128)])


@pytest.mark.usefixtures("children")
def test_noise_cannot_be_subtracted(tmp_path):
    """Noise that follows from the episode's seed is drawn again by whoever finds that seed; others do not."""
    subtract = """
        from fedbandit_envs.randomness.streams import noise_streams, row_seeds
        for seed in range(30):
            drawn = noise_streams([seed], self.seeds.shape[1], None, 1)[0][0].standard_normal()
            if drawn == self.noise:
                raise LookupError("found the noise")"""
    path = entry(tmp_path, prepare=subtract)
    # The first number of the stream from which a privatizer draws; it is not told, only compared with.
    small, large = 17, secrets.randbits(128)
    noise = {seed: noise_streams([seed], 3, None, 1)[0][0].standard_normal() for seed in (small, large)}
    with pytest.raises(LookupError, match="found the noise"):
        play(private(), in_this_process(path, noise=noise[small]), [small])
    with SandboxedPolicy(str(path), settings={"noise": noise[large]}) as policy:
        play(private(), policy, [large])


TRIES = {
    "its own result file": ("open(self.path).read()", FILES),
    "results beside it": ("os.listdir(os.path.dirname(self.path))", FILES),
    "writing a result": ("open(self.path, 'w')", FILES),
    "a link to it": ("os.symlink(self.path, 'link'); open('link')", FILES),
    "the parent's memory": ("open(f'/proc/{self.parent}/mem', 'rb')", FILES),
    "the parent's variables": ("open(f'/proc/{self.parent}/environ', 'rb')", FILES),
    "the parent's command": ("open(f'/proc/{self.parent}/cmdline', 'rb')", FILES),
    "other shared memory": ("os.listdir('/dev/shm')", FILES),
    "code of ours": ("open(sys.modules['fedbandit_envs'].__file__, 'a')", FILES),
    "removing code of ours": ("os.unlink(sys.modules['fedbandit_envs'].__file__)", FILES),
    "kernels of ours": (
        "[open(one, 'ab') for one in glob.glob(self.cache + '/*/*.nb?')] or open('/')",
        FILES,
    ),
    "ending the parent": ("os.kill(self.parent, 15)", SIGNALS),
    "a network": ("socket.socket()", SYSTEM_CALLS),
    "attaching to the parent": (
        "if libc.ptrace(16, self.parent, 0, 0) < 0: raise PermissionError",
        SYSTEM_CALLS,
    ),
    "living on without the parent": (
        "if libc.prctl(1, 0, 0, 0, 0) < 0: raise PermissionError",
        SYSTEM_CALLS,
    ),
    "limits of the parent": ("resource.prlimit(self.parent, resource.RLIMIT_CPU, (0, 0))", SYSTEM_CALLS),
    "limits of its own": ("resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "always"),
    # Those of root, where tests run as root.
    "capabilities": (
        "has = (ctypes.c_uint32 * 6)()\n"
        "            libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), has)\n"
        "            if not any(has): raise PermissionError",
        "always",
    ),
}


@pytest.mark.usefixtures("children")
def test_what_it_has_no_business_with(tmp_path):
    """One entry tries all of it that this machine's kernel can refuse, and says what was not."""
    held = {*start_and_play(entry(tmp_path)).confined, "always"}
    result = tmp_path / "results" / "result.json"
    result.parent.mkdir()
    result.write_text("{}")
    tries = "".join(
        f"""
        try:
            {code}
            done.append({name!r})
        except (OSError, ValueError):
            pass"""
        for name, (code, part) in TRIES.items()
        if part in held
    )
    path = entry(
        tmp_path,
        prepare=f"""
        import glob, resource, socket
        libc = ctypes.CDLL(None, use_errno=True)
        self.cache, done = os.environ["NUMBA_CACHE_DIR"], []{tries}
        if done: raise LookupError("found " + str(done))""",
    )
    start_and_play(path, settings={"path": str(result), "parent": os.getpid()})
    assert result.read_text() == "{}"
    if missing := {part for _, part in TRIES.values()} - held:
        pytest.skip(f"this kernel does not confine {sorted(missing)}; all else is refused")


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize(
    "channel", ["locks", *(pytest.param(name, marks=pytest.mark.ci) for name in ("atime", "utime", "load"))]
)
def test_who_pools_rows_is_refused_or_refuted(tmp_path, channel):
    """By the kernel, by rows that are played alone, or by its regret; all channels are open in test_pooling.py."""
    task = Task("small/arms", "FedArms-v0", 60, 8, {"num_agents": 10, "num_arms": 10})
    suite = Suite("small", (task,), "random-arm", "one-observation")
    given = (f"{SUPPORT / 'pooling_entries.py'}:Pooler", "pooler", {"policy": {"channel": channel}})
    row = Row(suite, tracks_of(suite)["silent"], *submission_of(*given, tmp_path / "sources"))
    with pytest.raises((MixedRowsError, PooledRowsError, EntryError)):
        run([row], EditionSecrets.draw(), tmp_path)


def test_an_entry_remembers_nothing_of_the_episode_before(tmp_path):
    path = entry(
        tmp_path,
        prepare="""
        for place in (os.environ["HOME"], "."):
            if {"memory", "more"} & set(os.listdir(place)): raise LookupError("found a file")
        if hasattr(sys, "remembered"): raise LookupError("found a memory")
        sys.remembered = 1
        open("memory", "w").close()
        open(os.environ["HOME"] + "/more", "w").close()""",
    )
    env = procurement_v0.parallel_env(max_cycles=2, num_agents=3)
    with SandboxedPolicy(str(path)) as policy:
        for _ in range(2):
            play(env, policy)
