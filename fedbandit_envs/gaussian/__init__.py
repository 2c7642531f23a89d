"""Gaussian arms: a federation of agents whose means may differ, and who aim between their own and the global means."""
