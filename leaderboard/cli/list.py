"""The command ``list``."""

import json

from rich.table import Table

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.cli.terminal import out_console
from fedbandit_envs.registry.registration import REGISTRY


def list_() -> None:
    """Lists environment ids and baselines."""
    ids = Table("id", "PettingZoo", "preset", title="Environments")
    for env_id, entry in REGISTRY.items():
        ids.add_row(env_id, entry.pettingzoo, json.dumps(entry.kwargs) if entry.kwargs else "-")
    out_console.print(ids)
    baselines = Table("name", "plays", "what it does", "reference", title="Baselines")
    for name, baseline in BASELINES.items():
        baselines.add_row(name, baseline.federation.__name__, baseline.summary, baseline.reference)
    out_console.print(baselines)
