"""Docstrings say what signatures and bodies do: arguments by name and in order, and the errors that are raised.

That there are any is ruff's to say.
"""

import ast
import re

import pytest
from tree import FILES, ROOT, short

# What commands take is told by --help, and made of annotations.
SPEAKING = [path for path in FILES if not path.is_relative_to(ROOT / "cli")]
TREES = {path: ast.parse(path.read_text()) for path in FILES}
BASES = {
    node.name: [ast.unparse(base).split(".")[-1] for base in node.bases]
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
}
# From here on a first sentence cannot say what each is.
MANY = 4


def called_by_others(name):
    return name in ("__init__", "__call__") or not name.startswith("_")


def public(body, owner=""):
    """The functions that others may call, with their dotted names."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and called_by_others(node.name):
            yield f"{owner}{node.name}", node


def parameters(node, method):
    """The names of what it is called with, without the object or class itself."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    if method and not any(ast.unparse(one) == "staticmethod" for one in node.decorator_list):
        del names[0]
    return [
        *names,
        *([f"*{given.vararg.arg}"] if given.vararg else []),
        *(one.arg for one in given.kwonlyargs),
        *([f"**{given.kwarg.arg}"] if given.kwarg else []),
    ]


def entries(docstring, section):
    """The names that a section of a docstring has, in order; None without the section."""
    found = re.search(rf"^{section}:\n(.*?)(?=^\S|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return re.findall(r"^    ([*\w.]+):", found.group(1), re.MULTILINE) if found else None


def raised(node):
    """The names of the classes that its body raises."""
    for one in ast.walk(node):
        if isinstance(one, ast.Raise) and one.exc is not None:
            name = ast.unparse(one.exc.func if isinstance(one.exc, ast.Call) else one.exc).split(".")[-1]
            if name[0].isupper():
                yield name


def kinds(name):
    """A class and all that it is one of, as far as the house has defined them."""
    return {name}.union(*(kinds(base) for base in BASES.get(name, ())))


def wrong(name, node):
    """Says what a function's docstring leaves out, or has that is not there."""
    docstring = ast.get_docstring(node)
    if docstring is None:
        return
    taken, said = parameters(node, "." in name), entries(docstring, "Args")
    elsewhere = re.search(r":(class|data|func|meth|mod):`|``?check_", docstring)
    if said is None and len(taken) >= MANY and not elsewhere:
        yield f"{name} takes {taken}; Args, or where they are said, is required"
    if said is not None and said != taken:
        yield f"{name} has Args {said}; {taken} is required"
    named = {one.split(".")[-1] for one in entries(docstring, "Raises") or ()}
    # What checks find is raised as one error, which their package says.
    for error in () if elsewhere else sorted({*raised(node)} - {"AssertionError"}):
        if not kinds(error) & named:
            yield f"{name} raises {error}; Raises with it is required"


@pytest.mark.parametrize("path", SPEAKING, ids=short)
def test_docstrings_say_what_signatures_do(path):
    assert not [found for name, node in public(TREES[path].body) for found in wrong(name, node)]
