"""Procurement for PettingZoo: ``procurement_v0.parallel_env()``."""

from fedbandit_envs.procurement.env import ProcurementEnv as parallel_env

__all__ = ["parallel_env"]
