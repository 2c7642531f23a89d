"""What plays is what the digest of an entry covers: no compiled code or data comes in beside it."""

import hashlib
import importlib.util
import marshal
import py_compile
import struct
import sys
import zipfile
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from entries import start_and_play

from fedbandit_envs.experiments.store import package_digest
from fedbandit_envs.leaderboard.entries import submission_of
from fedbandit_envs.leaderboard.result import digest_of
from fedbandit_envs.leaderboard.sandbox import SandboxedPolicy
from fedbandit_envs.leaderboard.sandbox.parts import FILES

HONEST = """
import numpy as np

class Mine:
    def reset(self, spaces, seeds):
        self.rows = seeds.shape

    def act(self, observation):
        return np.zeros(self.rows, int)
"""
KINDS = ("unchecked", "timestamp", "checked")
EVIL = "raise LookupError('found: this is not the source')\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An honest package in the search path, outside of the folders that every child may read."""
    folder = tmp_path / "mine_of_a_test"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "policy.py").write_text(HONEST)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


def digest(tmp_path: Path, module: str = "mine_of_a_test.inner.policy") -> str:
    """The digest that an entry of the package gets now."""
    importlib.invalidate_caches()
    return submission_of(f"{module}:Mine", "mine", {}, tmp_path / "sources")[0].source_digest


def plug_in_digest(module: str = "mine_of_a_test") -> str:
    importlib.invalidate_caches()
    package_digest.cache_clear()
    try:
        return package_digest(module)
    finally:
        package_digest.cache_clear()


def compiled(source: Path, code: str, kind: str) -> Path:
    """Puts compiled code of a text where Python keeps that of a source file, as valid for it; returns the file."""
    cache, now = Path(cache_from_source(str(source))), source.stat()
    heads = {
        "unchecked": [1, 0, 0],
        "timestamp": [0, int(now.st_mtime), now.st_size],
        "checked": [3, *struct.unpack("<II", importlib.util.source_hash(source.read_bytes()))],
    }
    head = importlib.util.MAGIC_NUMBER + struct.pack("<III", *heads[kind])
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(head + marshal.dumps(compile(code, str(source), "exec")))
    return cache


def would_run(source: Path) -> bool:
    """Whether Python, by its own rules, runs the evil code when the source file is imported."""
    return "found" in str(SourceFileLoader("any", str(source)).get_code("any").co_consts)


@pytest.mark.usefixtures("children")
def test_bytecode_that_is_not_of_its_source_is_never_run(package, tmp_path):
    """A file's digest says nothing about bytecode beside it, which Python would run in place of the file."""
    before = digest(tmp_path)
    for name, kind in zip(("__init__", "inner/__init__", "inner/policy"), KINDS, strict=True):
        source = package / f"{name}.py"
        compiled(source, EVIL, kind)
        assert would_run(source)
    assert digest(tmp_path) == before
    start_and_play("mine_of_a_test.inner.policy:Mine")


@pytest.mark.parametrize("kind", KINDS)
def test_a_plug_in_whose_bytecode_is_not_of_its_source_has_another_digest(package, kind):
    """Plug-ins are imported in the parent process, which runs the bytecode."""
    source, before = package / "inner" / "policy.py", plug_in_digest()
    cache = compiled(source, HONEST, kind)
    assert plug_in_digest() == before
    compiled(source, EVIL, kind)
    assert (after := plug_in_digest()) != before
    compiled(source, EVIL.replace("this", "it"), kind)
    assert plug_in_digest() not in (before, after)
    # Python runs none of it: bytecode of another version, cut short, and of a file that has changed since.
    whole = cache.read_bytes()
    for broken in (b"abcd" + whole[4:], whole[:20], b""):
        cache.write_bytes(broken)
        assert plug_in_digest() == before
    cache.write_bytes(whole)
    source.write_text(HONEST + "# longer\n")
    changed = plug_in_digest()
    cache.unlink()
    assert (changed == plug_in_digest()) == (kind != "unchecked")


def test_bytecode_of_a_source_that_does_not_compile_counts(package):
    """A syntax error in a file of a package, such as a template, is no error of the digest."""
    source = package / "template.py"
    source.write_text("class {{ name }}:\n")
    before = plug_in_digest()
    compiled(source, EVIL, "unchecked")
    assert plug_in_digest() != before


@pytest.mark.parametrize(
    "name",
    [
        "inner/weights.npz", "inner/fast.cpython-311-x86_64-linux-gnu.so", "inner/fast.pyd", "legacy.pyc",
        "inner/.hidden", "__pycache__/module.py", "__pycache__/module.pyc", "__pycache__/weights.bin",
        "__pycache__/deep/module.cpython-311.pyc", "inner/policy.cpython-311.pyc",
    ],
)  # fmt: skip
def test_all_files_count(package, tmp_path, name):
    """Modules, compiled ones and data, wherever an import statement or the package's code finds them."""
    found = {digest(tmp_path), plug_in_digest()}
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    for content in ("1", "2"):
        (package / name).write_text(content)
        found |= {digest(tmp_path), plug_in_digest()}
    assert len(found) == 6


@pytest.mark.parametrize(
    "name",
    ["policy.cpython-312.pyc", "policy.cpython-311.opt-1.pyc", "policy.cpython-311-pytest-8.4.1.pyc",
     "policy.cpython-311.pyc.140035", "policy.act-12.py311.nbi", "policy.act-12.py311.1.nbc"],
)  # fmt: skip
def test_what_python_and_numba_leave_behind_does_not_count(package, tmp_path, name):
    found = {digest(tmp_path), plug_in_digest()}
    (package / "inner" / "__pycache__").mkdir()
    (package / "inner" / "__pycache__" / name).write_text("1")
    assert found == {digest(tmp_path), plug_in_digest()}


def test_a_package_of_sources_keeps_the_digest_that_it_had(package, tmp_path):
    """Digests on record stay valid: of pairs of name and SHA-256, in the order of the paths."""
    (package / "inner-most.py").write_text("")
    importlib.import_module("mine_of_a_test.inner.policy")
    files = sorted(package.rglob("*.py"))
    assert [file.relative_to(package).as_posix() for file in files][1:3] == [
        "inner/__init__.py",
        "inner/policy.py",
    ]
    pairs = [
        [file.relative_to(tmp_path).as_posix(), hashlib.sha256(file.read_bytes()).hexdigest()]
        for file in files
    ]
    assert digest(tmp_path) == digest_of(pairs)


SEES = """
import os
from pathlib import Path

import numpy as np
from mine_of_a_test import legacy

class Mine:
    def __init__(self, original, files):
        own = Path(__file__).parents[0]
        found = {file.relative_to(own).as_posix() for file in own.rglob("*") if not file.is_dir()}
        if found != set(files):
            raise LookupError(f"found {found}")
        if (own / "inner/weights.txt").read_text() != "12" or legacy.number != 3:
            raise LookupError("found other content")
        try:
            open(original)
        except (PermissionError, FileNotFoundError):
            pass
        else:
            raise LookupError("found a file that no digest covers")

    def reset(self, spaces, seeds):
        self.rows = seeds.shape

    def act(self, observation):
        return np.zeros(self.rows, int)
"""


@pytest.mark.parametrize(
    ("initial", "children"),
    [
        pytest.param(True, "started", id="regular"),
        pytest.param(False, "forked", id="namespace"),
        pytest.param(False, "started", id="namespace, started", marks=pytest.mark.ci),
    ],
    indirect=["children"],
)
@pytest.mark.usefixtures("children")
def test_a_child_gets_all_that_the_digest_covers_and_nothing_else(package, tmp_path, initial):
    """Also a package without `__init__.py`, sourceless modules, and links to files elsewhere."""
    (package / "inner" / "policy.py").write_text(SEES)
    (tmp_path / "elsewhere.txt").write_text("12")
    (package / "inner" / "weights.txt").symlink_to(tmp_path / "elsewhere.txt")
    (tmp_path / "legacy.py").write_text("number = 3\n")
    py_compile.compile(str(tmp_path / "legacy.py"), str(package / "legacy.pyc"))
    if not initial:
        (package / "__init__.py").unlink()
    kept = compiled(package / "inner" / "policy.py", EVIL, "unchecked")
    names = ["__init__.py", "inner/__init__.py", "inner/policy.py", "inner/weights.txt", "legacy.pyc"]
    settings = {"original": str(kept), "files": names}
    policy = start_and_play("mine_of_a_test.inner.policy:Mine", settings=settings)
    assert FILES in policy.confined or pytest.skip("this kernel does not confine files")
    before = digest(tmp_path)
    (tmp_path / "elsewhere.txt").write_text("13")
    assert digest(tmp_path) != before


def test_a_package_in_several_folders_counts_as_a_whole(package, tmp_path, monkeypatch):
    (package / "__init__.py").unlink()
    before = {digest(tmp_path), plug_in_digest()}
    other = tmp_path / "other" / package.name
    other.mkdir(parents=True)
    (other / "more.py").write_text("")
    monkeypatch.syspath_prepend(other.parent)
    assert before.isdisjoint({digest(tmp_path), plug_in_digest()})


@pytest.mark.parametrize("inside", [True, False])
def test_links_to_folders_are_refused(package, tmp_path, inside):
    """What lies behind one could change, or lie in a place that the child can read, and no digest would show it."""
    (package / "link").symlink_to(package / "inner" if inside else "/usr/share")
    for taken in (partial(digest, tmp_path), plug_in_digest):
        with pytest.raises(ValueError, match=r"package mine_of_a_test has .*link, a link to a folder"):
            taken()


def test_a_package_in_an_archive_counts_as_its_archive_and_is_not_played(tmp_path, monkeypatch):
    archive = tmp_path / "zipped_of_a_test.zip"
    monkeypatch.syspath_prepend(str(archive))
    found = set()
    for text in (HONEST, EVIL):
        with zipfile.ZipFile(archive, "w") as out:
            out.writestr("zipped_of_a_test/__init__.py", text)
        found.add(plug_in_digest("zipped_of_a_test"))
    assert len(found) == 2
    with pytest.raises(
        ValueError,
        match=r"module zipped_of_a_test is in .*zipped_of_a_test.zip; a package of files is required",
    ):
        SandboxedPolicy("zipped_of_a_test:Mine")
    with pytest.raises(ValueError, match="a package of files is required"):
        digest(tmp_path, "zipped_of_a_test")
