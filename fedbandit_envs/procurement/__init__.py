"""Procurement under a quality constraint: agents buy units from producers, whose quality they learn."""
