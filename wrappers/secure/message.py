"""Kinds of messages: the first byte of every payload. Steps are those of SAMBA, Figure 5."""

from enum import IntEnum


class Kind(IntEnum):
    """What a payload holds after its first byte."""

    HELLO = 0
    """The sender's name, as the first frame of a connection between machines."""
    PLAN = 1
    """Steps 0 and 1: the plan, with the customer's modulus for those who need it."""
    SCORES = 2
    """Steps 2 and 3: encrypted scores, one an owner."""
    COMMON_SCORE = 3
    """Step 3 of a round that explores: Controller's one score, for all owners alike, as long as scores are."""
    MARKS = 4
    """Steps 4 and 5: encrypted marks, one an owner."""
    SUMS = 5
    """Step 6: sums under Paillier, one an owner."""
    TOTAL = 6
    """Step 7: their product."""
    STOP = 7
    """The run has ended without a result: culprit and reason, as JSON."""
    ALIVE = 8
    """From Controller to those who would else hear nothing for long; it has no content."""
