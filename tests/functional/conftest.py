"""The twin's modules import JAX, so that their tests are collected only where the extra ``jax`` is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jax") else ["test_*.py"]
