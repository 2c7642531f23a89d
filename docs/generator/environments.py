"""A page a problem: its class' docstring, what is registered, spaces, and a rollout of a policy that plays well."""

from pathlib import Path
from typing import Any

import gymnasium

import fedbandit_envs
from fedbandit_envs.basics.entry_points import resolve
from fedbandit_envs.registry.problems import Registered
from generator.folder import Folder
from generator.markup import as_json, docstring_page, first_sentence, problem_of, table, toctree
from generator.rollout import player, rollout


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    entries: dict[type, list[Registered]] = {}
    for entry in fedbandit_envs.REGISTRY.own.values():
        entries.setdefault(resolve(entry.federation), []).append(entry)
    for environment, registered in entries.items():
        name = problem_of(environment)
        folder.write(f"environments/{name}.png", rollout(registered[0].env_id))
        folder.write(f"environments/{name}.md", _page(environment, registered))
    lines = [
        [f"[{problem_of(environment)}]({problem_of(environment)}.md)", first_sentence(environment),
         ", ".join(f"`{entry.env_id}`" for entry in registered)]
        for environment, registered in entries.items()
    ]  # fmt: skip
    index = [
        "# Environments",
        "Each is one class with several registered ids. `gymnasium.make(id)` is one learning agent among peers,\n"
        "`fedbandit_envs.make_federation(id)` is the whole federation.",
        table(["problem", "what it is", "ids"], lines),
        toctree(map(problem_of, entries)),
    ]
    folder.write("environments/index.md", "\n\n".join(index) + "\n")


def _page(environment: type, registered: list[Registered]) -> str:
    title, _, text = docstring_page(environment).partition("\n")
    name = problem_of(environment)
    first = registered[0].env_id
    parts = [
        f"# {title.rstrip('.')}",
        f"![{first} in rounds 1, 4, 16, 64 and 256, played by {player(first)}]({name}.png)",
        f"*`{first}` after 1, 4, 16, 64 and 256 rounds, played by"
        f" [{player(first)}](../baselines/{player(first).lower()}.md).*",
        text.strip(),
        "## Registered ids",
        table(
            ["Gymnasium", "PettingZoo", "arguments", "wrappers"],
            [
                [f"`{entry.env_id}`", f"`{entry.pettingzoo}`", as_json(entry.kwargs), as_json(entry.stack)]
                for entry in registered
            ],
        ),
        f"Peers of a learning agent play `{registered[0].problem.peers}`.",
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
