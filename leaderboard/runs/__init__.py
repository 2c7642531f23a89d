"""Runs of a policy in an environment: their settings, execution, results, storage, statistics and plots."""
