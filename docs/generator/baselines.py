"""A page a baseline: its paper, its wrappers, its algorithm, and its results on the leaderboard."""

import re
from pathlib import Path

from fedbandit_envs import REGISTRY
from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.aggregators import make_aggregator
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.wrappers.transport.server_policy import make_server_policy
from generator import board
from generator.folder import Folder
from generator.markup import (
    arguments,
    arguments_of,
    indexed,
    problem_of,
    prose,
    reference_to,
    slug,
    table,
)
from generator.sources import linked

_NAMES = sorted(BASELINES.own, key=len, reverse=True)
_NAMED = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, _NAMES))})(?![\w-])")


def write(folder: Folder, docs: Path) -> None:
    """Writes the pages and their index."""
    pages = {path: path.read_text() for path in sorted((docs / "reproductions").glob("*.md"))}
    for name, baseline in BASELINES.own.items():
        played = [path for path, text in pages.items() if path.stem != "index" and _whole(name).search(text)]
        folder.write(f"baselines/{slug(name)}.md", _page(name, baseline, docs, played))
    problems = dict.fromkeys(baseline.federation for baseline in BASELINES.own.values())
    index = ["# Baselines", "`fedbandit list` prints them, `fedbandit run NAME ID` plays one of them."]
    for problem in problems:
        found = {name: entry for name, entry in BASELINES.own.items() if entry.federation is problem}
        index += [
            f"## {problem_of(problem).capitalize()}",
            table(
                ["baseline", "what it does", "source"],
                [
                    [f"[{name}]({slug(name)}.md)", entry.summary, linked(entry.reference)]
                    for name, entry in found.items()
                ],
            ),
        ]
    folder.write("baselines/index.md", "\n\n".join(index) + "\n")


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def _page(name: str, baseline: Baseline, docs: Path, played: list[Path]) -> str:
    ids = [env_id for env_id in REGISTRY.own if baseline.fits(env_id)]
    problem = problem_of(baseline.federation)
    summary = f"{baseline.summary[0].upper()}{baseline.summary[1:]}."
    rows = board.results(name, docs)
    shown = ", ".join(f"[{_title(path)}](../../reproductions/{path.name})" for path in played)
    results = [
        f"On the [leaderboard](../../leaderboard.md); less than 1 is less regret than without communication:\n\n{rows}"
        if rows
        else "The [leaderboard](../../leaderboard.md) has no row of it.",
        f"Pages that name it: {shown}." if shown else "",
    ]
    return "\n\n".join(
        part
        for part in (
            # In no table of contents: a hundred lines in every page's would help nobody.
            "---\norphan: true\n---",
            indexed(name),
            f"# {name}",
            _NAMED.sub(lambda found: found[0] if found[0] == name else board.entry(found[0], ""), summary),
            table(
                ["", ""],
                [
                    ["plays", f"[{problem}](../environments/{problem}.md): {', '.join(f'`{one}`' for one in ids)}"],
                    ["source", _source(name)],
                    ["in Python", f'`BASELINES["{name}"]`, policy {reference_to(baseline.policy)}'],
                ],
            ),
            f"```text\nfedbandit run {name} {ids[0]}\n```",
            "## What agents share",
            _wrappers(baseline),
            "## The algorithm",
            prose(baseline.policy),
            _constants(baseline),
            _server(baseline),
            "## Results",
            *results,
        )
        if part
    ) + "\n"  # fmt: skip


def _source(name: str) -> str:
    """Returns the paper of a baseline, or what it is and the paper of the baseline that it derives from."""
    baseline = BASELINES.own[name]
    source = linked(baseline.reference)
    base = _NAMED.search(baseline.summary)
    if source != baseline.reference or not base or base[0] == name:
        return source
    return f"{source}; {board.entry(base[0], '')}: {_source(base[0])}"


def _title(path: Path) -> str:
    return path.read_text().partition("\n")[0].lstrip("# ")


def _wrappers(baseline: Baseline) -> str:
    """Returns the list of the wrappers, innermost first, with what each does and its arguments."""
    if not baseline.wrappers:
        return "Nothing: each agent learns from its own observations."
    lines = []
    for number, (part, wrapping) in enumerate(baseline.wrappers.items(), 1):
        with_arguments = f"<br>`{arguments(wrapping.kwargs)}`" if wrapping.kwargs else ""
        does = re.split(r"\.?\n|; see |\.$", prose(wrapping.make))[0]
        lines.append(f"{number}. **{part}**: {reference_to(wrapping.make)}. {does}.{with_arguments}")
    return "\n".join(["Wrappers around the environment, innermost first:", "", *lines])


def _server(baseline: Baseline) -> str:
    """Returns what the server computes; empty if there is none that does more than pass data on."""
    given = next((one.kwargs["policy"] for one in baseline.wrappers.values() if "policy" in one.kwargs), None)
    if given is None:
        return ""
    server = type(make_server_policy(given))
    return f"### The server\n\n{reference_to(server)}: {prose(server)}"


def _constants(baseline: Baseline) -> str:
    """Returns a table of the arguments that the baseline gives its policy, with what they mean."""
    meanings = arguments_of(baseline.policy)
    lines = [
        [f"`{name}={value!r}`", meanings.get(name, "")] for name, value in baseline.policy_kwargs.items()
    ]
    parts = [table(["argument of the policy", "meaning"], lines)] if lines else []
    if "pool" in baseline.policy_kwargs:
        aggregator = type(make_aggregator(baseline.policy_kwargs["pool"]))
        parts.append(f"What is received ({reference_to(aggregator)}): {prose(aggregator)}")
    if baseline.by_epsilon:
        known = [[f"{at:g}", f"`{arguments(own)}`"] for at, own in baseline.by_epsilon.items()]
        parts.append("Constants for each epsilon:\n\n" + table(["epsilon", "constants"], known))
    return "\n\n".join(parts)
