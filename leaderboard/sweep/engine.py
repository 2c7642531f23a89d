"""Plays shards, wherever a backend has them played, and keeps each as soon as it is done."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import sleep
from traceback import format_exc
from typing import Any
from uuid import uuid4

from joblib import delayed

from fedbandit_envs.leaderboard.sweep.backends import Backend, BackendError, Local
from fedbandit_envs.leaderboard.sweep.cell import Cell
from fedbandit_envs.leaderboard.sweep.claims import Claim, remove_strays
from fedbandit_envs.leaderboard.sweep.progress import Tally, noting
from fedbandit_envs.leaderboard.sweep.store import is_kept, packed, path

_SECONDS = 0.5


def play(
    shards: Sequence[Cell],
    folder: Path,
    backend: Backend | None = None,
    advance: Callable[[float], None] = lambda played: None,
) -> None:
    """Plays those shards that are not kept; may be killed at any moment, and called again.

    Several processes may do so on one folder at once: they share what there is to do, and each waits for what others
    play. Whatever goes wrong with a shard is raised once those that are being played are done, and kept.

    Args:
        shards: What to play.
        folder: Where the files go; made if needed.
        backend: Where to play; if None, in this process.
        advance: Told of how much was played since its last call, about twice a second, by a thread of its own.

    Raises:
        BackendError: Shards cannot be played there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_strays(folder)
    wanted = {path(shard, folder): shard for shard in shards}
    if wanted:
        _Sweep(wanted, folder, advance).play(backend or Local())


class _Sweep:
    """Shards that are wanted, by their files, and the claims on those that are being played."""

    def __init__(self, wanted: dict[Path, Cell], folder: Path, advance: Callable[[float], None]) -> None:
        self._wanted = wanted
        self._numbers = {file: number for number, file in enumerate(wanted)}
        self._claims: dict[Path, Claim] = {}
        self._wrong: list[Exception] = []
        # What is never written, and so goes with this process.
        progress = folder.resolve() / f"progress-{uuid4().hex[:20]}"
        while not (claim := Claim.take(progress)):
            pass
        self._claims[progress] = claim
        self._tally = Tally(claim.partial, [shard.size for shard in wanted.values()], advance)

    def play(self, backend: Backend) -> None:
        """See :func:`play`."""
        try:
            with self._tally:
                left = list(self._wanted)
                while left:
                    left = self._play(left, backend)
        finally:
            for claim in list(self._claims.values()):
                claim.give_up()

    def _play(self, left: Sequence[Path], backend: Backend) -> list[Path]:
        """Plays what nobody else has claimed, and returns the rest."""
        busy: list[Path] = []
        with closing(backend.run(self._tasks(left, busy))) as played:
            for file, content in played:
                if isinstance(content, Exception):
                    self._wrong.append(content)
                else:
                    self._claims.pop(file).write(content)
                    self._tally.done(self._numbers[file])
        if self._wrong:
            raise self._wrong[0]
        if busy:
            sleep(_SECONDS)
        return busy

    def _tasks(self, left: Sequence[Path], busy: list[Path]) -> Iterator[Any]:
        """Yields what to play, each once it is claimed."""
        for file in left:
            if self._wrong:
                # What is being played is played to its end, and kept.
                return
            claim = Claim.take(file)
            if claim is None:
                busy.append(file)
            elif is_kept(file):
                claim.give_up()
                self._tally.done(self._numbers[file])
            else:
                self._claims[file] = claim
                yield delayed(_played)(self._wanted[file], file, self._tally.file, self._numbers[file])


def _played(shard: Cell, file: Path, tally: Path, number: int) -> tuple[Path, bytes | Exception]:
    """Plays a shard, perhaps in another process or on another machine.

    Returns:
        The file, and what it is to hold, or what went wrong: raised here it would end what others are playing.
    """
    try:
        if path(shard, file.parent) != file:
            raise BackendError(
                "a worker has another source of fedbandit-envs than this process, so that its results would be others; "
                "start it again with the same one"
            )
        return file, packed(shard.play(noting(tally, number)), file.stem)
    except Exception as error:
        error.add_note(f"While a shard was played:\n{format_exc()}")
        return file, error
