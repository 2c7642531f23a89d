"""One run layer: what is run, its result, where results are kept, statistics and plots."""
