"""Links: each has a key of its own a direction, numbers its frames, and seals them whole.

A frame is a sequence number (8 bytes) and the payload under AES-256-GCM, with that number as the nonce: the key of a
direction never meets a number twice. So an observer sees nothing but lengths, and a frame that was changed, repeated,
left out, swapped with another or taken from another link is refused.
"""

from typing import NamedTuple

from fedbandit_envs.wrappers.secure.counts import Counts
from fedbandit_envs.wrappers.secure.errors import (
    KeyExhaustedError,
    OversizedFrameError,
    ReorderedFrameError,
    ReplayedFrameError,
    TamperedFrameError,
    TruncatedFrameError,
)
from fedbandit_envs.wrappers.secure.libraries import aes_gcm, invalid_tag
from fedbandit_envs.wrappers.secure.transcript import Received, Transcript

MOST_ENCRYPTIONS = 1 << 32
"""So often a key encrypts, and never more."""

_NUMBER_BYTES = 8
_TAG_BYTES = 16
LEAST_FRAME = _NUMBER_BYTES + _TAG_BYTES + 1
"""The shortest frame: a payload has at least one byte."""


def longest_frame(arms: int) -> int:
    """Returns how long a frame can be at most where there are so many arms: a Paillier sum for each is the longest."""
    return 8192 + 1024 * arms


class LinkKeys(NamedTuple):
    """A link's keys as one of its ends holds them, 32 bytes each."""

    sending: bytes
    receiving: bytes


class Link:
    """One end of a link."""

    def __init__(
        self, peer: str, keys: LinkKeys, longest: int, counts: Counts, transcript: Transcript | None
    ):
        """Starts the link: both directions begin with frame 0.

        Args:
            peer: The role at the other end.
            keys: Fresh ones.
            longest: No frame is longer, in bytes.
            counts: Of the role at this end; counts what is sent.
            transcript: Of the role at this end, or None.
        """
        self.peer = peer
        self.longest = longest
        self._seal = aes_gcm(keys.sending).encrypt
        self._open = aes_gcm(keys.receiving).decrypt
        self._invalid_tag = invalid_tag()
        self._sent = 0
        self._received = 0
        self._counts = counts
        self._transcript = transcript

    def seal(self, payload: bytes) -> bytes:
        """Returns the next frame to the peer.

        Raises:
            KeyExhaustedError: There have been 2^32.
        """
        if self._sent >= MOST_ENCRYPTIONS:
            raise KeyExhaustedError(f"the link to {self.peer} has sealed 2^32 frames; its key is worn out")
        number = self._sent.to_bytes(_NUMBER_BYTES, "big")
        frame: bytes = number + self._seal(bytes(4) + number, payload, None)
        self._sent += 1
        self._counts.frames += 1
        self._counts.bytes += len(frame)
        return frame

    def open(self, frame: bytes) -> bytes:
        """Returns what the next frame from the peer says. Nothing has changed until :meth:`accept`.

        Raises:
            FrameError: It is not the next frame, or not as it was sent.
        """
        peer, expected = self.peer, self._received
        if len(frame) > self.longest:
            raise OversizedFrameError(
                f"a frame from {peer} has {len(frame)} bytes; at most {self.longest} are allowed", peer
            )
        if len(frame) < LEAST_FRAME:
            raise TruncatedFrameError(
                f"a frame from {peer} has {len(frame)} bytes; at least {LEAST_FRAME} are required", peer
            )
        number = int.from_bytes(frame[:_NUMBER_BYTES], "big")
        if number != expected:
            refusal = ReplayedFrameError if number < expected else ReorderedFrameError
            raise refusal(f"frame {number} came from {peer}; frame {expected} is the next", peer)
        try:
            payload: bytes = self._open(bytes(4) + frame[:_NUMBER_BYTES], frame[_NUMBER_BYTES:], None)
        except self._invalid_tag as error:
            raise TamperedFrameError(
                f"frame {number} from {peer} has a wrong tag: it was changed, or sealed with another key",
                peer,
            ) from error
        return payload

    def accept(self, payload: bytes) -> None:
        """Goes on to the frame after the one opened, whose payload has been used."""
        self._received += 1
        if self._transcript is not None:
            self._transcript.received.append(Received(self.peer, payload))
