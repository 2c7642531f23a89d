"""An experiment on whether private federation has less regret than tuned agents who do not communicate."""
