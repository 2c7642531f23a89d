"""A page a baseline: what is registered of it, its policy's docstring, and how to run it."""

import inspect
from pathlib import Path

from fedbandit_envs import REGISTRY
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.basics.entry_points import resolve
from generator.folder import Folder
from generator.markup import arguments, described, problem_of, reference_to, slug, table


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    for name, baseline in BASELINES.own.items():
        folder.write(f"baselines/{slug(name)}.md", _page(name, baseline))
    problems = dict.fromkeys(baseline.federation for baseline in BASELINES.own.values())
    index = ["# Baselines", "`fedbandit list` prints them, `fedbandit run NAME ID` plays one of them."]
    for problem in problems:
        found = {name: entry for name, entry in BASELINES.own.items() if entry.federation is problem}
        index += [
            f"## {problem_of(problem).capitalize()}",
            table(
                ["baseline", "what it does", "source"],
                [
                    [f"[{name}]({slug(name)}.md)", entry.summary, entry.reference]
                    for name, entry in found.items()
                ],
            ),
        ]
    folder.write("baselines/index.md", "\n\n".join(index) + "\n")


def _page(name: str, baseline: Baseline) -> str:
    environment = baseline.only or next(
        entry.env_id for entry in REGISTRY.own.values() if resolve(entry.federation) is baseline.federation
    )
    problem = problem_of(baseline.federation)
    known = [
        ["plays", f"[{problem}](../environments/{problem}.md)"],
        ["source", baseline.reference],
        ["policy", f"{reference_to(baseline.policy)}, {_code(arguments(baseline.policy_kwargs))}"],
        *(
            [part, f"{_maker(wrapping.make)}, {_code(arguments(wrapping.kwargs))}"]
            for part, wrapping in baseline.wrappers.items()
        ),
    ]
    return "\n\n".join(
        [
            # In no table of contents: a hundred lines in every page's would help nobody.
            "---\norphan: true\n---",
            f"# {name}",
            f"{baseline.summary[0].upper()}{baseline.summary[1:]}.",
            table(["", ""], known),
            "Wrappers stand from the inside out." if baseline.wrappers else "It has no wrappers: it is silent.",
            f"```text\nfedbandit run {name} {environment}\n```",
            "## The policy",
            described(baseline.policy),
        ]
    ) + "\n"  # fmt: skip


def _code(text: str) -> str:
    return f"`{text}`" if text else "no arguments"


def _maker(maker: object) -> str:
    if inspect.isfunction(maker):
        return f"`{maker.__name__}` of `{maker.__module__}`"
    return reference_to(maker) if inspect.isclass(maker) else f"`{maker}`"
