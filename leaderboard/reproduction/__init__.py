"""Papers' experiments: what is run, and what a page says of it beside what the paper says."""
