"""The map of the packages, drawn from their imports: floors, and in them rooms that import rooms."""

import ast
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

from generator.folder import Folder

FLOORS = {
    "papers": "a folder a paper: experiments and pages",
    "leaderboard": "runs, reproduction, sandbox, board, lab, command line",
    "samba": "the secure protocol: ciphers, owners, roles, transports, runs",
    "baselines": "what to do now: policies",
    "wrappers": "who sends what to whom, when, through how much noise",
    "fedbandit_envs": "what agents face, and what regret is",
}
"""From the top; each imports only those below it."""

_WIDTH, _BAND, _GAP, _LEFT = 1240, 150, 34, 40
_HEIGHT, _BETWEEN = 40, 20


class Room(NamedTuple):
    """A folder of a floor."""

    floor: str
    name: str


def write(folder: Folder, docs: Path) -> None:
    """Draws the map where `architecture.md` shows it: it is committed, so that the page is whole on a git host too."""
    drawn = packages_svg(docs.parent)
    file = docs / "packages.svg"
    if not file.exists() or file.read_text() != drawn:
        file.write_text(drawn)


def packages_svg(root: Path) -> str:
    """Returns the map as SVG.

    Args:
        root: The checkout.
    """
    parts = []
    for number, (floor, says) in enumerate(FLOORS.items()):
        top = 10 + number * (_BAND + _GAP)
        parts += _band(floor, says, top, imports(root, floor))
        if number:
            parts.append(_arrow(f"M{_WIDTH / 2},{top - _GAP + 2} v{_GAP - 8}", 3))
    height = 10 + len(FLOORS) * (_BAND + _GAP) - _GAP + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
            f' height="{height}" font-family="sans-serif" fill="#1b2733">',
            "<title>Floors of packages; arrows are imports, which go down only</title>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="5" markerHeight="5"'
            ' orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="#4477aa"/></marker></defs>',
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def imports(root: Path, floor: str) -> dict[str, set[str]]:
    """Returns which rooms of a floor each of its rooms imports; files that lie in no room are left out.

    Args:
        root: The checkout.
        floor: One of :data:`FLOORS`.
    """
    rooms = sorted(path.name for path in (root / floor).iterdir() if any(path.glob("*.py")))
    prefix = floor if floor == "fedbandit_envs" else f"fedbandit_envs.{floor}"
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        for file in (root / floor / room).rglob("*.py"):
            for name in _imported(file):
                other = name.removeprefix(f"{prefix}.").split(".")[0]
                if name.startswith(f"{prefix}.") and other in found and other != room:
                    found[room].add(other)
    return found


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _band(floor: str, says: str, top: int, rooms: Mapping[str, set[str]]) -> list[str]:
    order = sorted(rooms, key=lambda room: (_depth(room, rooms), room))
    box = min(130, (_WIDTH - 2 * _LEFT + _BETWEEN) // max(len(order), 1) - _BETWEEN)
    left = {room: _LEFT + place * (box + _BETWEEN) for place, room in enumerate(order)}
    boxes = top + _BAND - _HEIGHT - 12
    parts = [
        f'<rect x="10" y="{top}" width="{_WIDTH - 20}" height="{_BAND}" rx="8" fill="#eef3f8" stroke="#9fb3c8"/>',
        f'<text x="24" y="{top + 24}" font-size="17" font-weight="bold">{escape(floor)}/</text>',
        f'<text x="{_WIDTH - 24}" y="{top + 24}" font-size="15" text-anchor="end">{escape(says)}</text>',
    ]
    for room in order:
        for place, other in enumerate(sorted(rooms[room], key=left.__getitem__)):
            start, end = left[room] + 20 + 12 * place, left[other] + box - 20
            rise = min(64, 22 + (start - end) / 12)
            parts.append(
                _arrow(
                    f"M{start},{boxes} C{start},{boxes - rise:g} {end},{boxes - rise:g} {end},{boxes}", 1.6
                )
            )
    for room, x in left.items():
        size = min(15, 1.7 * box / len(room))
        parts += [
            f'<rect x="{x}" y="{boxes}" width="{box}" height="{_HEIGHT}" rx="5" fill="#ffffff" stroke="#4477aa"/>',
            f'<text x="{x + box / 2:g}" y="{boxes + 25}" font-size="{size:.3g}"'
            f' text-anchor="middle">{escape(room)}/</text>',
        ]
    return parts


def _depth(room: str, rooms: Mapping[str, set[str]]) -> int:
    """Returns how many rooms stand below one, on the longest way down."""
    return max((1 + _depth(other, rooms) for other in rooms[room]), default=0)


def _arrow(path: str, width: float) -> str:
    return f'<path d="{path}" fill="none" stroke="#4477aa" stroke-width="{width:g}" marker-end="url(#head)"/>'
