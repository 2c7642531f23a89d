"""The command ``list``."""

import json
from typing import Any

from rich.table import Table

from fedbandit_envs.baselines.registry import BASELINES
from fedbandit_envs.leaderboard.board.suites import SUITES
from fedbandit_envs.leaderboard.cli.terminal import out_console
from fedbandit_envs.leaderboard.reproduction.experiment import experiments
from fedbandit_envs.registry.plugins import Registry
from fedbandit_envs.registry.registration import REGISTRY
from fedbandit_envs.wrappers.privacy.mechanisms.registry import MECHANISMS
from fedbandit_envs.wrappers.registry import WRAPPERS

_REGISTRIES: dict[str, Registry[Any]] = {
    "environment": REGISTRY,
    "baseline": BASELINES,
    "wrapper": WRAPPERS,
    "mechanism": MECHANISMS,
    "suite": SUITES,
}


def list_() -> None:
    """Lists environment ids, baselines and what plug-ins add; each plug-in's with its package and version."""
    ids = Table("id", "PettingZoo", "preset", title="Environments")
    for env_id, entry in REGISTRY.items():
        ids.add_row(env_id, entry.pettingzoo, json.dumps(entry.kwargs) if entry.kwargs else "-")
    out_console.print(ids)
    baselines = Table("name", "plays", "what it does", "reference", title="Baselines")
    for name, baseline in BASELINES.items():
        baselines.add_row(name, baseline.federation.__name__, baseline.summary, baseline.reference)
    out_console.print(baselines)
    added = Table("kind", "name", "package", title="Plug-ins")
    for kind, registry in {**_REGISTRIES, "experiment": experiments()}.items():
        for name in registry:
            if (package := registry.package(name)) is not None:
                added.add_row(kind, name, str(package))
    if added.row_count:
        out_console.print(added)
