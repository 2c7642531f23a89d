"""The error of a submitted policy, and how text of a stranger is printed."""


class EntryError(RuntimeError):
    """A submitted policy broke, or did what no policy may do; the message says what happened, and in which round."""


def printable(text: str) -> str:
    """Returns a text in which control characters, which could act on a terminal, are replaced by their escapes."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )
