"""What a role has done, counted where it is done."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass


@dataclass
class Counts:
    """Operations and traffic of a role, or of several together.

    Attributes:
        aes_encryptions: Scores and marks encrypted with the key of owners and Comp.
        aes_decryptions: Scores and marks decrypted.
        paillier_encryptions: Sums encrypted under the customer's key.
        paillier_multiplications: Of encrypted sums.
        paillier_decryptions: Of the total.
        frames: Frames sent, each sealed by its sender and opened by its receiver under the link's own key.
        bytes: Bytes of these frames.
    """

    aes_encryptions: int = 0
    aes_decryptions: int = 0
    paillier_encryptions: int = 0
    paillier_multiplications: int = 0
    paillier_decryptions: int = 0
    frames: int = 0
    bytes: int = 0

    @classmethod
    def total(cls, parts: Iterable["Counts"]) -> "Counts":
        """Adds up."""
        return cls(*map(sum, zip(*map(astuple, parts), strict=True)))
