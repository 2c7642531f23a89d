"""Personal Gaussian arms: a plug-in of fedbandit-envs."""

from fedbandit_envs import register_plugins

register_plugins()
