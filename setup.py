"""Lists the packages: the upper floors lie beside the environments and are installed under the one import name."""

from setuptools import find_packages, setup

NAME = "fedbandit_envs"
FLOORS = (
    "wrappers",
    "baselines",
    "samba",
    "silos",
    "experiments",
    "functional",
    "leaderboard",
    "papers",
    "cli",
    "lab",
)

folders = {name: name.replace(".", "/") for name in find_packages(include=[NAME, f"{NAME}.*"])}
for floor in FLOORS:
    for name in find_packages(include=[floor, f"{floor}.*"]):
        folders[f"{NAME}.{name}"] = name.replace(".", "/")

setup(packages=list(folders), package_dir=folders)
