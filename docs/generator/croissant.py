"""Writes Croissant metadata of the leaderboard's table: ``python docs/generator/croissant.py``.

Croissant 1.0 is a vocabulary, written as JSON-LD, by which catalogues of data sets know files and fields.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docs/leaderboard/croissant.json"
_TEXTS = ("suite", "edition", "entry", "track", "task", "seed")
_NUMBERS = ("regret", "half", "messages", "bytes", "epsilon", "delta")


def metadata() -> dict[str, Any]:
    """Returns the metadata as JSON data."""
    table = FILE.with_name("results.csv.gz").read_bytes()
    name = "results.csv.gz"
    file = {"@type": "cr:FileObject", "@id": "results", "name": name, "contentUrl": name}
    fields = [
        {"@type": "cr:Field", "@id": f"runs/{name}", "name": name}
        | {"dataType": "sc:Text" if name in _TEXTS else "sc:Float"}
        | {"source": {"fileObject": {"@id": "results"}, "extract": {"column": name}}}
        for name in (*_TEXTS, *_NUMBERS)
    ]
    return {
        "@context": {
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "fedbandit-envs-leaderboard",
        "description": "Regret, messages, bytes and privacy claims of policies for federated bandits: a line a run.",
        "license": "https://spdx.org/licenses/MIT.html",
        "distribution": [
            {**file, "encodingFormat": "application/gzip", "sha256": hashlib.sha256(table).hexdigest()}
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "runs", "name": "runs", "field": fields}],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(metadata(), indent=1) + "\n")
