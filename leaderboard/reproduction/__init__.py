"""Papers' experiments: their runs, and pages that set measured values beside the papers' statements."""
