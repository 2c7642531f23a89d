"""The notebooks run from beginning to end, and show what they are for; in git they have no outputs."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
SHOWN = {
    "first-steps": ("text/html", "text/html", "image/png", "text/html", "text/html", "text/html"),
    "privacy": ("text/html", "text/html", "image/png", "image/png"),
    "own-agent": ("image/png", "image/png"),
}
"""What the cells of each notebook show, richer than text, in order."""
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name, tmp_path):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    rich = [
        {"text/html", "image/png"} & one.data.keys() for one in outputs if one.output_type == "execute_result"
    ]
    assert tuple(kind for kinds in rich for kind in sorted(kinds)) == SHOWN[name]
    # Warnings would be shown to readers.
    assert [one.text for one in outputs if one.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_valid_and_without_outputs(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    assert all(
        not cell.outputs and cell.execution_count is None
        for cell in notebook.cells
        if cell.cell_type == "code"
    )
    assert f"notebooks/{name}.ipynb" in (FOLDER.parent / "tutorials" / "index.md").read_text()
