"""An experiment that is no paper's: one panel, seeds with markets of their own, one mode."""
