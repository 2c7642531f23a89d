"""Writes Croissant metadata of the leaderboard's table: ``python docs/generator/croissant.py``."""

import json
from pathlib import Path
from typing import Any

from fedbandit_envs.experiments.croissant import Column, croissant

FILE = Path(__file__).parents[2] / "docs/leaderboard/croissant.json"
_TEXTS = ("suite", "edition", "entry", "track", "task", "seed")
_NUMBERS = ("regret", "half", "messages", "bytes", "epsilon", "delta")
_DESCRIPTION = "Regret, messages, bytes and privacy claims of policies for federated bandits: a line a run."


def metadata() -> dict[str, Any]:
    """Returns the metadata as JSON data."""
    columns = dict.fromkeys(_TEXTS, Column("Text")) | dict.fromkeys(_NUMBERS, Column("Float"))
    table = FILE.with_name("results.csv.gz")
    return croissant(table, "text/csv", "fedbandit-envs-leaderboard", _DESCRIPTION, "runs", columns)


if __name__ == "__main__":
    FILE.write_text(json.dumps(metadata(), indent=1) + "\n")
