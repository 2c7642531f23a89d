"""Bernoulli arms: a federation of agents that pull arms with 0/1 rewards, and data sets of means."""
