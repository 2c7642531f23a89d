"""Experiments on FedUCB, differentially private federated linear bandits (Dubey and Pentland, NeurIPS 2020)."""
