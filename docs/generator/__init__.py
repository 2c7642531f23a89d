"""Pages that follow from the package: written before each build into ``docs/generated``, which git ignores.

Docstrings, the registries and the files that lie in the repository are the only sources, so that nothing is said twice.
"""

from pathlib import Path
from typing import Any

from generator import baselines, board, copied, environments, gallery, pictures, reference, wrappers
from generator.folder import Folder
from generator.markup import adapt, leave_out


def setup(app: Any) -> dict[str, Any]:
    """Has Sphinx write the pages first."""
    app.connect("builder-inited", lambda app: generate(Path(app.srcdir)))
    # Before Google's sections are read.
    app.connect("autodoc-process-docstring", adapt, priority=400)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def generate(docs: Path) -> None:
    """Writes all generated pages.

    Args:
        docs: The folder of the documentation.
    """
    folder = Folder(docs / "generated")
    for part in (environments, wrappers, board, baselines, reference, pictures, gallery, copied):
        part.write(folder, docs)
    folder.remove_others()
