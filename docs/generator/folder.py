"""The folder of generated pages."""

from pathlib import Path


class Folder:
    """Writes files where they changed, so that Sphinx reads again only those, and forgets none."""

    def __init__(self, path: Path) -> None:
        """Opens the folder, which is made where it is missing."""
        self._path = path
        self._written: set[Path] = set()

    def write(self, name: str, content: str | bytes) -> None:
        """Writes a file; a page only if it does not hold that already. Pictures are new then for :meth:`keep`.

        Args:
            name: Path in the folder.
            content: What is to be in it.
        """
        file = self._path / name
        data = content.encode() if isinstance(content, str) else content
        self._written.add(file)
        if isinstance(content, bytes) or not file.exists() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def keep(self, name: str, since: float) -> bool:
        """Keeps a file of an earlier build, if there is one that is not older than its sources.

        Args:
            name: Path in the folder.
            since: When the sources were last changed, in seconds since 1970.

        Returns:
            Whether there is one.
        """
        file = self._path / name
        if not file.exists() or file.stat().st_mtime < since:
            return False
        self._written.add(file)
        return True

    def remove_others(self) -> None:
        """Removes what an earlier build has left and nothing writes any more."""
        for file in self._path.rglob("*"):
            if file.is_file() and file not in self._written:
                file.unlink()
