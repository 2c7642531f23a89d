"""What goes wrong with a submitted policy."""


class EntryError(RuntimeError):
    """A submitted policy did what no policy may, or broke: the message says what happened, and in which round."""
