"""Procurement under a quality constraint: agents buy units of producers whose quality they learn."""
