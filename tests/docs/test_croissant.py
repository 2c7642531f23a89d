"""The Croissant metadata of the leaderboard's results describe the files that lie beside them."""

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "leaderboard"
METADATA = json.loads((FOLDER / "croissant.json").read_text())


def test_metadata_are_those_of_the_committed_results():
    spec = importlib.util.spec_from_file_location("croissant", ROOT / "docs/generator/croissant.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.metadata() == METADATA, "write it anew: python docs/generator/croissant.py"


def test_every_field_is_in_the_files():
    record, results = METADATA["distribution"]
    content = (FOLDER / record["contentUrl"]).read_bytes()
    assert record["sha256"] == hashlib.sha256(content).hexdigest()
    lines = [json.loads(line) for line in content.splitlines()]
    files = sorted(FOLDER.glob(results["includes"]))
    assert {path.name for path in files} == {line["file"] for line in lines if line["what"] == "in"}
    rows, tasks = METADATA["recordSet"]
    for field in rows["field"]:
        assert field["source"]["fileObject"] == {"@id": record["@id"]}
        assert any(field["source"]["extract"]["column"] in line for line in lines)
    for field in tasks["field"][1:]:
        assert field["source"]["fileSet"] == {"@id": results["@id"]}
        name = field["source"]["extract"]["jsonPath"].removeprefix("$.tasks[*].")
        for path in files:
            for task in json.loads(path.read_text())["tasks"]:
                assert isinstance(task[name], list) is field.get("repeated", False)


def test_its_own_library_reads_it():
    """Where `mlcroissant` is installed, which no extra has."""
    mlcroissant = pytest.importorskip("mlcroissant")
    data = mlcroissant.Dataset(jsonld=str(FOLDER / "croissant.json"))
    first = next(iter(data.records("tasks")))
    task = json.loads((FOLDER / "results" / first["tasks/file"].decode()).read_text())["tasks"][0]
    assert first["tasks/regret"] == task["regret"]
