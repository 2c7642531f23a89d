"""One folder for each paper: its experiments as data, their analysis, and the templates of the pages on them."""
