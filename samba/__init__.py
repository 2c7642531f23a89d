"""SAMBA: a bandit algorithm run on encrypted scores over a vertical federation, where each data owner has one arm.

The protocol is that of Ciucanu, Lafourcade, Marcadet and Soare (SAMBA, JAIR 2022). In every round each owner sends an
encrypted score of its arm; *Controller*, which cannot decrypt scores, permutes them; *Comp*, which does not know whose
scores they are, decrypts them and picks one; the owner of that score pulls its arm. At the end the *customer* decrypts
the sum of all rewards, and nothing else. :func:`run_secure` runs the protocol; it needs the ``[secure]`` extra.

The parts, from the bottom up:

* ``messages``: kinds of messages, encryption of links, items and sums, and the record of what a role received.
* ``keys``: pseudorandom streams, keyrings and certificates.
* ``owners``: the computations of a data owner, the plan of a run, and the same federation without encryption.
* ``roles``: the customer, Controller, Comp and groups of data owners, as state machines over messages.
* ``network``: delivery of frames in one process, or by sockets between processes and machines.
* ``runs``: whole runs, encrypted or not, from a list of arms or from settings as JSON.
"""

from fedbandit_envs.samba.messages import SecureError
from fedbandit_envs.samba.owners import Algorithm
from fedbandit_envs.samba.runs import SecureRun, run_secure

__all__ = ["Algorithm", "SecureError", "SecureRun", "run_secure"]
