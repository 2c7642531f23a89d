"""What lies behind a row: its command, what each task spent and was audited at, and where it ran."""

from collections.abc import Mapping
from html import escape
from shlex import join
from typing import Any

from fedbandit_envs.leaderboard.board.report.ranking import identity
from fedbandit_envs.leaderboard.board.report.rows import Row
from fedbandit_envs.leaderboard.board.report.words import ABSENT, amount, epsilon
from fedbandit_envs.leaderboard.board.result import TaskResult
from fedbandit_envs.leaderboard.statistics import mean_and_half_width


def details(row: Row, suite: str) -> str:
    """Returns a row's details, closed until they are asked for."""
    result = row.result
    package = result.package
    facts = {
        "Kind": result.entry.kind,
        "Source": f"{result.entry.source} (SHA-256 {result.entry.source_digest[:16]}\N{HORIZONTAL ELLIPSIS})",
        "Settings": _plain(result.entry.settings) or "as registered",
        "Edition": f"{result.edition.id}, salt {result.edition.salt}",
        "Package": f"{package['version']}, commit {package['commit'] or 'not known'}, source SHA-256 "
        f"{package['source_digest'][:16]}\N{HORIZONTAL ELLIPSIS}",
        "Machine": _plain(result.machine),
        "Made": result.made,
        "CPU": f"{amount(row.cpu_seconds)} s",
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    command = escape(join(result.command))
    return (
        f'<details class="row" id="{escape(identity(row))}" data-suite="{escape(suite)}">'
        f"<summary>{escape(row.name)}, {escape(suite)}, track {escape(result.track)}</summary>"
        f'<p>Command: <button type="button" class="copy">Copy</button></p>'
        f'<pre tabindex="0" aria-label="Command of {escape(row.name)}"><code>{command}</code></pre>'
        f"<dl>{listed}</dl>"
        + "".join(_task(task, f"{row.name} ({result.track})") for task in result.tasks)
        + "</details>"
    )


def _plain(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value not in ({}, None))


def _task(task: TaskResult, name: str) -> str:
    mean, half = mean_and_half_width(task.regret_array[-1])
    head = (
        f"{task.task}: regret {mean:.4g} \N{PLUS-MINUS SIGN} {half:.2g} after {task.rounds[-1]:,} rounds, "
        f"{len(task.seeds)} seeds; rows played alone as well: {len(task.replayed_rows)}"
    )
    heads = ("Adjacency", "Composition", "Epsilon", "Delta", "Trust", "Remark")
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in _claim(claim)) + "</tr>"
        for claim in task.claims
    )
    columns = "".join(f'<th scope="col">{text}</th>' for text in heads)
    spent = (
        f'<div class="scroll" role="region" aria-label="Claims of {escape(name)} on {escape(task.task)}" tabindex="0">'
        f"<table><thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table></div>"
        if task.claims
        else "<p>Nothing is claimed.</p>"
    )
    noise = f"<p>The noise followed from {escape(task.noise_entropy)}.</p>" if task.noise_entropy else ""
    audit = f"<p>Audit: {escape(_plain(task.audit) if task.audit else ABSENT)}</p>"
    return f"<h3>{escape(head)}</h3>{spent}{audit}{noise}"


def _claim(claim: Mapping[str, Any]) -> tuple[str, ...]:
    value = claim["epsilon"]
    known = float("nan") if value is None else float(value)
    return (
        claim["adjacency"], claim["composition"], epsilon(known), f"{claim['delta']:.3g}", claim["trust"],
        claim["reason"],
    )  # fmt: skip
