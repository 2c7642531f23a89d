"""Bernoulli arms: a federation of agents that pull them, and a vertical one, whose owners have an arm each."""
