"""Policies, a folder a problem, and the registry of them with the wrappers that they are played behind."""
