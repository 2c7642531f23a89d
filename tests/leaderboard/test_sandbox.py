"""A policy in a child process plays as it plays in this one."""

import io
import os
import pickle
import time

import numpy as np
import pytest
from entries import file_with, start_and_play
from gymnasium import spaces
from registered import own_small, small

from fedbandit_envs import arms_v0
from fedbandit_envs.basics.compiled import kernel
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.ledger import ReleaseLedger
from fedbandit_envs.experiments.simulate import simulate
from fedbandit_envs.leaderboard.sandbox import EntryError, SandboxedPolicy
from fedbandit_envs.linear.ridge import largest
from fedbandit_envs.registry.registration import REGISTRY, make_federation
from fedbandit_envs.wrappers import Channel

RANDOM = """
import numpy as np

class Anything:
    def reset(self, spaces, seeds):
        self.draws = {row: np.random.default_rng(seeds[row]) for row in np.ndindex(seeds.shape)}
        self.shape = seeds.shape
        self.sends = hasattr(spaces.action, "spaces")
        self.arms = int((spaces.action["action"] if self.sends else spaces.action).n)

    def act(self, observation):
        drawn = np.array([[self.draws[r, j].integers(self.arms) for j in range(self.shape[1])]
                          for r in range(self.shape[0])], np.dtype("DTYPE"))
        return {"action": drawn, "send": drawn % 2 == 0} if self.sends else drawn
"""


class InThisProcess:
    """The policy of a file, here."""

    def __init__(self, path):
        names = {}
        exec(path.read_text(), names)
        self._policy = names["Anything"]()

    def reset(self, spec, seeds):
        self._policy.reset(spec, seeds)

    def act(self, observation):
        return self._policy.act(observation)


ENVIRONMENTS = {
    "arms": lambda: arms_v0.parallel_env(max_cycles=30),
    "agents choose when to send": lambda: Channel(arms_v0.parallel_env(max_cycles=30), schedule="on_request"),
}


@pytest.mark.parametrize(
    ("name", "dtype", "children"),
    [
        ("arms", ">i4", "started"),
        ("agents choose when to send", "int64", "forked"),
        *(
            pytest.param(name, dtype, "started", marks=pytest.mark.ci)
            for name, dtype in (
                ("agents choose when to send", "int64"),
                ("arms", "int64"),
                ("arms", "int16"),
            )
        ),
    ],
    indirect=["children"],
)
@pytest.mark.usefixtures("children")
def test_it_plays_as_it_does_here(tmp_path, name, dtype):
    path = file_with(tmp_path, RANDOM.replace("DTYPE", dtype))
    here = simulate(ENVIRONMENTS[name](), InThisProcess(path), range(3))
    with SandboxedPolicy(str(path)) as policy:
        there = simulate(ENVIRONMENTS[name](), policy, range(3))
        # A second episode starts afresh, with other numbers of replicas.
        again = simulate(ENVIRONMENTS[name](), policy, range(2))
    np.testing.assert_array_equal(here.regret, there.regret)
    np.testing.assert_array_equal(here.regret[:, :2], again.regret)
    if here.messages is not None:
        np.testing.assert_array_equal(here.messages, there.messages)
        assert here.messages[-1].sum() > 0


@pytest.mark.usefixtures("children")
def test_an_entry_point_takes_settings():
    """Of the standard library, which anything callable will do for: it is no policy, and that is said."""
    env = arms_v0.parallel_env()
    with (
        SandboxedPolicy("types:SimpleNamespace", settings={"x": 1}) as policy,
        pytest.raises(
            EntryError,
            match=r"reset: AttributeError: 'types.SimpleNamespace' object has no attribute 'reset'",
        ),
    ):
        policy.reset(env.policy_spec, np.zeros((1, 10), np.uint64))
    with (
        SandboxedPolicy("fractions:Fraction", settings={"x": 1}) as policy,
        pytest.raises(EntryError, match=r"loading: TypeError: .* unexpected keyword argument 'x'"),
    ):
        policy.reset(env.policy_spec, np.zeros((1, 10), np.uint64))


@pytest.mark.usefixtures("children")
@pytest.mark.parametrize("where", ["mine.py", "mine/__init__.py", "mine/inner.py"])
def test_an_entry_point_beside_nothing_else(tmp_path, monkeypatch, where):
    """Modules and packages that are not installed are found, and what lies beside them is not."""
    path = tmp_path / where
    path.parent.mkdir(exist_ok=True)
    beside = tmp_path / "beside.txt"
    beside.write_text("x")
    source = "try: open(BESIDE)\nexcept OSError: pass\nelse: raise ValueError('it is open')\n"
    path.write_text(source.replace("BESIDE", repr(str(beside))) + RANDOM.replace("DTYPE", "int64"))
    monkeypatch.syspath_prepend(tmp_path)
    name = where.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    start_and_play(f"{name}:Anything")


COMPILES = """
import numba
import numpy as np
from numba.core import event
from fedbandit_envs.linear.ridge import largest

class Notes(event.Listener):
    names = []

    def on_start(self, started):
        self.names.append(started.data["dispatcher"].py_func.__name__)

    def on_end(self, ended):
        pass

@numba.njit(cache=True)
def own(number):
    return number + 1

class Own:
    def reset(self, spec, seeds):
        self.action = np.zeros(seeds.shape, np.int64)

    def act(self, observation):
        assert largest(np.arange(own(2.0))) == own(1)
        return self.action

class Lent(Own):
    def act(self, observation):
        event.register("numba:compile", Notes())
        assert largest(np.arange(3.0)) == 2
        assert Notes.names == [], Notes.names
        super().act(observation)
        raise LookupError(f"has compiled {Notes.names}")
"""


def files_in(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.ci
def test_it_reads_the_kernels_of_this_package_and_stores_none(tmp_path, monkeypatch):
    """What is compiled here is compiled in no child; the child's own kernels are, and nobody keeps them."""
    # A cache of its own: other processes of the tests may store theirs meanwhile.
    cache = tmp_path / "kernels"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(cache))
    kernel(inline="always")(largest.py_func)(np.arange(3.0))
    before = files_in(cache)
    assert [file for file in before if file.suffix == ".nbc"]
    path = file_with(tmp_path, COMPILES)
    with pytest.raises(EntryError, match=r"has compiled \['own', 'own'\]"):
        start_and_play(f"{path}:Lent")
    assert files_in(cache) == before
    # Imports of this package make folders for its modules; there is none for the entry's.
    assert not list(cache.glob("fedbandit-entry-*"))


@pytest.mark.ci
def test_without_a_cache_it_compiles(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    start_and_play(f"{file_with(tmp_path, COMPILES)}:Own")


@pytest.mark.usefixtures("children")
def test_arrays_come_and_go(tmp_path):
    """The policy says what it sees: sums, name by name, of arrays that come, go, grow and change their dtype."""
    path = file_with(
        tmp_path,
        """
import numpy as np

class Sums:
    def reset(self, spaces, seeds):
        self.shape = seeds.shape

    def act(self, observation):
        total = sum((i + 1) * float(array.sum()) for i, (_, array) in enumerate(sorted(observation.items())))
        observation.clear()  # its own dict
        return np.full(self.shape, int(total), np.int64)
""",
    )
    rows = (2, 3)
    rng = np.random.default_rng(0)
    shapes = [
        {"a": ()},
        {"a": (), "b": (5,)},
        {"b": (5,)},
        {"b": (5000,)},
        {},
        {"a": (), "c": (0,)},
        {"a": ()},
    ]
    with SandboxedPolicy(f"{path}:Sums") as policy:
        policy.reset(arms_v0.parallel_env().policy_spec, np.zeros(rows, np.uint64))
        for dtype in (np.int64, np.float32, np.bool_):
            for named in shapes:
                seen = {
                    name: np.asarray(rng.integers(9, size=(*rows, *shape))).astype(dtype)
                    for name, shape in named.items()
                }
                told = sum((i + 1) * float(array.sum()) for i, (_, array) in enumerate(sorted(seen.items())))
                np.testing.assert_array_equal(policy.act(seen), np.full(rows, int(told)))


@pytest.mark.usefixtures("children")
def test_what_is_returned_is_a_copy(tmp_path):
    """A child that writes on after it has answered changes nothing any more."""
    path = file_with(
        tmp_path,
        """
import itertools, threading
import numpy as np

class Late:
    def reset(self, spaces, seeds):
        self.action = np.zeros(seeds.shape, np.int64)

    def act(self, observation):
        import sys
        shared = sys._getframe(1).f_locals.get("shared", {})  # what the parent will read
        def change():
            for number in itertools.count():
                for part in shared.values():
                    part[...] = number
        threading.Thread(target=change, daemon=True).start()
        return self.action
""",
    )
    with SandboxedPolicy(str(path)) as policy:
        policy.reset(arms_v0.parallel_env().policy_spec, np.zeros((1, 2), np.uint64))
        policy.act({})
        taken = policy.act({})
        before = taken.copy()
        time.sleep(0.05)
        np.testing.assert_array_equal(taken, before)


@pytest.mark.parametrize("env_id", sorted(REGISTRY))
def test_spaces_hold_no_environment(env_id):
    """Nor doors to them, anywhere in what is pickled for the child."""
    env = make_federation(env_id, **{**small(env_id), **REGISTRY[env_id].kwargs, **own_small(env_id)})
    told = []

    class Looking(pickle.Pickler):
        def persistent_id(self, one):
            told.append(one)

    Looking(io.BytesIO()).dump(env.policy_spec)
    classes = [one if isinstance(one, type) else type(one) for one in told]
    assert spaces.Dict in classes
    assert not [one for one in classes if issubclass(one, FederatedEnv | ReleaseLedger)]


def test_the_child_inherits_nothing(tmp_path, monkeypatch):
    """No variables, descriptors, arguments of the parent, nor its folder."""
    monkeypatch.setenv("A_SECRET", "yes")
    kept = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(kept, True)
    path = file_with(
        tmp_path,
        """
import os, stat, sys
import numpy as np

class Look:
    def reset(self, spaces, seeds):
        assert "A_SECRET" not in os.environ
        assert os.getcwd() == os.environ["HOME"] != FOLDER
        assert FOLDER not in sys.path
        open_ones = []
        for descriptor in range(200):
            try:
                os.fstat(descriptor)
                open_ones.append(descriptor)
            except OSError:
                pass
        assert len(open_ones) == 5, open_ones  # in, out, errors, channel, memory for actions
        assert not any(stat.S_ISDIR(os.fstat(one).st_mode) for one in open_ones)
        self.action = np.zeros(seeds.shape, np.int64)

    def act(self, observation):
        return self.action
""".replace("FOLDER", repr(os.getcwd())),
    )
    try:
        start_and_play(path)
    finally:
        os.close(kept)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"load": "nowhere.py"}, FileNotFoundError, "nowhere.py"),
        ({"load": "policy"}, ValueError, "'policy.py:Class' or 'module:Class' is required"),
        ({"load": "a b:C"}, ValueError, "is required"),
        ({"load": "no_such_module_anywhere.x:C"}, ModuleNotFoundError, "no_such_module_anywhere"),
        ({"load": "json:loads", "settings": {"x": {1}}}, TypeError, "set is not JSON"),
        ({"load": "json:loads", "memory_bytes": 5}, ValueError, "memory_bytes"),
        ({"load": "json:loads", "seconds_a_round": 0.0}, ValueError, "seconds_a_round is 0.0"),
        ({"load": "json:loads", "seconds_to_start": float("nan")}, ValueError, "seconds_to_start is nan"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        SandboxedPolicy(**arguments)
