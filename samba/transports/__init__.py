"""Delivery of frames between roles: within one process, by sockets, or with one process for each role."""
