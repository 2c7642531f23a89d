"""The error that a submitted policy causes, and a function that makes untrusted text safe to print."""


class EntryError(RuntimeError):
    """A submitted policy failed or did something that is not allowed; the message says what, and in which round."""


def printable(text: str) -> str:
    """Returns a text with control characters, which could act on a terminal, replaced by printable escapes."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )
