"""Registered problems and their ids, collected from the problems' folders."""
