"""What ends a run of the secure protocol: every refusal is one of these, and says whom it is about."""


class SecureError(Exception):
    """A run that cannot go on; there is no result.

    Attributes:
        culprit: The role that it is about, or an empty string where nobody can tell.
    """

    def __init__(self, message: str, culprit: str = "") -> None:
        """Takes what is told the user, and whom it is about."""
        super().__init__(message)
        self.culprit = culprit


class FrameError(SecureError):
    """A frame that is refused as it arrives; nothing of it has been used."""


class TruncatedFrameError(FrameError):
    """A frame that is shorter than announced, or than any frame can be."""


class OversizedFrameError(FrameError):
    """A frame that is, or is announced as, longer than any of its link can be."""


class ReplayedFrameError(FrameError):
    """A frame with a sequence number that has been there already."""


class ReorderedFrameError(FrameError):
    """A frame with a sequence number whose predecessors have not arrived."""


class TamperedFrameError(FrameError):
    """A frame whose tag is wrong: it was changed, or sealed with another key."""


class CiphertextError(SecureError):
    """An encrypted score, mark or sum that does not open under the round and direction it came in."""


class ProtocolError(SecureError):
    """A message that opens, but does not belong here: of another kind, length or turn than the protocol's."""


class KeyExhaustedError(SecureError):
    """A key that has encrypted as often as random nonces allow."""


class PeerLostError(SecureError):
    """A role that has gone before its part was done."""


class PeerTimeoutError(SecureError):
    """A role that has not answered in time."""


class RunStoppedError(SecureError):
    """Another role has ended the run, for the reason given."""


class MissingExtraError(ImportError):
    """The libraries of the ``[secure]`` extra are not installed."""
