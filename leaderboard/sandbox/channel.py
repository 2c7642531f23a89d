"""Messages between the parent process and the sandboxed child process, over a pair of sockets.

A message arrives whole or not at all, and may come with file descriptors. Both sides block while they wait. Busy
waiting was tried: where other processes want the cores it costs up to 400 microseconds a round more, and where they do
not it saves 15.
"""

LARGEST = 1 << 16
"""Bytes of the largest message."""
MOST_DESCRIPTORS = 2
"""Largest number of file descriptors that come with one message."""
RESET, SEE = b"r", b"s"
"""First byte of the parent's messages: reset, once, with descriptors of the arguments and of memory for actions;
observations are there, followed by their layout if it has changed, with a descriptor if their memory is new."""
READY, ACTED, FAILED = b"r", b"a", b"f"
"""First byte of the child's: ready; an action is there, followed by its layout if it has changed; it has failed."""
