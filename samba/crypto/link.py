"""Links between two roles: every frame is numbered, encrypted and authenticated under a key of its direction.

A frame is a sequence number (8 bytes) and the payload under AES-256-GCM, with that number as the nonce; a direction's
key therefore never meets a nonce twice. An observer sees lengths only. A frame that was modified, repeated, left out,
swapped with another or taken from another link is refused.
"""

from fedbandit_envs.samba.crypto.libraries import AEAD, load
from fedbandit_envs.samba.errors import FrameError, SecureError
from fedbandit_envs.samba.record import Record

MAX_ENCRYPTIONS = 1 << 32
"""Number of encryptions that a key is used for at most."""

_NUMBER_BYTES = 8
_TAG_BYTES = 16
MIN_FRAME_BYTES = _NUMBER_BYTES + _TAG_BYTES + 1
"""Length of the shortest frame: a payload has at least one byte."""


class Link:
    """One role's end of a link."""

    def __init__(self, peer: str, keys: tuple[bytes, bytes], max_bytes: int, record: Record) -> None:
        """Sets up a link on which no frame has been sent yet.

        Args:
            peer: Name of the role at the other end.
            keys: The fresh keys of frames to the peer and of frames from the peer, 32 bytes each.
            max_bytes: Length of the longest frame allowed.
            record: The record of the role at this end; it counts frames sent and keeps messages received.
        """
        self.peer = peer
        self.max_bytes = max_bytes
        sending, receiving = map(load(AEAD).AESGCM, keys)
        self._seal, self._open = sending.encrypt, receiving.decrypt
        self._invalid_tag = load("cryptography.exceptions").InvalidTag
        self._sent = 0
        self._received = 0
        self._record = record

    def seal(self, payload: bytes) -> bytes:
        """Returns the next frame to the peer.

        Raises:
            SecureError: 2^32 frames have been sent.
        """
        if self._sent >= MAX_ENCRYPTIONS:
            raise SecureError(f"the key of the link to {self.peer} has been used for 2^32 frames")
        number = self._sent.to_bytes(_NUMBER_BYTES, "big")
        frame: bytes = number + self._seal(bytes(4) + number, payload, None)
        self._sent += 1
        self._record.counts.frames += 1
        self._record.counts.bytes += len(frame)
        return frame

    def open(self, frame: bytes) -> bytes:
        """Returns the payload of the next frame from the peer; the link's state changes in :meth:`accept` only.

        Raises:
            FrameError: The frame is not the next one, or not as it was sent.
        """
        peer, expected = self.peer, self._received
        if not MIN_FRAME_BYTES <= len(frame) <= self.max_bytes:
            bound = f"most {self.max_bytes} are allowed"
            if len(frame) < MIN_FRAME_BYTES:
                bound = f"least {MIN_FRAME_BYTES} are required"
            raise FrameError(f"a frame from {peer} has {len(frame)} bytes; at {bound}", peer)
        number = int.from_bytes(frame[:_NUMBER_BYTES], "big")
        if number != expected:
            raise FrameError(f"frame {number} came from {peer}; frame {expected} is the next", peer)
        try:
            payload: bytes = self._open(bytes(4) + frame[:_NUMBER_BYTES], frame[_NUMBER_BYTES:], None)
        except self._invalid_tag as error:
            raise FrameError(
                f"frame {number} from {peer} has a wrong tag: it was modified, or sealed with another key",
                peer,
            ) from error
        return payload

    def accept(self, payload: bytes) -> None:
        """Moves on to the next frame after the role has accepted the payload of this one."""
        self._received += 1
        self._record.add_received(self.peer, payload)
