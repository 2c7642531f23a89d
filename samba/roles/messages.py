"""Messages between roles: their kinds, and the encrypted frames that carry them.

The steps in the descriptions of kinds are those of SAMBA, Figure 5.
"""

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """The kind of a message, sent as the first byte of the message."""

    HELLO = 0
    """The sender's name; the first frame of each direction of a connection between processes."""
    PLAN = 1
    """Steps 0 and 1: the plan, with the customer's modulus for the roles that need it."""
    SCORES = 2
    """Steps 2 and 3: encrypted scores, one for each owner."""
    COMMON_SCORE = 3
    """Step 3 in a round of exploration: one score that Controller gives to all owners, as long as a SCORES message."""
    MARKS = 4
    """Steps 4 and 5: encrypted marks, one for each owner, which tell whether the owner was picked."""
    SUMS = 5
    """Step 6: sums of rewards under Paillier encryption, one for each owner."""
    TOTAL = 6
    """Step 7: the product of the encrypted sums, which is an encryption of the total."""
    STOP = 7
    """The run has ended without a result: the role that caused it and the reason, as JSON."""
    ALIVE = 8
    """No content. Controller sends it to roles that wait for long, so that they do not take the run for hung."""


Message = tuple[str, Kind, bytes]
"""A message before its link encrypts it: the receiver's name, the kind and the content."""


class Frame(NamedTuple):
    """An encrypted message on its way from sender to receiver, as an observer of the network sees it."""

    sender: str
    receiver: str
    data: bytes
