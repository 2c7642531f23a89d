"""Messages between parent and child.

Whoever waits sleeps. Waiting with open eyes for a moment was tried: where other processes want the cores it costs up to
400 microseconds a round more than sleep, and where they do not it saves 15.
"""

import socket

LARGEST = 1 << 16
"""Bytes of the largest message."""
MOST_DESCRIPTORS = 2
"""That come with one message."""
RESET, SEE, SEE_OTHERS = b"r", b"s", b"o"
"""What the parent says: reset; look at the observations; look at observations that lie there otherwise than before."""
READY, ACTED, ACTED_OTHERWISE, FAILED = b"r", b"a", b"o", b"f"
"""What the child says: reset is done; an action is there; one of another form than before; it cannot go on."""


class ClosedError(Exception):
    """The other side is gone."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Returns two ends; a message arrives whole or not at all."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, message: bytes, descriptors: list[int] | None = None) -> None:
    """Sends a message.

    Raises:
        ClosedError: Nobody will hear it.
    """
    try:
        if descriptors:
            socket.send_fds(end, [message], descriptors)
        else:
            end.send(message, socket.MSG_NOSIGNAL)
    except ConnectionError as error:
        raise ClosedError from error


def receive(end: socket.socket) -> bytes:
    """Returns the next message, without the descriptors that may come with it.

    Raises:
        ClosedError: There will be none.
        TimeoutError: None came within the end's timeout.
    """
    try:
        message = end.recv(LARGEST)
    except ConnectionError as error:
        raise ClosedError from error
    if not message:
        raise ClosedError
    return message
