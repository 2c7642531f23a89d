"""Computations of a single data owner: its scores under a bandit algorithm, and the rewards of its arm."""
