"""Baselines by name, collected from the families: each folder says in ``registered.py`` what it has."""

from fedbandit_envs import baselines
from fedbandit_envs.baselines.baseline import Baseline
from fedbandit_envs.collection import registered

BASELINES: dict[str, Baseline] = {}
"""Every baseline of this package by name."""

for _family in registered(baselines):
    for _name, _entry in _family.BASELINES.items():
        if _name in BASELINES:
            raise ValueError(f"{_family.__name__} has a baseline {_name!r}, which another family has already")
        BASELINES[_name] = _entry
