"""Errors that the secure protocol raises."""


class SecureError(Exception):
    """An error that ends a run of the secure protocol without a result; the message says what has happened.

    Attributes:
        culprit: Name of the role that caused it; empty if that is not known.
    """

    def __init__(self, message: str, culprit: str = "") -> None:
        """Stores the message for the user and the name of the role that caused the error."""
        super().__init__(message)
        self.culprit = culprit


class MissingExtraError(ImportError):
    """The error that libraries of an extra of this package are not installed; the message says how to install them."""
