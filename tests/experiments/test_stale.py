"""Results that are kept are read again only if all is equal that they follow from: files that settings name, too."""

import os

import numpy as np
import pytest

from fedbandit_envs import experiments
from fedbandit_envs.basics.entry_points import named_files
from fedbandit_envs.experiments.spec import RunSpec
from fedbandit_envs.experiments.store import Store
from fedbandit_envs.linear.tables import read_queries

pandas = pytest.importorskip("pandas")

MINE = """
import importlib
import numpy as np
import near
from kit.choice import arm

class Mine:
    def reset(self, spec, seeds):
        self.shape = seeds.shape
        self.arm = near.add() + arm() + importlib.import_module("far").FAR

    def act(self, observation):
        return np.full(self.shape, self.arm)
"""
CODE = {
    "mine.py": MINE, "near.py": "from nearer import ONE\ndef add():\n    return ONE\n", "nearer.py": "ONE = 0\n",
    "kit/__init__.py": "", "kit/choice.py": "from . import data\ndef arm():\n    return data.ARM\n",
    "kit/data.py": "ARM = 0\n", "far.py": "FAR = 0\n", "idle.py": "",
}  # fmt: skip
MEANS = [0.1, 0.9, 0.2, 0.3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def regret(kept="kept", rounds=4, policy="UCB1", **settings):
    frame = experiments.sweep(
        env_id="FedArms-v0", policies=[policy], grid={"agents": [2]}, rounds=rounds, seeds=2, folder=kept,
        settings=settings,
    )  # fmt: skip
    return frame[frame["round"] == rounds].regret.mean()


@pytest.mark.parametrize(
    ("file", "text"),
    [("nearer.py", "ONE = 1\n"), ("kit/data.py", "ARM = 1\n"), ("far.py", "FAR = 1\n"), ("mine.py", "\n")],
)
def test_what_a_policys_file_imports_is_in_the_key(folder, file, text):
    (folder / "kit").mkdir()
    for name, code in CODE.items():
        (folder / name).write_text(code)
    assert regret(policy="mine.py:Mine", means=MEANS) == pytest.approx(4 * 0.8)
    (folder / "idle.py").write_text("# No module imports it.")
    regret(policy="mine.py:Mine", means=MEANS)
    assert len([*(folder / "kept/shards").iterdir()]) == 1
    # Of the same length within the same second: bytecode would look as new as the source.
    (folder / file).write_text(MINE.replace("near.add()", "1") if file == "mine.py" else text)
    assert regret(policy="mine.py:Mine", means=MEANS) == pytest.approx(0.0)


def test_a_changed_table_is_played_anew(folder):
    """Also with the size and the time of before, and under a name that is not ASCII."""
    means = {"name": "ratings", "table": "bewertungen-ä.csv", "scale": [1, 5], "threshold": 4}

    def write(best):
        rows = [f"{user},{item},{5 if item == best else 1}" for user in range(4) for item in "abc"]
        (folder / means["table"]).write_text("\n".join(["user,item,rating", *rows, ""]))
        os.utime(folder / means["table"], (1, 1))

    for best, shards in ("a", 1), ("b", 2), ("a", 2):
        write(best)
        assert regret(rounds=3, means=means) == regret(f"fresh {best}", rounds=3, means=means)
        assert len([*(folder / "kept/shards").iterdir()]) == shards


def test_files_are_found_wherever_settings_name_them(folder):
    for name in ("model.zip", "weights.npz", "graph.json"):
        (folder / name).write_text(name)
    named = {"a": [{"model": "model"}, ("weights.npz", 3)], "graph.json": None, "b": str(folder)}
    assert [*named_files(named)] == ["graph.json", "model.zip", "weights.npz"]
    run = RunSpec("UCB1", "FedArms-v0", 5, 2, policy_kwargs={"path": folder / "weights.npz"})
    before = Store(folder).path(run)
    (folder / "weights.npz").write_text("weights.npy")
    assert Store(folder).path(run) != before
    # A run that names none has the key that it had before files were read.
    assert named_files(RunSpec("UCB1", "FedArms-v0", 5, 2).key) == {}


def test_a_document_of_the_same_size_and_time_is_read_again(folder):
    pytest.importorskip("sklearn")
    found = []
    for relevance in "12":
        (folder / "train.txt").write_text(f"{relevance} qid:1 1:1 2:3\n1 qid:1 1:2 2:1\n0 qid:2 1:1 2:1\n")
        os.utime(folder / "train.txt", (1, 1))
        found.append(read_queries(folder / "train.txt").parameter)
    assert not np.allclose(*found)


def test_a_damaged_shard_is_named(folder):
    regret()
    (file,) = (folder / "kept/shards").iterdir()
    for content in (b"", b"no shard", file.read_bytes()[:-50]):
        file.write_bytes(content)
        with pytest.raises(OSError, match=f"{file.name} is no shard .*; remove it and start again"):
            regret()


def test_numpys_numbers_are_played_as_pythons(folder):
    frames = [
        experiments.sweep(
            env_id="FedArms-v0", policies=["Priv-UCB1"], rounds=number(6), seeds=number(2), folder=f"{place}",
            first_seed=number(1), settings={"means": values([0.25, 0.5])}, grid={"epsilon": values([0.5, 2.0])},
        )
        for place, (number, values) in enumerate([(int, list), (np.int64, np.float32), (np.int8, np.array)])
    ]  # fmt: skip
    for other in frames[1:]:
        pandas.testing.assert_frame_equal(frames[0], other)
    assert len({one.name for place in "012" for one in (folder / place / "shards").iterdir()}) == 2
    with pytest.raises(ValueError, match=r"means is \{1\}; JSON data are required"):
        regret(means={1})


def test_a_seed_that_is_there_twice_is_refused():
    env, policy = RunSpec("UCB1", "FedArms-v0", 5, 2).build()
    with pytest.raises(ValueError, match=r"seeds is \[1, 2, 1\]; different seeds"):
        experiments.simulate(env, policy, [1, 2, 1])
    assert experiments.simulate(env, policy, np.array([1, 2])).seeds == [1, 2]
