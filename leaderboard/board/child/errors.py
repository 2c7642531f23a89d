"""What goes wrong with a submitted policy, and how words are shown that are somebody else's."""


class EntryError(RuntimeError):
    """A submitted policy did what no policy may, or broke: the message says what happened, and in which round."""


def printable(text: str) -> str:
    """Returns a text without characters that would do something to a terminal."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )
