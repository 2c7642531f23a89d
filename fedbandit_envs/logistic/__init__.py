"""Logistic bandits: rewards of 0 or 1, whose probabilities are a logistic function of <x, theta*>."""
