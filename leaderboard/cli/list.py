"""The command ``list``."""

import json

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.cli.terminal import print_table
from fedbandit_envs.registry.registration import REGISTRY


def list_() -> None:
    """Lists environment ids and baselines."""
    ids = (
        (env_id, entry.pettingzoo, json.dumps(entry.kwargs) if entry.kwargs else "-")
        for env_id, entry in REGISTRY.items()
    )
    print_table("Environments", ("id", "PettingZoo", "preset"), ids)
    baselines = (
        (name, one.federation.__name__, one.summary, one.reference) for name, one in BASELINES.items()
    )
    print_table("Baselines", ("name", "plays", "what it does", "reference"), baselines)
