"""SAMBA: arms of a vertical federation are picked over encrypted scores (Ciucanu, Lafourcade, Marcadet and Soare).

:func:`run_secure` runs it; it needs the ``[secure]`` extra. Roles hold their own keys only (``roles/``), speak over
links that seal every frame (``link.py``), and meet in one process (``local.py``) or over sockets (``tcp.py``).
"""

from fedbandit_envs.wrappers.secure.errors import MissingExtraError, SecureError
from fedbandit_envs.wrappers.secure.plan import Algorithm
from fedbandit_envs.wrappers.secure.run import SecureRun, run_secure

__all__ = ["Algorithm", "MissingExtraError", "SecureError", "SecureRun", "run_secure"]
