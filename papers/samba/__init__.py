"""Experiments on SAMBA, bandits on encrypted data of several owners (Ciucanu et al., JAIR 2022)."""
