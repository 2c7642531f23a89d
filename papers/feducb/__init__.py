"""FedUCB (Dubey and Pentland, NeurIPS 2020)."""
