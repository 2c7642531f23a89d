"""All experiments by name: those of this package's papers, and those of plug-ins."""

from functools import cache
from typing import Any

from fedbandit_envs.papers import (
    byzantine,
    classification,
    fairx,
    fedlinucb,
    feducb_critique,
    local_trust,
    pfcb,
    private_budget,
    private_federation,
    servers,
    trust,
)
from fedbandit_envs.papers.experiment import Experiment
from fedbandit_envs.papers.page import Reproduction
from fedbandit_envs.papers.reproduction import experiment as templated
from fedbandit_envs.papers.reproduction import page as templated_page
from fedbandit_envs.registry.plugins import Registry

PAPERS = (
    pfcb,
    fairx,
    byzantine,
    classification,
    fedlinucb,
    feducb_critique,
    local_trust,
    private_budget,
    private_federation,
    servers,
    trust,
)


@cache
def experiments() -> Registry[Experiment | templated.Experiment]:
    """Returns all experiments by name; plug-ins of the group ``papers`` are modules with ``EXPERIMENTS``."""
    own: dict[str, Experiment | templated.Experiment] = {
        name: one for paper in PAPERS for name, one in paper.EXPERIMENTS.items()
    }
    return Registry(own | templated.experiments(), papers=lambda plugin: dict(plugin.content.EXPERIMENTS))


def reproduction(name: str, *arguments: Any, **options: Any) -> Reproduction | templated_page.Reproduction:
    """Returns the reproduction of an experiment; arguments are those of :class:`.page.Reproduction`."""
    one = experiments()[name]
    if isinstance(one, Experiment):
        return Reproduction(name, one, *arguments, **options)
    return templated_page.Reproduction(name, one, *arguments, **options)
