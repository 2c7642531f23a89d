"""Reproduction of papers' experiments: their runs, and pages that compare measurements with the papers' statements."""
