"""The report's jinja2 templates, ``*.j2`` in this folder."""

import re
from functools import cache
from pathlib import Path
from shlex import join
from typing import Any

from fedbandit_envs.leaderboard.board.report import formatting
from fedbandit_envs.leaderboard.sandbox.errors import printable


def render(name: str, **values: Any) -> str:
    """Returns a template filled in with values; HTML escapes whatever is not markup of the template.

    Args:
        name: Name of the file.
        **values: Values by the name that the template gives them.

    Raises:
        ImportError: jinja2 is missing, which comes with the ``[report]`` extra.
    """
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'fedbandit-envs[report]'") from error

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (
        formatting.estimate, formatting.epsilon, formatting.claimed, formatting.audited, formatting.amount,
        formatting.sort_value, formatting.bar, printable,
    ):  # fmt: skip
        environment.globals[function.__name__] = function
    environment.filters |= {"shell": join, "cell": lambda text: re.sub(r"\n", " ", text.replace("|", "\\|"))}
    return environment
