"""Frames in a stream of bytes: each after its length in 4 bytes."""

from collections.abc import Iterator

from fedbandit_envs.wrappers.secure.errors import OversizedFrameError, TruncatedFrameError

_LENGTH_BYTES = 4


def with_length(frame: bytes) -> bytes:
    """Returns a frame as it goes into a stream."""
    return len(frame).to_bytes(_LENGTH_BYTES, "big") + frame


class FrameReader:
    """Cuts a stream into frames; it never holds more than one frame and what has arrived at once.

    Attributes:
        sender: Whose stream it is, for errors.
        longest: No frame is longer, in bytes.
    """

    def __init__(self, sender: str, longest: int) -> None:
        """Starts at the beginning of a stream; arguments as the attributes."""
        self.sender = sender
        self.longest = longest
        self._held = bytearray()

    def feed(self, arrived: bytes) -> Iterator[bytes]:
        """Yields the frames that are complete.

        Raises:
            OversizedFrameError: A frame announces more bytes than any may have; none of them are waited for.
        """
        self._held += arrived
        while len(self._held) >= _LENGTH_BYTES:
            length = int.from_bytes(self._held[:_LENGTH_BYTES], "big")
            if length > self.longest:
                raise OversizedFrameError(
                    f"{self.sender} announces a frame of {length} bytes; at most {self.longest} are allowed",
                    self.sender,
                )
            end = _LENGTH_BYTES + length
            if len(self._held) < end:
                return
            frame = bytes(self._held[_LENGTH_BYTES:end])
            del self._held[:end]
            yield frame

    def end(self) -> None:
        """Takes in that nothing more will come.

        Raises:
            TruncatedFrameError: A frame has begun and not ended.
        """
        if self._held:
            raise TruncatedFrameError(
                f"the stream of {self.sender} ends within a frame, after {len(self._held)} bytes of it",
                self.sender,
            )
