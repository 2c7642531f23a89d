"""A page a problem: its class' docstring, what is registered, spaces, and a rollout of a policy that plays well."""

from itertools import starmap
from pathlib import Path
from typing import Any

import gymnasium

import fedbandit_envs
from fedbandit_envs.baselines import peers_of
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.registry.problems import Registered
from fedbandit_envs.wrappers.transport.viewer import render_federation
from generator.film import cast, rollout, thumbnail
from generator.folder import Folder
from generator.markup import (
    as_json,
    docstring_page,
    first_sentence,
    indexed,
    problem_of,
    reference_to,
    table,
    toctree,
)

_SOURCES = ("fedbandit_envs", "wrappers", "baselines", "docs/generator")


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    entries: dict[type, list[Registered]] = {}
    for entry in fedbandit_envs.REGISTRY.own.values():
        entries.setdefault(resolve(entry.federation), []).append(entry)
    # Films take seconds each, so that they are drawn again only where code has changed.
    changed = max(path.stat().st_mtime for of in _SOURCES for path in (docs.parent / of).rglob("*.py"))
    for environment, registered in entries.items():
        name, first = problem_of(environment), registered[0].env_id
        folder.write(f"environments/{name}.md", _page(environment, registered))
        for ending, film in (("png", rollout), ("gif", thumbnail)):
            if not folder.keep(f"environments/{name}.{ending}", changed):
                folder.write(f"environments/{name}.{ending}", film(first))
    index = [
        "# Environments",
        "Each problem is one class with several registered ids. `gymnasium.make(id)` is one learning agent among\n"
        "peers, `fedbandit_envs.make_federation(id)` is the whole federation.",
        "The films show 400 rounds or more. Agents send messages, some of them with noise; the dashed line is the\n"
        "regret of agents that send none. A disc fills up as an agent avoids more of the regret that it had in its\n"
        'worst rounds. `render()` returns such a picture with `render_mode="rgb_array"` where there is a\n'
        f"[channel](../wrappers/channel.md) or a [server](../wrappers/server.md); {reference_to(render_federation)}\n"
        "draws messages at any point of their way, and the dashed line.",
        "\n".join(["````{container} films", *starmap(_card, entries.items()), "````"]),
        toctree(f"{problem_of(one).capitalize()} <{problem_of(one)}>" for one in entries),
    ]
    folder.write("environments/index.md", "\n\n".join(index) + "\n")


def _card(environment: type, registered: list[Registered]) -> str:
    """Returns the film of a problem, with what it is and its ids."""
    name = problem_of(environment)
    return "\n".join(
        [
            f"```{{figure}} {name}.gif",
            f":alt: {_played(environment, registered[0].env_id)}: agents, messages, privacy spent and regret",
            ":loading: lazy",
            ":width: 360",
            "",
            f"[{name}]({name}.md): {first_sentence(environment)}",
            "",
            ", ".join(f"`{entry.env_id}`" for entry in registered),
            "```",
        ]
    )


def _played(environment: type, env_id: str) -> str:
    """Returns who plays in the film of an id."""
    together, alone = cast(problem_of(environment))
    return f"{env_id}, played by {together} beside {alone}, which sends nothing"


def _page(environment: type, registered: list[Registered]) -> str:
    title, _, text = docstring_page(environment).partition("\n")
    name = problem_of(environment)
    first, player = registered[0].env_id, cast(name)[1]
    parts = [
        indexed(*(entry.env_id for entry in registered), *(entry.pettingzoo for entry in registered)),
        f"# {title.rstrip('.')}",
        f"![{first} in rounds 1, 4, 16, 64 and 256, played by {player}]({name}.png)",
        f"*`{first}` after 1, 4, 16, 64 and 256 rounds, played by"
        f" [{player}](../baselines/{player.lower()}.md).*",
        text.strip(),
        "## As a federation",
        f"![{_played(environment, first)}]({name}.gif)",
        f"*{_played(environment, first)}.*",
        "## Registered ids",
        table(
            ["Gymnasium", "PettingZoo", "arguments", "wrappers"],
            [
                [f"`{entry.env_id}`", f"`{entry.pettingzoo}`", as_json(entry.kwargs), as_json(entry.stack)]
                for entry in registered
            ],
        ),
        f"Peers of a learning agent play `fedbandit_envs.baselines.{name}:{peers_of(name).__name__}`.",
        "## Spaces of one learning agent",
        table(
            ["id", "action", "`features=True`", "raw observation"], [_spaces(entry) for entry in registered]
        ),
        "## Constructor",
        "```{eval-rst}\n"
        f".. autoclass:: {environment.__module__}.{environment.__qualname__}\n"
        "   :no-index:\n   :no-members:\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _spaces(entry: Registered) -> list[str]:
    raw, short = gymnasium.make(entry.env_id), gymnasium.make(entry.env_id, features=True)
    observed: Any = raw.observation_space
    parts = ", ".join(f"{name} {space.shape}" for name, space in observed.items())
    return [
        f"`{entry.env_id}`",
        f"`{_brief(raw.action_space)}`",
        f"`{_brief(short.observation_space)}`",
        parts,
    ]


def _brief(space: Any) -> str:
    """Returns a space in a line: many equal choices are written once."""
    if isinstance(space, gymnasium.spaces.MultiDiscrete) and len(set(space.nvec.tolist())) == 1:
        return f"MultiDiscrete([{space.nvec[0]}] * {space.nvec.size})"
    return " ".join(str(space).split())
