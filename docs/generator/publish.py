"""Publishes the editions of a folder of results: ``python docs/generator/publish.py docs/leaderboard/results``.

Their salts and the seal of the record's last line are appended to ``published.json`` of the leaderboard, so that
``--edition published`` plays these editions and that rows which are added to them later are shown as open.
"""

import json
import sys
from pathlib import Path

from fedbandit_envs.leaderboard.records import Records

FILE = Path(__file__).parents[2] / "leaderboard" / "board" / "published.json"


def publish(folder: Path, file: Path = FILE) -> None:
    """Appends those editions of a folder that are not published yet, as one publication, to a file."""
    lines, publications = Records(folder).lines(), json.loads(file.read_text())
    known = {edition["salt"] for publication in publications for edition in publication["editions"]}
    opened = [
        {name: line[name] for name in ("suite", "digest", "salt")}
        for line in lines
        if line["what"] == "edition"
    ]
    editions = [edition for edition in opened if edition["salt"] not in known]
    if editions:
        publications.append({"seal": lines[-1]["seal"], "editions": editions})
        file.write_text(json.dumps(publications, indent=1) + "\n")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
