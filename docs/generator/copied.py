"""Pages that lie elsewhere in the repository and are shown as they are."""

from pathlib import Path

from generator.folder import Folder

_PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")


def write(folder: Folder, docs: Path) -> None:
    """Copies the pages."""
    for name in _PAGES:
        # From the repository's root, links to pages begin with the folder of the documentation.
        folder.write(name.lower(), (docs.parent / name).read_text().replace("](docs/", "](../"))
