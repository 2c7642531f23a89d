"""Experiments on Zhou and Chowdhury's private federated linear bandits (ICLR 2024): what local trust costs."""
