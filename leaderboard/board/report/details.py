"""What lies behind rows: commands, what each task spent and was audited at, and where it ran."""

import json
from collections.abc import Callable, Mapping, Sequence
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
        _row(row, {name: text for name, text in own.items() if name not in common})
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


def _row(row: Row, facts: Mapping[str, str]) -> str:
    result = row.result
    name = f"{row.name} ({result.track})"
    return (
        f'<details class="row" id="{escape(identity(row))}"><summary>{escape(name)}</summary>'
        f'<p>Command: <button type="button" class="copy">Copy</button></p>'
        f'<pre tabindex="0" aria-label="Command of {escape(name)}"><code>{escape(join(result.command))}</code></pre>'
        + _list(facts)
        + "".join(f"<p>{escape(_played(task))}</p>" for task in result.tasks)
        + _by_task("Claims", result.tasks, lambda task: [_claim(claim) for claim in task.claims])
        + _by_task("Audits", result.tasks, lambda task: [_audit(task.audit)] if task.audit else [])
        + "</details>"
    )


def _plain(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}"
        for name, value in values.items()
        if value not in ({}, None)
    )


def _played(task: TaskResult) -> str:
    regret = estimate(mean_with_interval(task.regret_array[-1]), least=0)
    noise = f" The noise followed from {task.noise_entropy}." if task.noise_entropy else ""
    confined = ""
    if task.confined is not None:
        confined = f" Closed to it by the kernel: {', '.join(task.confined) or 'nothing'}."
    return (
        f"{task.task}: regret {regret} after {task.rounds[-1]:,} rounds, {len(task.seeds)} seeds; rows played alone as "
        f"well: {len(task.replayed_rows)}.{noise}{confined}"
    )


def _by_task(title: str, tasks: Sequence[TaskResult], say: Callable[[TaskResult], Sequence[str]]) -> str:
    """Lists what there is to say of tasks; what holds for several is said once."""
    of: dict[str, list[str]] = {}
    for task in tasks:
        for said in say(task):
            of.setdefault(said, []).append(task.task)
    if not of:
        return ""
    lines = (
        said + (f" ({', '.join(where)})" if len(where) < len(tasks) else "") for said, where in of.items()
    )
    return f"<p>{title}:</p><ul>{''.join(f'<li>{escape(line)}' for line in lines)}</ul>"


def _claim(claim: Mapping[str, Any]) -> str:
    value = claim["epsilon"]
    spent = epsilon(float("nan") if value is None else float(value))
    reason = f": {claim['reason']}" if claim["reason"] else ""
    return (
        f"{claim['adjacency']}, {claim['composition']}: epsilon {spent} at delta {claim['delta']:.3g}, "
        f"trust {claim['trust']}{reason}"
    )


def _audit(audit: Mapping[str, Any]) -> str:
    """Says what an attack on the mechanism showed; the claim that it was set against stands among the claims."""
    said = {name: value for name, value in audit.items() if name != "claim"}
    return _plain({**said, "lower_bound": epsilon(float(said["lower_bound"]))})
