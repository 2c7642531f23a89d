"""All experiments by name: those of this package's papers, and those of plug-ins."""

from functools import cache

from fedbandit_envs.papers import (
    byzantine,
    classification,
    fairx,
    fedlinucb,
    feducb,
    feducb_critique,
    local_trust,
    pfcb,
    private_budget,
    private_federation,
    samba,
    servers,
    trust,
    unlike,
)
from fedbandit_envs.papers.experiment import Experiment
from fedbandit_envs.registry.registration import Registry

PAPERS = (
    byzantine, classification, fairx, fedlinucb, feducb, feducb_critique, local_trust, pfcb, private_budget,
    private_federation, samba, servers, trust, unlike,
)  # fmt: skip


@cache
def experiments() -> Registry[Experiment]:
    """Returns all experiments by name; plug-ins of the group ``papers`` are modules with ``EXPERIMENTS``."""
    own = {name: one for paper in PAPERS for name, one in paper.EXPERIMENTS.items()}
    return Registry(own, papers=lambda plugin: dict(plugin.content.EXPERIMENTS))
