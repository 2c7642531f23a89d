"""Random numbers: for each replica and purpose a stream of its own, most of them counter-based."""
