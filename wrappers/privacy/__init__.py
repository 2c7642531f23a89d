"""Privatizers, which add noise to releases; privacy budgets; and audits, which attack privatizers to test claims."""
