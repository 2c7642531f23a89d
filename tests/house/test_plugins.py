"""Plug-ins: found by their entry points, named in every warning, and never harmful to anything else."""

import sys
import textwrap

import pytest

from fedbandit_envs.registry.plugins import Plugin, PluginWarning, Registry, plugins


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution of one module: its metadata and its source lie in a folder of the search path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def make(distribution, entry_points, **modules):
        info = tmp_path / f"{distribution}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        for name, source in modules.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        plugins.cache_clear()

    yield make
    plugins.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def numbers(plugin: Plugin):
    return dict(plugin.content.NUMBERS)


def test_a_plugin_adds_entries_and_its_package_is_known(install):
    install("one", "[fedbandit_envs.numbers]\na = module_one\n", module_one="NUMBERS = {'three': 3}")
    registry = Registry({"two": 2}, numbers=numbers)
    assert registry["three"] == 3
    assert dict(registry) == {"two": 2, "three": 3}
    assert str(registry.package("three")) == "one 1.2"
    assert registry.package("two") is None
    assert registry.own == {"two": 2}


def test_plugins_are_imported_only_where_the_own_entries_do_not_suffice(install):
    install("one", "[fedbandit_envs.numbers]\na = module_lazy\n", module_lazy="NUMBERS = {}")
    registry = Registry({"two": 2}, numbers=numbers)
    assert registry["two"] == 2
    assert "module_lazy" not in sys.modules
    with pytest.raises(KeyError):
        registry["three"]
    assert "module_lazy" in sys.modules


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('no licence')", "importing 'module_bad' raises RuntimeError: no licence"),
        ("def broken(:", "raises SyntaxError"),
        (
            "import not_installed_anywhere",
            "raises ModuleNotFoundError: No module named 'not_installed_anywhere'",
        ),
        ("OTHER = {}", "AttributeError: .*NUMBERS"),
        ("NUMBERS = {'two': 22}", "the name 'two' exists already"),
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


def test_of_two_plugins_with_one_name_the_second_is_left_out(install):
    install("alpha", "[fedbandit_envs.numbers]\na = module_a\n", module_a="NUMBERS = {'three': 3}")
    install("beta", "[fedbandit_envs.numbers]\nb = module_b\n", module_b="NUMBERS = {'three': 4}")
    registry = Registry({}, numbers=numbers)
    with pytest.warns(
        PluginWarning, match="plug-in 'b' of beta 1.2 is left out: the name 'three' exists already"
    ):
        assert dict(registry) == {"three": 3}


def test_a_plugin_may_look_names_up_while_it_is_imported(install):
    install(
        "asks",
        "[fedbandit_envs.baselines]\na = module_asks\n",
        module_asks="""
            from fedbandit_envs.baselines import BASELINES
            known = "no such baseline" in BASELINES
            BASELINES_BEFORE = BASELINES
            BASELINES = {"UCB1 again": BASELINES["UCB1"]}
        """,
    )
    from fedbandit_envs.baselines.registry import BASELINES, forms

    registry = Registry(BASELINES.own, baselines=lambda plugin: forms(plugin.content))
    assert registry["UCB1 again"] is BASELINES["UCB1"]
