"""Experiment on Byzantine agents (liars): how much false messages raise the regret of honest agents."""
