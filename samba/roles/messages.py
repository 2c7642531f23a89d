"""Messages between roles: their kinds, and the frames that carry them. Steps are those of SAMBA, Figure 5."""

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """The kind of a message, which is the first byte of its payload."""

    HELLO = 0
    """The sender's name; the first frame of each direction of a connection between processes."""
    PLAN = 1
    """Steps 0 and 1: the plan, with the customer's modulus for the roles that need it."""
    SCORES = 2
    """Steps 2 and 3: encrypted scores, one for each owner."""
    COMMON_SCORE = 3
    """Step 3 in a round of exploration: one score of Controller's for all owners, padded to the length of SCORES."""
    MARKS = 4
    """Steps 4 and 5: encrypted marks, one for each owner."""
    SUMS = 5
    """Step 6: sums of rewards under Paillier, one for each owner."""
    TOTAL = 6
    """Step 7: the product of these, which is the encrypted total."""
    STOP = 7
    """The run ends without a result: culprit and reason, as JSON."""
    ALIVE = 8
    """No content; Controller sends it to roles that would receive nothing else for long, before they time out."""


Message = tuple[str, Kind, bytes]
"""A message before its link seals it: the receiver's name, the kind and the content."""


class Frame(NamedTuple):
    """A sealed message on its way, as an observer of the network sees it."""

    sender: str
    receiver: str
    data: bytes
