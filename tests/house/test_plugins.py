"""Plug-ins: found by their entry points, named in every warning, and never harmful to anything else."""

import re
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from fedbandit_envs import REGISTRY, arms_v0
from fedbandit_envs.basics.entry_points import package_digest
from fedbandit_envs.experiments.spec import RunSpec, SettingsError
from fedbandit_envs.leaderboard import suites
from fedbandit_envs.leaderboard.plays import Play, make_entry
from fedbandit_envs.leaderboard.suites import Edition, tracks_of
from fedbandit_envs.registry import registration
from fedbandit_envs.registry.registration import Plugin, PluginWarning, Registry, plugins
from fedbandit_envs.wrappers import Privatizer
from fedbandit_envs.wrappers.privacy.audits import run_audits
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace

ROOT = Path(__file__).parents[2]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution of one module: its metadata and its source lie in a folder of the search path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def make(distribution, entry_points, **modules):
        info = tmp_path / f"{distribution}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        made.extend(modules)
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        plugins.cache_clear()

    yield make
    plugins.cache_clear()
    for name in made:
        sys.modules.pop(name, None)


def numbers(plugin: Plugin):
    return dict(plugin.content.NUMBERS)


def test_a_plugin_adds_entries_and_its_package_is_known(install):
    install("one", "[fedbandit_envs.numbers]\na = module_one\n", module_one="NUMBERS = {'three': 3}")
    registry = Registry({"two": 2}, numbers=numbers)
    assert str(registry.package("three")) == "one 1.2"  # before any look-up, as worker processes ask
    assert registry["three"] == 3
    assert dict(registry) == {"two": 2, "three": 3}
    assert registry.package("two") is None
    assert registry.own == {"two": 2}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('no licence')", "importing 'module_bad' raises RuntimeError: no licence"),
        ("def broken(:", "raises SyntaxError"),
        ("raise SystemExit(3)", "importing 'module_bad' raises SystemExit: 3"),
        (
            "import not_installed_anywhere",
            "raises ModuleNotFoundError: No module named 'not_installed_anywhere'",
        ),
        ("OTHER = {}", "AttributeError: .*NUMBERS"),
        ("NUMBERS = {'new': 5, 'two': 22}", "the name 'two' exists already"),
    ],
)
def test_a_broken_plugin_is_named_and_left_out_and_others_work(install, source, message):
    install("bad", "[fedbandit_envs.numbers]\nb = module_bad\n", module_bad=source)
    install("good", "[fedbandit_envs.numbers]\ng = module_good\n", module_good="NUMBERS = {'three': 3}")
    registry = Registry({"two": 2}, numbers=numbers)
    with pytest.warns(PluginWarning, match=rf"^plug-in 'b' of bad 1\.2 is left out: .*{message}") as caught:
        assert dict(registry) == {"two": 2, "three": 3}
    assert len(caught) == 1


PROBLEM = """
    from fedbandit_envs.registry.problems import Preset, RegisteredProblem, SuiteSpec
    PROBLEM = RegisteredProblem(
        "fedbandit_envs.arms.env:ArmsEnv",
        peers="fedbandit_envs.baselines.arms:UCB1",
        presets={PRESETS},
        suite=SuiteSpec({{"only": ("FedOther-v0", {{}})}}, "uniform-arms", "one-observation", (10, 2), (5, 2)),
    )
"""


def test_ids_of_a_plugin_are_made_by_gymnasium_and_its_suites_name_its_package(install, monkeypatch):
    install(
        "others",
        "[fedbandit_envs.problems]\nother = module_problem\n",
        module_problem=PROBLEM.format(PRESETS='{"FedOther-v0": Preset({"num_arms": 3})}'),
    )
    registry = Registry(REGISTRY.own, problems=registration._ids_of_plugin)
    monkeypatch.setattr(registration, "REGISTRY", registry)
    monkeypatch.setattr(suites, "REGISTRY", registry)
    monkeypatch.setattr(gymnasium.envs.registration, "registry", gymnasium.registry)
    try:
        env = gymnasium.make("FedOther-v0") if "FedOther-v0" in registry else None
        assert env is not None
        assert env.reset(seed=0)[0]["total_pulls"].shape == (3,)
        (plugin,) = plugins("problems")
        spec = registration.problem_of(plugin).suite
        (full, quick) = suites.suites_of({"other": spec}).values()
        assert full.tasks[0].source
        task, tracks = quick.tasks[0], tracks_of(quick)
        entry = make_entry(quick, Edition.draw(quick), tracks["silent"], "UCB1")
        before = Play(task, tracks["silent"], entry, (0,)).key
        monkeypatch.setattr(suites, "package_digest", lambda module: "f" * 64)
        changed = Play(replace(task), tracks["silent"], entry, (0,)).key
        assert changed != before, "shards of a changed environment are not those of before"
        assert not any(task.source for suite in suites.SUITES.own.values() for task in suite.tasks)
    finally:
        gymnasium.registry.pop("FedOther-v0", None)


def test_a_plugin_that_repeats_an_id_is_left_out_and_so_is_its_suite(install, monkeypatch):
    install(
        "others",
        "[fedbandit_envs.problems]\nother = module_problem\n",
        module_problem=PROBLEM.format(
            PRESETS='{"FedArms-v0": Preset({"num_arms": 3}), "FedNew-v0": Preset()}'
        ),
    )
    registry = Registry(REGISTRY.own, problems=registration._ids_of_plugin)
    monkeypatch.setattr(registration, "REGISTRY", registry)
    with pytest.warns(PluginWarning, match="Gymnasium has an environment 'FedArms-v0' already"):
        assert dict(registry) == REGISTRY.own
    assert "FedNew-v0" not in gymnasium.registry
    with pytest.raises(ValueError, match="its environment ids are left out"):
        registration.problem_of(plugins("problems")[0])


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A user's module with an environment, a policy and a mechanism, in the search path."""
    file = tmp_path / "own_module_of_a_test.py"
    file.write_text(
        "from fedbandit_envs.arms.env import ArmsEnv as Arms\n"
        "from fedbandit_envs.baselines.arms import UCB1 as Policy\n"
        "from fedbandit_envs.wrappers.privacy.mechanisms.additive import Laplace\n"
        "class Env(Arms): pass\n"
        "class Quiet(Laplace): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    package_digest.cache_clear()
    yield file
    package_digest.cache_clear()
    sys.modules.pop(file.stem, None)


def test_an_environment_is_run_by_its_entry_point(own_module):
    spec = RunSpec("UCB1", f"{own_module.stem}:Env", rounds=5, seeds=1, env_kwargs={"num_arms": 3})
    registered = RunSpec("UCB1", "FedArms-v0", rounds=5, seeds=1, env_kwargs={"num_arms": 3})
    assert (spec.run().regret == registered.run().regret).all()
    assert list(spec.packages) == [own_module.stem]
    assert registered.packages == {}


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("fedbandit_envs.baselines.arms:UCB1", "an id or the entry point of a FederatedEnv is required"),
        ("no_such_module_anywhere:Env", "No module named 'no_such_module_anywhere'"),
        ("fedbandit_envs.arms.env:NoEnv", "has no attribute 'NoEnv'"),
    ],
)
def test_other_names_of_environments_are_refused(env_id, message):
    with pytest.raises(SettingsError, match=message):
        RunSpec("UCB1", env_id, rounds=5, seeds=1)


@pytest.mark.parametrize(
    "settings",
    [
        {"env_id": "own_module_of_a_test:Env"},
        {"baseline": "own_module_of_a_test:Policy"},
        {
            "baseline": "Priv-UCB1",
            "stack": [
                [
                    "fedbandit_envs.wrappers:Privatizer",
                    {"mechanism": {"name": "own_module_of_a_test:Quiet", "epsilon": 1.0}},
                ]
            ],
        },
    ],
    ids=["environment", "policy", "mechanism"],
)
def test_changed_code_of_another_package_plays_anew(own_module, settings):
    spec = RunSpec(**{"baseline": "UCB1", "env_id": "FedArms-v0", "rounds": 5, "seeds": 1, **settings})
    before = spec.key
    own_module.write_text(own_module.read_text() + "# changed\n")
    package_digest.cache_clear()
    assert replace(spec).key != before
    own_module.write_text(own_module.read_text().removesuffix("# changed\n"))
    package_digest.cache_clear()
    assert replace(spec).key == before


def test_data_files_of_a_package_are_in_its_digest(tmp_path, monkeypatch):
    package = tmp_path / "package_of_a_test"
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    digests = set()
    for name in ("data/means.csv", "fast.so", "__pycache__/skipped.cpython-311.pyc"):
        package_digest.cache_clear()
        digests.add(package_digest("package_of_a_test.env"))
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("1")
    package_digest.cache_clear()
    digests.add(package_digest("package_of_a_test"))
    assert len(digests) == 3, "compiled and data files count, the interpreter's caches do not"
    package_digest.cache_clear()


def test_a_mechanism_is_named_where_a_privatizer_takes_one(own_module):
    for name in ("laplace", f"{own_module.stem}:Quiet"):
        env = Privatizer(arms_v0.parallel_env(num_agents=2), {"name": name, "epsilon": 1.0, "releases": 2})
        assert type(env.mechanism).__mro__[-5:] == Laplace.__mro__[-5:]
    with pytest.raises(ValueError, match=r"mechanism name is 'loud'; one of .*, 'module:Class' is required"):
        Privatizer(arms_v0.parallel_env(num_agents=2), "loud")


def test_a_mechanism_is_attacked_by_its_entry_point(own_module):
    assert {audit.claim.adjacency for _, audit in run_audits(f"{own_module.stem}:Quiet", samples=200)} >= {
        "one-quantity",
        "one-outcome",
    }
    with pytest.raises(TypeError, match="'epsilon'"):
        run_audits(f"{own_module.stem}:Env")


def test_the_tutorial_is_the_example_to_the_letter():
    page = (ROOT / "docs/tutorials/plugin.md").read_text()
    shown = dict(re.findall(r"^```\w+\n# ([\w/]+\.\w+)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    folder = ROOT / "examples/plugin"
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".toml")]
    assert shown == {path.relative_to(folder).as_posix(): path.read_text() for path in files}
