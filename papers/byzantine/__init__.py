"""Liars among the agents."""
