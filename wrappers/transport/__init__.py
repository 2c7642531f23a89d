"""Transports: a channel between agents, a server, and their schedules and topologies."""
