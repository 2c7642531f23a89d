"""One folder a paper: its experiments as data, their analysis, and its pages."""
