"""Docstrings name the arguments that signatures have, in order. That there are any is ruff's to say."""

import ast
import re

from tree import FILES


def public(body, owner=""):
    """The functions that others may call, with their dotted names."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{owner}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield f"{owner}{node.name}", node


def parameters(node):
    """The names of what it is called with, without the object or class itself."""
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args) if one.arg not in ("self", "cls")]
    stars = [f"*{given.vararg.arg}"] if given.vararg else []
    mappings = [f"**{given.kwarg.arg}"] if given.kwarg else []
    return [*names, *stars, *(one.arg for one in given.kwonlyargs), *mappings]


def test_args_are_those_of_the_signature():
    for path in FILES:
        for name, node in public(ast.parse(path.read_text()).body):
            section = re.search(
                r"^Args:\n(.*?)(?=^\S|\Z)", ast.get_docstring(node) or "", re.MULTILINE | re.DOTALL
            )
            if section:
                said = re.findall(r"^    ([*\w.]+):", section[1], re.MULTILINE)
                assert said == parameters(node), f"Args of {name} in {path}"
