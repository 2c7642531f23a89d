"""The Croissant metadata of the leaderboard's results describe the table beside them."""

import csv
import gzip
import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_metadata_are_of_the_table():
    spec = importlib.util.spec_from_file_location("croissant", ROOT / "docs/generator/croissant.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = json.loads(module.FILE.read_text())
    assert module.metadata() == written, "write it anew: python docs/generator/croissant.py"
    with gzip.open(module.FILE.with_name("results.csv.gz"), "rt") as table:
        heads = next(csv.reader(table))
    assert [field["name"] for field in written["recordSet"][0]["field"]] == heads
