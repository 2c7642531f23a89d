"""Silos: from simulation to deployment, one agent a process, with its store on disk and messages between them."""

from fedbandit_envs.silos.messages import Message, MessageError
from fedbandit_envs.silos.plan import SiloPlan
from fedbandit_envs.silos.silo import Silo, TurnError
from fedbandit_envs.silos.store import StoreError

__all__ = ["Message", "MessageError", "Silo", "SiloPlan", "StoreError", "TurnError"]
