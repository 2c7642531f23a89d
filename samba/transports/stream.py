"""Frames in a stream of bytes: each follows its length, 4 bytes big-endian."""

from collections.abc import Iterator

from fedbandit_envs.samba.errors import OversizedFrameError, TruncatedFrameError

_LENGTH_BYTES = 4


def with_length(frame: bytes) -> bytes:
    """Returns a frame with its length in front, as it is written to a stream."""
    return len(frame).to_bytes(_LENGTH_BYTES, "big") + frame


class FrameReader:
    """Splits a stream into frames; it holds no more than one frame and the bytes that arrived last.

    Attributes:
        sender: Name of the sender, for errors.
        max_bytes: Length of the longest frame allowed.

    Example:
        >>> reader = FrameReader("comp", max_bytes=100)
        >>> list(reader.feed(with_length(b"first") + with_length(b"second")))
        [b'first', b'second']
    """

    def __init__(self, sender: str, max_bytes: int) -> None:
        """Starts at the beginning of a stream; arguments as the attributes."""
        self.sender = sender
        self.max_bytes = max_bytes
        self._held = bytearray()

    def feed(self, arrived: bytes) -> Iterator[bytes]:
        """Yields the frames that are complete once these bytes have arrived.

        Raises:
            OversizedFrameError: A frame announces a greater length than is allowed; its bytes are not waited for.
        """
        self._held += arrived
        while len(self._held) >= _LENGTH_BYTES:
            length = int.from_bytes(self._held[:_LENGTH_BYTES], "big")
            if length > self.max_bytes:
                raise OversizedFrameError(
                    f"{self.sender} announces a frame of {length} bytes; at most {self.max_bytes} are allowed",
                    self.sender,
                )
            end = _LENGTH_BYTES + length
            if len(self._held) < end:
                return
            frame = bytes(self._held[_LENGTH_BYTES:end])
            del self._held[:end]
            yield frame

    def end(self) -> TruncatedFrameError | None:
        """Returns the error of a stream that ends here, within a frame; None if it ends between frames."""
        if not self._held:
            return None
        read = f"after {len(self._held)} bytes of it"
        return TruncatedFrameError(f"the stream of {self.sender} ends within a frame, {read}", self.sender)
