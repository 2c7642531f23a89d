"""Privatizers, the budgets that they keep, and audits that attack them."""
