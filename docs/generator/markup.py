"""From docstrings to pages: roles, tables, and what both kinds of markup share."""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

_ROLE = re.compile(r":(class|func|meth|mod|data|attr):`([^`]+)`")
_SECTION = re.compile(r"^(Args|Attributes|Example|Raises|Returns):$", flags=re.MULTILINE)
_ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w+): ", flags=re.MULTILINE)
_FORMULA = re.compile(r"\$([^$]+)\$")
_BLOCK = re.compile(r"^( *)\$\$(.+?)\$\$$", flags=re.MULTILINE | re.DOTALL)
_ROW = re.compile(r" *\|(---| )")
_WITH_BAR = re.compile(r"^(?! *\.\. math::).*\|.*$", flags=re.MULTILINE)
_LITERAL = re.compile(r"(``.+?``)", flags=re.DOTALL)
_MARKDOWN = "## Description"


def docstring_page(thing: Any) -> str:
    """Returns a docstring that is a page in Markdown, with its roles as MyST writes them."""
    return _ROLE.sub(r"{py:\1}`\2`", inspect.getdoc(thing) or "")


def prose(thing: Any) -> str:
    """Returns what a docstring says before its sections, in Markdown, with links to what its module has."""

    def link(found: re.Match[str]) -> str:
        role, target = found.groups()
        known = hasattr(inspect.getmodule(thing), target.partition(".")[0])
        return f"{{py:{role}}}`{f'~{thing.__module__}.{target}' if known else target}`"

    return _ROLE.sub(link, _SECTION.split(inspect.getdoc(thing) or "")[0]).strip()


def arguments_of(maker: Any) -> dict[str, str]:
    """Returns what the docstring of a class's constructor, or of a function, says of each argument, in Markdown."""
    found: dict[str, str] = {}
    for one in reversed(inspect.getmro(maker)) if inspect.isclass(maker) else [maker]:
        made = vars(one).get("__init__") if inspect.isclass(one) else one
        for owner, section in ((made, "Args"), (one, "Attributes")):
            parts = _SECTION.split((inspect.getdoc(owner) or "") if owner else "")
            for name, text in zip(parts[1::2], parts[2::2], strict=True):
                if name == section:
                    described = _ARGUMENT.split(text)[1:]
                    found |= {
                        argument: " ".join(_ROLE.sub(r"{py:\1}`\2`", said).split())
                        for argument, said in zip(described[::2], described[1::2], strict=True)
                    }
    return found


def adapt(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Makes reStructuredText of what docstrings write as Markdown: tables, bars, and pages, which lie elsewhere."""
    if _MARKDOWN in lines:
        lines[lines.index(_MARKDOWN) :] = [f"See :doc:`/generated/environments/{problem_of(thing)}`.", ""]
    adapted: list[str] = []
    for is_row, found in groupby(lines, lambda line: _ROW.match(line) is not None):
        block = list(found)
        adapted += _list_table(block) if is_row else _without_bars(block)
    lines[:] = adapted


def _without_bars(lines: list[str]) -> list[str]:
    """Returns text whose bars are not taken for substitutions; what is literal stays."""
    set_apart = _BLOCK.sub(
        lambda found: f"{found[1]}.. math:: {' '.join(found[2].split())}", "\n".join(lines)
    )
    parts = _LITERAL.split(set_apart)
    return "".join(part if _LITERAL.fullmatch(part) else _with_formulas(part) for part in parts).split("\n")


def _with_formulas(text: str) -> str:
    """Returns text whose formulas between dollars have their role, and whose other bars are escaped."""
    parts = _FORMULA.split(text)
    parts[::2] = [_WITH_BAR.sub(lambda line: line[0].replace("|", "\\|"), part) for part in parts[::2]]
    parts[1::2] = [f":math:`{formula}`" for formula in parts[1::2]]
    return "".join(parts)


def _list_table(rows: list[str]) -> list[str]:
    """Returns the directive of a Markdown table, as far to the right as the table stands."""
    indent = " " * (len(rows[0]) - len(rows[0].lstrip()))
    lines = ["", f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
    for row in (row for row in rows if not row.lstrip().startswith("|---")):
        first, *others = (cell.strip() for cell in row.strip().strip("|").split("|"))
        lines += [f"{indent}   * - {first}", *(f"{indent}     - {cell}" for cell in others)]
    return [*lines, ""]


def leave_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leaves out the fields of named tuples, which their class' docstring says already, in more words."""
    return True if type(thing).__name__ == "_tuplegetter" else None


def problem_of(environment: type) -> str:
    """Returns the name of the folder of a problem's class, which is its page's too."""
    return environment.__module__.split(".")[1]


def slug(name: str) -> str:
    """Returns the name of the page of a baseline or wrapper."""
    return re.sub(r"[^a-z0-9.-]+", "-", name.lower())


def reference_to(thing: Any) -> str:
    """Returns a link to where the reference describes a class or function."""
    role = "class" if inspect.isclass(thing) else "func"
    return f"{{py:{role}}}`~{thing.__module__}.{thing.__qualname__}`"


def indexed(*names: str) -> str:
    """Returns entries of the index, by which searching for a name finds the page first."""
    return "\n".join(["```{eval-rst}", ".. index::", *(f"   ! {name}" for name in names), "```"])


def first_sentence(thing: Any) -> str:
    """Returns the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def arguments(kwargs: Mapping[str, Any]) -> str:
    """Returns keyword arguments as they would be written in a call."""
    return ", ".join(f"{name}={value!r}" for name, value in kwargs.items())


def as_json(value: Any) -> str:
    """Returns JSON as code; a dash for nothing."""
    return f"`{json.dumps(value)}`" if value else "-"


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Returns a table in Markdown."""
    head = list(header)
    rows = [head, ["---"] * len(head), *(list(line) for line in lines)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)


def toctree(pages: Iterable[str]) -> str:
    """Returns a table of contents in MyST's syntax, which pages' navigation alone shows."""
    return "\n".join(["```{toctree}", ":hidden:", "", *pages, "```"])


def described(thing: Any) -> str:
    """Returns the directive that describes a class once more, where the reference has described it."""
    directive, members = ("autoclass", ["   :members:"]) if inspect.isclass(thing) else ("autofunction", [])
    name = f"{thing.__module__}.{thing.__qualname__}"
    return "\n".join(["```{eval-rst}", f".. {directive}:: {name}", "   :no-index:", *members, "```"])
