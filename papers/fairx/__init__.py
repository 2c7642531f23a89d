"""Experiments on FairX-LinUCB, federated linear bandits with exposure fairness (Solanki's thesis, 2024, chapter 6)."""
