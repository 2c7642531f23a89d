"""Lines of papers' tables that vary one setting of a registered baseline."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fedbandit_envs.baselines import BASELINES
from fedbandit_envs.baselines.baseline import Baseline

VARIANTS: Mapping[str, tuple[str, Mapping[str, Mapping[str, Any]]]] = {
    "FCB-checked": ("FCB", {"policy": {"check": True}}),
    "FairX-LinUCB-0.1": ("FairX-LinUCB", {"policy": {"beta_scale": 0.1}}),
    "FairX-LinUCB-greedy": ("FairX-LinUCB", {"policy": {"beta_scale": 0.0}}),
    "Fed-FairX-LinUCB-greedy": ("Fed-FairX-LinUCB", {"policy": {"beta_scale": 0.0}}),
    "FedGLB-UCB-quasi-newton": (
        "FedGLB-UCB",
        {"server": {"policy": {"name": "logistic", "solver": "quasi_newton"}}},
    ),
    "FedLinUCB-theory": ("FedLinUCB", {"policy": {"alpha": None, "beta": None}}),
    "FedUCB-floor": ("FedUCB", {"policy": {"shift": "floor", "bias": "euclidean"}}),
    "FedUCB-min-trimmed": ("FedUCB-min", {"policy": {"pool": {"name": "trimmed_senders", "share": 0.4}}}),
    "FedUCB-nonprivate-trigger": ("FedUCB-nonprivate", {"channel": {"schedule": "synchronise"}}),
    "FedUCB-printed-trigger": (
        "FedUCB-printed",
        {"privatizer": {"releases": None}, "channel": {"schedule": "synchronise"}},
    ),
    "FedUCB-trimmed": ("FedUCB-nonprivate", {"policy": {"pool": {"name": "trimmed_senders", "share": 0.4}}}),
    "FedUCB-trimmed-mean": (
        "FedUCB-nonprivate",
        {"policy": {"pool": {"name": "trimmed_mean", "share": 0.25}}},
    ),
    "LinUCB-0.3": ("LinUCB", {"policy": {"beta_scale": 0.3}}),
    "LinUCB-0.5": ("LinUCB", {"policy": {"beta_scale": 0.5}}),
    "PF-UCB-1.2": ("PF-UCB", {"server": {"policy": {"name": "personal", "growth": 1.2}}}),
    "Priv-FairX-LinUCB-on-sum": ("Priv-FairX-LinUCB", {"policy": {"shift": "on_sum", "bias": "root_m"}}),
    "SS-UCB-0.5": ("SS-UCB", {"policy": {"radius_scale": 0.5}}),
    "SS-UCB-0.8": ("SS-UCB", {"policy": {"radius_scale": 0.8}}),
}
"""Lines of tables and figures that vary one setting of a baseline: the baseline, and the arguments by part."""


def baseline_of(name: str) -> Baseline:
    """Returns the baseline that a line of a table names, with the settings of :data:`VARIANTS`."""
    known, settings = VARIANTS.get(name, (name, {}))
    baseline = BASELINES[known]
    wrappers = {
        part: one._replace(kwargs={**one.kwargs, **settings.get(part, {})})
        for part, one in baseline.wrappers.items()
    }
    return replace(
        baseline, policy_kwargs={**baseline.policy_kwargs, **settings.get("policy", {})}, wrappers=wrappers
    )
