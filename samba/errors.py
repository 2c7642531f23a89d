"""Errors of the secure protocol. Each ends the run without a result, except for a missing extra before the run."""


class SecureError(Exception):
    """An error that ends a run of the secure protocol without a result.

    Attributes:
        culprit: Name of the role that caused it; empty if that is not known.
    """

    def __init__(self, message: str, culprit: str = "") -> None:
        """Stores the message for the user and the name of the role that caused the error."""
        super().__init__(message)
        self.culprit = culprit


class FrameError(SecureError):
    """A frame that is refused on arrival; nothing in it has been used."""


class TruncatedFrameError(FrameError):
    """A frame that is shorter than its announced length, or than the shortest possible frame."""


class OversizedFrameError(FrameError):
    """A frame that is longer, or announces a greater length, than its link allows."""


class ReplayedFrameError(FrameError):
    """A frame with a sequence number that has already been accepted."""


class ReorderedFrameError(FrameError):
    """A frame with a sequence number ahead of the next one expected."""


class TamperedFrameError(FrameError):
    """A frame with a wrong authentication tag: it was modified, or sealed with another key."""


class CiphertextError(SecureError):
    """An encrypted score or mark that does not decrypt for the round and direction in which it arrived."""


class ProtocolError(SecureError):
    """An authentic message of the wrong kind, length or content, or one that arrives out of turn."""


class KeyExhaustedError(SecureError):
    """A key that has been used for as many encryptions as is safe (2^32 with random nonces)."""


class PeerLostError(SecureError):
    """A role that disconnected before its part was done, or that cannot be reached."""


class PeerTimeoutError(SecureError):
    """A role that did not answer within the timeout."""


class RunStoppedError(SecureError):
    """A run that another role has stopped; the message gives that role's reason."""


class MissingExtraError(ImportError):
    """The libraries of the ``[secure]`` extra are not installed."""
