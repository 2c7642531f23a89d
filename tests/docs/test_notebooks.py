"""The notebooks run from beginning to end, and show what they are for; in git they have no outputs."""

import sys
import warnings
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
pylabtools = pytest.importorskip("IPython.core.pylabtools")

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
SHOWN = {
    "first-steps": ("text/html", "text/html", "image/png", "text/html", "text/html", "text/html"),
    "privacy": ("text/html", "text/html", "image/png", "image/png"),
    "own-agent": ("image/png", "image/png"),
}
"""What the cells of each notebook show, richer than text, in order."""
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def shown(data):
    """What results show, richer than text, from their data by type."""
    return tuple(kind for one in data for kind in sorted({"text/html", "image/png"} & one.keys()))


@pytest.fixture
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Modules that a notebook writes are found there, and forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.usefixtures("in_a_folder_of_its_own")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "first-steps" else pytest.mark.ci) for name in NOTEBOOKS]
)
def test_notebooks_run(name, capsys):
    """In a shell of this process: a kernel imports everything for longer than a notebook plays."""
    shell = interactiveshell.InteractiveShell()
    pylabtools.select_figure_formats(shell, {"png"})
    results = []
    for cell in nbformat.read(FOLDER / f"{name}.ipynb", 4).cells:
        if cell.cell_type == "code":
            with warnings.catch_warnings(action="error"):
                ran = shell.run_cell(cell.source)
            ran.raise_error()
            if ran.result is not None:
                results.append(shell.display_formatter.format(ran.result)[0])
    assert shown(results) == SHOWN[name]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_valid_and_without_outputs(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert cell.cell_type != "code" or (cell.outputs, cell.execution_count) == ([], None)
    assert f"notebooks/{name}.ipynb" in (FOLDER.parent / "tutorials" / "index.md").read_text()
