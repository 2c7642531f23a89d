"""Messages between the parent process and the sandboxed child process, over a pair of sockets.

A message arrives whole or not at all, and may come with file descriptors. Both processes block while they wait for a
message. Busy waiting was tried: it saves 15 microseconds a round if cores are idle, and costs up to 400 microseconds a
round more if other processes need the cores.
"""

LARGEST = 1 << 16
"""Largest size of a message, in bytes."""
MOST_DESCRIPTORS = 2
"""Largest number of file descriptors that come with one message."""
RESET, SEE = b"r", b"s"
"""First byte of a message of the parent, which tells its kind.

``RESET`` starts the episode; it comes with file descriptors of a file with the arguments of ``reset`` and of the shared
memory for actions. ``SEE`` says that new observations are in shared memory; it is followed by their layout if that has
changed, and comes with the descriptor of their memory if that is new.
"""
READY, ACTED, FAILED = b"r", b"a", b"f"
"""First byte of a message of the child, which tells its kind.

``READY`` says that a step of the start is done. ``ACTED`` says that an action is in shared memory; it is followed by
the action's layout if that has changed. ``FAILED`` says that the policy has raised an error, which follows as JSON.
"""
