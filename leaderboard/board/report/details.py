"""What lies behind rows: commands, what each task spent and was audited at, and where it ran."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from shlex import join
from typing import Any

from fedbandit_envs.leaderboard.board.report.ranking import identity
from fedbandit_envs.leaderboard.board.report.rows import Row
from fedbandit_envs.leaderboard.board.report.words import amount, epsilon, estimate
from fedbandit_envs.leaderboard.board.result import TaskResult
from fedbandit_envs.leaderboard.board.scores import mean_with_interval


def details(rows: Sequence[Row], suite: str) -> str:
    """Returns the details of a group's rows, closed until they are asked for; what all have in common stands above."""
    facts = [_facts(row) for row in rows]
    common = {name: text for name, text in facts[0].items() if all(own[name] == text for own in facts)}
    listed = "\n".join(
        _row(row, suite, {name: text for name, text in own.items() if name not in common})
        for row, own in zip(rows, facts, strict=True)
    )
    return f'<section data-suite="{escape(suite)}"><h3>{escape(suite)}</h3>{_list(common)}{listed}</section>'


def _facts(row: Row) -> dict[str, str]:
    result = row.result
    package = result.package
    return {
        "Edition": f"{result.edition.id}, salt {result.edition.salt}",
        "Package": f"{package['version']}, commit {package['commit'] or 'not known'}, source SHA-256 "
        f"{package['source_digest']}",
        "Machine": _plain(result.machine),
        "Kind": result.entry.kind,
        "Source": f"{result.entry.source}, SHA-256 {result.entry.source_digest[:16]}\N{HORIZONTAL ELLIPSIS}",
        "Settings": _plain(result.entry.settings) or "as registered",
        "Made": f"{result.made}, in {amount(row.cpu_seconds)} CPU seconds",
    }


def _list(facts: Mapping[str, str]) -> str:
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f"<dl>{lines}</dl>" if lines else ""


def _row(row: Row, suite: str, facts: Mapping[str, str]) -> str:
    result = row.result
    name = f"{row.name} ({result.track})"
    place = f"{name}, {suite}"
    return (
        f'<details class="row" id="{escape(identity(row))}"><summary>{escape(name)}</summary>'
        f'<p>Command: <button type="button" class="copy">Copy</button></p>'
        f'<pre tabindex="0" aria-label="Command of {escape(name)}"><code>{escape(join(result.command))}</code></pre>'
        + _list(facts)
        + "".join(_task(task) for task in result.tasks)
        + _claims(result.tasks, place)
        + "</details>"
    )


def _plain(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in values.items()
        if value not in ({}, None)
    )


def _task(task: TaskResult) -> str:
    regret = estimate(mean_with_interval(task.regret_array[-1]), least=0)
    played = (
        f"{task.task}: regret {regret} after {task.rounds[-1]:,} rounds, {len(task.seeds)} seeds; rows played alone as "
        f"well: {len(task.replayed_rows)}."
    )
    if task.audit:
        about = _plain({name: said for name, said in task.audit.items() if name != "claim"})
        played += f" Audit of the mechanism: {about}."
    if task.noise_entropy:
        played += f" The noise followed from {task.noise_entropy}."
    return f"<p>{escape(played)}</p>"


def _claims(tasks: Sequence[TaskResult], name: str) -> str:
    if not any(task.claims for task in tasks):
        return "<p>Nothing is claimed.</p>"
    heads = ("Task", "Adjacency", "Composition", "Epsilon", "Delta", "Trust", "Remark")
    columns = "".join(f'<th scope="col">{text}' for text in heads)
    lines = "".join(
        f'<tr><th scope="row">{escape(task.task)}' + "".join(f"<td>{escape(text)}" for text in _claim(claim))
        for task in tasks
        for claim in task.claims
    )
    return (
        f'<div class="scroll" role="region" aria-label="Claims of {escape(name)}" tabindex="0">'
        f"<table><thead><tr>{columns}<tbody>{lines}</table></div>"
    )


def _claim(claim: Mapping[str, Any]) -> tuple[str, ...]:
    value = claim["epsilon"]
    known = float("nan") if value is None else float(value)
    return (
        claim["adjacency"], claim["composition"], epsilon(known), f"{claim['delta']:.3g}", claim["trust"],
        claim["reason"],
    )  # fmt: skip
