"""Baselines by name: each family says in ``registered.py`` what it has, and some of them have tuned forms."""

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.baselines.tuned import tuned
from fedbandit_envs.collection import registered

BASELINES: dict[str, Baseline] = {}
"""Every baseline of this package by name."""

for _family in registered(baselines):
    for _name, _entry in _family.BASELINES.items():
        if _name in BASELINES:
            raise ValueError(f"{_family.__name__} has a baseline {_name!r}, which another family has already")
        BASELINES[_name] = _entry

BASELINES.update(tuned(BASELINES))
