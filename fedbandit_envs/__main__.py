"""Runs the command line: ``python -m fedbandit_envs``."""

from fedbandit_envs.cli import app

app(prog_name="fedbandit")
