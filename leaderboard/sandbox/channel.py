"""Messages between the parent process and the sandboxed child process, over a pair of sockets.

Both sides block while they wait. Busy waiting was tried: where other processes want the cores it costs up to 400
microseconds a round more, and where they do not it saves 15.
"""

import socket

LARGEST = 1 << 16
"""Bytes of the largest message."""
MOST_DESCRIPTORS = 2
"""Largest number of file descriptors that come with one message."""
RESET, SEE = b"r", b"s"
"""First byte of the parent's messages: reset; observations are there, followed by their layout if it has changed."""
READY, ACTED, FAILED = b"r", b"a", b"f"
"""First byte of the child's: ready; an action is there, followed by its layout if it has changed; it has failed."""


class ClosedError(Exception):
    """The other side has closed its end."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Returns two ends; a message arrives whole or not at all."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send(end: socket.socket, message: bytes, descriptors: list[int] | None = None) -> None:
    """Sends a message.

    Raises:
        ClosedError: The other side has closed its end.
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
        ClosedError: The other side has closed its end.
        TimeoutError: No message came within the end's timeout.
    """
    try:
        message = end.recv(LARGEST)
    except ConnectionError as error:
        raise ClosedError from error
    if not message:
        raise ClosedError
    return message
