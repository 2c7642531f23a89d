"""One module for each paper: its experiments as data, and their analysis."""
