"""Experiment on real data: handwritten digits as a federated bandit, alone, together and behind noise."""
