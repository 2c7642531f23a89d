"""Exposure fairness for PettingZoo: ``parallel_env()``, and one agent after another ``env()``."""

from fedbandit_envs.exposure.env import ExposureEnv
from fedbandit_envs.views.parallel import Faces

__all__ = ["env", "parallel_env", "raw_env"]

_FACES = Faces(ExposureEnv)
parallel_env, raw_env, env = _FACES.parallel_env, _FACES.raw_env, _FACES.env
