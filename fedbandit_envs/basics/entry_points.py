"""Objects named by strings: entry points, imported when they are used, and specifications in JSON.

A specification is a name, or a mapping of a name and arguments.
"""

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import cache_from_source, find_spec, module_from_spec, spec_from_file_location
from inspect import Parameter, Signature, signature
from operator import attrgetter
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from fedbandit_envs.basics.arrays import plain

HANDED_DOWN: dict[str, str] = {}
"""Entry points of what lower folders use of higher ones, which they do not import (:func:`handed_down`).

``wrappers`` is the registry of wrappers, ``server_policies`` the server policies by name. The functions ``peers`` and
``privacy_report`` return a problem's default peers and an environment's report; checks use the function ``attack``.
``privatizer`` is the class whose accountants make claims. The package's ``__init__`` sets them.
"""


@cache
def handed_down(name: str) -> Any:
    """Returns what :data:`HANDED_DOWN` names, which is imported when it is first asked for.

    Wrappers and policies take longer to import than the environments.
    """
    return resolve(HANDED_DOWN[name])


def resolve(entry_point: str) -> Any:
    """Imports a module and returns one of its attributes, given ``"module:attribute"`` or ``"file.py:attribute"``.

    Raises:
        ValueError: The string is not of that form.
        ModuleNotFoundError: There is no such module or file.
        AttributeError: The module has no such attribute.
    """
    module, colon, attribute = entry_point.rpartition(":")
    if not (module and colon and attribute):
        raise ValueError(f"entry point is {entry_point!r}; 'module:attribute' is required")
    found = file_module(module) if module.endswith(".py") else import_module(module)
    if not hasattr(found, attribute):
        raise AttributeError(f"module {module!r} has no attribute {attribute!r}")
    return getattr(found, attribute)


def file_module(file: str) -> ModuleType:
    """Imports a Python file that need not be on the search path, and returns the module.

    The module's name follows from the file's path and content, and from what it imports that is not installed: what was
    changed is imported anew, and no other module has the name.

    Raises:
        ModuleNotFoundError: There is no such file.
        Exception: The file's code raises it.
    """
    path = Path(file).resolve()
    if not path.is_file():
        raise ModuleNotFoundError(f"there is no file {file}")
    source, imports = path.read_bytes(), imported([path])
    content = b"".join([source, *(file.read_bytes() for file in imports.values())])
    name = f"file_{hashlib.sha256(str(path).encode() + content).hexdigest()[:16]}"
    if name not in sys.modules:
        tops = {PurePath(file).parts[0].removesuffix(".py") for file in imports}
        for module_name in [one for one in sys.modules if one.partition(".")[0] in tops]:
            del sys.modules[module_name]
        spec = spec_from_file_location(name, path)
        assert spec is not None
        module = sys.modules[name] = module_from_spec(spec)
        for imported_file in imports.values():
            # Bytecode may be older than its source by less than a second.
            with suppress(OSError):
                Path(cache_from_source(str(imported_file))).unlink()
        try:
            exec(compile(source, path, "exec"), vars(module))
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def imported(files: Iterable[Path]) -> dict[str, Path]:
    """Returns all files of the modules that Python files import, and that these import, by the files' names.

    Python's own modules and installed packages are left out. So are modules that cannot be found, and those whose name
    a program computes.
    """
    found: dict[str, Path] = {}
    waiting, known = [*files], {*sys.stdlib_module_names, "fedbandit_envs", "__main__", ""}
    while waiting:
        file = waiting.pop()
        names = _imports(file.read_bytes()) - known if file.suffix == ".py" else set()
        known |= names
        for name in sorted(names):
            spec = find_spec(name)
            places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
            # Folders of installed packages are called ``site-packages`` or ``dist-packages``.
            if spec and not any(place and "-packages" in place for place in places):
                own = _files_of(name)
                found |= own
                waiting += own.values()
    return found


@lru_cache(maxsize=256)
def _imports(source: bytes) -> set[str]:
    """Returns the names of the modules and packages that a source imports from outside of its own package."""
    names: set[str] = set()
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError):
        return names  # Importing it raises the error.
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            names |= {str(one.value) for one in node.args[:1] if isinstance(one, ast.Constant)}
    return {name.partition(".")[0] for name in names}


def _files_of(top: str) -> dict[str, Path]:
    """Returns all files of a package, or the file of a module in no package, by names that begin with the package's.

    These are sources, compiled modules and data, in the order of their names. What Python and Numba keep in folders
    ``__pycache__`` is left out: it follows from the sources.
    """
    spec = find_spec(top)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {top!r}", name=top)
    if not spec.submodule_search_locations:
        return {Path(spec.origin).name: Path(spec.origin)} if spec.has_location and spec.origin else {}
    found: dict[str, Path] = {}
    for root in map(Path, spec.submodule_search_locations):
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.parent.name != "__pycache__":
                found.setdefault((top / file.relative_to(root)).as_posix(), file)
    return found


@cache
def package_digest(module: str) -> str:
    """Returns the SHA-256 digest of all files of the package that a module is in, and of those of :func:`imported`.

    The package is not imported.

    Args:
        module: Name of the module; if it is not in a package, its own file is the only one.

    Raises:
        ModuleNotFoundError: There is no such package.
        ValueError: A part of the package is a link to a folder.
    """
    top = module.partition(".")[0]
    digest, files = hashlib.sha256(top.encode()), _files_of(top)
    for name, file in (files | imported(files.values())).items():
        digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()


def named_files(settings: Any) -> dict[str, str]:
    """Returns the SHA-256 digests of the files that texts in settings are paths of, by path.

    Args:
        settings: JSON data, and classes and functions. A text ``model`` also stands for ``model.zip``, as in
            Stable-Baselines3.

    Raises:
        OSError: A file cannot be read.
    """
    paths = (path for text in texts_in(settings) for path in (text, f"{text}.zip") if os.path.isfile(path))
    return {path: _digest_of_file(path, *_SIGNS(os.stat(path))) for path in sorted(paths)}


# The time of a file's last change can be set; that of the last change of its entry cannot.
_SIGNS = attrgetter("st_ino", "st_size", "st_ctime_ns")


@lru_cache(maxsize=1024)
def _digest_of_file(path: str, *signs: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def texts_in(settings: Any) -> set[str]:
    """Returns all texts in settings, and an entry point for each class or function."""
    written = json.dumps(
        plain(settings), default=lambda made: f"{getattr(made, 'func', made).__module__}:made"
    )
    return {json.loads(text) for text in re.findall(r'"(?:[^"\\]|\\.)*"', written)}


Thing = TypeVar("Thing")


def make(
    kind: str,
    spec: Thing | str | Mapping[str, Any],
    known: Mapping[str, Callable[..., Thing]],
    protocol: type,
    also: str = "",
) -> Thing:
    """Returns the object that a specification describes; if the specification is the object itself, it is returned.

    Args:
        kind: Name of the kind of object, for error messages.
        spec: The object itself; or a name in ``known`` or an entry point ``"module:Class"``; or a mapping with such a
            ``name`` and the arguments of the object's constructor.
        known: Constructors of objects by name.
        protocol: The protocol or class that the object must be an instance of.
        also: Text on other allowed values of the name, for error messages.

    Raises:
        TypeError: The specification has none of these forms, or has arguments that the constructor does not accept.
        ValueError: The name is unknown, or an argument is out of its range.
    """
    if isinstance(spec, str):
        spec = {"name": spec}
    if not isinstance(spec, Mapping):
        if isinstance(spec, type) or not isinstance(spec, protocol):
            raise TypeError(
                f"{kind} is {spec!r}; a name or a mapping with a name, or an instance of {protocol.__name__}, "
                "is required"
            )
        return spec
    arguments = dict(spec)
    name = arguments.pop("name", None)
    if isinstance(name, str) and name in known:
        constructor = known[name]
    elif isinstance(name, str) and ":" in name:
        constructor = resolve(name)
    else:
        raise ValueError(f"{kind} name is {name!r}; one of {sorted(known)}, 'module:Class'{also} is required")
    try:
        _require_accepted(signature(constructor), arguments)
        return constructor(**arguments)
    except TypeError as error:
        raise TypeError(f"{kind} {name!r} with arguments {arguments}: {error}") from None


def _require_accepted(taken: Signature, arguments: Mapping[str, Any]) -> None:
    """Raises a TypeError that names the allowed arguments if some of them are unknown or required ones are missing."""
    try:
        taken.bind(**arguments)
    except TypeError as error:
        raise TypeError(f"{error}; arguments are {', '.join(taken.parameters) or 'not allowed'}") from None


Rule = TypeVar("Rule", bound=Callable[..., Any])

_NAMED = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
_CHECKS: dict[Callable[..., Any], Callable[..., Any]] = {}


def checked(check: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Returns a decorator that registers ``check`` as the check of a rule's keyword arguments.

    Args:
        check: A function that is called with the keyword arguments and raises an error if they are invalid.
    """

    def register(rule: Rule) -> Rule:
        _CHECKS[rule] = check
        return rule

    return register


def by_name(*rules: Rule) -> dict[str, Rule]:
    """Returns rules by the names that specifications give them: the functions' names without a leading underscore."""
    return {rule.__name__.removeprefix("_"): rule for rule in rules}


def make_rule(kind: str, spec: Any, known: Mapping[str, Callable[..., Any]], also: str = "") -> Any:
    """Returns the function that a specification describes, with its keyword arguments filled in.

    Args:
        kind: Name of the kind of rule, for error messages.
        spec: A function, which is returned unchanged; or a name in ``known`` or an entry point ``"module:function"``;
            or a mapping with such a ``name`` and the function's keyword arguments.
        known: Functions by name; those with the decorator :func:`checked` have their arguments checked.
        also: Text on other allowed values of the name, for error messages.

    Raises:
        TypeError: The specification has none of these forms, or has arguments that the function does not accept.
        ValueError: The name is unknown, or an argument is out of its range.
    """

    def chosen(rule: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
        taken = signature(rule)
        # Positional arguments without a default are those with which the rule is called later.
        own = [one for one in taken.parameters.values() if one.default is not one.empty or one.kind in _NAMED]
        _require_accepted(taken.replace(parameters=own), arguments)
        if rule in _CHECKS:
            _CHECKS[rule](**arguments)
        return partial(rule, **arguments)

    if callable(spec) and not isinstance(spec, type):
        return spec
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if isinstance(name, str) and ":" in name:
        known = {name: resolve(name)}
    return make(kind, spec, {name: partial(chosen, rule) for name, rule in known.items()}, FunctionType, also)
