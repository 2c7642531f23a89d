"""Croissant metadata of the leaderboard's committed results: ``python docs/generator/croissant.py`` writes the file.

Croissant 1.0 (https://docs.mlcommons.org/croissant/docs/croissant-spec-1.0.html) is a vocabulary, written as JSON-LD,
in which catalogues of data sets read what files there are and what fields are in them.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/leaderboard/croissant.json"

_DESCRIPTION = """\
Results of the leaderboard of fedbandit-envs: cumulative regret, messages, bytes and privacy claims of policies for
federated bandits, by suite of tasks and by track (what agents may send, and with how much privacy). A file in results/
is a row: an entry on a track of a suite, with a part for each task of the suite. results/record.jsonl lists the rows
with a digest of each. leaderboard/result.schema.json describes all fields, and `fedbandit leaderboard verify`
plays a row again."""

# Terms of the vocabulary: the specification wants all of them named, used or not.
_TERMS = """citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField
transform"""

# Names of fields, their types, whether there are several values in a record, and what they say.
_OF_ROWS = (
    ("at", "sc:DateTime", False, "When the line was written (UTC)."),
    ("what", "sc:Text", False, "Kind of line: `edition` (seeds are drawn), `in` (a row), `out` (it is withdrawn)."),
    ("file", "sc:Text", False, "Name of the row's file."),
    ("result", "sc:Text", False, "SHA-256 digest of the row's content."),
    ("suite", "sc:Text", False, "Suite of tasks that was played."),
    ("track", "sc:Text", False, "Limits on what agents may send."),
    ("entry", "sc:Text", False, "Name of the baseline or submission."),
)  # fmt: skip
_OF_TASKS = (
    ("task", "sc:Text", False, "Suite and name of the task."),
    ("rounds", "sc:Integer", True, "Rounds at which regret was recorded."),
    ("regret", "sc:Float", True, "Cumulative regret per agent: for each recorded round, a number for each seed."),
    ("seeds", "sc:Text", True, "Seeds that were played, in hexadecimal digits."),
    ("messages", "sc:Float", True, "Messages of an agent in an episode, mean over agents, for each seed."),
    ("bytes", "sc:Float", True, "Bytes that an agent has sent in an episode, mean over agents, for each seed."),
    ("cpu_seconds", "sc:Float", False, "CPU time of all seeds, in seconds."),
)  # fmt: skip


def metadata() -> dict[str, Any]:
    """Returns the metadata as JSON data."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(
        r"^```bibtex\n(.*?)\n```", (ROOT / "docs/citing.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert cited
    record = FILE.parent / "results/record.jsonl"
    last = json.loads(record.read_text().splitlines()[-1])
    tasks = [
        _field("tasks", "file", "sc:Text", False, "Name of the row's file.", {"fileProperty": "filename"})
    ]
    tasks += [_field("tasks", *known, {"jsonPath": f"$.tasks[*].{known[0]}"}) for known in _OF_TASKS]
    return {
        "@context": {
            "@language": "en",
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "rai": "http://mlcommons.org/croissant/RAI/",
            "dct": "http://purl.org/dc/terms/",
            "conformsTo": "dct:conformsTo",
            "data": {"@id": "cr:data", "@type": "@json"},
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
            "examples": {"@id": "cr:examples", "@type": "@json"},
            **{term: f"cr:{term}" for term in _TERMS.split()},
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{project['name']}-leaderboard",
        "description": _DESCRIPTION.replace("\n", " "),
        "license": "https://spdx.org/licenses/MIT.html",
        "version": project["version"],
        "dateModified": last["at"][:10],
        "creator": {"@type": "Organization", "name": "The fedbandit-envs developers"},
        "citeAs": cited[1],
        # The catalogue's address of the data: there is none until the project has one.
        **({"url": project["urls"]["Repository"]} if "urls" in project else {}),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "record",
                "name": "record.jsonl",
                "contentUrl": "results/record.jsonl",
                "encodingFormat": "application/jsonlines",
                "sha256": hashlib.sha256(record.read_bytes()).hexdigest(),
            },
            {
                "@type": "cr:FileSet",
                "@id": "results",
                "name": "results",
                "encodingFormat": "application/json",
                "includes": "results/*.json",
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "description": "Lines of the record: the rows, and the editions to which they belong.",
                "field": [_field("rows", *known, {"column": known[0]}) for known in _OF_ROWS],
            },
            {
                "@type": "cr:RecordSet",
                "@id": "tasks",
                "name": "tasks",
                "description": "What the entry of each row has come to in each task of its suite.",
                "field": tasks,
            },
        ],
    }


def _field(
    records: str, name: str, data_type: str, repeated: bool, description: str, extract: dict[str, str]
) -> dict[str, Any]:
    """Returns the metadata of a field of ``rows`` or of ``tasks``, taken from the record or from the results' files."""
    source = {"fileObject": {"@id": "record"}} if records == "rows" else {"fileSet": {"@id": "results"}}
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{name}",
        "name": name,
        "description": description,
        "dataType": data_type,
        **({"repeated": True} if repeated else {}),
        "source": {**source, "extract": extract},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(metadata(), indent=1) + "\n")
