"""Whole runs of the secure protocol, and of the same federation without encryption."""
