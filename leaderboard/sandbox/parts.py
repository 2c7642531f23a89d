"""Names of the parts of confinement, which results record; they can be read on systems that confine nothing."""

FILES, SIGNALS, SYSTEM_CALLS = "files", "signals", "system calls"
"""The first parts: only listed files can be opened; no signals can be sent; only listed system calls are allowed."""

PROCESSES, TIMES, TRUNCATION = "other processes", "times of access", "truncation"
"""The other parts: no other process can be seen, nor a file beside listed ones; no time of access is recorded; and a
file that may only be read cannot be truncated."""

PARTS = (FILES, SIGNALS, SYSTEM_CALLS, PROCESSES, TIMES, TRUNCATION)
"""All parts of confinement that a kernel may enforce."""
