"""Noise of prefix sums, by which a statistic is released over and over."""
