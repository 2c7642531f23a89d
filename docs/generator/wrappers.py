"""A page a wrapper: its docstring, its layer, how the tests try it, and which baselines run behind it."""

from pathlib import Path

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.core.wrapper import FederatedWrapper
from fedbandit_envs.wrappers import WRAPPERS
from generator.folder import Folder
from generator.markup import arguments, described, first_sentence, indexed, slug, table, toctree

_LAYERS = {
    "data": "what agents experience or hold",
    "noise": "noise added to releases; at most one",
    "transport": "who sends to whom, and when; at most one",
    "observation": "what agents are shown or paid",
}


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    for name, wrapper in WRAPPERS.own.items():
        folder.write(f"wrappers/{slug(name)}.md", _page(name, wrapper))
    index = [
        "# Wrappers",
        "Wrappers stand between an environment and a policy, in layers; another order raises an error.",
    ]
    for layer, meaning in _LAYERS.items():
        found = {name: wrapper for name, wrapper in WRAPPERS.own.items() if wrapper.layer == layer}
        index += [
            f"## {layer.capitalize()}: {meaning}",
            table(
                ["wrapper", "what it does"],
                [[f"[{name}]({slug(name)}.md)", first_sentence(found[name])] for name in sorted(found)],
            ),
        ]
    index.append(toctree(map(slug, sorted(WRAPPERS.own))))
    folder.write("wrappers/index.md", "\n\n".join(index) + "\n")


def _page(name: str, wrapper: type[FederatedWrapper]) -> str:
    used = [
        f"[{baseline}](../baselines/{slug(baseline)}.md)"
        for baseline, entry in BASELINES.own.items()
        if any(wrapping.make is wrapper for wrapping in entry.wrappers.values())
    ]
    calls = "\n".join(
        f"{name}({', '.join(filter(None, ('env', arguments(one))))})" for one in wrapper.examples
    )
    parts = [
        indexed(name),
        f"# {name}",
        f"Layer: **{wrapper.layer}**, {_LAYERS[wrapper.layer]}."
        f" Entry point: `{wrapper.__module__}:{wrapper.__qualname__}`.",
        described(wrapper),
        "## Arguments in the tests",
        f"Tests put it around every registered environment with these arguments:\n\n```text\n{calls}\n```",
        "## Baselines behind it",
        ", ".join(used) + "." if used else "None of the registered ones.",
    ]
    return "\n\n".join(parts) + "\n"
