"""The computations of a data owner: its scores under a bandit algorithm, and the rewards of its arm."""
