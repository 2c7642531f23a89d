"""Transports of frames between roles: one process, sockets, or one process for each role on this machine."""
